"""Byte ranges of objects that a reader is going to need, and the requests that bring them: pure, no I/O.

Ranges near each other become one request, long ones several, and requests go out in the order of first need.
They are of whole units, or of nothing but the records. Whole units are kept on disk, and a later read of a
neighbour finds them there. Where the cache is full before neighbours are read, units would only cost bytes:
then the ranges alone are fetched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from seekable._cached import cached
from seekable.storage.addresses import UNIT_BYTES, object_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.remote.stores.object_store import Pin
    from seekable.storage.access import CacheChoice
    from seekable.storage.far import Digests

__all__ = [
    "DENSE",
    "NEAR_BYTES",
    "NO_ROOM",
    "SCATTERED",
    "SPARSE",
    "CacheRoom",
    "MergedRanges",
    "ObjectRef",
    "PlannedRange",
    "RangesByObject",
    "Wants",
    "are_units_better",
    "by_place",
    "covered",
    "gap_within",
    "merged",
    "planned",
]

_MOST_KEY = 1 << 62

_CELL_BITS = 40
_NEVER = np.iinfo(np.int64).max

_NO_CUT = 1 << 60
DENSE = 2
"""A block is dense if at least one part in so many of its bytes is needed."""
SPARSE = 8
"""Units are sparse if less than one part in so many is wanted, as by a shuffle of all records."""
SCATTERED = 4
"""Units are scattered if those that follow each other are fewer than so many. Blocks of windows are not."""
_HELD_BYTES = 512 << 20
"""Ranges that bring no more bytes than that, with the gaps between them, are held in memory as they are."""
NEAR_BYTES = 16 << 10
"""Missing parts of a range with so many bytes between them are fetched together with these."""


@final
@dataclass(frozen=True, eq=False)
class ObjectRef:
    """One version of an object in a store. Two are equal if path, identity and size are."""

    path: str
    """The address of the object, ``s3://bucket/corpus/a.jsonl`` for instance."""
    pin: Pin
    """The size and the version that each answer must have; the first answer fills in its etag."""
    cache: CacheChoice | None = None
    """The cache on disk that the dataset of the object has chosen; None for the one that all others share."""
    digests: Digests | None = None
    """The digests of its units, as they were indexed; None if they are not known."""

    @cached
    def key(self) -> str:
        """The name of the object in caches, in memory and on disk: a digest of path, identity and size."""
        return object_key(self.path, size=self.pin.size, identity=self.pin.identity)

    def __eq__(self, other: object) -> bool:
        """Return True for the same version of the same object."""
        if not isinstance(other, ObjectRef):
            return NotImplemented
        return self.key == other.key

    def __hash__(self) -> int:
        """Return a hash of path, identity and size."""
        return hash(self.key)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Wants:
    """Byte ranges in the order of need. They may overlap, repeat and be empty.

    Example:
        >>> Wants((), *np.zeros((3, 0), np.int64)).total_bytes
        0
    """

    objects: tuple[ObjectRef, ...]
    """The objects that the ranges belong to; the objects differ."""
    which: Int64s
    """The index in ``objects`` of each range's object."""
    starts: Int64s
    """The first byte of each range."""
    stops: Int64s
    """The byte after the last of each range."""

    @classmethod
    def of(cls, ref: ObjectRef, start: int, stop: int) -> Wants:
        """Return one range of one object."""
        return cls((ref,), np.zeros(1, np.int64), np.array([start], np.int64), np.array([stop], np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Wants]) -> Wants:
        """Return the ranges of several ``Wants``, one after the other."""
        numbers: dict[ObjectRef, int] = {}
        columns: list[tuple[Int64s, Int64s, Int64s]] = []
        for part in parts:
            if not len(part):
                continue
            renumbered = np.array([numbers.setdefault(ref, len(numbers)) for ref in part.objects], np.int64)
            which = renumbered[part.which]
            columns.append((which, part.starts, part.stops))
        if not columns:
            return cls((), *np.zeros((3, 0), np.int64))
        which, starts, stops = (np.concatenate(column) for column in zip(*columns, strict=True))
        return cls(tuple(numbers), which, starts, stops)

    def take(self, rows: Int64s) -> Wants:
        """Return some of the ranges, by their numbers, in that order."""
        return Wants(self.objects, self.which[rows], self.starts[rows], self.stops[rows])

    @property
    def total_bytes(self) -> int:
        """The sum of the lengths of the ranges."""
        return int((self.stops - self.starts).sum())

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self.which)


def by_place(which: Int64s, starts: Int64s) -> Int64s:
    """Return the indexes of ranges in the order of their objects and first bytes, equals as they are.

    Args:
        which: the index of each range's object.
        starts: its first byte.

    Example:
        >>> by_place(np.array([1, 0, 0]), np.array([5, 9, 7])).tolist()
        [2, 1, 0]
    """
    if not which.size:
        return np.zeros(0, np.int64)
    step = int(starts.max()) + 1
    if (int(which.max()) + 1) * step < _MOST_KEY:
        keys = which * step + starts
        # A sort that is not stable takes a tenth of the time.
        order = np.argsort(keys)
        if np.diff(keys[order]).all():
            return order
    return np.lexsort((starts, which))


class CacheRoom(NamedTuple):
    """A cache on disk, as far as requests depend on it."""

    data_bytes: int
    """The bytes of all objects that readers of the process want of it; no more is counted above its room."""
    room_bytes: int
    """The most bytes that it keeps; 0 for no cache, any number before it is made."""

    @property
    def evicts(self) -> bool:
        """True if it does not keep all that readers want."""
        return self.data_bytes > self.room_bytes


NO_ROOM: Final = CacheRoom(0, 0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class MergedRanges:
    """Requests in the order of first need. No two of them share a byte."""

    which: Int64s
    """The index of each request's object."""
    starts: Int64s
    """The first byte of each request."""
    stops: Int64s
    """The byte after the last of each request."""
    first: Int64s
    """The index of the first range that needs bytes of the request; ascending."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.which)


def merged(wants: Wants, *, gap_bytes: int, most_bytes: int, align_bytes: int) -> MergedRanges:
    """Return the requests that bring some ranges.

    Args:
        wants: the ranges.
        gap_bytes: ranges of one object with at most so many bytes between them are fetched together.
        most_bytes: the most bytes of a request, a multiple of ``align_bytes``.
        align_bytes: requests start at multiples of this, and end at one or at the end of the object; 1 for
            requests of nothing but the ranges and the gaps. Aligned requests are cut at multiples of
            ``most_bytes``, so that different readers send the same ones.

    Example:
        >>> from seekable.remote.fetching.wants import ObjectRef, Wants
        >>> from seekable.remote.stores.object_store import Pin
        >>> wants = Wants((ObjectRef("s3://b/a", Pin(1000, 1)),), *np.array([[0, 0], [50, 0], [60, 45]]))
        >>> requests = merged(wants, gap_bytes=5, most_bytes=100, align_bytes=1)
        >>> requests.starts.tolist(), requests.stops.tolist(), requests.first.tolist()
        ([0], [60], [0])
    """
    rows = np.flatnonzero(wants.stops > wants.starts)
    which, starts, stops = wants.which[rows], wants.starts[rows], wants.stops[rows]
    if not rows.size:
        return MergedRanges(*np.zeros((4, 0), np.int64))
    if align_bytes > 1:
        columns = _aligned(which, starts, stops, rows, (gap_bytes, most_bytes, align_bytes))
        sizes = np.array([ref.pin.size for ref in wants.objects], np.int64)
        columns[2] = np.minimum(columns[2], sizes[columns[0]])
    else:
        columns = _unaligned(which, starts, stops, rows, (gap_bytes, most_bytes))
    # Keys without equals need no stable sort, which takes ten times as long.
    count = columns.shape[1]
    return MergedRanges(*columns[:, np.argsort(columns[3] * count + np.arange(count))].copy())


def covered(wants: Wants) -> Int64s:
    """Return the number of bytes of each object that some ranges cover together.

    Example:
        >>> from seekable.remote.fetching.wants import ObjectRef, Wants
        >>> from seekable.remote.stores.object_store import Pin
        >>> ref = ObjectRef("s3://b/a", Pin(1000, 1))
        >>> covered(Wants((ref,), *np.array([[0, 0, 0], [50, 0, 40], [60, 45, 52]]))).tolist()
        [60]
    """
    order = by_place(wants.which, wants.starts)
    # On one axis, on which the objects lie one after the other.
    base = wants.which[order] * (int(wants.stops.max(initial=0)) + 1)
    reach = np.maximum.accumulate(wants.stops[order] + base)
    begins = wants.starts[order] + base
    begins[1:] = np.maximum(begins[1:], reach[:-1])
    totals = np.zeros(max(len(wants.objects), int(wants.which.max(initial=-1)) + 1), np.int64)
    np.add.at(totals, wants.which[order], np.maximum(reach - begins, 0))
    return totals


def gap_within(wants: Wants, *, gap_bytes: int, most_bytes: int) -> int:
    """Return the largest gap with which the requests for some ranges have at most so many bytes together.

    Args:
        wants: the ranges.
        gap_bytes: the largest gap that is worth a request less.
        most_bytes: the most bytes of all requests; where the ranges alone have more, the gap is 0.

    Example:
        >>> from seekable.remote.fetching.wants import ObjectRef, Wants
        >>> from seekable.remote.stores.object_store import Pin
        >>> ref = ObjectRef("s3://b/a", Pin(1000, 1))
        >>> wants = Wants((ref,), *np.array([[0, 0, 0], [0, 30, 90], [10, 40, 95]]))
        >>> [gap_within(wants, gap_bytes=60, most_bytes=most) for most in (20, 45, 95)]
        [0, 49, 60]
    """
    order = by_place(wants.which, wants.starts)
    base = wants.which[order] * (int(wants.stops.max(initial=0)) + 1 + gap_bytes)
    starts, reach = wants.starts[order] + base, np.maximum.accumulate(wants.stops[order] + base)
    gaps = starts[1:] - reach[:-1]
    gaps = np.sort(gaps[(gaps > 0) & (gaps <= gap_bytes)])
    spare = most_bytes - int(covered(wants).sum())
    fitting = int(np.searchsorted(np.cumsum(gaps), spare, side="right"))
    return gap_bytes if fitting == gaps.size else int(gaps[fitting]) - 1 if fitting else 0


def _aligned(
    which: Int64s, starts: Int64s, stops: Int64s, rows: Int64s, bounds: tuple[int, int, int]
) -> Int64s:
    """Return requests for cells of so many bytes: object, first byte, byte after the last, first need.

    Args:
        which: the object of each range.
        starts: its first byte.
        stops: the byte after its last.
        rows: its index, ascending.
        bounds: the most bytes of a gap and of a request, and the bytes of a cell.
    """
    gap_bytes, most_bytes, align_bytes = bounds
    first = starts // align_bytes
    counts = (stops - 1) // align_bytes - first + 1
    owner = np.repeat(np.arange(rows.size), counts)
    within = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
    cells = (which[owner] << _CELL_BITS) + first[owner] + within
    order = np.argsort(cells)
    cells = cells[order]
    firsts = np.flatnonzero(np.diff(cells, prepend=-1))
    places, needs = cells[firsts], rows[np.minimum.reduceat(owner[order], firsts)]
    # The cells of two objects are never neighbours: a gap of 2^40 cells is never joined.
    new = np.ones(places.size, np.bool_)
    new[1:] = np.diff(places) > 1 + gap_bytes // align_bytes
    new[1:] |= np.diff((places & (1 << _CELL_BITS) - 1) // (most_bytes // align_bytes)) != 0
    heads = np.flatnonzero(new)
    lasts = np.append(heads[1:], places.size) - 1
    objects = places[heads] >> _CELL_BITS
    base = objects << _CELL_BITS
    begins, ends = (places[heads] - base) * align_bytes, (places[lasts] - base + 1) * align_bytes
    return np.stack([objects, begins, ends, np.minimum.reduceat(needs, heads)])


def _unaligned(which: Int64s, starts: Int64s, stops: Int64s, rows: Int64s, bounds: tuple[int, int]) -> Int64s:
    """Return requests for the ranges and the gaps between them alone; see `_aligned`."""
    gap_bytes, most_bytes = bounds
    order = by_place(which, starts)
    which, starts, stops, rows = which[order], starts[order], stops[order], rows[order]
    # The furthest byte so far, in each object: those of one object lie below those of the next.
    step = int(stops.max()) + 1
    base = which * np.int64(step)
    reach = np.maximum.accumulate(stops + base) - base
    new = np.ones(rows.size, np.bool_)
    new[1:] = (np.diff(which) != 0) | (starts[1:] - reach[:-1] > gap_bytes)
    heads = np.flatnonzero(new)
    edges = np.append(heads, rows.size)
    ends = np.maximum.reduceat(stops, heads)
    columns = np.stack([which[heads], starts[heads], ends, np.minimum.reduceat(rows, heads)])
    is_long = ends - starts[heads] > most_bytes
    if not is_long.any():
        return columns
    parts = [columns[:, ~is_long]]
    for number in np.flatnonzero(is_long).tolist():
        here = slice(edges[number], edges[number + 1])
        parts.append(_cut(starts[here], stops[here], rows[here], int(which[here.start]), bounds))
    return np.concatenate(parts, axis=1)


def _cut(starts: Int64s, stops: Int64s, rows: Int64s, number: int, bounds: tuple[int, int]) -> Int64s:
    """Return the requests of ranges of one object that are too long for one; the ranges are sorted."""
    gap_bytes, most_bytes = bounds
    requests: list[list[int]] = []
    columns = (part.tolist() for part in (starts, stops, rows))
    for start, stop, row in zip(*columns, strict=True):
        _add(requests, number, start, stop, gap_bytes=gap_bytes, most_bytes=most_bytes)
        for request in reversed(requests):
            if request[2] <= start:
                break
            if request[1] < stop:
                request[3] = min(request[3], row)
    return np.array(requests, np.int64).reshape(-1, 4).T


def _add(
    requests: list[list[int]],
    number: int,
    start: int,
    stop: int,
    *,
    gap_bytes: int,
    most_bytes: int,
) -> None:
    """Add a range to sorted requests (object, start, stop, first need): to the last one, or as new ones.

    Args:
        requests: the requests of the ranges before.
        number: the object of the range.
        start: its first byte, not before that of the range before.
        stop: the byte after its last.
        gap_bytes: as of `merged`.
        most_bytes: as of `merged`.
    """
    if requests:
        start = max(start, requests[-1][2])
    while start < stop:
        end = min(stop, start + most_bytes)
        last = requests[-1] if requests else None
        if last and start - last[2] <= gap_bytes and end - last[1] <= most_bytes:
            last[2] = end
        else:
            requests.append([number, start, end, _NEVER])
        start = end


@final
@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range of an object that one request fetches."""

    ref: ObjectRef
    start: int
    stop: int
    by_units: bool
    """True if it consists of whole units, which are kept on disk."""
    is_sparse: bool = False
    """True if it is by units of which little is wanted. They stay on disk: no reader keeps them in memory."""

    def part(self, start: int, stop: int) -> PlannedRange:
        """Return a part of the request, widened to whole units where it is of whole units."""
        if self.by_units:
            start -= start % UNIT_BYTES
            stop = min(stop + -stop % UNIT_BYTES, self.ref.pin.size)
        return replace(self, start=start, stop=stop)

    @property
    def units(self) -> range:
        """The indexes of the units that the range touches."""
        return range(self.start // UNIT_BYTES, -(-self.stop // UNIT_BYTES))

    def parts(self, gaps: Sequence[tuple[int, int]]) -> list[PlannedRange]:
        """Return the requests for those parts of the range that are missing.

        Parts with few bytes between them are one request, which brings these bytes again.

        Args:
            gaps: the first byte of each missing part, and the byte after its last, by offset.
        """
        found: list[PlannedRange] = []
        for start, stop in gaps:
            each = self.part(start, stop)
            if found and each.start - found[-1].stop <= (0 if self.by_units else NEAR_BYTES):
                each = replace(each, start=found.pop().start)
            found.append(each)
        return found


@final
class RangesByObject:
    """Planned ranges in the order of need, which are found by object and offset as well.

    Example:
        >>> from seekable.remote.fetching.wants import ObjectRef
        >>> from seekable.remote.stores.object_store import Pin
        >>> ref = ObjectRef("s3://b/a", Pin(1000, 1))
        >>> ranges = RangesByObject([PlannedRange(ref, *at, by_units=False) for at in ((60, 90), (0, 50))])
        >>> [(each.start, each.stop) for each in ranges.sharing(ref.key, 49, 61)]
        [(0, 50), (60, 90)]
    """

    __slots__ = ("_by_key", "ranges")

    def __init__(self, ranges: Sequence[PlannedRange]) -> None:
        """Take ranges, of which no two share a byte.

        Args:
            ranges: the ranges in the order of need.
        """
        self.ranges = ranges
        by_key: dict[str, list[PlannedRange]] = {}
        for each in ranges:
            by_key.setdefault(each.ref.key, []).append(each)
        self._by_key: dict[str, tuple[list[int], list[int], list[PlannedRange]]] = {}
        for key, some in by_key.items():
            some.sort(key=lambda each: each.start)
            self._by_key[key] = [each.start for each in some], [each.stop for each in some], some

    def sharing(self, key: str, start: int, stop: int) -> Sequence[PlannedRange]:
        """Return the ranges that share bytes with a range of an object, by offset.

        Args:
            key: the key of the object.
            start: the first byte.
            stop: the byte after the last.
        """
        found = self._by_key.get(key)
        if found is None:
            return ()
        starts, stops, ranges = found
        return ranges[bisect_right(stops, start) : bisect_left(starts, stop)]


def are_units_better(*, wanted_bytes: int, unit_bytes: int, data_bytes: int, room_bytes: int) -> bool:
    """Return True if whole units are to be fetched instead of the wanted ranges alone.

    Args:
        wanted_bytes: the bytes of the ranges.
        unit_bytes: the bytes of the units that contain them.
        data_bytes: the bytes of all objects that the process reads.
        room_bytes: the most bytes that the cache on disk keeps; 0 without one.

    Example:
        >>> are_units_better(wanted_bytes=2_000, unit_bytes=262_144, data_bytes=10**9, room_bytes=10**10)
        True
        >>> are_units_better(wanted_bytes=2_000, unit_bytes=262_144, data_bytes=10**12, room_bytes=10**10)
        False
        >>> are_units_better(wanted_bytes=200_000, unit_bytes=262_144, data_bytes=10**12, room_bytes=10**10)
        True
    """
    if unit_bytes > room_bytes:
        return False
    return data_bytes <= room_bytes or 2 * wanted_bytes >= unit_bytes


def planned(
    wants: Wants,
    *,
    gap_bytes: int,
    most_bytes: int,
    align_bytes: int,
    rooms: Sequence[CacheRoom],
) -> list[PlannedRange]:
    """Return requests for some ranges in the order of first need: of each object by units, or by ranges.

    Args:
        wants: the ranges.
        gap_bytes: ranges with at most so many bytes between them are one request.
        most_bytes: the most bytes of a request.
        align_bytes: requests by units start at multiples of this, a multiple of the size of a unit, where
            little of each unit is wanted, and the units are scattered: their neighbours are going to be read
            as well. Else they are of the units alone.
        rooms: the cache on disk of each object.
    """
    kinds, are_sparse = np.zeros((2, len(wants.objects)), np.int64)
    if any(room.room_bytes for room in rooms):
        units = merged(wants, gap_bytes=0, most_bytes=_NO_CUT, align_bytes=UNIT_BYTES)
        totals = zip(covered(wants).tolist(), _totals(units, len(kinds)), strict=True)
        runs = np.bincount(units.which, minlength=len(kinds)).tolist()
        for number, (wanted, whole) in enumerate(totals):
            if are_units_better(
                wanted_bytes=wanted,
                unit_bytes=whole,
                data_bytes=rooms[number].data_bytes,
                room_bytes=rooms[number].room_bytes,
            ):
                are_sparse[number] = SPARSE * wanted < whole
                is_scattered = whole < SCATTERED * UNIT_BYTES * runs[number]
                kinds[number] = align_bytes if are_sparse[number] and is_scattered else UNIT_BYTES
    found: list[tuple[int, PlannedRange]] = []
    for align in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds[wants.which] == align)
        if len(rows):
            some = wants.take(rows)
            if align:
                requests = merged(some, gap_bytes=0, most_bytes=most_bytes, align_bytes=align)
            else:
                requests = by_ranges(some, gap_bytes=gap_bytes, most_bytes=most_bytes)
            columns = (rows[requests.first], requests.which, requests.starts, requests.stops)
            for first, which, start, stop in zip(*(column.tolist() for column in columns), strict=True):
                ref = wants.objects[which]
                is_sparse = bool(are_sparse[which]) and not rooms[which].evicts
                found.append((first, PlannedRange(ref, start, stop, bool(align), is_sparse)))
    found.sort(key=lambda pair: pair[0])
    return [request for _, request in found]


def by_ranges(wants: Wants, *, gap_bytes: int, most_bytes: int) -> MergedRanges:
    """Return the requests for ranges of objects that no disk keeps: memory holds what they bring.

    Ranges all over large data, as a shuffle of all records has them, would be joined to all of it. They are
    joined only as far as they bring twice the bytes that are wanted.
    """
    requests = merged(wants, gap_bytes=gap_bytes, most_bytes=most_bytes, align_bytes=1)
    if int((requests.stops - requests.starts).sum()) <= _HELD_BYTES:
        return requests
    gap_bytes = gap_within(wants, gap_bytes=gap_bytes, most_bytes=DENSE * int(covered(wants).sum()))
    return merged(wants, gap_bytes=gap_bytes, most_bytes=most_bytes, align_bytes=1)


def _totals(requests: MergedRanges, objects: int) -> list[int]:
    totals = np.zeros(objects, np.int64)
    np.add.at(totals, requests.which, requests.stops - requests.starts)
    return [int(total) for total in totals]
