"""Requests under way, shared: two readers that need the same bytes wait for the same request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from seekable.remote.cache.held_ranges import Block
    from seekable.remote.fetching.wants import ObjectRef

    Fly = Callable[["Flight"], Coroutine[Any, Any, list[Block]]]

__all__ = ["Flight", "Flights"]


@final
class Flight:
    """A range of an object that is being fetched, for some readers. Ends with the blocks that contain it."""

    __slots__ = ("ref", "start", "stop", "task", "waiting", "watchers")

    task: asyncio.Task[list[Block]]

    def __init__(self, ref: ObjectRef, start: int, stop: int) -> None:
        """Describe a range; `Flights` starts it."""
        self.ref = ref
        self.start = start
        self.stop = stop
        self.watchers = 0
        """The number of readers and look-aheads that want it; it is cancelled when there are none."""
        self.waiting = 0
        """The number of readers that wait for it."""


@final
class Flights:
    """The flights of one event loop, by object. No byte is in two of them."""

    def __init__(self, fly: Fly) -> None:
        """Start without flights.

        Args:
            fly: fetches the range of a flight.
        """
        self._fly = fly
        self._by_key: dict[str, list[Flight]] = {}

    def board(self, ref: ObjectRef, start: int, stop: int, *, demanded: bool) -> list[Flight]:
        """Return flights that together bring a range: those under way, and new ones for the rest.

        Each must be left later.

        Args:
            ref: the object.
            start: the first byte.
            stop: the byte behind the last.
            demanded: True if a reader waits for it.
        """
        flights = self._by_key.setdefault(ref.key, [])
        found = sorted(
            (flight for flight in flights if flight.start < stop and flight.stop > start),
            key=lambda flight: flight.start,
        )
        for flight in (*found, None):
            end = stop if flight is None else flight.start
            if start < end:
                found.append(self._started(Flight(ref, start, end), flights))
            start = stop if flight is None else max(start, flight.stop)
        for flight in found:
            flight.watchers += 1
            flight.waiting += demanded
        return found

    def leave(self, flights: Iterable[Flight], *, demanded: bool) -> None:
        """Lose interest in flights, with the ``demanded`` of `board`; one that nobody wants is cancelled."""
        for flight in flights:
            flight.watchers -= 1
            flight.waiting -= demanded
            if not flight.watchers and not flight.task.done():
                self._remove(flight)
                flight.task.cancel()

    def _started(self, flight: Flight, flights: list[Flight]) -> Flight:
        flights.append(flight)
        flight.task = asyncio.get_running_loop().create_task(self._fly(flight))
        flight.task.add_done_callback(lambda _: self._remove(flight))
        return flight

    def _remove(self, flight: Flight) -> None:
        flights = self._by_key.get(flight.ref.key, [])
        if flight in flights:
            flights.remove(flight)
            if not flights:
                del self._by_key[flight.ref.key]
        if flight.task.done() and not flight.task.cancelled():
            flight.task.exception()  # Nobody may wait for it any more; asyncio would complain of that.
