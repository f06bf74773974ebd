"""Ranges on their way from stores to memory and to the cache on disk; all of it runs in one event loop."""

from __future__ import annotations

import asyncio
import operator
import time
import weakref
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar, final

from seekable.errors import IndexStale, Unreachable
from seekable.remote.fetching.flights import Flights
from seekable.remote.fetching.kept_units import UnitWriter, blocks_here, claimed, kept_units
from seekable.remote.fetching.sending import Request
from seekable.remote.stores.store import Passing, Store
from seekable.storage.object_key import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
    from typing import Any

    from typing_extensions import Buffer

    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.held_ranges import Block, HeldRanges
    from seekable.remote.fetching.flights import Flight
    from seekable.remote.fetching.look_ahead import LookAhead
    from seekable.remote.fetching.pace import Patience
    from seekable.remote.fetching.sending import Places, Sender
    from seekable.remote.fetching.units import PlannedRange
    from seekable.remote.stores.store import FolderListing, Page, Pin, Stat
    from seekable.storage.access import CacheChoice

__all__ = ["Transfers"]

T = TypeVar("T")

_FIRST_POLL, _LONGEST_POLL = 0.001, 0.02
_OTHERS_SECONDS = 10.0
"""The most time to wait for a unit that another process fetches, which may have been stopped."""


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
        places: Places,
        sender: Sender,
    ) -> None:
        """Begin without requests; nothing is sent yet.

        Args:
            store_of: returns the store and the key of an address.
            disk: returns the cache on disk of a choice, None where none is wanted.
            patience_of: returns how long to try for a request to the store of an address.
            memory: takes what arrives.
            places: the requests at once.
            sender: sends requests.
        """
        self._store_of = store_of
        self._disk = disk
        self._patience_of = patience_of
        self._memory = memory
        self._places = places
        self._sender = sender
        self._flights = Flights(self._fly)
        self._writer = UnitWriter(memory)
        self._aheads: list[weakref.ref[LookAhead]] = []
        self.is_pending = False
        """True if a look-ahead had ranges to begin when `pump` was called last."""

    async def bring(self, wanted: Iterable[PlannedRange]) -> list[Block]:
        """Return the blocks of ranges that a reader waits for.

        Raises:
            Exception: the error of a request; the others, if no other reader needs them, are cancelled.
        """
        blocks: list[Block] = []
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

    def begin(self, wanted: PlannedRange) -> tuple[list[Block], list[Flight]]:
        """Return the blocks of a range that are here, and flights that bring the rest."""
        return self._boarded(wanted, self._disk_of(wanted), demanded=False)

    def leave(self, flights: Sequence[Flight]) -> None:
        """Give flights of a look-ahead up."""
        self._flights.leave(flights, demanded=False)

    def pump(self) -> None:
        """Begin further ranges of all look-aheads, in turns, where there is a place."""
        aheads = [ahead for ref in self._aheads if (ahead := ref()) is not None]
        self._aheads = [weakref.ref(ahead) for ahead in aheads]
        self.is_pending = any(ahead.is_pending for ahead in aheads)
        while aheads and sum(ahead.open_flights for ahead in aheads) < self._places.at_once:
            aheads = [ahead for ahead in aheads if ahead.begin_next()]

    def add(self, ahead: LookAhead) -> None:
        """Begin ranges of a look-ahead from now on, as long as somebody refers to it."""
        self._aheads.append(weakref.ref(ahead))

    def close(self) -> None:
        """Wait until what was fetched is written; called when the loop has ended."""
        self._writer.close()

    @property
    def waiting_bytes(self) -> int:
        """The number of bytes that look-aheads wait for."""
        aheads = (ref() for ref in self._aheads)
        return sum(ahead.waiting_bytes for ahead in aheads if ahead is not None)

    def _disk_of(self, wanted: PlannedRange) -> DiskCache | None:
        """Return the cache that keeps a range, None if it is not to be kept."""
        return self._disk(wanted.ref.cache) if wanted.by_units else None

    def _boarded(
        self, wanted: PlannedRange, disk: DiskCache | None, *, demanded: bool
    ) -> tuple[list[Block], list[Flight]]:
        """Return the blocks of a range in memory, or on a disk, and flights that bring the rest."""
        blocks, gaps = blocks_here(disk, self._memory, wanted.ref, wanted.start, wanted.stop)
        return blocks, [
            flight for part in wanted.parts(gaps) for flight in self._flights.board(part, demanded=demanded)
        ]

    async def _fly(self, flight: Flight) -> list[Block]:
        wanted = flight.wanted
        disk = self._disk_of(wanted)
        if disk is None:
            return [await self._fetch(flight, wanted.start, wanted.stop)]
        blocks: list[Block] = []
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
    ) -> list[Block]:
        """Fetch claimed units, consecutive ones in one request, and keep them on disk if there is room."""
        ref = flight.wanted.ref
        fetched = await _all(
            self._fetch(flight, units.start * UNIT_BYTES, min(units.stop * UNIT_BYTES, ref.pin.size))
            for units in missing
        )
        return await self._writer.keep(disk, ref, fetched, claims, demanded=flight.waiting > 0)

    async def _fetch(self, flight: Flight, start: int, stop: int) -> Block:
        ref = flight.wanted.ref
        store, key = self._store_of(ref.path)
        request = Request(
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
        """Yield the objects below a folder in pages; one that fails is listed again behind the last key."""
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
        request = Request(
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
