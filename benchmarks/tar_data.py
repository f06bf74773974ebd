"""Archives for the benchmarks: samples in tar shards, Shar folders, and an hour of audio, made once."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import struct
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.data import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.data import Data
    from numpy.typing import NDArray

_OLD = 1_700_000_000
_IMAGE = 20_000
_RATE = 16_000
_FRAMES = 10_000
_WAV_HEADER = 44

Member = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the headers of an archive are written."""

    name: str
    """The name in the table: "PAX" has a header of its own before every member's, as webdataset writes it."""

    format: int
    mtime: float


PAX = Kind("PAX", tarfile.PAX_FORMAT, _OLD + 0.5)
USTAR = Kind("ustar", tarfile.USTAR_FORMAT, _OLD)


def shards(data: Data, kind: Kind, *, files: int = 10, samples: int | None = None) -> list[str]:
    """Return tar files of samples {jpg 20,000 bytes, json 200 bytes, txt}, as many in each file."""
    count = samples or data.sizes.samples
    folder = os.path.join(data.folder, f"tars-{kind.name}-{files}-{count}")
    paths = [os.path.join(folder, f"shard-{number:06d}.tar") for number in range(files)]
    each = count // files
    for number, path in enumerate(paths):
        if not os.path.exists(path):
            placed(path, archive(_samples(number * each, (number + 1) * each), kind))
    return paths


def compressed(data: Data) -> str:
    """Return one tar file of all samples, as gzip has it; images are what compresses to a half."""
    path = os.path.join(data.folder, f"tar-gz-{data.sizes.samples}", "all.tar.gz")
    if not os.path.exists(path):
        whole = b"".join(archive(_samples(0, data.sizes.samples, nibbles=True), USTAR))
        placed(path, [gzip.compress(whole, compresslevel=6, mtime=_OLD)])
    return path


def small_members(data: Data, kind: Kind) -> str:
    """Return a tar file of members of 1 kB, each a sample of its own."""
    count = 4 * data.sizes.samples
    path = os.path.join(data.folder, f"small-{kind.name}-{count}", "small.tar")
    if not os.path.exists(path):
        content = np.random.default_rng(5).bytes(1_000)
        placed(path, archive(((f"{number:08d}.bin", content) for number in range(count)), kind))
    return path


def many(data: Data, *, files: int) -> str:
    """Return a folder of so many tar files with a sample each."""
    folder = os.path.join(data.folder, f"tars-{files}")
    if os.path.exists(folder):
        return folder
    for number in range(files):
        path = os.path.join(f"{folder}.new", f"{number % 100:02d}", f"{number:06d}.tar")
        placed(path, archive([(f"{number:06d}.txt", b"row")], USTAR))
    os.rename(f"{folder}.new", folder)
    return folder


def shar(data: Data) -> str:
    """Return a folder of Shar: cuts as JSON lines, and tar files with 20 kB of WAV for each."""
    count, each = data.sizes.samples, data.sizes.samples // 10
    folder = os.path.join(data.folder, f"shar-{count}")
    if os.path.exists(folder):
        return folder
    audio = np.random.default_rng(6).integers(-3_000, 3_000, (97, _FRAMES), dtype=np.int16)
    for shard in range(10):
        numbers = range(shard * each, (shard + 1) * each)
        lines = (json.dumps(_cut(number)).encode() + b"\n" for number in numbers)
        placed(os.path.join(f"{folder}.new", f"cuts.{shard:06d}.jsonl"), lines)
        pairs = itertools.chain.from_iterable(_pair(number, audio[number % 97]) for number in numbers)
        placed(os.path.join(f"{folder}.new", f"recording.{shard:06d}.tar"), archive(pairs, USTAR))
    os.rename(f"{folder}.new", folder)
    return folder


def long_audio(data: Data) -> str:
    """Return a tar file with an hour of WAV."""
    path = os.path.join(data.folder, "hour", "hour.tar")
    if not os.path.exists(path):
        frames = np.random.default_rng(7).integers(-3_000, 3_000, 3600 * _RATE, dtype=np.int16)
        placed(path, archive([("hour.wav", wave(frames))], USTAR))
    return path


def wave(frames: NDArray[np.int16]) -> bytes:
    """Return a WAV file of 16-bit samples."""
    content: bytes = frames.astype("<i2").tobytes()
    kind = struct.pack("<HHIIHH", 1, 1, _RATE, 2 * _RATE, 2, 16)
    head = b"RIFF" + struct.pack("<I", _WAV_HEADER - 8 + len(content)) + b"WAVEfmt " + struct.pack("<I", 16)
    return head + kind + b"data" + struct.pack("<I", len(content)) + content


def archive(members: Iterable[Member], kind: Kind) -> Iterator[bytes]:
    """Yield the bytes of a tar file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w|", format=kind.format) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), kind.mtime  # webdataset's is a float
            tar.addfile(info, io.BytesIO(content))
            if file.tell() > 8 << 20:
                yield file.getvalue()
                file.seek(0)
                file.truncate()
    yield file.getvalue()


def _samples(first: int, last: int, *, nibbles: bool = False) -> Iterator[Member]:
    random = np.random.default_rng(first)
    for number in range(first, last):
        image = random.integers(0, 16 if nibbles else 256, _IMAGE, dtype=np.uint8).tobytes()
        text = json.dumps({"id": number, "caption": "a picture of something " * 7}).ljust(200)
        yield f"{number:08d}.jpg", image
        yield f"{number:08d}.json", text.encode()
        yield f"{number:08d}.txt", b"the caption of picture %d" % number


def _recording(number: int) -> dict[str, Any]:
    source = {"type": "shar", "channels": [0], "source": ""}
    seconds = _FRAMES / _RATE
    return {
        "id": f"rec-{number:08d}",
        "sources": [source],
        "sampling_rate": _RATE,
        "num_samples": _FRAMES,
        "duration": seconds,
        "channel_ids": [0],
    }


def _cut(number: int) -> dict[str, Any]:
    name, seconds = f"cut-{number:08d}", _FRAMES / _RATE
    said = {
        "id": name,
        "recording_id": f"rec-{number:08d}",
        "start": 0.0,
        "duration": seconds,
        "channel": 0,
        "text": "the words that were said",
        "language": "en",
        "speaker": f"speaker-{number % 100}",
    }
    return {
        "id": name,
        "start": 0,
        "duration": seconds,
        "channel": 0,
        "supervisions": [said],
        "recording": _recording(number),
        "type": "MonoCut",
    }


def _pair(number: int, frames: NDArray[np.int16]) -> Iterator[Member]:
    yield f"cut-{number:08d}.wav", wave(frames)
    yield f"cut-{number:08d}.json", json.dumps(_recording(number)).encode() + b"\n"
