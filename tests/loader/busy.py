"""A consumer that works between batches, so that a thread makes them ahead."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def threads() -> list[threading.Thread]:
    """Return the threads that make batches ahead."""
    return [thread for thread in threading.enumerate() if thread.name == "seekable-prefetch"]


def slow(record: int) -> int:
    work(0.0001)
    return record


def work(seconds: float) -> None:
    """Be busy for some time."""
    until = perf_counter() + seconds
    while perf_counter() < until:
        pass


def next_of_busy(run: Iterator[Any]) -> Any:
    """Take an item, and work for longer than it took."""
    began = perf_counter()
    item = next(run)
    work(perf_counter() - began + 0.0001)
    return item


def started(run: Iterator[Any]) -> list[Any]:
    """Take items as a busy consumer does, until a thread makes them; return them."""
    taken = []
    while not threads():
        taken.append(next_of_busy(run))
        assert len(taken) < 9
    return taken
