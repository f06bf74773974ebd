"""Opening many files that have an index, in a fresh process each time: memory that was once used stays.

python benchmarks/opening.py FOLDER [HOLDER] [--batch]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    sys.path[0] = ROOT

from benchmarks.data import numbered  # noqa: E402 - a script is given its own folder, not the root
from benchmarks.measure import Row, Target, absolute, shown  # noqa: E402

import seekable as sk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_TARGETS = (
    (Target("at most", 100), Target("at most", 50), None),
    (Target("at most", 1500), None, Target("at most", 1200)),
)
"""Milliseconds and megabytes, and milliseconds to the first batch, for each of the folders."""

_BATCH = 32


def rows(data: Data) -> Iterator[Row]:
    """Measure how long it takes to open some folders, and the memory that this takes."""
    for (files, records), (within, below, batched) in zip(data.sizes.opened, _TARGETS, strict=False):
        folder = numbered(data, files=files, rows=records)
        assert len(sk.open(folder)) == records
        trials = [opened(folder, batch=True) for _ in range(data.sizes.rounds)]
        name = f"open {records:,} records in {files:,} files"
        measured = (
            ("ms", "ms", within, name),
            ("mb", "MB", below, f"{name}, private memory"),
            ("batch_ms", "ms", batched, f"{name}, to the first batch"),
        )
        for key, unit, target, what in measured:
            if target is None:
                continue
            figures = [each[key] for each in trials]
            against = f"{shown(min(figures))} to {shown(max(figures))}"
            yield absolute(what, statistics.median(figures), unit, target, against=against)


def opened(folder: str, *, holder: str | None = None, batch: bool = False) -> Any:
    """Return what another process takes to open a folder or a table: ``ms`` and ``mb``.

    With ``batch`` it has ``batch_ms`` too: until the first batch of shuffled records is there.
    """
    options = [*([holder] if holder else []), *(["--batch"] if batch else [])]
    command = [sys.executable, os.path.abspath(__file__), folder, *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _private() -> int:
    """Return the bytes of memory that only this process has."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def main(folder: str, *options: str) -> None:
    """Open a folder, read a batch if that is asked for, and print what that took."""
    opener, loader = sk.open, sk.Loader  # imported before the clock runs
    chosen = next((sk.formats.Kaldi(holder=name) for name in options if name != "--batch"), None)
    before, began = _private(), time.perf_counter()
    ds = opener(folder, format=chosen)
    took = time.perf_counter() - began
    grown = _private() - before
    assert ds._node.size
    measured = {"ms": took * 1e3, "mb": grown / 1e6}
    if "--batch" in options:
        began = time.perf_counter()
        next(iter(loader(ds.shuffle(seed=0), batch_size=_BATCH)))
        measured["batch_ms"] = (took + time.perf_counter() - began) * 1e3
    print(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])
