"""Sets of positions that are few numbers, however many they are: rows of teeth that come again and again.

What a pipeline has delivered is, lane by lane, all up to some position; what it has not is therefore such a
set: up to the lane that is furthest a few combs, each of the lanes that lag behind, and then everything.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["Comb", "Combs", "Left", "combs_of"]

_ONE = (0,)
_RUN = 2
"""How many numbers stand for a comb that is a run of positions."""


@dataclass(frozen=True, slots=True)
class Comb:
    """The positions ``start + q * step + tooth``, for ``q`` below ``rows``: ascending, because teeth do.

    Example:
        >>> list(Comb(10, rows=2, step=4, teeth=(0, 3)))
        [10, 13, 14, 17]
    """

    start: int
    rows: int
    step: int = 1
    teeth: tuple[int, ...] = _ONE

    def __len__(self) -> int:
        return self.rows * len(self.teeth)

    def __iter__(self) -> Iterator[int]:
        return iter(self.array().tolist())

    def array(self) -> Int64s:
        """Return the positions."""
        rows = np.arange(self.rows, dtype=np.int64) * self.step
        positions: Int64s = (self.start + rows[:, None] + np.array(self.teeth, dtype=np.int64)).ravel()
        return positions

    def moved(self, by: int) -> Comb:
        """Return the comb that many positions further on."""
        return Comb(self.start + by, self.rows, self.step, self.teeth)

    def below(self, stop: int) -> Iterator[Comb]:
        """Yield what lies below a position: a comb, and one for a last row that is not whole."""
        whole = min(self.rows, max(0, (stop - self.start) // self.step))
        if whole:
            yield Comb(self.start, whole, self.step, self.teeth)
        first = self.start + whole * self.step
        teeth = tuple(tooth for tooth in self.teeth if first + tooth < stop)
        if whole < self.rows and teeth:
            yield Comb(first, 1, self.step, teeth)

    def behind(self, count: int) -> Iterator[Comb]:
        """Yield what is left without the first positions: the rest of a row, and the rows behind it."""
        row, tooth = divmod(count, len(self.teeth))
        if row < self.rows and tooth:
            yield Comb(self.start + row * self.step, 1, self.step, self.teeth[tooth:])
        row += tooth > 0
        if row < self.rows:
            yield Comb(self.start + row * self.step, self.rows - row, self.step, self.teeth)

    def index_of(self, positions: Int64s) -> Int64s:
        """Return the number that each position has in the comb, -1 where it is none of it."""
        rows, rest = np.divmod(positions - self.start, self.step)
        teeth = np.array(self.teeth, dtype=np.int64)
        at = np.searchsorted(teeth, rest)
        there = (rows >= 0) & (rows < self.rows) & (teeth[np.minimum(at, teeth.size - 1)] == rest)
        return np.where(there, rows * teeth.size + at, -1)

    def numbers(self) -> list[Any]:
        """Return it, JSON-safe: ``[start, rows]``, or ``[start, rows, step, teeth]``."""
        run = [self.start, self.rows]
        return run if (self.step, self.teeth) == (1, _ONE) else [*run, self.step, list(self.teeth)]

    @classmethod
    def of(cls, numbers: Sequence[Any]) -> Comb:
        """Return the comb of what ``numbers`` returned.

        Raises:
            ValueError: it is none.

        Example:
            >>> Comb.of([5, 3]) == Comb(5, rows=3), Comb.of([10, 2, 4, [0, 3]]).teeth
            (True, (0, 3))
        """
        start, rows, step, teeth = (*numbers, 1, _ONE) if len(numbers) == _RUN else numbers
        whole = [start, rows, step, *teeth]
        ascending = all(a < b for a, b in itertools.pairwise(teeth))
        if not (all(type(each) is int and each >= 0 for each in whole) and teeth and ascending):
            message = f"no set of positions: {numbers!r:.100}"
            raise ValueError(message)
        if not rows or step <= teeth[-1]:
            message = f"no set of positions: {numbers!r:.100}"
            raise ValueError(message)
        return cls(start, rows, step, tuple(teeth))


class Combs:
    """Several combs, one behind the other: their positions have numbers.

    Example:
        >>> combs = Combs([Comb(10, rows=2, step=4, teeth=(0, 3)), Comb(2, rows=3)])
        >>> combs.size, combs.at(np.arange(7))[1].tolist(), combs.at_one(3), combs.at_one(5)
        (7, [10, 13, 14, 17, 2, 3, 4], (0, 17), (1, 3))
    """

    def __init__(self, combs: Iterable[Comb]) -> None:
        """Know where each begins."""
        self.combs = tuple(combs)
        self._ends = list(itertools.accumulate(map(len, self.combs)))
        self.size = self._ends[-1] if self._ends else 0
        """How many positions there are."""
        self._starts = [end - len(comb) for end, comb in zip(self._ends, self.combs, strict=True)]
        widths = [len(comb.teeth) for comb in self.combs]
        columns = [(comb.start, comb.step) for comb in self.combs]
        self._first, self._step = np.array(columns, dtype=np.int64).reshape(-1, 2).T
        self._width = np.array(widths, dtype=np.int64)
        self._teeth = np.array([tooth for comb in self.combs for tooth in comb.teeth], dtype=np.int64)
        self._teeth_at = np.cumsum(self._width) - self._width
        self._numbers = np.array(self._starts, dtype=np.int64)

    def at(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return, for the number of each position, the comb that it is of, and the position."""
        which = np.searchsorted(self._numbers, numbers, side="right") - 1
        rows, tooth = np.divmod(numbers - self._numbers[which], self._width[which])
        return which, self._first[which] + rows * self._step[which] + self._teeth[
            self._teeth_at[which] + tooth
        ]

    def at_one(self, number: int) -> tuple[int, int]:
        """Return ``at`` of one number, without arrays."""
        which = bisect_right(self._starts, number) - 1
        comb = self.combs[which]
        row, tooth = divmod(number - self._starts[which], len(comb.teeth))
        return which, comb.start + row * comb.step + comb.teeth[tooth]

    def numbers_in(self, which: int, positions: Int64s) -> Int64s:
        """Return the numbers of positions of one comb; -1 where one is none of it."""
        found = self.combs[which].index_of(positions)
        return np.where(found < 0, -1, found + self._starts[which])

    def rank(self, positions: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return how many of the set lie below each position, and whether it is one of the set.

        The combs must ascend, from one to the next too.
        """
        if not self.combs:
            return np.zeros_like(positions), np.zeros(positions.size, dtype=np.bool_)
        which = np.maximum(np.searchsorted(self._first, positions, side="right") - 1, 0)
        counts, there = np.zeros_like(positions), np.zeros(positions.size, dtype=np.bool_)
        for i in np.unique(which).tolist():
            here, comb = which == i, self.combs[i]
            rows, rest = np.divmod(positions[here] - comb.start, comb.step)
            teeth = np.array(comb.teeth, dtype=np.int64)
            before = np.searchsorted(teeth, rest)
            inside = (rows >= 0) & (rows < comb.rows)
            found = np.clip(rows * teeth.size + np.where(inside, before, 0), 0, len(comb))
            counts[here] = self._starts[i] + found
            there[here] = inside & (teeth[np.minimum(before, teeth.size - 1)] == rest)
        return counts, there

    def rank_one(self, position: int) -> tuple[int, bool]:
        """Return ``rank`` of one position, without arrays."""
        which = bisect_right(self.combs, position, key=_start) - 1
        if which < 0:
            return 0, False
        comb = self.combs[which]
        row, rest = divmod(position - comb.start, comb.step)
        if row >= comb.rows:
            return self._ends[which], False
        before = bisect_left(comb.teeth, rest)
        there = before < len(comb.teeth) and comb.teeth[before] == rest
        return self._starts[which] + row * len(comb.teeth) + before, there


def combs_of(positions: Int64s) -> tuple[Comb, ...]:
    """Return the combs of some positions, in their order: each run of consecutive ones is one.

    Example:
        >>> [comb.numbers() for comb in combs_of(np.array([7, 8, 9, 3, 5]))]
        [[7, 3], [3, 1], [5, 1]]
    """
    if not positions.size:
        return ()
    firsts = np.flatnonzero(np.diff(positions, prepend=positions[0] - 2) != 1)
    lengths = np.diff(firsts, append=positions.size)
    return tuple(itertools.starmap(Comb, zip(positions[firsts].tolist(), lengths.tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of an endless axis: some combs, ascending, and everything from ``tail`` on.

    The position before the tail is not left.
    """

    combs: tuple[Comb, ...] = ()
    tail: int = 0

    @property
    def lagging(self) -> Int64s:
        """The positions before the tail."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(comb.array() for comb in self.combs)])

    @property
    def first(self) -> int:
        """The least position that is left."""
        return self.combs[0].start + self.combs[0].teeth[0] if self.combs else self.tail

    def below(self, stop: int) -> tuple[Comb, ...]:
        """Return what is left below a position."""
        found = [part for comb in self.combs for part in comb.below(stop)]
        return (*found, *([Comb(self.tail, stop - self.tail)] if stop > self.tail else []))

    def with_more(self, positions: Int64s) -> Left:
        """Return what is left if some positions below the tail are, too."""
        if not positions.size:
            return self
        lagging = np.unique(np.concatenate([self.lagging, positions]))
        # Those just before the tail are part of it.
        gap = np.flatnonzero(self.tail - lagging != np.arange(lagging.size, 0, -1))
        kept = int(gap[-1]) + 1 if gap.size else 0
        return Left(combs_of(lagging[:kept]), self.tail - (lagging.size - kept))

    @classmethod
    def behind(cls, base: int, drawn: Sequence[int]) -> Left:
        """Return what is left if each lane took as many of its own, from ``base`` on, as ``drawn`` says.

        Lane ``l`` of ``m`` has the positions ``base + l``, ``base + l + m`` and so on; what lies before the
        base is not left.

        Example:
            >>> left = Left.behind(100, [3, 1, 2])
            >>> left.lagging.tolist(), left.tail
            ([104], 107)
            >>> Left.behind(100, [1, 1, 0])
            Left(combs=(), tail=102)
        """
        lanes, most = len(drawn), max(drawn)
        if not most:
            return cls((), base)
        last = max(lane for lane, count in enumerate(drawn) if count == most)
        levels = [*sorted({count for count in drawn if count < most - 1}), most - 1, most]
        found: list[Comb] = []
        for low, high in itertools.pairwise(levels):
            teeth = tuple(
                lane for lane, count in enumerate(drawn) if count <= low and (low < most - 1 or lane < last)
            )
            if teeth:
                found.append(Comb(base + low * lanes, high - low, lanes, teeth))
        return cls(tuple(found), base + (most - 1) * lanes + last + 1)


def _start(comb: Comb) -> int:
    return comb.start
