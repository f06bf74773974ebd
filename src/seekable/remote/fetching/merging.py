"""From the byte ranges that are wanted to the requests that are sent: pure, no I/O.

Ranges near each other become one request, long ones several, and requests go out in the order of first need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.remote.fetching.wants import Wants

__all__ = ["Requests", "merged"]

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
    if align_bytes > 1:
        sizes = np.array([ref.pin.size for ref in wants.objects], np.int64)
        starts = starts - starts % align_bytes
        stops = np.minimum(stops + -stops % align_bytes, sizes[which])
    order = np.lexsort((starts, which))
    which, starts, stops, rows = which[order], starts[order], stops[order], rows[order]
    grid = most_bytes if align_bytes > 1 else 0
    requests: list[list[int]] = []
    for number, start, stop, row in zip(
        *(part.tolist() for part in (which, starts, stops, rows)), strict=True
    ):
        _add(requests, number, start, stop, gap_bytes=gap_bytes, most_bytes=most_bytes, grid=grid)
        for request in reversed(requests):
            if request[0] != number or request[2] <= start:
                break
            if request[1] < stop:
                request[3] = min(request[3], row)
    requests.sort(key=lambda request: request[3])
    return Requests(*np.array(requests, np.int64).reshape(-1, 4).T.copy())


def _add(
    requests: list[list[int]],
    number: int,
    start: int,
    stop: int,
    *,
    gap_bytes: int,
    most_bytes: int,
    grid: int,
) -> None:
    """Add a range to sorted requests (object, start, stop, first need): to the last one, or as new ones.

    Args:
        requests: the requests of the ranges before.
        number: the object of the range.
        start: its first byte, not before that of the range before.
        stop: the byte behind its last.
        gap_bytes: as of `merged`.
        most_bytes: as of `merged`.
        grid: requests contain no multiple of this but at their start; 0 for no such rule.
    """
    if requests and requests[-1][0] == number:
        start = max(start, requests[-1][2])
    while start < stop:
        end = min(stop, start - start % grid + grid if grid else start + most_bytes)
        last = requests[-1] if requests else [-1, 0, 0, 0]
        is_near = last[0] == number and start - last[2] <= gap_bytes
        fits = last[1] // grid == (end - 1) // grid if grid else end - last[1] <= most_bytes
        if is_near and fits:
            last[2] = end
        else:
            requests.append([number, start, end, _NEVER])
        start = end
