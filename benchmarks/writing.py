"""Streams written to files: two processes against one.

Workers import this module for its functions, so it imports little.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.measure import Contestant, Row, Target, race, relative

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data
    from numpy.typing import NDArray

_LANES = 8
_LENGTH = 2048
_CHARACTERS = 256
"""The characters of a document, of which a record has about nine."""
_ROWS_PER_FILE = 1000
_MOST_ROUNDS = 3


def rows(data: Data) -> Iterator[Row]:
    """Measure a filtered, flattened, packed stream that is written as Parquet; by record read."""
    source = sk.open(list(data.halves))
    stream = source.shuffle(seed=0).stream(lanes=_LANES, epochs=1)
    stream = stream.filter(is_even).flatten(documents).pack(_LENGTH)
    with tempfile.TemporaryDirectory() as folder:
        contestants = {
            "one": Contestant(lambda: _write(stream, folder, jobs=1), count=len(source)),
            "two": Contestant(lambda: _write(stream, folder, jobs=2), count=len(source)),
        }
        times = race(contestants, rounds=min(_MOST_ROUNDS, data.sizes.rounds))
    yield relative(
        f"stream filtered, flattened, packed, {_LANES} lanes, written as Parquet by two processes",
        times.median("two") * 1e6,
        "us",
        Target("at least", 1.7),
        against=f"one process {times.median('one') * 1e6:.2f}",
        ratio=times.ratio("one", "two"),
    )


def is_even(record: dict[str, Any]) -> bool:
    """Return True for half of the records."""
    return bool(record["id"] % 2 == 0)


def documents(record: dict[str, Any]) -> list[NDArray[np.int64]]:
    """Return the documents of a record: arrays of numbers that stand for tokens."""
    text = record["text"]
    return [tokens(text[at : at + _CHARACTERS]) for at in range(0, len(text), _CHARACTERS)]


def tokens(text: str) -> NDArray[np.int64]:
    """Return a number below 50,000 for each four bytes of a text."""
    encoded = text.encode()
    return np.frombuffer(encoded[: len(encoded) // 4 * 4], dtype="<u4").astype(np.int64) % 50_000


def _write(stream: sk.Stream, folder: str, *, jobs: int) -> None:
    """Write all files anew, over those of the run before."""
    path = os.path.join(folder, str(jobs))
    stream.write_parquet(path, rows_per_file=_ROWS_PER_FILE, jobs=jobs, resume=False)
