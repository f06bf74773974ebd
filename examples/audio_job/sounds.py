"""Write speech-like signals and noise as two folders of Lhotse's Shar, as one would write recordings.

    python sounds.py FOLDER

FOLDER/speech has short recordings of eight vowels, spoken by voices of different pitch and speed;
FOLDER/noise has hum, hiss and murmur. Nothing is downloaded: all of it is made by numpy.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RATE = 8000
SPEECH, NOISE = 800, 90
SHARD = 200

VOWELS = {
    "ee": (280, 2250),
    "ih": (400, 1900),
    "eh": (550, 1770),
    "ah": (690, 1200),
    "aw": (590, 880),
    "uh": (640, 1400),
    "oo": (310, 870),
    "er": (480, 1350),
}
"""Each vowel by its first two formants, in Hz."""


def spoken(vowel: str, draw: np.random.Generator) -> NDArray[np.float32]:
    """Return a vowel, of 0.3 to 2.5 seconds, in a voice of its own."""
    seconds = draw.uniform(0.3, 2.5)
    time = np.arange(int(seconds * RATE)) / RATE
    pitch = draw.uniform(90, 240) * (1 + 0.05 * np.sin(2 * np.pi * draw.uniform(0.5, 2) * time))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    first, second = (formant * draw.uniform(0.92, 1.08) for formant in VOWELS[vowel])
    voice = np.zeros_like(time)
    for harmonic in range(1, 16):
        height = harmonic * float(pitch.mean())
        loudness = np.exp(-(((height - first) / 150) ** 2)) + 0.6 * np.exp(-(((height - second) / 200) ** 2))
        voice += loudness * np.sin(harmonic * phase)
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * draw.uniform(2, 5) * time)
    return np.float32(0.2 / np.abs(voice).max()) * (voice * syllables).astype(np.float32)


def noise(kind: int, draw: np.random.Generator) -> NDArray[np.float32]:
    """Return 0.5 to 3 seconds of hum, hiss or murmur."""
    time = np.arange(int(draw.uniform(0.5, 3) * RATE)) / RATE
    if kind == 0:
        hum = sum(np.sin(2 * np.pi * 50 * n * time) / n for n in range(1, 9))
        return (0.1 * np.asarray(hum)).astype(np.float32)
    hiss = draw.standard_normal(time.size)
    if kind == 1:
        return (0.1 * hiss).astype(np.float32)
    spectrum = np.fft.rfft(hiss) / np.sqrt(1 + np.arange(time.size // 2 + 1))
    murmur = np.fft.irfft(spectrum, time.size)
    return np.float32(0.1 / murmur.std()) * murmur.astype(np.float32)


def utterances() -> Iterator[dict[str, object]]:
    """Yield cuts of speech, with what is said as Lhotse's supervisions."""
    draw, vowels = np.random.default_rng(1), sorted(VOWELS)
    for number in range(SPEECH):
        name, vowel = f"speech-{number:05d}", vowels[number % len(vowels)]
        samples = spoken(vowel, draw)
        said = {"id": name, "recording_id": name, "start": 0.0, "duration": samples.size / RATE}
        yield {
            "id": name,
            "recording": {"data": (samples, RATE)},
            "supervisions": [{**said, "channel": 0, "text": vowel}],
        }


def noises() -> Iterator[dict[str, object]]:
    """Yield cuts of noise."""
    draw = np.random.default_rng(2)
    for number in range(NOISE):
        yield {"id": f"noise-{number:05d}", "recording": {"data": (noise(number % 3, draw), RATE)}}


def main() -> None:
    """Write both folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    folder = parser.parse_args().folder
    for name, cuts in (("speech", utterances()), ("noise", noises())):
        with sk.SharWriter(os.path.join(folder, name), {"recording": "wav"}, shard_size=SHARD) as writer:
            for cut in cuts:
                writer.write(cut)


if __name__ == "__main__":
    main()
