"""Outlines of audio against those of the samples themselves, whatever pieces they are read in."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import BadValue
from seekable.formats.audio.wave_file import wave_file
from seekable.viewer.pages import media_pages as room
from seekable.viewer.pages.media_pages import waveform


def model(samples: np.ndarray, places: int) -> tuple[list[float], list[float]]:
    """The outline by a loop over parts."""
    frames = len(samples)
    places = min(places, frames)
    parts = [samples[k * frames // places : (k + 1) * frames // places] for k in range(places)]
    return [float(part.min()) for part in parts], [float(part.max()) for part in parts]


@given(st.integers(0, 300), st.integers(1, 2), st.integers(1, 40), st.sampled_from([0.1, 0.7, 30.0]))
def test_the_outline_is_that_of_the_samples(frames: int, channels: int, places: int, at_once: float) -> None:
    rng = np.random.default_rng(frames)
    shape = (frames, channels) if channels > 1 else frames
    samples = rng.normal(0, 0.3, shape).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_SECONDS_AT_ONCE", at_once)
        found = waveform(wave_file(samples, 100), places=places)
    assert (found.frames, found.rate, found.frames_read) == (frames, 100, frames)
    assert (list(found.low), list(found.high)) == model(samples, places)
    assert found.made_of == "exact, computed"
    if frames:
        assert found.channels == channels


@pytest.mark.parametrize("kind", ["FLAC", "OGG", "MP3"])
def test_compressed_audio_is_read_in_pieces_as_whole(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = (0.5 * np.sin(np.arange(24_000) / 9) * np.linspace(0, 1, 24_000)).astype(np.float32)
    file = io.BytesIO()
    soundfile.write(file, samples, 8000, format=kind)
    whole = waveform(file.getvalue(), places=50)
    monkeypatch.setattr(room, "_SECONDS_AT_ONCE", 0.5)
    pieces = waveform(io.BytesIO(file.getvalue()), places=50)
    assert whole.frames == pieces.frames == 24_000
    assert np.allclose(whole.high, pieces.high, atol=1e-3)
    assert np.allclose(whole.low, pieces.low, atol=1e-3)
    assert np.allclose(whole.high, model(samples, 50)[1], atol=0.1)


def test_of_long_audio_the_beginning_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_LONGEST_SECONDS", 2.0)
    monkeypatch.setattr(room, "_SECONDS_AT_ONCE", 0.75)
    samples = np.linspace(0, 1, 500, dtype=np.float32)
    found = waveform(wave_file(samples, 100), places=10)
    assert (found.frames, found.frames_read, found.seconds, found.seconds_read) == (500, 200, 5.0, 2.0)
    assert (list(found.low), list(found.high)) == model(samples[:200], 10)
    assert found.made_of == "from the first 2 of 5 seconds"


def test_samples_that_are_no_numbers_make_an_outline_of_numbers() -> None:
    found = waveform(wave_file(np.array([np.nan, np.inf, -np.inf, 0.5], np.float32), 4), places=4)
    assert found.high == (0.0, 1.0, -1.0, 0.5)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes"),
        (b"<html><body>no audio at all", "cannot be decoded"),
        (b"RIFF" + struct.pack("<I", 100) + b"WAVEfmt ", "cut off"),
        (wave_file(np.zeros(100, np.int16), 8000)[:-50], "cut off"),
    ],
)
def test_what_is_no_audio_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(BadValue, match=words):
        waveform(data)
