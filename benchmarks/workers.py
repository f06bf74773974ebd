"""The costs of two worker processes: the time to the first batch, and memory.

python benchmarks/workers.py PATH STATE
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    sys.path[0] = ROOT

from benchmarks.data import beginning, numbered  # noqa: E402 - a script is given its own folder, not the root
from benchmarks.measure import Row, Target, absolute, shown  # noqa: E402
from benchmarks.pipelines import BATCH, WORKERS  # noqa: E402

import seekable as sk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_EPOCHS = 20
_STATES = 1000


def rows(data: Data) -> Iterator[Row]:
    """Measure the first batch of a process, states, and the memory of long runs and of large datasets."""
    yield from _first_batch(data)
    yield _state(data)
    yield _flat(data)
    yield _large(data)


def _first_batch(data: Data) -> Iterator[Row]:
    files, records = data.sizes.opened[1]
    for what, path in (
        ("one file", beginning(data)),
        (f"{files:,} files", numbered(data, files=files, rows=records)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            loader = _loader(path, workers=0)
            loader.skip_batches(min(10, len(loader) - 1))
            sk.save_state(folder, loader)
            seconds = [_until_first(path, folder, loader.step + 1) for _ in range(data.sizes.rounds)]
        yield absolute(
            f"{WORKERS} workers, {what}: from the start of Python to the first batch, resumed",
            statistics.median(seconds) * 1e3,
            "ms",
            Target("at most", 1200),
            against=f"{shown(min(seconds) * 1e3)} to {shown(max(seconds) * 1e3)}",
        )


def _until_first(path: str, state: str, step: int) -> float:
    """Return how many seconds a new process takes to its first batch, with which it is at a step."""
    command = [sys.executable, os.path.abspath(__file__), path, state]
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        answer = process.stdout.readline()
        took = time.perf_counter() - began
    if answer != f"{step}\n":
        message = f"the resumed process said {answer!r}"
        raise RuntimeError(message)
    return took


def _state(data: Data) -> Row:
    with _loader(beginning(data), workers=WORKERS) as loader:
        next(iter(loader))
        loader.state_dict()
        began = time.perf_counter()
        for _ in range(_STATES):
            loader.state_dict()
        took = (time.perf_counter() - began) / _STATES
    return absolute("state_dict", took * 1e6, "us", Target("at most", 50))


def _flat(data: Data) -> Row:
    """Measure by how much the memory of all processes changes from one epoch to the next."""
    with _loader(beginning(data), workers=WORKERS) as loader:
        sizes = []
        for _ in range(_EPOCHS):
            collections.deque(loader, maxlen=0)
            sizes.append(sum(private(process) for process in [os.getpid(), *_children(os.getpid())]))
    return absolute(
        f"{WORKERS} workers, private memory over {_EPOCHS} epochs: most over least",
        max(sizes) / min(sizes),
        "x",
        Target("at most", 1.05),
        against=f"{shown(min(sizes) / 1e6)} to {shown(max(sizes) / 1e6)} MB in {WORKERS + 1} processes",
    )


def _large(data: Data) -> Row:
    """Measure the memory that a large dataset takes in each worker."""
    files, records = data.sizes.opened[0]
    with _loader(numbered(data, files=files, rows=records), workers=WORKERS) as loader:
        collections.deque(zip(range(100), loader, strict=False), maxlen=0)
        most = max(private(process) for process in _children(os.getpid()))
    code = "import numpy, sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as interpreter:
        assert interpreter.stdout
        interpreter.stdout.readline()
        least = private(interpreter.pid)
        interpreter.communicate()
    return absolute(
        f"{records:,} records in {files:,} files: private memory of a worker",
        (most - least) / 1e6,
        "MB",
        Target("at most", 60),
        against=f"above Python and numpy, {shown(least / 1e6)}",
    )


def private(process: int) -> int:
    """Return the bytes of a process's memory that are no file's: its own, and what it shares without one."""
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        sizes = dict(line.split(":", 1) for line in file)
    return 1024 * sum(int(sizes[name].split()[0]) for name in ("RssAnon", "RssShmem"))


def _children(process: int) -> list[int]:
    found: list[int] = []
    for thread in os.listdir(f"/proc/{process}/task"):
        with (
            contextlib.suppress(FileNotFoundError),
            open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as file,
        ):
            found += map(int, file.read().split())
    return found


def _loader(path: str, *, workers: int) -> sk.Loader:
    return sk.Loader(sk.open(path).shuffle(seed=0), batch_size=BATCH, workers=workers)


def main(path: str, state: str) -> None:
    """Resume, and say at which step the first batch was delivered."""
    loader = _loader(path, workers=WORKERS)
    if not sk.load_state(state, loader):
        sys.exit("no state was found")
    next(iter(loader))
    print(json.dumps(loader.step), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
