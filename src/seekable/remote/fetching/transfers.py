"""Ranges on their way from stores to memory and to the cache on disk; all of it runs in one event loop."""

from __future__ import annotations

import asyncio
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from seekable.remote.cache.object_key import UNIT_BYTES
from seekable.remote.fetching.flights import Flights
from seekable.remote.fetching.patient_store import PatientStore
from seekable.remote.fetching.sending import Request
from seekable.remote.stores.store import Passing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
    from typing import Any

    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.extents import Extent
    from seekable.remote.cache.held_ranges import Block, HeldRanges
    from seekable.remote.fetching.flights import Flight
    from seekable.remote.fetching.look_ahead import LookAhead
    from seekable.remote.fetching.places import Places
    from seekable.remote.fetching.retries import Patience
    from seekable.remote.fetching.sending import Sender
    from seekable.remote.fetching.units import PlannedRange
    from seekable.remote.fetching.wants import ObjectRef, Wants
    from seekable.remote.stores.store import Store

__all__ = ["Transfers", "blocks_here", "units_here"]

T = TypeVar("T")

_UNIT_BITS = 40
_FIRST_POLL, _LONGEST_POLL = 0.001, 0.02
_OTHERS_SECONDS = 10.0
"""The most time to wait for a unit that another process fetches, which may have been stopped."""


def blocks_here(
    disk: DiskCache | None, memory: HeldRanges, ref: ObjectRef, start: int, stop: int
) -> tuple[list[Block], list[tuple[int, int]]]:
    """Return blocks that contain a range as far as it is in memory or on disk, and the parts that are not.

    Units on disk are taken into memory.
    """
    blocks, gaps = memory.cover(ref.key, start, stop)
    if disk is None or not gaps:
        return blocks, gaps
    left: list[tuple[int, int]] = []
    for gap_start, gap_stop in gaps:
        units = range(gap_start // UNIT_BYTES, -(-gap_stop // UNIT_BYTES))
        for unit, extent in zip(units, disk.extents(ref.key, units), strict=True):
            if extent is not None:
                blocks.append(_unit_block(memory, ref, unit, extent))
                continue
            part = max(gap_start, unit * UNIT_BYTES), min(gap_stop, (unit + 1) * UNIT_BYTES)
            if left and left[-1][1] == part[0]:
                part = left.pop()[0], part[1]
            left.append(part)
    return blocks, left


@final
class Transfers:
    """The requests of a process under way. All methods are called in one loop."""

    def __init__(
        self,
        store_of: Callable[[str], tuple[Store, str]],
        disk: Callable[[], DiskCache | None],
        patience_of: Callable[[str], Patience],
        *,
        memory: HeldRanges,
        places: Places,
        sender: Sender,
    ) -> None:
        """Send nothing yet.

        Args:
            store_of: returns the store and the key of an address.
            disk: returns the cache on disk, None without one.
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
        # One thread: writers of one cache wait for each other anyway.
        self._writer = ThreadPoolExecutor(1, "seekable-cache")
        self._aheads: list[weakref.ref[LookAhead]] = []
        self.is_pending = False
        """True if a look-ahead had ranges to begin when `pump` was called last."""

    async def bring(self, wanted: Iterable[PlannedRange]) -> list[Block]:
        """Return the blocks of ranges that a reader waits for.

        Raises:
            Exception: the error of a request; the others, if nobody else wants them, are cancelled.
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
        return await call(PatientStore(store, self._sender, self._patience_of(path)))

    def begin(self, wanted: PlannedRange) -> tuple[list[Block], list[Flight]]:
        """Return the blocks of a range that are here, and flights that bring the rest."""
        return self._boarded(wanted, self._disk() if wanted.by_units else None, demanded=False)

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

    @property
    def waiting_bytes(self) -> int:
        """The number of bytes that look-aheads wait for."""
        aheads = (ref() for ref in self._aheads)
        return sum(ahead.waiting_bytes for ahead in aheads if ahead is not None)

    def _boarded(
        self, wanted: PlannedRange, disk: DiskCache | None, *, demanded: bool
    ) -> tuple[list[Block], list[Flight]]:
        """Return the blocks of a range in memory, or on a disk, and flights that bring the rest."""
        blocks, gaps = blocks_here(disk, self._memory, wanted.ref, wanted.start, wanted.stop)
        return blocks, [
            flight for part in wanted.parts(gaps) for flight in self._flights.board(part, demanded=demanded)
        ]

    async def _fly(self, flight: Flight) -> list[Block]:
        disk = self._disk() if flight.wanted.by_units else None
        if disk is None:
            return [await self._fetch(flight, flight.wanted.start, flight.wanted.stop)]
        key, units = flight.wanted.ref.key, flight.wanted.units
        blocks: dict[int, Block] = {}
        poll, until = _FIRST_POLL, time.monotonic() + _OTHERS_SECONDS
        while missing := [unit for unit in units if unit not in blocks]:
            with ExitStack() as claims:
                is_late = time.monotonic() > until
                mine = [unit for unit in missing if is_late or _is_claimed(disk, key, unit, claims)]
                blocks |= self._saved_units(disk, flight, missing)
                blocks |= await self._fetched_units(
                    disk, flight, [unit for unit in mine if unit not in blocks]
                )
            if len(mine) < len(missing):
                await asyncio.sleep(poll)
                poll = min(2 * poll, _LONGEST_POLL)
        return [blocks[unit] for unit in units]

    def _saved_units(self, disk: DiskCache, flight: Flight, units: Iterable[int]) -> dict[int, Block]:
        """Return the units of a flight that are on disk."""
        ref, blocks = flight.wanted.ref, {}
        for run in _consecutive(list(units)):
            among = range(run[0], run[-1] + 1)
            for unit, extent in zip(among, disk.extents(ref.key, among), strict=True):
                if extent is not None:
                    blocks[unit] = _unit_block(self._memory, ref, unit, extent)
        return blocks

    async def _fetched_units(self, disk: DiskCache, flight: Flight, units: list[int]) -> dict[int, Block]:
        """Fetch units, consecutive ones in one request, and keep them on disk if there is room."""
        ref = flight.wanted.ref
        spans = [
            (run[0] * UNIT_BYTES, min((run[-1] + 1) * UNIT_BYTES, ref.pin.size))
            for run in _consecutive(units)
        ]
        blocks: dict[int, Block] = {}
        for fetched in await _all(self._fetch(flight, start, stop) for start, stop in spans):
            first = fetched.start // UNIT_BYTES
            await self._written(partial(disk.save_units, ref.key, first, fetched.data, etag=ref.pin.etag))
            blocks |= dict.fromkeys(range(first, -(-fetched.stop // UNIT_BYTES)), fetched)
        # What is on disk now need not stay in memory as it came.
        return blocks | self._saved_units(disk, flight, units)

    async def _written(self, work: Callable[[], object]) -> None:
        """Write files in a thread, so that the loop goes on; in the loop where no thread starts any more."""
        try:
            done = asyncio.get_running_loop().run_in_executor(self._writer, work)
        except RuntimeError:  # The interpreter ends.
            work()
        else:
            try:
                await asyncio.shield(done)
            except asyncio.CancelledError:
                # The bytes are here: others who want the units shall find them when the claims are released.
                await asyncio.wait([done])
                raise

    async def _fetch(self, flight: Flight, start: int, stop: int) -> Block:
        ref = flight.wanted.ref
        store, key = self._store_of(ref.path)
        request = Request(
            store=store,
            shown=f"{store.shown(key)}, bytes {start} to {stop}",
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
        return self._memory.put(ref.key, start, view)


def units_here(disk: DiskCache, memory: HeldRanges, wants: Wants) -> None:
    """Note in memory which units of some ranges are on disk."""
    first, last = wants.starts // UNIT_BYTES, (wants.stops - 1) // UNIT_BYTES
    counts = np.maximum(last - first + 1, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    units = first[owner] + np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
    places = np.unique((wants.which[owner] << _UNIT_BITS) | units)
    if not places.size:
        return
    heads = np.flatnonzero(np.diff(places, prepend=-2) != 1).tolist()
    numbers = places.tolist()
    for low, high in zip(heads, [*heads[1:], len(numbers)], strict=True):
        ref, start = wants.objects[numbers[low] >> _UNIT_BITS], numbers[low] & (1 << _UNIT_BITS) - 1
        run = range(start, start + high - low)
        for unit, extent in zip(run, disk.extents(ref.key, run), strict=True):
            if extent is not None:
                _unit_block(memory, ref, unit, extent)


def _unit_block(memory: HeldRanges, ref: ObjectRef, unit: int, extent: Extent) -> Block:
    start = unit * UNIT_BYTES
    return memory.put_part(ref.key, extent, start, min(start + UNIT_BYTES, ref.pin.size))


def _is_claimed(disk: DiskCache, key: str, unit: int, claims: ExitStack) -> bool:
    """Return True if this process may fetch a unit, until the end of ``claims``."""
    claim = disk.claim(key, unit)
    if claim is None:
        return False
    claims.callback(claim.release)
    return True


def _consecutive(numbers: list[int]) -> list[list[int]]:
    """Return ascending numbers in groups without holes."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and groups[-1][-1] + 1 == number:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of some coroutines; after an error, the others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
