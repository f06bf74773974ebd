"""From the byte ranges that are wanted to the requests that are sent: pure, no I/O.

Ranges near each other become one request, long ones several, and requests go out in the order of first need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.remote.fetching.wants import by_place

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.remote.fetching.wants import Wants

__all__ = ["Requests", "covered", "gap_within", "merged"]

_CELL_BITS = 40
_NEVER = np.iinfo(np.int64).max


@final
@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests in the order of first need. No two of them share a byte."""

    which: Int64s
    """The number of the object of each request."""
    starts: Int64s
    """The first byte of each request."""
    stops: Int64s
    """The byte behind the last of each request."""
    first: Int64s
    """The number of the first range that needs bytes of the request; ascending."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.which)


def merged(wants: Wants, *, gap_bytes: int, most_bytes: int, align_bytes: int) -> Requests:
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
        >>> from seekable.remote.stores.store import Pin
        >>> wants = Wants((ObjectRef("s3://b/a", Pin(1000, 1)),), *np.array([[0, 0], [50, 0], [60, 45]]))
        >>> requests = merged(wants, gap_bytes=5, most_bytes=100, align_bytes=1)
        >>> requests.starts.tolist(), requests.stops.tolist(), requests.first.tolist()
        ([0], [60], [0])
    """
    rows = np.flatnonzero(wants.stops > wants.starts)
    which, starts, stops = wants.which[rows], wants.starts[rows], wants.stops[rows]
    if not rows.size:
        return Requests(*np.zeros((4, 0), np.int64))
    if align_bytes > 1:
        columns = _aligned(which, starts, stops, rows, (gap_bytes, most_bytes, align_bytes))
        sizes = np.array([ref.pin.size for ref in wants.objects], np.int64)
        columns[2] = np.minimum(columns[2], sizes[columns[0]])
    else:
        columns = _unaligned(which, starts, stops, rows, (gap_bytes, most_bytes))
    # Keys without equals need no stable sort, which takes ten times as long.
    count = columns.shape[1]
    return Requests(*columns[:, np.argsort(columns[3] * count + np.arange(count))].copy())


def covered(wants: Wants) -> Int64s:
    """Return the number of bytes of each object that some ranges cover together.

    Example:
        >>> from seekable.remote.fetching.wants import ObjectRef, Wants
        >>> from seekable.remote.stores.store import Pin
        >>> ref = ObjectRef("s3://b/a", Pin(1000, 1))
        >>> covered(Wants((ref,), *np.array([[0, 0, 0], [50, 0, 40], [60, 45, 52]]))).tolist()
        [60]
    """
    order = by_place(wants.which, wants.starts)
    # On one axis, on which the objects lie one behind the other.
    base = wants.which[order] * (int(wants.stops.max(initial=0)) + 1)
    reach = np.maximum.accumulate(wants.stops[order] + base)
    begins = wants.starts[order] + base
    begins[1:] = np.maximum(begins[1:], reach[:-1])
    totals = np.zeros(len(wants.objects), np.int64)
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
        >>> from seekable.remote.stores.store import Pin
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
    """Return requests for cells of so many bytes: object, first byte, byte behind the last, first need.

    Args:
        which: the object of each range.
        starts: its first byte.
        stops: the byte behind its last.
        rows: its number, ascending.
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
        stop: the byte behind its last.
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
