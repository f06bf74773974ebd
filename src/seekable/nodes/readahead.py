"""Telling the system, while records are read, which ones come next."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from seekable.nodes.contract import Node
    from seekable.nodes.graph import Plan

__all__ = ["ReadAhead", "SequentialReads", "read_rows", "seconds_a_row"]

_RECORDS = 4096
"""Records to be ahead by: enough for a disk to work on many at once, and for many to be neighbours."""

_BYTES = 64 << 20
"""Their bytes, about, where that is less: memory that waits to be read."""

_PLANNED, _AT_ONCE = 4096, 64
"""How many rows `read_rows` plans together, and how many of them it reads together."""

_WARM_ROWS, _TIMED_ROWS = 4, 60
_TIMED_SECONDS = 0.5


class ReadAhead:
    """Runs ahead of whoever reads a plan from its start to its end."""

    def __init__(self, plan: Plan) -> None:
        """Stand at the plan's start."""
        self._plan = plan
        self._told = 0
        self._step = max(1, min(_RECORDS, len(plan) * _BYTES // max(1, plan.bytes)))

    def read_to(self, stop: int) -> None:
        """Make sure that what comes up to here, and a step further on, was told of."""
        if self._told < min(stop + self._step, len(self._plan)):
            until = min(stop + 2 * self._step, len(self._plan))
            self._plan.slice(self._told, until).advise()
            self._told = until


class SequentialReads:
    """How many positions in a row were asked for one by one; threads that disturb it cost a fetch at most."""

    __slots__ = ("expected", "length")

    def __init__(self) -> None:
        """Begin before position 0."""
        self.expected = 0
        self.length = 0


def read_rows(dataset: Node, rows: NDArray[np.int64]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the records of some rows in lists of up to 64, each with the number of records before it."""
    for start in range(0, rows.size, _PLANNED):
        plan = dataset.plan(rows[start : start + _PLANNED])
        ahead = ReadAhead(plan)
        for first in range(0, len(plan), _AT_ONCE):
            last = min(first + _AT_ONCE, len(plan))
            ahead.read_to(last)
            yield start + first, plan.slice(first, last).read()


def seconds_a_row(dataset: Node, rows: range) -> float:
    """Return the mean time that some of the rows take to be read one by one, in half a second at most.

    The first four do not count, because files are opened for them.
    """
    for row in rows[:_WARM_ROWS]:
        dataset.record(row)
    begun, read = time.monotonic(), 0
    for row in rows[_WARM_ROWS : _WARM_ROWS + _TIMED_ROWS]:
        dataset.record(row)
        read += 1
        if time.monotonic() - begun > _TIMED_SECONDS:
            break
    return (time.monotonic() - begun) / max(1, read)
