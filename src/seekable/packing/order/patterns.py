"""Best-fit-decreasing over counts: the contents of all bins from how many pieces have each length.

Pieces are put into bins from the longest to the shortest, each into the open bin with the least space that
holds it, and pieces of equal length at once. Bins of equal content are one pattern. So the time depends on
the number of patterns, and not on the number of documents.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s

__all__ = ["Patterns", "best_fit_patterns"]


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The contents of bins: the lengths of their pieces, and how many bins have these.

    A pattern is some runs of pieces; the pieces of one run have one length. Lengths descend within a pattern.
    """

    times: Int64s
    """The number of bins of each pattern: (patterns,)."""
    bounds: Int64s
    """For each pattern the number of its first run, then the number of all runs: (patterns + 1,)."""
    lengths: Int64s
    """The length of the pieces of each run: (runs,)."""
    repeats: Int64s
    """The number of pieces of each run, in one bin: (runs,)."""

    @property
    def bins(self) -> int:
        """The number of bins of all patterns."""
        return int(self.times.sum())

    @property
    def members(self) -> int:
        """The number of pieces in one bin of each pattern, added up over the patterns."""
        return int(self.repeats.sum())


def best_fit_patterns(lengths: Int64s, counts: Int64s, *, capacity: int, most: int | None = None) -> Patterns:
    """Pack pieces of known lengths into bins.

    Args:
        lengths: the distinct lengths of pieces, ascending, from 1 to ``capacity``.
        counts: the number of pieces of each length, at least 1.
        capacity: the number of tokens that a bin holds.
        most: the most pieces of a bin, at least 1; None for no limit.

    Returns:
        The patterns in the order of their bins: those that are full or have ``most`` pieces, in the order in
        which they were closed; then the others, those with the least space first; last, the pieces that fill
        a bin alone.

    Example:
        >>> found = best_fit_patterns(np.array([1, 3, 4]), np.array([2, 5, 2]), capacity=4)
        >>> found.bins, found.times.tolist(), found.lengths.tolist(), found.repeats.tolist()
        (7, [2, 3, 2], [3, 1, 3, 4], [1, 1, 1, 1])
    """
    groups = _Groups(capacity, capacity if most is None else most)
    alone = 0
    for length, count in zip(lengths[::-1].tolist(), counts[::-1].tolist(), strict=True):
        if length == capacity:
            alone = count
        else:
            groups.put(length, count)
    found = list(groups.all())
    if alone:
        found.append(_Group((None, capacity, 1), 1, alone))
    flat = array("q")
    bounds = array("q", [0])
    for group in found:
        for run in group.runs():
            flat.extend(run)
        bounds.append(len(flat) // 2)
    runs = np.array(flat, dtype=np.int64).reshape(-1, 2)
    times = np.array([group.times for group in found], dtype=np.int64)
    return Patterns(times, np.array(bounds, dtype=np.int64), runs[:, 0].copy(), runs[:, 1].copy())


_Chain = tuple["_Chain | None", int, int]
"""The runs before the last one, and the length and the number of pieces of the last one."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Some bins of equal content."""

    chain: _Chain | None
    pieces: int
    """The number of pieces of each bin."""
    times: int
    """The number of bins."""

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the length and the number of pieces of each run, the longest first."""
        found = []
        chain = self.chain
        while chain:
            chain, length, repeats = chain
            found.append((length, repeats))
        yield from reversed(found)


class _Groups:
    """The groups of bins that are open, by the space that is left in them, and those that are closed."""

    def __init__(self, capacity: int, most: int) -> None:
        self._capacity, self._most = capacity, most
        self._closed: list[_Group] = []
        self._open: dict[int, list[_Group]] = {}
        """The groups with each space; the one that was added last is filled first."""
        self._spaces = 0
        """A set of bits: bit s is set if there is a group with space s."""

    def put(self, length: int, count: int) -> None:
        """Put pieces of one length, less than that of a bin, into bins; no shorter ones were put before."""
        while count:
            space, group = self._taken(length, count)
            each = min(space // length, self._most - group.pieces)
            filled = min(group.times, count // each)
            self._add(space, group, length, each, filled)
            count -= filled * each
            left = group.times - filled
            if count and left:
                # Too few pieces are left for another full share: one bin gets them all.
                self._add(space, group, length, count, 1)
                count, left = 0, left - 1
            if left:
                self._open_up(space, _Group(group.chain, group.pieces, left))

    def all(self) -> Iterator[_Group]:
        """Yield all groups, the closed ones first."""
        yield from self._closed
        for space in sorted(self._open):
            yield from self._open[space]

    def _taken(self, length: int, count: int) -> tuple[int, _Group]:
        """Take out the group with the least space for a piece; or return new bins for all pieces."""
        fitting = self._spaces >> length
        if not fitting:
            each = min(self._capacity // length, self._most)
            return self._capacity, _Group(None, 0, -(-count // each))
        space = length + (fitting & -fitting).bit_length() - 1
        group = self._open[space].pop()
        if not self._open[space]:
            del self._open[space]
            self._spaces ^= 1 << space
        return space, group

    def _add(self, space: int, group: _Group, length: int, each: int, times: int) -> None:
        """Put ``each`` pieces into each of ``times`` bins of a group, which is taken out."""
        if not times:
            return
        filled = _Group((group.chain, length, each), group.pieces + each, times)
        left = space - each * length
        if left and filled.pieces < self._most:
            self._open_up(left, filled)
        else:
            self._closed.append(filled)

    def _open_up(self, space: int, group: _Group) -> None:
        self._open.setdefault(space, []).append(group)
        self._spaces |= 1 << space
