"""The positions of an endless axis that a run has not delivered yet.

A run in one lane has delivered everything up to its position, so one number says what remains. A run in
several lanes is further ahead in some than in others: the positions that slower lanes still have to deliver
before the furthest position are its *stragglers*, and what lies after all of them begins at the *frontier*.

    position    0 1 2 3 4 5 6 7 8 9 ...        two lanes: the even positions and the odd ones
    delivered   x x x   x   x                  the even lane has delivered 4, the odd lane 1
    remaining         3   5   7 8 9 ...        stragglers 3 and 5, frontier 7
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from seekable._typing import Value
from seekable.order.lane_rows import num_lane_rows, num_lane_rows_before
from seekable.order.positions import StridedRange, ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["Remaining"]


class Remaining(Value, frozen=True):
    """The stragglers, as ascending ranges, and every position from ``frontier`` on.

    The position before the frontier is delivered, so equal sets of positions have equal frontiers.
    """

    ranges: tuple[StridedRange, ...] = ()
    frontier: int = 0

    @property
    def stragglers(self) -> Int64s:
        """The remaining positions before the frontier, ascending."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(each.array() for each in self.ranges)])

    @property
    def first(self) -> int:
        """The lowest of the remaining positions."""
        return self.ranges[0].first if self.ranges else self.frontier

    def before(self, stop: int) -> tuple[StridedRange, ...]:
        """Return the remaining positions below ``stop``, as ascending ranges.

        Example:
            >>> [list(each) for each in Remaining((StridedRange(3, 2, 2),), frontier=7).before(9)]
            [[3, 5], [7, 8]]
        """
        found = [part for each in self.ranges for part in each.before(stop)]
        return (
            *found,
            *([StridedRange(self.frontier, stop - self.frontier)] if stop > self.frontier else []),
        )

    def including(self, positions: Int64s) -> Remaining:
        """Return this set and some positions below the frontier that are delivered, in any order.

        Example:
            >>> more = Remaining((StridedRange(3, 2, 2),), frontier=7).including(np.array([6, 4]))
            >>> more.stragglers.tolist(), more.frontier
            ([], 3)
        """
        if not positions.size:
            return self
        stragglers = np.unique(np.concatenate([self.stragglers, positions]))
        # Those that lead up to the frontier without a gap move it back.
        gaps = np.flatnonzero(self.frontier - stragglers != np.arange(stragglers.size, 0, -1))
        count = int(gaps[-1]) + 1 if gaps.size else 0
        return Remaining(ranges_of(stragglers[:count]), self.frontier - (stragglers.size - count))

    @classmethod
    def after(cls, base: int, delivered: Sequence[int]) -> Remaining:
        """Return what remains after each lane of an axis delivered some of its positions.

        Args:
            base: the position at which the lanes began; what lies before it is not part of the result.
            delivered: for each of ``m`` lanes, how many it delivered of its positions. Those of lane ``l``
                are ``base + l``, ``base + l + m``, ``base + l + 2 * m`` and so on.

        Example:
            >>> remaining = Remaining.after(100, [3, 1, 2])
            >>> remaining.stragglers.tolist(), remaining.frontier
            ([104], 107)
            >>> Remaining.after(100, [1, 1, 0])
            Remaining(ranges=(), frontier=102)
        """
        lanes, most = len(delivered), max(delivered)
        if not most:
            return cls((), base)
        furthest = max(lane for lane, count in enumerate(delivered) if count == most)
        # Between two levels the same lanes lag behind in every round of the lanes. The last round, in which
        # the frontier lies, ends at the furthest lane.
        levels = [*sorted({count for count in delivered if count < most - 1}), most - 1, most]
        ranges = []
        for low, high in itertools.pairwise(levels):
            is_last = low == most - 1
            offsets = tuple(
                lane
                for lane, count in enumerate(delivered)
                if count <= low and (not is_last or lane < furthest)
            )
            if offsets:
                ranges.append(StridedRange(base + low * lanes, high - low, lanes, offsets))
        return cls(tuple(ranges), base + (most - 1) * lanes + furthest + 1)

    @classmethod
    def after_epochs(cls, first: int, delivered: Sequence[int], size: int | None) -> Remaining:
        """Return what remains where the lanes are dealt out anew in each epoch: row ``r`` to ``r % lanes``.

        Args:
            first: the position at which the lanes began.
            delivered: for each lane, how many positions it delivered from there on, over all epochs.
            size: the records of an epoch; None or 0 for one epoch without end.

        Example:
            Of two lanes over epochs of 10 rows, the first has delivered its 5 rows of epoch 0 and 2 of
            epoch 1, the second 2 of epoch 0:

            >>> remaining = Remaining.after_epochs(0, [7, 2], size=10)
            >>> remaining.stragglers.tolist(), remaining.frontier
            ([5, 7, 9, 11], 13)
        """
        lanes = len(delivered)
        ends = [
            num_lane_rows_before(first, size, lanes, lane) + count for lane, count in enumerate(delivered)
        ]
        if not size:
            return cls.after(0, ends)
        epochs = list(_delivered_in_epochs(ends, size))
        ranges: list[StridedRange] = []
        for epoch, counts in epochs[:-1]:
            ranges += cls.after(epoch * size, counts).before((epoch + 1) * size)
        last, counts = epochs[-1]
        remaining = cls.after(last * size, counts)
        return cls((*ranges, *remaining.ranges), remaining.frontier)


def _delivered_in_epochs(ends: Sequence[int], size: int) -> Iterator[tuple[int, list[int]]]:
    """Yield each epoch in which some lane is, and how many rows of it each lane has delivered.

    Args:
        ends: how many rows each lane has delivered since position 0.
        size: the records of an epoch.
    """
    lanes = len(ends)
    rows = [num_lane_rows(size, lanes, lane) for lane in range(lanes)]
    epochs = [(end - 1) // each if end and each else 0 for end, each in zip(ends, rows, strict=True)]
    for epoch in range(min(epochs), max(epochs) + 1):
        yield (
            epoch,
            [min(max(0, end - epoch * each), each) for end, each in zip(ends, rows, strict=True)],
        )
