"""Large sets of positions in few numbers, as strided ranges.

A pipeline that runs in lanes has delivered, of each lane, everything up to some position. The positions that
it delivered, and those that it did not, are therefore regular: a start, a step, and the offsets of a few
lanes within each step. A `StridedRange` is one such set; a `PositionList` joins several of them.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._typing import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["PositionList", "StridedRange", "ranges_of"]

_FIRST_ONLY = (0,)
"""The offsets of a range that has one position in each step."""

_NUMBERS_OF_A_RUN = 2
"""The number of values in the JSON form of a range of consecutive positions: ``[start, count]``."""


class StridedRange(Value, frozen=True):
    """The positions ``start + k * step + offset``, for ``k`` from 0 to ``count - 1`` and for each offset.

    The positions ascend, because the offsets ascend and are smaller than ``step``.

    Example:
        >>> list(StridedRange(10, count=2, step=4, offsets=(0, 3)))
        [10, 13, 14, 17]
    """

    start: int
    count: int
    step: int = 1
    offsets: tuple[int, ...] = _FIRST_ONLY

    def __len__(self) -> int:
        return self.count * len(self.offsets)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array().tolist())

    @property
    def first(self) -> int:
        """The lowest position of the range."""
        return self.start + self.offsets[0]

    def array(self) -> Int64s:
        """Return all positions as one array, ascending."""
        steps = np.arange(self.count, dtype=np.int64) * self.step
        positions: Int64s = (self.start + steps[:, None] + np.array(self.offsets, dtype=np.int64)).ravel()
        return positions

    def before(self, stop: int) -> Iterator[StridedRange]:
        """Yield the positions below ``stop``: a range of whole steps, then one of a step that is cut.

        Example:
            >>> [list(part) for part in StridedRange(10, count=2, step=4, offsets=(0, 3)).before(17)]
            [[10, 13], [14]]
        """
        whole = min(self.count, max(0, (stop - self.start) // self.step))
        if whole:
            yield StridedRange(self.start, whole, self.step, self.offsets)
        start = self.start + whole * self.step
        offsets = tuple(offset for offset in self.offsets if start + offset < stop)
        if whole < self.count and offsets:
            yield StridedRange(start, 1, self.step, offsets)

    def without_first(self, count: int) -> Iterator[StridedRange]:
        """Yield the positions but for the first ``count``: one of a step that is cut, then whole steps.

        Example:
            >>> [list(part) for part in StridedRange(10, count=2, step=4, offsets=(0, 3)).without_first(1)]
            [[13], [14, 17]]
        """
        steps, offset = divmod(count, len(self.offsets))
        if steps < self.count and offset:
            yield StridedRange(self.start + steps * self.step, 1, self.step, self.offsets[offset:])
        steps += offset > 0
        if steps < self.count:
            yield StridedRange(self.start + steps * self.step, self.count - steps, self.step, self.offsets)

    def indices_of(self, positions: Int64s) -> Int64s:
        """Return the index of each position within the range, -1 for a position that is not in it.

        Example:
            >>> StridedRange(10, count=2, step=4, offsets=(0, 3)).indices_of(np.array([10, 11, 14])).tolist()
            [0, -1, 2]
        """
        steps, rest = np.divmod(positions - self.start, self.step)
        offsets = np.array(self.offsets, dtype=np.int64)
        at = np.searchsorted(offsets, rest)
        found = (steps >= 0) & (steps < self.count) & (offsets[np.minimum(at, offsets.size - 1)] == rest)
        return np.where(found, steps * offsets.size + at, -1)

    def as_json(self) -> list[Any]:
        """Return the range as JSON values: ``[start, count]``, or ``[start, count, step, offsets]``."""
        run = [self.start, self.count]
        return run if (self.step, self.offsets) == (1, _FIRST_ONLY) else [*run, self.step, list(self.offsets)]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> StridedRange:
        """Return the range that ``as_json`` returned these values for.

        Raises:
            ValueError: the values describe no range that is not empty.

        Example:
            >>> StridedRange.from_json([5, 3])
            StridedRange(start=5, count=3, step=1, offsets=(0,))
            >>> StridedRange.from_json([10, 2, 4, [0, 3]]).offsets
            (0, 3)
        """
        start, count, step, offsets = (
            (*values, 1, _FIRST_ONLY) if len(values) == _NUMBERS_OF_A_RUN else values
        )
        counts = [start, count, step, *offsets]
        ascending = all(a < b for a, b in itertools.pairwise(offsets))
        if not (all(type(each) is int and each >= 0 for each in counts) and offsets and ascending):
            raise ValueError(_no_range(values))
        if not count or step <= offsets[-1]:
            raise ValueError(_no_range(values))
        return cls(start, count, step, tuple(offsets))


class PositionList:
    """The positions of several ranges, one range after the other, addressed by index.

    Example:
        >>> positions = PositionList([StridedRange(10, count=2, step=4, offsets=(0, 3)), StridedRange(2, 3)])
        >>> positions.size, positions.at(np.arange(7))[1].tolist()
        (7, [10, 13, 14, 17, 2, 3, 4])
        >>> positions.at_one(3), positions.at_one(5)
        ((0, 17), (1, 3))
    """

    def __init__(self, ranges: Iterable[StridedRange]) -> None:
        """Join some ranges in the given order."""
        self.ranges = tuple(ranges)
        self._ends = list(itertools.accumulate(map(len, self.ranges)))
        self.size = self._ends[-1] if self._ends else 0
        """The number of positions in all ranges."""
        self._begins = [end - len(each) for end, each in zip(self._ends, self.ranges, strict=True)]
        columns = [(each.start, each.step, len(each.offsets)) for each in self.ranges]
        self._start, self._step, self._width = np.array(columns, dtype=np.int64).reshape(-1, 3).T
        self._offsets = np.array([offset for each in self.ranges for offset in each.offsets], dtype=np.int64)
        self._offsets_begin = np.cumsum(self._width) - self._width
        self._begin = np.array(self._begins, dtype=np.int64)

    def at(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return, for each index, the index of its range and the position there."""
        which = np.searchsorted(self._begin, indices, side="right") - 1
        steps, offset = np.divmod(indices - self._begin[which], self._width[which])
        offsets = self._offsets[self._offsets_begin[which] + offset]
        return which, self._start[which] + steps * self._step[which] + offsets

    def at_one(self, index: int) -> tuple[int, int]:
        """Return what ``at`` returns for one index, computed without arrays."""
        which = bisect_right(self._begins, index) - 1
        one = self.ranges[which]
        steps, offset = divmod(index - self._begins[which], len(one.offsets))
        return which, one.start + steps * one.step + one.offsets[offset]

    def indices_in(self, which: int, positions: Int64s) -> Int64s:
        """Return the indices of positions of the range ``which``, -1 for a position that is not in it."""
        found = self.ranges[which].indices_of(positions)
        return np.where(found < 0, -1, found + self._begins[which])

    def count_before(self, positions: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return how many listed positions are lower than each position, and whether it is listed itself.

        The list must ascend: each range, and from one range to the next.

        Example:
            >>> positions = PositionList([StridedRange(10, count=2, step=4, offsets=(0, 3))])
            >>> counts, listed = positions.count_before(np.array([9, 13, 15]))
            >>> counts.tolist(), listed.tolist()
            ([0, 1, 3], [False, True, False])
        """
        if not self.ranges:
            return np.zeros_like(positions), np.zeros(positions.size, dtype=np.bool_)
        which = np.maximum(np.searchsorted(self._start, positions, side="right") - 1, 0)
        counts, listed = np.zeros_like(positions), np.zeros(positions.size, dtype=np.bool_)
        for i in np.unique(which).tolist():
            here, one = which == i, self.ranges[i]
            steps, rest = np.divmod(positions[here] - one.start, one.step)
            offsets = np.array(one.offsets, dtype=np.int64)
            lower = np.searchsorted(offsets, rest)
            inside = (steps >= 0) & (steps < one.count)
            found = np.clip(steps * offsets.size + np.where(inside, lower, 0), 0, len(one))
            counts[here] = self._begins[i] + found
            listed[here] = inside & (offsets[np.minimum(lower, offsets.size - 1)] == rest)
        return counts, listed

    def count_before_one(self, position: int) -> tuple[int, bool]:
        """Return what ``count_before`` returns for one position, computed without arrays."""
        which = bisect_right(self.ranges, position, key=_start) - 1
        if which < 0:
            return 0, False
        one = self.ranges[which]
        steps, rest = divmod(position - one.start, one.step)
        if steps >= one.count:
            return self._ends[which], False
        lower = bisect_left(one.offsets, rest)
        listed = lower < len(one.offsets) and one.offsets[lower] == rest
        return self._begins[which] + steps * len(one.offsets) + lower, listed


def ranges_of(positions: Int64s) -> tuple[StridedRange, ...]:
    """Return some positions, in their order, as ranges: one for each run of consecutive positions.

    Example:
        >>> [each.as_json() for each in ranges_of(np.array([7, 8, 9, 3, 5]))]
        [[7, 3], [3, 1], [5, 1]]
    """
    if not positions.size:
        return ()
    firsts = np.flatnonzero(np.diff(positions, prepend=positions[0] - 2) != 1)
    lengths = np.diff(firsts, append=positions.size)
    return tuple(
        itertools.starmap(StridedRange, zip(positions[firsts].tolist(), lengths.tolist(), strict=True))
    )


def _start(one: StridedRange) -> int:
    return one.start


def _no_range(values: object) -> str:
    return f"no set of positions: {values!r:.100}"
