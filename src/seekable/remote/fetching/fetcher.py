"""Byte ranges of objects for the readers of a process: from memory, from the disk, or fetched.

Readers in any thread call a `Fetcher`. It plans requests in the thread of the reader, and one event loop in a
thread of its own sends them.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final, TypeVar, final

import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.remote.cache.disk_cache import disk_cache
from seekable.remote.cache.held_ranges import CELL_BYTES, Held, HeldRanges
from seekable.remote.fetching.budget import Appetite, gap_bytes
from seekable.remote.fetching.forks import GuardedStores
from seekable.remote.fetching.kept_units import Rooms, blocks_here, units_here
from seekable.remote.fetching.look_ahead import LookAhead, as_planned
from seekable.remote.fetching.loop_thread import LoopThread
from seekable.remote.fetching.sending import FetchCounts, Patience, Places, Sender
from seekable.remote.fetching.transfers import Transfers
from seekable.remote.fetching.wants import NO_ROOM, Wants, planned
from seekable.storage.addresses import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
    from concurrent.futures import Future
    from typing import Any

    from seekable.remote import mounts
    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.held_ranges import Bytes, HeldBlock
    from seekable.remote.fetching.sending import FetchReport
    from seekable.remote.fetching.transfers import Flight
    from seekable.remote.fetching.wants import ObjectRef, PlannedRange
    from seekable.remote.stores.object_store import Store
    from seekable.storage.access import CacheChoice

else:
    mounts = lazy("seekable.remote.mounts")

__all__ = [
    "CHUNK_BYTES",
    "LEAST_CAPPED_BYTES",
    "MOST_BYTES",
    "RECENT_BYTES",
    "RECORD_GAP_BYTES",
    "Fetcher",
    "fetcher",
]

T = TypeVar("T")

RECENT_BYTES: Final = 64 << 20
MOST_BYTES: Final = 8 << 20
_PUMP_BYTES: Final = 4 << 20
"""The bytes read after which more is fetched. A call of the loop takes the interpreter from the reader."""
LEAST_CAPPED_BYTES: Final = 16 << 20
"""The least limit of the bytes ahead that a small cache on disk sets."""
_LEAST_SHARE: Final = 4 << 20
"""The least bytes ahead of each of several readers, such as the lanes of a stream."""
RECORD_GAP_BYTES: Final = 4096
"""The most bytes between records that are fetched before their units: all of them are fetched again."""
_NOTE_SECONDS, _USE_SECONDS, _NOTE_SHARE = 0.5, 30.0, 50
"""The time after which files on disk are compared with their maps, and that of the notes of last use."""
CHUNK_BYTES: Final = 4 << 20
"""The least request of a look-ahead by units of which little is wanted now, and all of it later."""


@final
class Fetcher:
    """Fetches byte ranges of objects. Safe from threads; a forked child has one of its own (`fetcher`)."""

    def __init__(
        self,
        store_of: Callable[[str], tuple[Store, str]],
        *,
        disk: Callable[[CacheChoice | None], DiskCache | None] = lambda _: None,
        patience_of: Callable[[str], Patience] = lambda _: Patience(),
        processes: int = 1,
    ) -> None:
        """Begin without requests; nothing is fetched yet.

        Args:
            store_of: returns the store and the key of an address; called in the loop.
            disk: returns the cache on disk that a dataset has chosen, None where none is wanted.
            patience_of: returns how long to try for a request to the store of an address.
            processes: the number of processes that share what a store permits.
        """
        self._rooms = Rooms(disk)
        self._memory = HeldRanges(recent_bytes=RECENT_BYTES)
        self._counts = FetchCounts()
        self._places = Places(at_once=64)
        self._sender = Sender(self._places, self._counts, processes=processes)
        self._appetite = Appetite()
        self._aheads: list[weakref.ref[LookAhead]] = []
        self._aheads_lock = threading.Lock()
        self._reader_count = 1
        """The number of look-aheads that wanted something when `pump` was called last, at least 1."""
        self._is_pending = False
        """True if a look-ahead had ranges to begin when `pump` was called last."""
        self._unnoted_bytes = self._unpumped_bytes = 0
        self._note_at = self._use_at = 0.0
        stores = GuardedStores(store_of)
        self._transfers = Transfers(
            stores.store_of,
            disk,
            patience_of,
            memory=self._memory,
            sender=self._sender,
        )
        self._loop = LoopThread("seekable-fetcher", at_end=stores.close)

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
        blocks, missing = self._here(wants)
        if len(missing):
            blocks += self._waited(self._transfers.bring(self._planned_now(missing)))
        self.note_reads(len(wants), wants.total_bytes, missing=len(missing))
        return Held(blocks)

    def note_reads(self, count: int, read_bytes: int, *, missing: int = 0) -> None:
        """Note that a reader takes bytes, so that others are fetched ahead, and the oldest are evicted.

        Args:
            count: the number of ranges.
            read_bytes: their bytes.
            missing: the number of ranges that were not here.
        """
        now = time.monotonic()
        self._counts.hits += count - missing
        self._counts.misses += missing
        self._appetite.wanted(read_bytes, now)
        self._unnoted_bytes += read_bytes
        self._unpumped_bytes += read_bytes
        if self._unpumped_bytes > _PUMP_BYTES and self._is_pending:
            self._unpumped_bytes = 0
            self._loop.post(self.pump)
        if now >= self._note_at:
            self._note_on_disk(now)

    def _note_on_disk(self, now: float) -> None:
        self._note_at = now + _NOTE_SECONDS
        disks = self._rooms.disks
        if not disks:
            return
        used: dict[str, list[int]] = {}
        if now >= self._use_at:
            self._use_at = now + _USE_SECONDS
            step = UNIT_BYTES // CELL_BYTES
            cells = self._memory.cells.read_lately()
            used = {key: np.unique(some // step).tolist() for key, some in cells.items()}
        read_bytes, self._unnoted_bytes = self._unnoted_bytes, 0
        for disk in disks:
            disk.note_reads(read_bytes, used)
        # Where many files are open, the comparison takes a fiftieth of the time at most.
        ended = time.monotonic()
        self._note_at = ended + max(_NOTE_SECONDS, _NOTE_SHARE * (ended - now))

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
        with self._aheads_lock:
            self._aheads = [*(ref for ref in self._aheads if ref() is not None), weakref.ref(ahead)]
        return ahead

    def run(self, call: Callable[[Store], Awaitable[T]], *, path: str) -> T:
        """Run a coroutine with the store of an address, and return its result; Ctrl-C cancels it.

        Args:
            call: gets the store, each of whose methods retries; called in the loop of the fetcher.
            path: an address in the store.

        Raises:
            Unreachable, IndexStale, DataNotFound, AccessDenied: as the methods of `Store`.
        """
        return self._waited(self._transfers.run(call, path))

    def start(self, call: Callable[[Store], Awaitable[T]], *, path: str) -> Future[T]:
        """Begin what `run` does, and return its future; cancelling the future cancels the requests.

        Args:
            call: as for `run`.
            path: an address in the store.
        """
        return self._loop.start(self._transfers.run(call, path))

    def report(self) -> FetchReport:
        """Return the counts of the requests since this fetcher was made."""
        waiting = sum(ahead.waiting_bytes for ahead in self._living_aheads())
        return self._counts.report(oldest=self._sender.oldest(), waiting_bytes=waiting)

    def close(self) -> None:
        """Cancel all requests, and wait until they have ended and what was fetched is on disk."""
        self._loop.close()
        self._transfers.close()

    @property
    def memory(self) -> HeldRanges:
        """The bytes of objects that are in memory."""
        return self._memory

    @property
    def is_closed(self) -> bool:
        """True if `close` was called."""
        return self._loop.is_closed

    def not_kept(self, wants: Wants) -> Wants:
        """Return those ranges that no open map of the cache on disk has; all, where it may evict them."""
        evict = np.array([room.evicts for room in self._rooms.wanted(wants.objects)], np.bool_)
        if evict.all():
            return wants
        cells = self._memory.cells
        firsts = np.array([cells.first(ref.key) for ref in wants.objects], np.int64)[wants.which]
        are_kept = cells.are_kept(firsts, wants.starts, wants.stops) & ~evict[wants.which]
        return wants.take(np.flatnonzero(~are_kept))

    def plan(self, wants: Wants) -> list[PlannedRange]:
        """Return the requests of a look-ahead, in the order of first need."""
        if not len(wants):
            return []
        _check(wants)
        return self._planned(wants, align_bytes=CHUNK_BYTES)

    @property
    def has_disk(self) -> bool:
        """True if something of what readers have wanted is kept on disk."""
        return self._rooms.are_there

    def evicting(self, choices: Iterable[CacheChoice | None]) -> dict[CacheChoice | None, DiskCache]:
        """Return those of some caches on disk that do not keep all that readers have wanted."""
        return self._rooms.evicting(choices)

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop soon."""
        self._loop.post(function)

    def begin(self, wanted: PlannedRange) -> tuple[list[HeldBlock], list[Flight]]:
        """Return the blocks of a range that are here, and flights that bring the rest; in the loop."""
        return self._transfers.begin(wanted)

    def leave(self, flights: Sequence[Flight]) -> None:
        """Give flights of a look-ahead up; in the loop."""
        self._transfers.leave(flights)

    def pump(self) -> None:
        """Begin further ranges of all look-aheads, in turns, where there is a place; in the loop."""
        # The end of each request that `close` cancels would begin the next one.
        if self._loop.is_closed:
            return
        aheads = self._living_aheads()
        self._reader_count = max(1, sum(ahead.is_wanting for ahead in aheads))
        self._is_pending = any(ahead.is_pending for ahead in aheads)
        while aheads and sum(ahead.open_flights for ahead in aheads) < self._places.at_once:
            aheads = [ahead for ahead in aheads if ahead.begin_next()]

    def budget_bytes(self) -> int:
        """Return how many bytes ahead of a reader to fetch.

        All readers share half a second of their rate, at most half of what a cache on disk keeps.
        """
        room = self._rooms.least_bytes
        ahead = self._appetite.ahead_bytes(self._sender.measured)
        if room is not None:
            ahead = min(ahead, max(room // 2, LEAST_CAPPED_BYTES))
        return ahead if self._reader_count == 1 else max(ahead // self._reader_count, _LEAST_SHARE)

    def _living_aheads(self) -> list[LookAhead]:
        return [ahead for ref in self._aheads if (ahead := ref()) is not None]

    def _here(self, wants: Wants) -> tuple[list[Bytes], Wants]:
        """Return the blocks that are here, and the ranges that are not here as a whole."""
        disks = {choice: self._rooms.disk(choice) for choice in {ref.cache for ref in wants.objects}}
        memory = self._memory
        firsts = np.array([memory.cells.first(ref.key) for ref in wants.objects], np.int64)[wants.which]
        found = memory.cells.find(firsts, wants.starts, wants.stops)
        missing = found.missing
        if missing.size and any(disk is not None for disk in disks.values()):
            units_here(disks.__getitem__, memory, wants.take(missing))
            found = memory.cells.find(firsts, wants.starts, wants.stops)
            missing = found.missing
        blocks = found.blocks
        left: list[int] = []
        columns = (column[missing].tolist() for column in (wants.which, wants.starts, wants.stops))
        for row, number, start, stop in zip(missing.tolist(), *columns, strict=True):
            # A range may lie in several blocks.
            ref = wants.objects[number]
            parts, gaps = blocks_here(disks[ref.cache], memory, ref, start, stop)
            blocks += parts
            if gaps:
                left.append(row)
        return blocks, wants.take(np.array(left, np.int64))

    def _planned(self, wants: Wants, *, align_bytes: int, alone: bool = False) -> list[PlannedRange]:
        """Return the requests for ranges; ``alone`` for the ranges without their units."""
        gap = gap_bytes(self._sender.measured)
        return planned(
            wants,
            gap_bytes=min(gap, RECORD_GAP_BYTES) if alone else gap,
            most_bytes=MOST_BYTES,
            align_bytes=align_bytes,
            rooms=[NO_ROOM] * len(wants.objects) if alone else self._rooms.wanted(wants.objects),
        )

    def _planned_now(self, wants: Wants) -> list[PlannedRange]:
        """Return the requests for ranges that a reader waits for.

        A range of a look-ahead is fetched as planned, and not twice; its first batch alone may come first.
        """
        planned = self._planned(wants, align_bytes=UNIT_BYTES)
        aheads = self._living_aheads()
        requests = list(dict.fromkeys(each for one in planned for each in as_planned(one, aheads)))
        whole_bytes = sum(one.stop - one.start for one in requests)
        if requests == planned and not any(one.by_units for one in planned):
            return planned
        if requests != planned and any(ahead.has_brought for ahead in aheads):
            return requests
        alone = self._planned(wants, align_bytes=1, alone=True)
        if self._appetite.are_records_first(
            alone,
            unit_bytes=whole_bytes,
            measured=self._sender.measured,
            fetched_bytes=self._counts.fetched_bytes,
        ):
            return alone
        return requests

    def _waited(self, work: Coroutine[Any, Any, T]) -> T:
        began = time.monotonic()
        try:
            return self._loop.call(work)
        finally:
            seconds = time.monotonic() - began
            self._counts.waits += 1
            self._counts.wait_seconds += seconds
            self._appetite.waited(seconds)


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


def _patience_of(path: str) -> Patience:
    """Return how long to try for requests to the store of an address: ``retries`` of its options."""
    retries = mounts.options_of(path).values.get("retries")
    return Patience() if retries is None else Patience(tries=int(retries) + 1)


def _processes() -> int:
    """Return the number of processes of a training that read at the same time."""
    world = os.environ.get("WORLD_SIZE", "")
    return max(1, int(world)) if world.isdecimal() else 1


_FETCHERS: dict[int, Fetcher] = {}
"""The fetcher of each process by its number. A forked child has those of its ancestors, and uses none."""


def fetcher() -> Fetcher:
    """Return the fetcher of this process."""
    process = os.getpid()
    found = _FETCHERS.get(process)
    if found is not None and found.is_closed:
        _FETCHERS.pop(process, None)
        found = None
    if found is None:
        # One of several threads wins; the fetchers of the others never start.
        made = Fetcher(mounts.store_of, disk=disk_cache, patience_of=_patience_of, processes=_processes())
        found = _FETCHERS.setdefault(process, made)
    return found
