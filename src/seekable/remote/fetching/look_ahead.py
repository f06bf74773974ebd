"""Reading ahead: ranges that are needed soon are fetched in the order of need, within a budget of bytes.

Of blocks that are here, a reader keeps those that it is going to need. Windows of a shuffle are open for a
long time, and each of their blocks is read bit by bit: all of them stay, however large they are. Where little
of each block is needed, as by a shuffle of all records, most of what came with the records is of no use: of
such blocks a bounded number of bytes stays, those needed next.
"""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from seekable.remote.fetching.wants import DENSE, RangesByObject, Wants, by_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.held_ranges import HeldBlock
    from seekable.remote.fetching.transfers import Flight
    from seekable.remote.fetching.wants import PlannedRange
    from seekable.storage.access import CacheChoice

__all__ = ["SPARSE_BUDGETS", "LookAhead", "Needs", "Readers", "as_planned"]


_OFFSET_BITS = 44

_COUNT_SHARE = 10
"""Bytes that a reader has not begun to read are counted in at most one of so many parts of the time."""

SPARSE_BUDGETS = 2
"""Blocks of which little is needed stay up to so many times the bytes that are fetched ahead."""

_NEED_SECONDS = 60.0
"""The time for which what a reader needs first is not evicted; twice that for what it needs last."""


@final
class Needs:
    """Ranges that a reader is going to need, for questions on blocks of bytes.

    Example:
        >>> needs = Needs(*np.array([[0, 0], [400, 0], [410, 100]]))
        >>> blocks = np.array([[0, 0, 0], [0, 200, 400], [200, 400, 500]])
        >>> [needs.kept(*blocks, most_bytes=size).tolist() for size in (0, 100)]
        [[True, False, False], [True, False, True]]
        >>> needs.nearest(*blocks).tolist()
        [2, 0]
    """

    def __init__(self, which: Int64s, starts: Int64s, stops: Int64s) -> None:
        """Take the ranges, the next one first.

        Args:
            which: the index of each range's object.
            starts: its first byte.
            stops: the byte after its last.
        """
        self._which, self._starts, self._stops = which, starts, stops

    def kept(self, which: Int64s, starts: Int64s, stops: Int64s, *, most_bytes: int) -> NDArray[np.bool_]:
        """Return for each block True if it stays: it is needed, and dense or among those needed next.

        A byte that several ranges need counts as often; of a range at the edge of a block all bytes count.

        Args:
            which: the index of each block's object; -1 for an object without ranges.
            starts: its first byte.
            stops: the byte after its last.
            most_bytes: the most bytes of blocks that are not dense.
        """
        sums, sizes = self._sorted[3], stops - starts
        low, high = self._sharing(which, starts, stops)
        needed = sums[high] - sums[low]
        stays: NDArray[np.bool_] = (needed > 0) & (needed * DENSE >= sizes)
        sparse = np.flatnonzero((needed > 0) & ~stays)
        nearest = sparse[np.argsort(self._first(low[sparse], high[sparse]), kind="stable")]
        stays[nearest[np.cumsum(sizes[nearest]) <= most_bytes]] = True
        return stays

    def nearest(self, which: Int64s, starts: Int64s, stops: Int64s) -> Int64s:
        """Return the indexes of the blocks that are needed, the one that is needed first first.

        Args:
            which: as of `kept`.
            starts: as of `kept`.
            stops: as of `kept`.
        """
        low, high = self._sharing(which, starts, stops)
        needed = np.flatnonzero(high > low)
        return needed[np.argsort(self._first(low[needed], high[needed]), kind="stable")]

    def _sharing(self, which: Int64s, starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s]:
        """Return for each block where the sorted ranges begin and end that share bytes with it."""
        places, ends, _, _ = self._sorted
        base = np.maximum(which, 0) << _OFFSET_BITS
        low = np.searchsorted(ends, base + starts, side="right")
        high = np.maximum(np.searchsorted(places, base + stops), low)
        return low, np.where(which >= 0, high, low)

    def _first(self, low: Int64s, high: Int64s) -> Int64s:
        """Return the index of the first of the sorted ranges from ``low`` to ``high``, of each block."""
        order, pairs = self._sorted[2], zip(low.tolist(), high.tolist(), strict=True)
        return np.array([order[one:other].min() for one, other in pairs], np.int64)

    @cached_property
    def _sorted(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Of the ranges sorted by place: their first bytes, furthest ends, numbers, and sums of bytes."""
        full = np.flatnonzero(self._stops > self._starts)
        order = full[by_place(self._which[full], self._starts[full])]
        places = (self._which[order] << _OFFSET_BITS) + self._starts[order]
        lengths = self._stops[order] - self._starts[order]
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return places, np.maximum.accumulate(places + lengths), order, sums


class Readers(Protocol):
    """The part of a fetcher that look-aheads use. Readers call the first three, the loop calls the others."""

    def plan(self, wants: Wants) -> list[PlannedRange]:
        """Return the requests for some ranges, in the order of first need."""

    def evicting(self, choices: Iterable[CacheChoice | None]) -> dict[CacheChoice | None, DiskCache]:
        """Return those of some caches on disk that may evict what a reader needs."""

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop soon."""

    def begin(self, wanted: PlannedRange) -> tuple[list[HeldBlock], list[Flight]]:
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
        self._planned = self._followed = RangesByObject([])
        self._next = 0
        self._call = 0
        self._begun_bytes = self._open_bytes = 0
        self._count_at = 0.0
        self._blocks: dict[tuple[str, int, int], HeldBlock] = {}
        self._flights: list[Flight] = []
        self._wanted_bytes = 0
        self._here_bytes = 0
        self._has_brought = False

    def want(self, wants: Wants) -> None:
        """Fetch these ranges in this order as the budget allows; returns at once.

        They replace the ranges of the call before. Requests under way go on, and bytes that are here stay
        where a range contains some of them. Errors are not raised: the reader fetches again what it needs,
        and meets them then.

        Args:
            wants: the ranges, the next one first.
        """
        before, planned = self._planned, RangesByObject(self._readers.plan(wants))
        self._planned = planned
        self._note_need(before)
        self._readers.post(lambda: self._replace(planned, wants))

    def close(self) -> None:
        """Want nothing any more: requests that no other reader needs are cancelled, and memory is freed."""
        before, self._planned = self._planned, RangesByObject([])
        self._note_need(before)
        self._readers.post(self._end)

    def sharing(self, key: str, start: int, stop: int) -> Sequence[PlannedRange]:
        """Return those ranges of the last call that share bytes with a range of an object.

        Args:
            key: the key of the object.
            start: the first byte.
            stop: the byte after the last.
        """
        return self._planned.sharing(key, start, stop)

    @property
    def waiting_bytes(self) -> int:
        """The number of bytes that were wanted by the last call and are not here yet."""
        return max(0, self._wanted_bytes - self._here_bytes)

    @property
    def has_brought(self) -> bool:
        """True if some range has come since the look-ahead was made."""
        return self._has_brought

    @property
    def open_bytes(self) -> int:
        """The bytes, as last counted, of blocks that the reader has begun to read and needs again."""
        return self._open_bytes

    @property
    def is_wanting(self) -> bool:
        """True if the last call wanted something."""
        return bool(self._planned.ranges)

    @property
    def is_pending(self) -> bool:
        """True if some ranges of the last call were not begun."""
        return self._next < len(self._followed.ranges)

    @property
    def open_flights(self) -> int:
        """The number of flights that this look-ahead wants and that are under way; read in the loop."""
        return len(self._flights)

    def begin_next(self) -> bool:
        """Begin the next range if the budget allows, and return True; called in the loop."""
        if not self.is_pending:
            return False
        wanted = self._followed.ranges[self._next]
        size = wanted.stop - wanted.start
        budget = self._readers.budget_bytes()
        if self._begun_bytes + size > budget:
            self._count_again()
        if self._begun_bytes and self._begun_bytes + size > budget:
            return False
        self._next += 1
        blocks, flights = self._readers.begin(wanted)
        under_way = sum(_overlap(flight.wanted, wanted) for flight in flights)
        self._begun_bytes += under_way
        if not wanted.is_sparse:
            self._keep(wanted.ref.key, blocks)
            self._begun_bytes += sum(_overlap(block, wanted) for block in blocks if not block.is_open)
        self._here_bytes += size - under_way
        for flight in flights:
            self._flights.append(flight)
            landed = partial(self._landed, flight, _overlap(flight.wanted, wanted), self._call)
            flight.task.add_done_callback(landed)
        return True

    def _note_need(self, before: RangesByObject) -> None:
        """Note on disk which units are needed now, so that they are not evicted, and which no more.

        Args:
            before: the ranges that were needed until now.
        """
        planned = self._planned
        disks = self._readers.evicting({each.ref.cache for each in (*before.ranges, *planned.ranges)})
        if not disks:
            return
        for each in before.ranges:
            disk = disks.get(each.ref.cache) if each.by_units else None
            if disk is not None and not planned.sharing(each.ref.key, each.start, each.stop):
                disk.note_need(each.ref.key, each.units, 0.0)
        for number, each in enumerate(planned.ranges):
            disk = disks.get(each.ref.cache) if each.by_units else None
            if disk is not None:
                seconds = _NEED_SECONDS * (1 + number / len(planned.ranges))
                disk.note_need(each.ref.key, each.units, seconds)

    def _keep(self, key: str, blocks: Sequence[HeldBlock]) -> None:
        """Keep blocks of an object that share bytes with a range of the last call that is not sparse."""
        for block in blocks:
            if any(not each.is_sparse for each in self._followed.sharing(key, block.start, block.stop)):
                self._blocks.setdefault((key, block.start, block.stop), block)

    def _count_again(self) -> None:
        """Count the bytes that are under way, or here and not begun to be read; not each time."""
        began = time.monotonic()
        if began < self._count_at:
            return
        flying = sum(flight.wanted.stop - flight.wanted.start for flight in set(self._flights))
        here, self._open_bytes = self._counted()
        self._begun_bytes = flying + here
        ended = time.monotonic()
        self._count_at = ended + _COUNT_SHARE * (ended - began)

    def _counted(self) -> tuple[int, int]:
        """Return the bytes of blocks that are here and not begun to be read, and those of the others."""
        here = opened = reached = 0
        of = ""
        # Blocks of one map share bytes, which count once.
        for (key, start, stop), block in sorted(self._blocks.items(), key=lambda item: item[0]):
            reached = max(reached, start) if key == of else start
            size, of, reached = max(0, stop - reached), key, max(reached, stop)
            if block.is_open:
                opened += size
            else:
                here += size
        return here, opened

    def _replace(self, planned: RangesByObject, wants: Wants) -> None:
        self._followed, self._next, self._begun_bytes = planned, 0, 0
        self._count_at = 0.0
        self._call += 1
        self._drop_but(wants)
        self._open_bytes = self._counted()[1]
        self._here_bytes = 0
        self._wanted_bytes = sum(wanted.stop - wanted.start for wanted in planned.ranges)
        self._readers.pump()

    def _drop_but(self, wants: Wants) -> None:
        """Keep those blocks alone that the reader is going to need."""
        if not self._blocks:
            return
        numbers = {ref.key: number for number, ref in enumerate(wants.objects)}
        spans = np.array([(numbers.get(key, -1), *span) for key, *span in self._blocks], np.int64).T
        most_bytes = SPARSE_BUDGETS * self._readers.budget_bytes()
        stays = Needs(wants.which, wants.starts, wants.stops).kept(*spans, most_bytes=most_bytes)
        blocks = zip(self._blocks.items(), stays.tolist(), strict=True)
        self._blocks = {at: block for (at, block), kept in blocks if kept}

    def _end(self) -> None:
        self._replace(RangesByObject([]), Wants.joined([]))
        flights, self._flights = self._flights, []
        self._readers.leave(flights)

    def _landed(self, flight: Flight, size: int, call: int, _: object) -> None:
        """Take the blocks of a flight over."""
        if flight not in self._flights:
            return
        self._flights.remove(flight)
        self._readers.leave([flight])
        if not flight.task.cancelled() and flight.task.exception() is None:
            self._keep(flight.wanted.ref.key, flight.task.result())
            self._here_bytes += size if call == self._call else 0
            self._has_brought = True
        self._readers.pump()


def as_planned(wanted: PlannedRange, aheads: Sequence[LookAhead]) -> list[PlannedRange]:
    """Return the ranges of look-aheads that share bytes with a range, and the parts of it that none has.

    Those of a range by units are by units as well.

    Args:
        wanted: the range.
        aheads: the look-aheads.
    """
    found: list[PlannedRange] = []
    start = wanted.start
    for ahead in aheads:
        for each in ahead.sharing(wanted.ref.key, start, wanted.stop):
            if wanted.by_units and not each.by_units:
                continue
            if start < each.start:
                found.append(wanted.part(start, each.start))
            found.append(each)
            start = max(start, each.stop)
    if start < wanted.stop:
        found.append(wanted.part(start, wanted.stop))
    return found


def _overlap(part: HeldBlock | PlannedRange, wanted: PlannedRange) -> int:
    return max(0, min(part.stop, wanted.stop) - max(part.start, wanted.start))
