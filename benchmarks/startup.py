"""Start-up: a process that opens an indexed JSONL file and takes a batch, beside the imports it needs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.data import as_installed, numbered
from benchmarks.measure import Contestant, Target, race, relative, shown

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data
    from benchmarks.measure import Row

TARGET = Target("at most", 1.6)

_FLOOR = "import numpy, msgspec"
_BATCH = """
import sys
import seekable as sk
loader = sk.Loader(sk.open(sys.argv[1]).shuffle(seed=1), batch_size=4, prefetch=0)
assert len(next(iter(loader))["id"]) == 4
"""


def rows(data: Data) -> Iterator[Row]:
    """Measure whole processes, of which each begins with nothing imported."""
    files, records = data.sizes.opened[0]
    folder = numbered(data, files=files, rows=records)
    sk.open(folder)  # writes the index
    path = sk.open(folder).locate(0).path
    sk.open(path)
    environment = as_installed(data)
    contestants = {
        "seekable": Contestant(lambda: _run(environment, _BATCH, path)),
        "floor": Contestant(lambda: _run(environment, _FLOOR)),
    }
    for contestant in contestants.values():
        contestant.run()  # writes the bytecode
    done = race(contestants, rounds=3 * data.sizes.rounds)
    floor = shown(done.median("floor") * 1e3)
    yield relative(
        "start, open and take a batch",
        done.median("seekable") * 1e3,
        "ms",
        TARGET,
        against=f"import numpy, msgspec {floor}",
        ratio=done.ratio("seekable", "floor"),
    )


def _run(environment: dict[str, str], code: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=environment)
