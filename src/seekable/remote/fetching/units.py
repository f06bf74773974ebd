"""Whole units of the cache, or nothing but the records: pure, from counts of bytes.

Whole units are kept on disk, and a later read of a neighbour finds them there. Where neighbours are not going
to be read before the cache is full, units would only cost bytes: then the ranges alone are fetched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.remote.fetching.merging import covered, gap_within, merged
from seekable.remote.fetching.retention import DENSE
from seekable.storage.object_key import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.remote.fetching.merging import Requests
    from seekable.remote.fetching.rooms import Room
    from seekable.remote.fetching.wants import ObjectRef, Wants

__all__ = [
    "NEAR_BYTES",
    "SCATTERED",
    "SPARSE",
    "PlannedRange",
    "RangesByObject",
    "are_records_first",
    "are_units_better",
    "planned",
    "record_cost",
]

_ROUND_TRIPS = 3
_NO_CUT = 1 << 60
SPARSE = 8
"""Units are sparse if less than one part in so many is wanted, as by a shuffle of all records."""
SCATTERED = 4
"""Units are scattered if those that follow each other are fewer than so many. Blocks of windows are not."""
_GAIN, _AT_ONCE, _RECORD_SECONDS = 2, 64, 0.0005
"""Records come first if that is so many times faster: so many at once, each with a time of the processor."""
_RECORD_COST = 64 << 10
"""The bytes that are fetched in large requests in the time that the processor takes for a small one."""
_LEAST_COST, _COST_SHARE = 24 << 20, 16
"""Records that are fetched first may cost as much as so many bytes, or one part in so many of all bytes."""
NEAR_BYTES = 16 << 10
"""Missing parts of a range with so many bytes between them are fetched together with these."""


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
        """The numbers of the units that the range touches."""
        return range(self.start // UNIT_BYTES, -(-self.stop // UNIT_BYTES))

    def parts(self, gaps: Sequence[tuple[int, int]]) -> list[PlannedRange]:
        """Return the requests for those parts of the range that are missing.

        Parts with few bytes between them are one request, which brings these bytes again.

        Args:
            gaps: the first byte of each missing part, and the byte behind its last, by offset.
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
        >>> from seekable.remote.stores.store import Pin
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
            stop: the byte behind the last.
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


def are_records_first(
    *,
    records: int,
    record_bytes: int,
    unit_bytes: int,
    link: float,
    latency: float,
    duplicate_cost: int,
    fetched_bytes: int,
) -> bool:
    """Return True if a reader who waits should get the ranges alone, while their units come in behind.

    Args:
        records: the number of requests for the ranges alone.
        record_bytes: their bytes.
        unit_bytes: the bytes of requests for whole units.
        link: the rate of all requests together, in bytes a second.
        latency: the time of a small request, in seconds.
        duplicate_cost: the cost of what was fetched in this way before; see `record_cost`.
        fetched_bytes: all bytes that were fetched before.

    Example:
        >>> figures = {"link": 125e6, "latency": 0.03, "duplicate_cost": 0, "fetched_bytes": 0}
        >>> are_records_first(records=256, record_bytes=500_000, unit_bytes=62_000_000, **figures)
        True
        >>> are_records_first(records=256, record_bytes=500_000, unit_bytes=2_000_000, **figures)
        False
    """
    whole = unit_bytes / link
    turns = -(-records // _AT_ONCE)
    alone = turns * latency + records * _RECORD_SECONDS + record_bytes / link
    if whole <= _ROUND_TRIPS * latency or latency + whole < _GAIN * alone or 8 * record_bytes > unit_bytes:
        return False
    cost = record_cost(records, record_bytes)
    return duplicate_cost + cost <= max(_LEAST_COST, fetched_bytes // _COST_SHARE)


def record_cost(records: int, record_bytes: int) -> int:
    """Return how many bytes large requests bring in the time that some small ones take of the processor.

    Args:
        records: the number of small requests.
        record_bytes: their bytes.

    Example:
        >>> record_cost(256, 500_000)
        17277216
    """
    return record_bytes + records * _RECORD_COST


def planned(
    wants: Wants, *, gap_bytes: int, most_bytes: int, align_bytes: int, held_bytes: int, rooms: Sequence[Room]
) -> list[PlannedRange]:
    """Return requests for some ranges in the order of first need: of each object by units, or by ranges.

    Args:
        wants: the ranges.
        gap_bytes: ranges with at most so many bytes between them are one request.
        most_bytes: the most bytes of a request.
        align_bytes: requests by units start at multiples of this, a multiple of the size of a unit, where
            little of each unit is wanted, and the units are scattered: their neighbours are going to be read
            as well. Else they are of the units alone.
        held_bytes: what memory holds until it is read: the gaps that requests by ranges bring must fit into
            it, or be at most as many bytes as the ranges.
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
                requests = _by_ranges(some, gap_bytes, most_bytes, held_bytes)
            columns = (rows[requests.first], requests.which, requests.starts, requests.stops)
            for first, which, start, stop in zip(*(column.tolist() for column in columns), strict=True):
                ref = wants.objects[which]
                is_sparse = bool(are_sparse[which]) and not rooms[which].evicts
                found.append((first, PlannedRange(ref, start, stop, bool(align), is_sparse)))
    found.sort(key=lambda pair: pair[0])
    return [request for _, request in found]


def _by_ranges(wants: Wants, gap_bytes: int, most_bytes: int, held_bytes: int) -> Requests:
    """Return the requests for ranges of objects that no disk keeps; see `planned`.

    Ranges all over the data, as a shuffle of all records has them, would be joined to all of it otherwise.
    """
    requests = merged(wants, gap_bytes=gap_bytes, most_bytes=most_bytes, align_bytes=1)
    if int((requests.stops - requests.starts).sum()) <= held_bytes:
        return requests
    held_bytes = max(held_bytes, DENSE * int(covered(wants).sum()))
    gap_bytes = gap_within(wants, gap_bytes=gap_bytes, most_bytes=held_bytes)
    return merged(wants, gap_bytes=gap_bytes, most_bytes=most_bytes, align_bytes=1)


def _totals(requests: Requests, objects: int) -> list[int]:
    totals = np.zeros(objects, np.int64)
    np.add.at(totals, requests.which, requests.stops - requests.starts)
    return [int(total) for total in totals]
