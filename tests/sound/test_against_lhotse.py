"""sk.audio_mix gives what Lhotse gives, for equal arrays."""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.sound.waves import encoded, signal

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.frameworks(name="lhotse")
lhotse = pytest.importorskip("lhotse")

RATE = 16000


def cut(folder: Path, name: str, frames: int, channels: int = 1) -> Any:
    """A cut of `signal`, as Lhotse reads it from a file."""
    path = folder / f"{name}.wav"
    path.write_bytes(encoded("WAV", "FLOAT", frames=frames, channels=channels))
    return lhotse.Recording.from_file(path, recording_id=name).to_cut()


@functools.cache
def samples(frames: int, channels: int = 1) -> Any:
    return signal(frames, channels)


def assert_equal(ours: Any, theirs: Any) -> None:
    """Compare with an array of Lhotse, whose shape is (channels, frames)."""
    theirs = theirs[0] if len(theirs) == 1 else theirs.T
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("speech", "noise", "offset", "snr"),
    [
        (16000, 16000, 0, 10),
        (16000, 4000, 0.25, -3.5),
        (16000, 16000, 0.5, None),
        (4000, 16000, 0.1, 20),
        (4000, 4000, 1, 5),
        (4000, 16000, 0.10003, 5),
    ],
)
def test_a_padded_mix_is_that_of_cuts(
    tmp_path: Path, speech: int, noise: int, offset: float, snr: Any
) -> None:
    mixed = cut(tmp_path, "a", speech).mix(
        cut(tmp_path, "b", noise), offset_other_by=offset, allow_padding=True, snr=snr
    )
    ours, _ = sk.audio_mix(
        (samples(speech), RATE), (samples(noise), RATE), snr=snr, offset=offset, padding=True
    )
    assert_equal(ours, mixed.load_audio())


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (2, 2)])
def test_channels_are_those_of_the_mixer(first: int, second: int) -> None:
    from lhotse.audio.mixer import AudioMixer

    mixer = AudioMixer(np.atleast_2d(samples(5000, first).T), RATE)
    mixer.add_to_mix(np.atleast_2d(samples(3000, second).T), snr=7, offset=0.05)
    ours = sk.audio_mix(samples(5000, first), samples(3000, second), snr=7, offset=800)
    assert_equal(ours, mixer.mixed_audio)


@pytest.mark.parametrize("noise", [(40000,), (6000, 7000, 9000)])
def test_noise_is_that_of_a_cut_mixer(tmp_path: Path, noise: tuple[int, ...]) -> None:
    """The noise is longer than the speech, or several follow one another until the end."""
    speech = lhotse.CutSet.from_cuts([cut(tmp_path, "speech", 16000)])
    others = lhotse.CutSet.from_cuts([cut(tmp_path, f"{frames}", frames) for frames in noise])
    (mixed,) = speech.mix(others, snr=8, seed=random.Random(3))
    order = [track.cut.recording.id for track in mixed.tracks[1:]]
    ours, _ = sk.audio_mix((samples(16000), RATE), [(samples(int(name)), RATE) for name in order], snr=8)
    assert_equal(ours, mixed.load_audio())
