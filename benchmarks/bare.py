"""Independent processes that each do a share of the work: the floor for worker processes.

    python benchmarks/bare.py PATH INDEX NUMBER OF

Does, for each line on stdin, its share of the records of PATH once, and answers with a line. INDEX holds
where the records begin and end, in the order in which they are to be read.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    sys.path[0] = ROOT

from benchmarks import floors  # noqa: E402 - a script is given its own folder, not the root
from benchmarks.pipelines import BATCH, WORKERS, heavy  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Bare:
    """The processes, as many as the workers that they are compared with."""

    processes: tuple[subprocess.Popen[str], ...]

    def run(self) -> None:
        """Start the share of every process, and wait for the last one."""
        for process in self.processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in self.processes:
            assert process.stdout
            if process.stdout.readline() != "done\n":
                raise RuntimeError("a bare process died")


@contextlib.contextmanager
def started(path: str, index: str) -> Iterator[Bare]:
    """Start the processes."""
    with contextlib.ExitStack() as stack:
        yield Bare(tuple(stack.enter_context(_process(path, index, number)) for number in range(WORKERS)))


def _process(path: str, index: str, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, os.path.abspath(__file__), path, index, str(number), str(WORKERS)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def share_of(index: str, path: str, number: int, of: int) -> list[list[floors.Span]]:
    """Return the batches of one process: where the records lie in the file, which is mapped."""
    view, bounds = floors.mapped(path), np.load(index)
    spans = [(view, start, end) for start, end in bounds.tolist()]
    return [spans[first : first + BATCH] for first in range(0, len(spans), BATCH)][number::of]


def main(path: str, index: str, number: str, of: str) -> None:
    """Do a share for each line on stdin."""
    batches = share_of(index, path, int(number), int(of))
    for _ in sys.stdin:
        for batch in batches:
            _keep([heavy(record) for record in floors.decoded(batch)])
        print("done", flush=True)


def _keep(batch: list[Any]) -> None:
    """Drop a batch, as a training loop does after its use."""


if __name__ == "__main__":
    main(*sys.argv[1:])
