"""Reading ahead: ranges that are needed soon are fetched in the order of need, within a budget of bytes."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.remote.cache.held_ranges import Block
    from seekable.remote.fetching.flights import Flight
    from seekable.remote.fetching.units import PlannedRange
    from seekable.remote.fetching.wants import Wants

__all__ = ["LookAhead", "Readers"]

_COUNT_SHARE = 10
"""Bytes that a reader has not begun to read are counted in at most one of so many parts of the time."""


class Readers(Protocol):
    """The part of a fetcher that look-aheads use. All but ``plan`` and ``post`` are called in the loop."""

    def plan(self, wants: Wants) -> list[PlannedRange]:
        """Return the requests for some ranges, in the order of first need."""

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop soon."""

    def begin(self, wanted: PlannedRange) -> tuple[list[Block], list[Flight]]:
        """Return the blocks of a range that are here, and flights that bring the rest."""

    def leave(self, flights: Sequence[Flight]) -> None:
        """Give flights up; one that no other reader needs is cancelled."""

    def pump(self) -> None:
        """Begin further ranges of all look-aheads where there is a place."""

    def budget_bytes(self) -> int:
        """Return how many bytes ahead of the reader to fetch."""


@final
class LookAhead:
    """The ranges that one reader needs next. They stay in memory until a call of `want` leaves them out.

    Ranges beyond the budget wait until a later call of `want` brings them nearer to the front. Blocks that
    the reader has begun to read, such as those of the open windows of a shuffle, stay beside the budget.
    """

    def __init__(self, readers: Readers) -> None:
        """Want nothing yet; `Fetcher.ahead` makes look-aheads."""
        self._readers = readers
        self._ranges: list[PlannedRange] = []
        self._next = 0
        self._call = 0
        self._begun_bytes = 0
        self._count_at = 0.0
        self._blocks: list[Block] = []
        self._flights: list[Flight] = []
        self._wanted_bytes = 0
        self._here_bytes = 0

    def want(self, wants: Wants) -> None:
        """Fetch these ranges in this order as the budget allows; returns at once.

        They replace the ranges of the call before. Requests under way go on. Errors are not raised: the
        reader fetches again what it needs, and meets them then.

        Args:
            wants: the ranges, the next one first.
        """
        ranges = self._readers.plan(wants)
        self._readers.post(lambda: self._replace(ranges))

    def close(self) -> None:
        """Want nothing any more: requests that nobody else wants are cancelled, and memory is freed."""
        self._readers.post(self._end)

    @property
    def waiting_bytes(self) -> int:
        """The number of bytes that were wanted by the last call and are not here yet."""
        return max(0, self._wanted_bytes - self._here_bytes)

    @property
    def is_pending(self) -> bool:
        """True if some ranges of the last call were not begun."""
        return self._next < len(self._ranges)

    @property
    def open_flights(self) -> int:
        """The number of flights that this look-ahead wants and that are under way; read in the loop."""
        return len(self._flights)

    def begin_next(self) -> bool:
        """Begin the next range if the budget allows, and return True; called in the loop."""
        if self._next == len(self._ranges):
            return False
        wanted = self._ranges[self._next]
        size = wanted.stop - wanted.start
        budget = self._readers.budget_bytes()
        if self._begun_bytes + size > budget:
            self._count_again()
        if self._begun_bytes and self._begun_bytes + size > budget:
            return False
        self._next += 1
        self._begun_bytes += size
        blocks, flights = self._readers.begin(wanted)
        self._blocks += blocks
        self._here_bytes += size - sum(_overlap(flight.wanted, wanted) for flight in flights)
        for flight in flights:
            self._flights.append(flight)
            landed = partial(self._landed, flight, _overlap(flight.wanted, wanted), self._call)
            flight.task.add_done_callback(landed)
        return True

    def _count_again(self) -> None:
        """Count the bytes that are under way, or here and not begun to be read; not each time."""
        began = time.monotonic()
        if began < self._count_at:
            return
        flying = sum(flight.wanted.stop - flight.wanted.start for flight in self._flights)
        here = sum(block.stop - block.start for block in self._blocks if not block.is_open)
        self._begun_bytes = flying + here
        ended = time.monotonic()
        self._count_at = ended + _COUNT_SHARE * (ended - began)

    def _replace(self, ranges: list[PlannedRange]) -> None:
        # What is here, or under way, for the old ranges stays until the new ones have taken it over.
        blocks, flights = self._blocks, self._flights
        self._ranges, self._next, self._begun_bytes = ranges, 0, 0
        self._count_at = 0.0
        self._call += 1
        self._blocks = []
        self._here_bytes, self._wanted_bytes = 0, sum(wanted.stop - wanted.start for wanted in ranges)
        self._readers.pump()
        del blocks, flights

    def _end(self) -> None:
        self._replace([])
        flights, self._flights = self._flights, []
        self._readers.leave(flights)

    def _landed(self, flight: Flight, size: int, call: int, _: object) -> None:
        """Take the blocks of a flight over, unless `want` was called again since it was begun."""
        if flight not in self._flights:
            return
        self._flights.remove(flight)
        self._readers.leave([flight])
        if call == self._call and not flight.task.cancelled() and flight.task.exception() is None:
            self._blocks += flight.task.result()
            self._here_bytes += size
        self._readers.pump()


def _overlap(part: Block | PlannedRange, wanted: PlannedRange) -> int:
    return max(0, min(part.stop, wanted.stop) - max(part.start, wanted.start))
