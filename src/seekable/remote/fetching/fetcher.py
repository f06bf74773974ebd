"""Byte ranges of objects for the readers of a process: from memory, from the disk, or fetched.

Readers in any thread call a `Fetcher`. It plans requests in the thread of the reader, and one event loop in a
thread of its own sends them.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.remote.cache.held_ranges import Held, HeldRanges
from seekable.remote.fetching.flights import Flights
from seekable.remote.fetching.look_ahead import AheadRange, LookAhead
from seekable.remote.fetching.loop_thread import LoopThread
from seekable.remote.fetching.merging import merged
from seekable.remote.fetching.patient_store import PatientStore
from seekable.remote.fetching.places import Places
from seekable.remote.fetching.report import FetchCounts
from seekable.remote.fetching.sending import Sender
from seekable.remote.fetching.wants import Wants

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from concurrent.futures import Future
    from typing import Any

    from seekable.remote.cache.held_ranges import Block
    from seekable.remote.fetching.flights import Flight
    from seekable.remote.fetching.report import FetchReport
    from seekable.remote.fetching.wants import ObjectRef
    from seekable.remote.stores.store import Store

mounts = lazy("seekable.remote.mounts")

__all__ = ["Fetcher", "fetcher"]

T = TypeVar("T")

_RECENT_BYTES = 64 << 20
_GAP_BYTES = 256 << 10
_MOST_BYTES = 8 << 20
_AT_ONCE = 64
_AHEAD_BYTES = 64 << 20


@final
class Fetcher:
    """Fetches byte ranges of objects. Safe from threads; a forked child has one of its own (`fetcher`)."""

    def __init__(self, store_of: Callable[[str], tuple[Store, str]]) -> None:
        """Fetch nothing yet.

        Args:
            store_of: returns the store and the key of an address; called in the loop.
        """
        self._store_of = store_of
        self._memory = HeldRanges(recent_bytes=_RECENT_BYTES)
        self._counts = FetchCounts()
        self._places = Places(at_once=_AT_ONCE)
        self._sender = Sender(self._places, self._counts)
        self._flights = Flights(self._fly)
        self._loop = LoopThread("seekable-fetcher")
        self._aheads: list[weakref.ref[LookAhead]] = []

    def need(self, wants: Wants) -> Held:
        """Wait until ranges are here, and return what keeps them in memory.

        Ctrl-C ends the wait within a second and cancels the requests.

        Raises:
            InvalidArgument: a range is not within its object.
            Unreachable: a range could not be fetched in as many tries as permitted.
            IndexStale: an object has other content than it should.
            DataNotFound: a store has no such object.
            AccessDenied: the credentials do not permit the reads.
        """
        _check(wants)
        blocks, gaps = self._here(wants)
        self._counts.hits += len(wants) - len(gaps)
        if len(gaps):
            self._counts.misses += len(gaps)
            blocks += self._waited(self._bring(self.plan(gaps)))
        return Held(blocks)

    def range(self, ref: ObjectRef, start: int, stop: int) -> memoryview:
        """Return some bytes of an object, read-only: those in memory or on disk, or fetched now.

        Raises:
            InvalidArgument: the range is not within the object.
            Unreachable, IndexStale, DataNotFound, AccessDenied: as `need`.
        """
        if start == stop:
            return memoryview(b"")
        view = self._memory.view(ref.key, start, stop)
        if view is not None:
            self._counts.hits += 1
            return view
        held = self.need(Wants.of(ref, start, stop))
        view = self._memory.view(ref.key, start, stop)
        assert view is not None
        del held
        return view

    def ahead(self) -> LookAhead:
        """Return a new look-ahead of one reader, which fetches what it will need next."""
        ahead = LookAhead(self)
        self._aheads.append(weakref.ref(ahead))
        return ahead

    def run(self, call: Callable[[Store], Awaitable[T]], *, path: str) -> T:
        """Run a coroutine with the store of an address, and return its result; Ctrl-C cancels it.

        Args:
            call: gets the store, each of whose methods retries; called in the loop of the fetcher.
            path: an address in the store.

        Raises:
            Unreachable, IndexStale, DataNotFound, AccessDenied: as the methods of `Store`.
        """
        return self._waited(self._run(call, path))

    def start(self, call: Callable[[Store], Awaitable[T]], *, path: str) -> Future[T]:
        """Begin what `run` does, and return its future; cancelling the future cancels the requests.

        Args:
            call: as for `run`.
            path: an address in the store.
        """
        return self._loop.start(self._run(call, path))

    def report(self) -> FetchReport:
        """Return the counts of the requests since this fetcher was made."""
        aheads = [ahead for ref in self._aheads if (ahead := ref()) is not None]
        waiting = sum(ahead.waiting_bytes for ahead in aheads)
        return self._counts.report(oldest=self._sender.oldest(), waiting_bytes=waiting)

    def close(self) -> None:
        """Cancel all requests, and wait until they have ended."""
        self._loop.close()

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._loop.is_closed

    def plan(self, wants: Wants) -> list[AheadRange]:
        """Return the requests for some ranges, in the order of first need."""
        requests = merged(wants, gap_bytes=_GAP_BYTES, most_bytes=_MOST_BYTES, align_bytes=1)
        columns = (requests.which.tolist(), requests.starts.tolist(), requests.stops.tolist())
        return [AheadRange(wants.objects[number], *span) for number, *span in zip(*columns, strict=True)]

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop soon."""
        self._loop.post(function)

    def begin(self, wanted: AheadRange) -> tuple[list[Block], list[Flight]]:
        """Return the blocks of a range that are here, and flights that bring the rest; in the loop."""
        blocks, gaps = self._memory.cover(wanted.ref.key, wanted.start, wanted.stop)
        flights = [flight for gap in gaps for flight in self._flights.board(wanted.ref, *gap, demanded=False)]
        return blocks, flights

    def leave(self, flights: Sequence[Flight]) -> None:
        """Lose interest in flights of a look-ahead; in the loop."""
        self._flights.leave(flights, demanded=False)

    def pump(self) -> None:
        """Begin further ranges of all look-aheads, in turns, where there is a place; in the loop."""
        aheads = [ahead for ref in self._aheads if (ahead := ref()) is not None]
        self._aheads = [weakref.ref(ahead) for ahead in aheads]
        while aheads and sum(ahead.open_flights for ahead in aheads) < self._places.at_once:
            aheads = [ahead for ahead in aheads if ahead.begin_next()]

    def budget_bytes(self) -> int:
        """Return how many bytes ahead of a reader to fetch."""
        return _AHEAD_BYTES

    def _here(self, wants: Wants) -> tuple[list[Block], Wants]:
        """Return the blocks that are here, and the ranges that are not here as a whole."""
        blocks: list[Block] = []
        missing: list[int] = []
        keys = [ref.key for ref in wants.objects]
        columns = (wants.which.tolist(), wants.starts.tolist(), wants.stops.tolist())
        for row, (number, start, stop) in enumerate(zip(*columns, strict=True)):
            found, gaps = self._memory.cover(keys[number], start, stop)
            blocks += found
            if gaps:
                missing.append(row)
        return blocks, wants.take(np.array(missing, np.int64))

    def _waited(self, work: Coroutine[Any, Any, T]) -> T:
        began = time.monotonic()
        try:
            return self._loop.call(work)
        finally:
            self._counts.waits += 1
            self._counts.wait_seconds += time.monotonic() - began

    async def _bring(self, wanted: list[AheadRange]) -> list[Block]:
        """Return the blocks of ranges that a reader waits for."""
        flights = [
            flight
            for one in wanted
            for flight in self._flights.board(one.ref, one.start, one.stop, demanded=True)
        ]
        try:
            tasks = {flight.task for flight in flights}
            if tasks:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                failed = [flight for flight in flights if flight.task in done and flight.task.exception()]
                for flight in failed:
                    flight.task.result()
            return [block for flight in flights for block in flight.task.result()]
        finally:
            self._flights.leave(flights, demanded=True)

    async def _fly(self, flight: Flight) -> list[Block]:
        store, key = self._store_of(flight.ref.path)
        start, stop, pin = flight.start, flight.stop, flight.ref.pin
        data = await self._sender.send(
            lambda: store.read(key, start, stop, pin=pin),
            shown=f"{store.shown(key)}, bytes {start} to {stop}",
            demanded=lambda: flight.waiting > 0,
        )
        view = memoryview(data)
        self._counts.fetched_bytes += len(view)
        return [self._memory.put(flight.ref.key, start, view)]

    async def _run(self, call: Callable[[Store], Awaitable[T]], path: str) -> T:
        store, _ = self._store_of(path)
        return await call(PatientStore(store, self._sender))


def _check(wants: Wants) -> None:
    sizes = np.array([ref.pin.size for ref in wants.objects], np.int64)
    wrong = (wants.starts < 0) | (wants.stops < wants.starts) | (wants.stops > sizes[wants.which])
    if wrong.any():
        row = int(np.argmax(wrong))
        ref = wants.objects[wants.which[row]]
        raise InvalidArgument(
            f"{ref.path}: bytes {wants.starts[row]} to {wants.stops[row]} are not within the object, "
            f"which has {ref.pin.size} bytes"
        )


_FETCHERS: dict[int, Fetcher] = {}
"""The fetcher of each process by its number. A forked child has those of its ancestors, and uses none."""


def fetcher() -> Fetcher:
    """Return the fetcher of this process."""
    process = os.getpid()
    found = _FETCHERS.get(process)
    if found is not None and found.is_closed:
        _FETCHERS.pop(process, None)
        found = None
    # One of several threads wins; the fetchers of the others never start.
    return found or _FETCHERS.setdefault(process, Fetcher(mounts.store_of))
