"""Reading from a cold page cache: a windowed shuffle against a shuffle of the whole file.

Each run is a process of its own, because pages that somebody has mapped stay in memory. It drops the file
from the page cache, then times the batches of a part of an epoch. The file is larger than the cache that is
configured, and the records of that part take less than that, so that none is read twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.data import large
from benchmarks.measure import Row, missing, race, relative

import seekable as sk
from seekable.storage.memory import disk_reads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_CACHE_BYTES = 512_000_000
_RECORDS = 130_000
_BATCH = 256
_ROUNDS = 5

_ORDERS = {
    "natural order": lambda ds: ds,
    "shuffle(window=16, lanes=8)": lambda ds: ds.shuffle(seed=0, window=16, lanes=8),
    "shuffle of everything": lambda ds: ds.shuffle(seed=0),
}


@dataclass(frozen=True, slots=True)
class Cold:
    """One order, read by a new process from a file that is not in memory."""

    path: str
    order: str

    def seconds(self) -> float:
        """Return the seconds for each record, 0 where nothing can be dropped from memory."""
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.cold", self.path, self.order],
            env={**os.environ, "SEEKABLE_CACHE_BYTES": str(_CACHE_BYTES)},
            cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)


def rows(data: Data) -> Iterator[Row]:
    """Measure each order against the shuffle of everything."""
    path, _ = large(data)
    sk.open(path)
    contestants = {order: Cold(path, order) for order in _ORDERS}
    if not contestants["natural order"].seconds():
        yield missing("cold epoch", 0, "us", None, peer="disk", why="nothing can be dropped from memory here")
        return
    times = race(contestants, rounds=_ROUNDS)
    slow = "shuffle of everything"
    for order in ("shuffle(window=16, lanes=8)", "natural order"):
        yield relative(
            f"cold epoch of {os.path.getsize(path) / 1e9:.2g} GB, {order}",
            times.median(order) * 1e6,
            "us",
            None,
            against=f"{slow} {times.median(slow) * 1e6:.1f}",
            ratio=times.ratio(slow, order),
        )


def _measured(path: str, order: str) -> float:
    """Drop a file from memory and read a part of it; return the seconds for each record."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    loader = sk.Loader(_ORDERS[order](sk.open(path)), batch_size=_BATCH, collate=list, prefetch=0)
    before, began, read = disk_reads(), time.perf_counter(), 0
    for batch in loader:
        read += len(batch)
        if read >= _RECORDS:
            break
    seconds = (time.perf_counter() - began) / read
    return seconds if disk_reads() > before else 0.0


if __name__ == "__main__":
    print(_measured(*sys.argv[1:]))
