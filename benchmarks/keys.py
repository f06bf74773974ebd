"""Finding records by their keys: one look-up at a time, of keys that were kept before."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from benchmarks.measure import Contestant, Row, Target, absolute, race

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_ASKED = 20_000


def rows(data: Data) -> Iterator[Row]:
    """Measure look-ups against reading the same records by row."""
    ds = sk.open(data.short, key="id")
    asked = random.Random(0).sample(range(len(ds)), _ASKED)
    keys = [record["id"] for record in ds[asked]]
    contestants = {
        "key": Contestant(lambda: [ds.key(key) for key in keys], count=_ASKED),
        "row": Contestant(lambda: [ds[row] for row in asked], count=_ASKED),
    }
    times = race(contestants, rounds=data.sizes.rounds)
    yield absolute(
        f"ds.key, one of {len(ds):,}",
        times.median("key") * 1e6,
        "us",
        Target("at most", 20),
        against=f"ds[i] {times.median('row') * 1e6:.1f}",
    )
    yield absolute(
        "the index of its keys, a record",
        _bytes_of_keys(data.short) / len(ds),
        "bytes",
        Target("at most", 16),
    )


def _bytes_of_keys(path: str) -> int:
    folder = os.path.join(os.path.dirname(path), ".seekable")
    names = [name for name in os.listdir(folder) if name.startswith("keys-") and name.endswith(".u64")]
    return max(os.path.getsize(os.path.join(folder, name)) for name in names)
