"""Opening many files that have an index, in a fresh process each time: memory that was once used stays.

python benchmarks/opening.py FOLDER [HOLDER]
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

_TARGETS = ((Target("at most", 100), Target("at most", 50)), (Target("at most", 1500), None))
"""Milliseconds and megabytes, for each of the folders."""


def rows(data: Data) -> Iterator[Row]:
    """Measure how long it takes to open some folders, and the memory that this takes."""
    for (files, records), (within, below) in zip(data.sizes.opened, _TARGETS, strict=False):
        folder = numbered(data, files=files, rows=records)
        assert len(sk.open(folder)) == records
        trials = [opened(folder) for _ in range(data.sizes.rounds)]
        name = f"open {records:,} records in {files:,} files"
        for key, unit, target in (("ms", "ms", within), ("mb", "MB", below)):
            if target is None:
                continue
            figures = [each[key] for each in trials]
            against = f"{shown(min(figures))} to {shown(max(figures))}"
            what = name if unit == "ms" else f"{name}, private memory"
            yield absolute(what, statistics.median(figures), unit, target, against=against)


def opened(folder: str, *, holder: str | None = None) -> Any:
    """Return the milliseconds and megabytes that another process takes to open a folder or a table."""
    command = [sys.executable, os.path.abspath(__file__), folder, *([holder] if holder else [])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _private() -> int:
    """Return the bytes of memory that only this process has."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def main(folder: str, holder: str | None = None) -> None:
    """Open a folder, and print what that took."""
    opener = sk.open  # imported before the clock runs
    chosen = sk.formats.Kaldi(holder=holder) if holder else None
    before, began = _private(), time.perf_counter()
    ds = opener(folder, format=chosen)
    took = time.perf_counter() - began
    grown = _private() - before
    assert ds._node.size
    print(json.dumps({"ms": took * 1e3, "mb": grown / 1e6}))


if __name__ == "__main__":
    main(*sys.argv[1:])
