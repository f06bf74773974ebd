"""What a place of a record stands for: bytes, decoded audio, files below folders that were given."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable import kaldi
from seekable.errors import AccessDenied, WrongType
from seekable.formats.audio.wave_file import wave_file
from seekable.formats.kaldi.holders.wave import Wave
from seekable.viewer.facts.waveform import waveform
from seekable.viewer.media import decoded_audio, media_at, media_roots

if TYPE_CHECKING:
    from pathlib import Path

NO_FILES = media_roots([])
TONE = (np.sin(np.arange(800) / 5) * 0.5).astype(np.float32)


def sent(record: Any, at: str) -> bytes:
    with media_at(record, at, NO_FILES) as payload:
        return bytes(payload.range(0, payload.size))


def loudest(data: bytes) -> float:
    return max(waveform(data).high)


def test_bytes_are_sent_as_they_are() -> None:
    assert sent({"a": [b"xyz"]}, "a[0]") == b"xyz"
    assert sent(b"record", "[record]") == b"record"


@pytest.mark.parametrize("channels", [1, 2])
def test_decoded_audio_is_sent_as_a_wave_file(channels: int) -> None:
    samples = TONE if channels == 1 else np.stack([TONE, TONE / 2], axis=1)
    data = sent({"wav": (samples, 8000)}, "wav")
    assert data == wave_file(samples, 8000)
    assert (waveform(data).channels, waveform(data).frames) == (channels, 800)


@pytest.mark.parametrize(("channels", "samples"), [(1, 800), (2, 400), (1, 1), (2, 1), (1, 0)])
def test_a_wave_of_kaldi_is_scaled(channels: int, samples: int) -> None:
    data = (TONE[: channels * samples].reshape(channels, samples) * (1 << 15)).astype(np.float32)
    found = decoded_audio(Wave(16_000, data))
    assert found is not None
    made = waveform(wave_file(*found))
    assert (made.frames, made.rate) == (samples, 16_000)
    if samples:
        assert made.channels == channels
        assert np.allclose(found[0].reshape(-1, channels), (data / (1 << 15)).T)


def test_audio_of_each_format_of_records_is_heard(tmp_path: Path) -> None:
    file = wave_file((TONE * 32767).astype(np.int16), 8000)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("utt.wav")
        member.size = len(file)
        tar.addfile(member, io.BytesIO(file))
    with sk.SharWriter(tmp_path / "shar", {"recording": "wav"}, shard_size=2) as writer:
        writer.write({"id": "utt", "recording": {"data": (TONE, 8000)}})
    ark = f"ark:{tmp_path / 'a.ark'}"
    with kaldi.Writer(ark, "wave") as waves:
        waves.write("utt", kaldi.Wave(8000, (TONE * (1 << 15))[None]))
    records = {
        "tar": (sk.open(str(tmp_path / "a.tar"))[0], "wav"),
        "tar, decoded": (sk.open(str(tmp_path / "a.tar"), decode={"wav": "audio"})[0], "wav"),
        "shar": (sk.open(f"shar:{tmp_path / 'shar'}")[0], "recording.data"),
        "kaldi": (sk.open(ark, format=sk.formats.Kaldi(holder="wave"))[0], "[1]"),
    }
    for name, (record, at) in records.items():
        assert loudest(sent(record, at)) == pytest.approx(0.5, abs=0.01), name


def test_a_named_file_is_read_below_a_folder_only(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.bin").write_bytes(b"0123456789")
    (tmp_path / "secret").write_bytes(b"secret")
    roots = media_roots([tmp_path / "in"])
    record = {"file": "a.bin", "out": "../secret", "absolute": str(tmp_path / "secret")}
    with media_at(record, "file", roots) as payload:
        assert (payload.size, bytes(payload.range(2, 5))) == (10, b"234")
    for at in ("out", "absolute"):
        with pytest.raises(AccessDenied), media_at(record, at, roots):
            pass
    with pytest.raises(AccessDenied, match="--media-root"):
        sent(record, "file")


@pytest.mark.parametrize(
    "value",
    [1, None, [b"x"], (TONE, 0), (TONE, True), (TONE.astype(np.float64), 8000), (TONE[None, None], 8)],
)
def test_other_values_are_no_media(value: Any) -> None:
    with pytest.raises(WrongType, match="at 'a' is of type"):
        sent({"a": value}, "a")
