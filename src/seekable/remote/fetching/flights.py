"""Requests under way, shared: two readers that need the same bytes wait for the same request."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from seekable.remote.cache.held_ranges import Block
    from seekable.remote.fetching.units import PlannedRange

    Fly = Callable[["Flight"], Coroutine[Any, Any, list[Block]]]

__all__ = ["Flight", "Flights"]


@final
class Flight:
    """A range of an object that is being fetched, for some readers. Ends with the blocks that contain it."""

    __slots__ = ("task", "waiting", "wanted", "watchers")

    task: asyncio.Task[list[Block]]

    def __init__(self, wanted: PlannedRange) -> None:
        """Describe a range; `Flights` starts it."""
        self.wanted = wanted
        self.watchers = 0
        """The number of readers and look-aheads that want it; it is cancelled when there are none."""
        self.waiting = 0
        """The number of readers that wait for it."""

    @property
    def has_failed(self) -> bool:
        """True if it ended with an error."""
        return self.task.done() and not self.task.cancelled() and self.task.exception() is not None


@final
class Flights:
    """The flights of one event loop, by object. No byte is in two of them, but where a range joins units."""

    def __init__(self, fly: Fly) -> None:
        """Begin without flights under way.

        Args:
            fly: fetches the range of a flight.
        """
        self._fly = fly
        # Of each object in the order of their first bytes.
        self._by_key: dict[str, list[Flight]] = {}
        self._longest = 0

    def board(self, wanted: PlannedRange, *, demanded: bool) -> list[Flight]:
        """Return flights that together bring a range: those under way, and new ones for the rest.

        Each must be left later. A range by units joins flights by units alone, so that units arrive whole.

        Args:
            wanted: the range.
            demanded: True if a reader waits for it.
        """
        start, stop = wanted.start, wanted.stop
        under_way = [
            flight
            for flight in self._near(wanted)
            if flight.wanted.stop > start and (flight.wanted.by_units or not wanted.by_units)
        ]
        found = list(under_way)
        for flight in under_way:
            if start < flight.wanted.start:
                found.append(self._started(wanted.part(start, flight.wanted.start)))
            start = max(start, flight.wanted.stop)
        if start < stop:
            found.append(self._started(wanted.part(start, stop)))
        for flight in found:
            flight.watchers += 1
            flight.waiting += demanded
        return found

    def leave(self, flights: Iterable[Flight], *, demanded: bool) -> None:
        """Give flights up, with the ``demanded`` of `board`; one without other readers is cancelled."""
        for flight in flights:
            flight.watchers -= 1
            flight.waiting -= demanded
            if not flight.watchers and not flight.task.done():
                self._remove(flight)
                flight.task.cancel()

    def _near(self, wanted: PlannedRange) -> list[Flight]:
        """Return the flights that begin before the end of a range, and not too far before it to reach it."""
        flights = self._by_key.get(wanted.ref.key, [])
        low = bisect_left(flights, wanted.start - self._longest, key=_start)
        return flights[low : bisect_left(flights, wanted.stop, key=_start)]

    def _started(self, wanted: PlannedRange) -> Flight:
        flight = Flight(wanted)
        insort(self._by_key.setdefault(wanted.ref.key, []), flight, key=_start)
        self._longest = max(self._longest, wanted.stop - wanted.start)
        flight.task = asyncio.get_running_loop().create_task(self._fly(flight))
        flight.task.add_done_callback(lambda _: self._remove(flight))
        return flight

    def _remove(self, flight: Flight) -> None:
        key = flight.wanted.ref.key
        flights = self._by_key.get(key, [])
        for at in range(bisect_left(flights, _start(flight), key=_start), len(flights)):
            if flights[at] is flight:
                del flights[at]
                break
        if not flights:
            self._by_key.pop(key, None)
        if flight.task.done() and not flight.task.cancelled():
            flight.task.exception()  # Nobody may wait for it any more; asyncio would complain of that.


def _start(flight: Flight) -> int:
    return flight.wanted.start
