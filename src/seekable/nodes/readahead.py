"""Read-ahead: the ranges of the next records are announced while others are read.

They are announced to the operating system, and those of objects of stores to the look-ahead of the fetcher.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, TypeVar

from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node
    from seekable.storage.far import PlansAhead

__all__ = [
    "ReadAhead",
    "read_rows",
    "reads_ahead",
    "seconds_a_row",
]

Item = TypeVar("Item")

_RECORDS = 4096
"""The number of records to announce ahead, so that a disk can serve many requests at once."""

_BYTES = 64 << 20
"""The approximate limit of the announced bytes, because they wait in memory."""

_PLANNED, _AT_ONCE = 4096, 64
"""How many rows `read_rows` plans together, and how many of them it reads together."""

_WARM_ROWS, _TIMED_ROWS = 4, 60
_TIMED_SECONDS = 0.5


class ReadAhead:
    """Announces the reads of a plan ahead of a reader that goes from its start to its end."""

    def __init__(self, plan: Plan, fetching: PlansAhead[Any, Plan] | None = None) -> None:
        """Start at the beginning of the plan.

        Args:
            plan: the plan that is read.
            fetching: the plans that this one is of, if objects of stores are fetched for them.
        """
        self._plan = plan
        self._fetching = fetching
        self._announced, self._size = 0, len(plan)
        self._step = max(1, min(_RECORDS, self._size * _BYTES // max(1, plan.bytes)))

    def read_to(self, stop: int) -> None:
        """Announce the records before ``stop``, and those up to one step after it."""
        if self._fetching is not None:
            self._fetching.read_to(stop)
        if self._announced < min(stop + self._step, self._size):
            until = min(stop + 2 * self._step, self._size)
            self._plan.slice(self._announced, until).advise()
            self._announced = until


def reads_ahead(
    planned: Iterator[tuple[Item, Plan]], *, fetches: bool = True
) -> Iterator[tuple[Item, Plan, ReadAhead]]:
    """Yield plans with their read-ahead; where objects of stores are read, the next plans are made early.

    Args:
        planned: the plans in the order of reading, each with something that comes back with it.
        fetches: False to fetch nothing ahead of objects of stores, because another process does.
    """
    for item, plan in planned:
        if fetches and plan.from_stores:
            fetching = far().reads.ahead(itertools.chain([(item, plan)], planned))
            yield from ((each, made, ReadAhead(made, fetching)) for each, made in fetching)
            return
        yield item, plan, ReadAhead(plan)


def read_rows(dataset: Node, rows: NDArray[np.int64]) -> Iterator[tuple[int, list[Any]]]:
    """Yield records in lists of up to 64, each with the number of records before it."""
    planned = (
        (start, dataset.plan(rows[start : start + _PLANNED])) for start in range(0, rows.size, _PLANNED)
    )
    for start, plan, ahead in reads_ahead(planned):
        for first in range(0, len(plan), _AT_ONCE):
            last = min(first + _AT_ONCE, len(plan))
            ahead.read_to(last)
            yield start + first, plan.slice(first, last).read()


def seconds_a_row(dataset: Node, rows: range) -> float:
    """Return the mean seconds to read one of the rows alone; measures for half a second at most.

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
