"""The part of one lane: the description of its records, and the order in which the parts of lanes are merged.

A *part* of a stream is a range of slots, the same for all lanes, and each lane has the items of its own slots
in it. Slots of a lane that has ended have no item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from seekable.order.lane_rows import num_lane_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["LanePart", "PartSlots", "turns"]

_SLOTS_AT_ONCE = 1024


class PartSlots(msgspec.Struct, frozen=True):
    """The division of slots into parts: part ``p`` has the slots from ``p * slots`` on.

    Example:
        >>> division = PartSlots(lanes=3, slots=4)
        >>> [division.of_lane(0, part) for part in range(4)], division.of_lane(2, 0)
        ([2, 1, 1, 2], 1)
    """

    lanes: int
    """The number of lanes."""

    slots: int
    """The number of slots of a part."""

    def before(self, lane: int, part: int) -> int:
        """Return the number of a lane's slots before a part."""
        return num_lane_rows(part * self.slots, self.lanes, lane)

    def of_lane(self, lane: int, part: int) -> int:
        """Return the number of a lane's slots in a part."""
        return self.before(lane, part + 1) - self.before(lane, part)


class LanePart(msgspec.Struct, frozen=True):
    """The description of the records of one lane that were written in one part."""

    lane: int

    part: int

    slots: int
    """The number of slots that have an item."""

    rows: int
    """The number of records that were written."""

    holes: int
    """The number of records that were left out, by the sources or because the item was ``sk.HOLE``."""

    gaps: tuple[int, ...]
    """The numbers of the items that were ``sk.HOLE``, counted from the lane's first one in the part."""

    ended: bool
    """True if the lane has ended: it has no items in later parts."""

    bytes: int
    """The number of bytes of the file that was written; 0 where there are no records, and so no file."""

    digest: str
    """The digest of a piece, which shows after a crash of the machine if it is whole; else empty."""


def turns(
    division: PartSlots, pieces: Sequence[LanePart], *, at_once: int = _SLOTS_AT_ONCE
) -> Iterator[NDArray[np.intp]]:
    """Yield, in arrays, the number of the piece whose next record comes next, in the order of slots.

    Args:
        division: the division of slots into parts.
        pieces: the records of some lanes, all in the same part.
        at_once: the most slots of an array.

    Example:
        >>> long = LanePart(0, 0, slots=3, rows=3, holes=0, gaps=(), ended=True, bytes=6, digest="")
        >>> short = LanePart(1, 0, slots=2, rows=1, holes=1, gaps=(0,), ended=True, bytes=2, digest="")
        >>> [array.tolist() for array in turns(PartSlots(lanes=2, slots=100), [long, short])]
        [[0, 0, 1, 0]]
    """
    begun = [division.before(piece.lane, piece.part) for piece in pieces]
    gaps = [np.array(piece.gaps, dtype=np.int64) for piece in pieces]
    first = min((piece.part for piece in pieces), default=0) * division.slots
    ends = [at + piece.slots for at, piece in zip(begun, pieces, strict=True)]
    last = max(ends, default=0) * division.lanes
    for base in range(first, last, at_once):
        slots = [
            _slots(division, piece, at, holes, range(base, base + at_once))
            for piece, at, holes in zip(pieces, begun, gaps, strict=True)
        ]
        order = np.argsort(np.concatenate(slots))
        if order.size:
            yield np.repeat(np.arange(len(pieces), dtype=np.intp), [each.size for each in slots])[order]


def _slots(
    division: PartSlots, piece: LanePart, begun: int, gaps: NDArray[np.int64], within: range
) -> NDArray[np.int64]:
    """Return those slots of a piece that have a record and are within a range."""
    edges = (num_lane_rows(edge, division.lanes, piece.lane) for edge in (within.start, within.stop))
    low, high = (edge - begun for edge in edges)
    items = np.arange(max(low, 0), max(0, min(high, piece.slots)), dtype=np.int64)
    if gaps.size:
        items = items[~np.isin(items, gaps[np.searchsorted(gaps, low) : np.searchsorted(gaps, high)])]
    found: NDArray[np.int64] = (begun + items) * division.lanes + piece.lane
    return found
