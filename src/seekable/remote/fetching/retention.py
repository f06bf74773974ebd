"""The blocks that stay in memory for a reader: pure, from what it is going to need.

Windows of a shuffle are open for a long time, and each of their blocks is read bit by bit: all of them stay,
however large they are. Where little of each block is needed, as by a shuffle of all records, most of what was
fetched with the records is of no use: of such blocks a bounded number of bytes stays, those needed next.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.remote.fetching.wants import by_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["DENSE", "Needs"]

DENSE = 2
"""A block is dense if at least one part in so many of its bytes is needed."""

_OFFSET_BITS = 44


@final
class Needs:
    """Ranges that a reader is going to need, for questions on blocks of bytes.

    Example:
        >>> needs = Needs(*np.array([[0, 0], [400, 0], [410, 100]]))
        >>> blocks = np.array([[0, 0, 0], [0, 200, 400], [200, 400, 500]])
        >>> [needs.kept(*blocks, most_bytes=size).tolist() for size in (0, 100)]
        [[True, False, False], [True, False, True]]
    """

    def __init__(self, which: Int64s, starts: Int64s, stops: Int64s) -> None:
        """Take the ranges, the next one first.

        Args:
            which: the number of the object of each range.
            starts: its first byte.
            stops: the byte behind its last.
        """
        self._which, self._starts, self._stops = which, starts, stops

    def kept(self, which: Int64s, starts: Int64s, stops: Int64s, *, most_bytes: int) -> NDArray[np.bool_]:
        """Return for each block True if it stays: it is needed, and dense or among those needed next.

        A byte that several ranges need counts as often; of a range at the edge of a block all bytes count.

        Args:
            which: the number of the object of each block; -1 for an object without ranges.
            starts: its first byte.
            stops: the byte behind its last.
            most_bytes: the most bytes of blocks that are not dense.
        """
        places, ends, order, sums = self._sorted
        base, sizes = np.maximum(which, 0) << _OFFSET_BITS, stops - starts
        low = np.searchsorted(ends, base + starts, side="right")
        high = np.maximum(np.searchsorted(places, base + stops), low)
        needed = np.where(which >= 0, sums[high] - sums[low], 0)
        stays: NDArray[np.bool_] = (needed > 0) & (needed * DENSE >= sizes)
        sparse = np.flatnonzero((needed > 0) & ~stays)
        pairs = zip(low[sparse].tolist(), high[sparse].tolist(), strict=True)
        first = np.array([order[one:other].min() for one, other in pairs], np.int64)
        nearest = sparse[np.argsort(first, kind="stable")]
        stays[nearest[np.cumsum(sizes[nearest]) <= most_bytes]] = True
        return stays

    @cached_property
    def _sorted(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Of the ranges sorted by place: their first bytes, furthest ends, numbers, and sums of bytes."""
        full = np.flatnonzero(self._stops > self._starts)
        order = full[by_place(self._which[full], self._starts[full])]
        places = (self._which[order] << _OFFSET_BITS) + self._starts[order]
        lengths = self._stops[order] - self._starts[order]
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return places, np.maximum.accumulate(places + lengths), order, sums
