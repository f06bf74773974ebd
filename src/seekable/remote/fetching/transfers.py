"""Ranges on their way from stores to memory and to the cache on disk; all of it runs in one event loop.

Two readers that need the same bytes wait for the same request, which is a `Flight`.
"""

from __future__ import annotations

import asyncio
import operator
import time
from bisect import bisect_left, insort
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar, final

from seekable.errors import IndexStale, Unreachable
from seekable.remote.fetching.kept_units import UnitWriter, blocks_here, claimed, kept_units
from seekable.remote.fetching.sending import StoreRequest
from seekable.remote.stores.object_store import Passing, Store
from seekable.storage.addresses import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
    from typing import Any

    from typing_extensions import Buffer

    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.held_ranges import HeldBlock, HeldRanges
    from seekable.remote.fetching.sending import Patience, Sender
    from seekable.remote.fetching.wants import PlannedRange
    from seekable.remote.stores.object_store import FolderListing, Page, Pin, Stat
    from seekable.storage.access import CacheChoice

    Fly = Callable[["Flight"], Coroutine[Any, Any, list[HeldBlock]]]

__all__ = ["Flight", "Flights", "Transfers"]

T = TypeVar("T")

_FIRST_POLL, _LONGEST_POLL = 0.001, 0.02
_OTHERS_SECONDS = 10.0
"""The most time to wait for a unit that another process fetches, which may have been stopped."""


@final
class Flight:
    """A range of an object that is being fetched, for some readers. Ends with the blocks that contain it."""

    __slots__ = ("task", "waiting", "wanted", "watchers")

    task: asyncio.Task[list[HeldBlock]]

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


@final
class Transfers:
    """The requests of a process under way. All methods are called in one loop."""

    def __init__(
        self,
        store_of: Callable[[str], tuple[Store, str]],
        disk: Callable[[CacheChoice | None], DiskCache | None],
        patience_of: Callable[[str], Patience],
        *,
        memory: HeldRanges,
        sender: Sender,
    ) -> None:
        """Begin without requests; nothing is sent yet.

        Args:
            store_of: returns the store and the key of an address.
            disk: returns the cache on disk of a choice, None where none is wanted.
            patience_of: returns how long to try for a request to the store of an address.
            memory: takes what arrives.
            sender: sends requests.
        """
        self._store_of = store_of
        self._disk = disk
        self._patience_of = patience_of
        self._memory = memory
        self._sender = sender
        self._flights = Flights(self._fly)
        self._writer = UnitWriter(memory)

    async def bring(self, wanted: Iterable[PlannedRange]) -> list[HeldBlock]:
        """Return the blocks of ranges that a reader waits for.

        Raises:
            Exception: the error of a request; the others, if no other reader needs them, are cancelled.
        """
        blocks: list[HeldBlock] = []
        flights: list[Flight] = []
        for one in wanted:
            # What has come since the reader looked is not fetched again.
            found, boarded = self._boarded(one, None, demanded=True)
            blocks += found
            flights += boarded
        try:
            if flights:
                tasks = {flight.task for flight in flights}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                failed = [flight for flight in flights if flight.has_failed]
                for flight in failed:
                    flight.task.result()
            return blocks + [block for flight in flights for block in flight.task.result()]
        finally:
            self._flights.leave(flights, demanded=True)

    async def run(self, call: Callable[[Store], Awaitable[T]], path: str) -> T:
        """Return the result of a coroutine over the store of an address."""
        store, _ = self._store_of(path)
        return await call(_PatientStore(store, self._sender, self._patience_of(path)))

    def begin(self, wanted: PlannedRange) -> tuple[list[HeldBlock], list[Flight]]:
        """Return the blocks of a range that are here, and flights that bring the rest."""
        return self._boarded(wanted, self._disk_of(wanted), demanded=False)

    def leave(self, flights: Sequence[Flight]) -> None:
        """Give flights of a look-ahead up."""
        self._flights.leave(flights, demanded=False)

    def close(self) -> None:
        """Wait until what was fetched is written; called when the loop has ended."""
        self._writer.close()

    def _disk_of(self, wanted: PlannedRange) -> DiskCache | None:
        """Return the cache that keeps a range, None if it is not to be kept."""
        return self._disk(wanted.ref.cache) if wanted.by_units else None

    def _boarded(
        self, wanted: PlannedRange, disk: DiskCache | None, *, demanded: bool
    ) -> tuple[list[HeldBlock], list[Flight]]:
        """Return the blocks of a range in memory, or on a disk, and flights that bring the rest."""
        blocks, gaps = blocks_here(disk, self._memory, wanted.ref, wanted.start, wanted.stop)
        return blocks, [
            flight for part in wanted.parts(gaps) for flight in self._flights.board(part, demanded=demanded)
        ]

    async def _fly(self, flight: Flight) -> list[HeldBlock]:
        wanted = flight.wanted
        disk = self._disk_of(wanted)
        if disk is None:
            return [await self._fetch(flight, wanted.start, wanted.stop)]
        blocks: list[HeldBlock] = []
        missing = [wanted.units]
        poll, until = _FIRST_POLL, time.monotonic() + _OTHERS_SECONDS
        while True:
            with ExitStack() as claims:
                if time.monotonic() > until:
                    mine, missing = missing, []
                else:
                    mine, missing = claimed(disk, wanted.ref.key, missing, claims)
                absent: list[range] = []
                for units in mine:
                    # Others may have written them just before.
                    kept, left = kept_units(disk, self._memory, wanted.ref, units)
                    blocks += kept
                    absent += left
                if absent:
                    blocks += await self._fetched(disk, flight, absent, claims)
            if not missing:
                return blocks
            await asyncio.sleep(poll)
            poll = min(2 * poll, _LONGEST_POLL)

    async def _fetched(
        self, disk: DiskCache, flight: Flight, missing: list[range], claims: ExitStack
    ) -> list[HeldBlock]:
        """Fetch claimed units, consecutive ones in one request, and keep them on disk if there is room."""
        ref = flight.wanted.ref
        fetched = await _all(
            self._fetch(flight, units.start * UNIT_BYTES, min(units.stop * UNIT_BYTES, ref.pin.size))
            for units in missing
        )
        return await self._writer.keep(disk, ref, fetched, claims, demanded=flight.waiting > 0)

    async def _fetch(self, flight: Flight, start: int, stop: int) -> HeldBlock:
        ref = flight.wanted.ref
        store, key = self._store_of(ref.path)
        request = StoreRequest(
            store=store,
            shown=lambda: f"{store.shown(key)}, bytes {start} to {stop}",
            size=stop - start,
            may_hedge=True,
            patience=self._patience_of(ref.path),
            demanded=lambda: flight.waiting > 0,
        )

        async def read() -> memoryview:
            view = memoryview(await store.read(key, start, stop, pin=ref.pin))
            if view.nbytes != stop - start:
                raise Passing(f"the answer has {view.nbytes} bytes instead of {stop - start}")
            return view

        view = await self._sender.send(request, read)
        if ref.digests is not None and ref.digests.difference(start, view) is not None:
            view = await self._sender.send(request, read)
            if (difference := ref.digests.difference(start, view)) is not None:
                raise IndexStale(_differs(store.shown(key), difference))
        return self._memory.put(ref.key, start, view)


def _differs(shown: str, difference: str) -> str:
    return (
        f"{shown}: {difference}; its etag is that of then, and they came so twice. Bits were flipped on the "
        f"way or in the store, now or when the object was indexed: compare it with a copy, then write it "
        f"again, or remove the index, and open the data again"
    )


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of some coroutines; after an error, the others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


@final
class _PatientStore(Store):
    """The calls of a store, each sent as often as the sender permits."""

    def __init__(self, store: Store, sender: Sender, patience: Patience) -> None:
        """Take a store, to which no request is sent yet.

        Args:
            store: sends each request once.
            sender: sends them again; used in its loop.
            patience: how long to try for each.
        """
        self._patience = patience
        self._store = store
        self._sender = sender
        self.fork_safe = store.fork_safe
        self.lists_in_order = getattr(store, "lists_in_order", False)

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return self._store.shown(key)

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        return await self._sent(lambda: self._store.stat(key), partial(self.shown, key))

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return bytes of an object."""
        return await self._sent(
            lambda: self._store.read(key, start, stop, pin=pin),
            lambda: f"{self.shown(key)}, bytes {start} to {stop}",
            size=stop - start,
            may_hedge=True,
        )

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages; one that fails is listed again after the last key."""
        shown = f"the listing of {self.shown(prefix)}"
        pages = self._store.list(prefix, after=after, before=before)
        is_ordered = True

        async def next_page() -> Page | None:
            nonlocal pages
            try:
                return await anext(pages, None)
            except Passing:
                if is_ordered:
                    pages = self._store.list(prefix, after=after, before=before)
                    raise
                message = f"{shown} broke off, and cannot go on because its keys are in no order: run again"
                raise Unreachable(message) from None

        while (page := await self._sent(next_page, lambda: shown)) is not None:
            is_ordered = is_ordered and _ascend([after, *(stat.key for stat in page)])
            after = page[-1].key if page else after
            yield page

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders and the objects directly below a folder."""
        shown = f"the listing of {self.shown(prefix)}"
        return await self._sent(lambda: self._store.list_folder(prefix), lambda: shown)

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description."""
        size = memoryview(data).nbytes
        once = partial(self._store.put, key, data, replacing=replacing)
        return await self._sent(once, partial(self.shown, key), size=size)

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        await self._sent(lambda: self._store.delete(key), partial(self.shown, key))

    async def _sent(
        self,
        once: Callable[[], Awaitable[T]],
        shown: Callable[[], str],
        *,
        size: int = 0,
        may_hedge: bool = False,
    ) -> T:
        request = StoreRequest(
            store=self._store,
            shown=shown,
            size=size,
            may_hedge=may_hedge,
            patience=self._patience,
            demanded=lambda: True,
        )
        return await self._sender.send(request, once)


def _ascend(keys: Sequence[str]) -> bool:
    """Return True if keys ascend in the order of bytes."""
    if all(map(str.isascii, keys)):
        return all(map(operator.lt, keys, keys[1:]))
    encoded = [key.encode("utf-8", "surrogateescape") for key in keys]
    return all(map(operator.lt, encoded, encoded[1:]))
