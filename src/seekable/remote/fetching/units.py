"""Whole units of the cache, or nothing but the records: pure, from counts of bytes.

Whole units are kept on disk, and a later read of a neighbour finds them there. Where neighbours are not going
to be read before the cache is full, units would only cost bytes: then the ranges alone are fetched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.remote.cache.object_key import UNIT_BYTES
from seekable.remote.fetching.merging import merged

if TYPE_CHECKING:
    from seekable.remote.fetching.merging import Requests
    from seekable.remote.fetching.wants import ObjectRef, Wants

__all__ = ["SPARSE", "PlannedRange", "are_records_first", "are_units_better", "planned"]

_ROUND_TRIPS = 3
_NO_CUT = 1 << 60
SPARSE = 2
"""Units are sparse if less than one part in so many is wanted, as by a shuffle of all records."""
_FEWEST_DUPLICATE_BYTES = 16 << 20
_MOST_DUPLICATES = 50
"""One byte in so many may be fetched as part of a record first, and of its unit later."""


@final
@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range of an object that one request fetches."""

    ref: ObjectRef
    start: int
    stop: int
    by_units: bool
    """True if it consists of whole units, which are kept on disk."""

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
    record_bytes: int,
    unit_bytes: int,
    link: float,
    latency: float,
    duplicate_bytes: int,
    fetched_bytes: int,
) -> bool:
    """Return True if a reader who waits should get the ranges alone, while their units come in behind.

    Args:
        record_bytes: the bytes of requests for the ranges alone.
        unit_bytes: the bytes of requests for whole units.
        link: the rate of all requests together, in bytes a second.
        latency: the time of a small request, in seconds.
        duplicate_bytes: the bytes that were fetched in this way before.
        fetched_bytes: all bytes that were fetched before.

    Example:
        >>> figures = {"link": 125e6, "latency": 0.03, "duplicate_bytes": 0, "fetched_bytes": 0}
        >>> are_records_first(record_bytes=500_000, unit_bytes=62_000_000, **figures)
        True
        >>> are_records_first(record_bytes=500_000, unit_bytes=2_000_000, **figures)
        False
    """
    if unit_bytes / link <= _ROUND_TRIPS * latency or 8 * record_bytes > unit_bytes:
        return False
    return duplicate_bytes + record_bytes <= max(_FEWEST_DUPLICATE_BYTES, fetched_bytes // _MOST_DUPLICATES)


def planned(
    wants: Wants, *, gap_bytes: int, most_bytes: int, align_bytes: int, data_bytes: int, room_bytes: int
) -> list[PlannedRange]:
    """Return requests for some ranges in the order of first need: of each object by units, or by ranges.

    Args:
        wants: the ranges.
        gap_bytes: ranges with at most so many bytes between them are one request.
        most_bytes: the most bytes of a request.
        align_bytes: requests by units start at multiples of this, a multiple of the size of a unit, where
            little of each unit is wanted: its neighbours are going to be read as well. Else they are of the
            units alone.
        data_bytes: the bytes of all objects that the process reads.
        room_bytes: the most bytes that the cache on disk keeps; 0 without one.
    """
    kinds = np.zeros(len(wants.objects), np.int64)
    if room_bytes:
        exact = merged(wants, gap_bytes=0, most_bytes=_NO_CUT, align_bytes=1)
        units = merged(wants, gap_bytes=0, most_bytes=_NO_CUT, align_bytes=UNIT_BYTES)
        totals = zip(_totals(exact, len(kinds)), _totals(units, len(kinds)), strict=True)
        for number, (wanted, whole) in enumerate(totals):
            if are_units_better(
                wanted_bytes=wanted, unit_bytes=whole, data_bytes=data_bytes, room_bytes=room_bytes
            ):
                kinds[number] = align_bytes if SPARSE * wanted < whole else UNIT_BYTES
    found: list[tuple[int, PlannedRange]] = []
    for align in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds[wants.which] == align)
        if len(rows):
            requests = merged(
                wants.take(rows),
                gap_bytes=0 if align else gap_bytes,
                most_bytes=most_bytes,
                align_bytes=align or 1,
            )
            columns = (rows[requests.first], requests.which, requests.starts, requests.stops)
            for first, which, start, stop in zip(*(column.tolist() for column in columns), strict=True):
                found.append((first, PlannedRange(wants.objects[which], start, stop, bool(align))))
    found.sort(key=lambda pair: pair[0])
    return [request for _, request in found]


def _totals(requests: Requests, objects: int) -> list[int]:
    totals = np.zeros(objects, np.int64)
    np.add.at(totals, requests.which, requests.stops - requests.starts)
    return [int(total) for total in totals]
