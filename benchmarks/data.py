"""The data that is measured on: made once, always the same, kept in ``benchmarks/.data``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".data")

_OLD = 1_700_000_000
"""When the files claim to have been made: what was indexed right after it was made would be indexed twice."""

_WRITE_BYTES = 8 << 20
"""How much is written at a time. The page cache keeps what comes in small writes in small pieces, and then
reads it at half the speed; files that were read from a disk lie there in large ones."""

_SOURCES = ("web", "books", "code", "news", "wiki")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    records: int
    """JSON lines of about 2.3 kB."""

    short_lines: int
    """JSON lines of about 100 bytes."""

    sources: int
    """Small files that the records are dealt to."""

    rounds: int
    """How often contestants take turns."""

    trials: int
    """How often a restart is timed at each position."""


FULL = Sizes(records=200_000, short_lines=2_000_000, sources=500, rounds=9, trials=50)
QUICK = Sizes(records=40_000, short_lines=400_000, sources=500, rounds=5, trials=20)


@dataclass(frozen=True, slots=True)
class Data:
    """Where the files are."""

    sizes: Sizes

    long: str
    """One file of all records."""

    short: str
    """One file of short lines."""

    halves: tuple[str, str]
    """The records in two files."""

    small: tuple[str, ...]
    """The records in many files."""


def make(sizes: Sizes, folder: str = FOLDER) -> Data:
    """Return the data of these sizes, made now unless it is there."""
    folder = os.path.join(folder, f"{sizes.records}-{sizes.short_lines}-{sizes.sources}")
    os.makedirs(folder, exist_ok=True)
    _write(os.path.join(os.path.dirname(folder), ".gitignore"), [b"*\n"])
    # Each in a folder of its own, because Forager indexes folders.
    long = os.path.join(folder, "long", "long.jsonl")
    short = os.path.join(folder, "short", "short.jsonl")
    if not os.path.exists(long):
        _write(long, _long_lines(sizes.records))
    if not os.path.exists(short):
        _write(short, _short_lines(sizes.short_lines))
    return Data(sizes, long, short, _halves(long, sizes), _dealt(long, folder, sizes, sizes.sources))


def _halves(long: str, sizes: Sizes) -> tuple[str, str]:
    first, second = _dealt(long, os.path.dirname(os.path.dirname(long)), sizes, 2)
    return first, second


def _dealt(long: str, folder: str, sizes: Sizes, files: int) -> tuple[str, ...]:
    """Return the records in so many files, as many in each."""
    paths = tuple(os.path.join(folder, f"in-{files}", f"{i:04d}.jsonl") for i in range(files))
    if all(map(os.path.exists, paths)):
        return paths
    each = sizes.records // files
    with open(long, "rb") as lines:
        for path in paths:
            _write(path, [next(lines) for _ in range(each)])
    return paths


def _write(path: str, lines: Iterable[bytes]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb", buffering=_WRITE_BYTES) as file:
        file.writelines(lines)
    os.utime(path + ".new", (_OLD, _OLD))
    os.replace(path + ".new", path)


def _long_lines(count: int) -> Iterator[bytes]:
    """Yield records of 3 to 9 paragraphs of running text.

    There is nothing in it that JSON escapes: what is compared is how records are reached, and the more
    time their decoding takes, which all have to do, the less the rest shows.
    """
    random = np.random.default_rng(0)
    paragraphs = _paragraphs(random, count=5000, words=53)
    sizes = random.integers(3, 10, count)
    picks = random.integers(0, len(paragraphs), int(sizes.sum()))
    starts = np.cumsum(sizes) - sizes
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        text = " ".join(paragraphs[pick] for pick in picks[start : start + size].tolist())
        record = {"id": i, "source": _SOURCES[i % len(_SOURCES)], "text": text}
        yield json.dumps(record).encode() + b"\n"


def _short_lines(count: int) -> Iterator[bytes]:
    random = np.random.default_rng(1)
    paragraphs = [paragraph.encode() for paragraph in _paragraphs(random, count=5000, words=11)]
    picks = random.integers(0, len(paragraphs), count).tolist()
    for i, pick in enumerate(picks):
        yield b'{"id": %d, "text": "%s"}\n' % (i, paragraphs[pick])


def _paragraphs(random: np.random.Generator, *, count: int, words: int) -> list[str]:
    letters = random.integers(ord("a"), ord("z") + 1, (4000, 12), dtype=np.uint8)
    lengths = random.integers(2, 11, 4000)
    vocabulary = [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
    chosen = random.integers(0, len(vocabulary), (count, words)).tolist()
    return [" ".join(vocabulary[word] for word in row) for row in chosen]
