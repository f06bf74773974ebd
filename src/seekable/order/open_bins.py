"""Best-fit packing of documents into sequences, with a bounded number of open bins.

Each piece goes into the open bin that has the least space left after it. A piece that fits no open bin opens
a new one; if the most bins are open already, the fullest of them is closed. A full bin is closed at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

__all__ = ["BinPlacement", "OpenBins"]


@dataclass(frozen=True, slots=True)
class BinPlacement:
    """The bin that a piece was put into, and the bin that was closed for it."""

    bin: int
    closed: int | None
    """The bin that was closed, if any: the bin of the piece, which is full, or the fullest open one."""


class OpenBins:
    """The open bins, by the space that is left in them; of bins with equal space the oldest is filled first.

    Example:
        >>> bins = OpenBins(10, most=2)
        >>> [bins.place(size) for size in (6, 5, 4)]
        [BinPlacement(bin=0, closed=None), BinPlacement(bin=1, closed=None), BinPlacement(bin=0, closed=0)]
        >>> bins.place(7), bins.place(9)
        (BinPlacement(bin=2, closed=None), BinPlacement(bin=3, closed=2))
    """

    def __init__(self, capacity: int, *, most: int) -> None:
        """Begin without open bins, of ``capacity`` each, of which at most ``most`` are open."""
        self._capacity, self._most = capacity, most
        self._open: list[tuple[int, int]] = []
        """The space left and the number of each open bin, ascending."""
        self.next_bin = 0

    def restore(self, rooms: dict[int, int], next_bin: int) -> None:
        """Open bins with the space left in ``rooms``; the next new bin gets the number ``next_bin``."""
        self._open = sorted((room, number) for number, room in rooms.items())
        self.next_bin = next_bin

    def place(self, size: int) -> BinPlacement:
        """Put a piece into a bin; its size is at least 1 and less than ``capacity``."""
        at = bisect_left(self._open, (size, -1))
        if at < len(self._open):
            room, number = self._open.pop(at)
            if room == size:
                return BinPlacement(number, number)
            insort(self._open, (room - size, number))
            return BinPlacement(number, None)
        closed = self._open.pop(0)[1] if len(self._open) == self._most else None
        number, self.next_bin = self.next_bin, self.next_bin + 1
        insort(self._open, (self._capacity - size, number))
        return BinPlacement(number, closed)

    def close(self) -> list[int]:
        """Close all bins, and return them, the fullest first."""
        closed = [number for _, number in self._open]
        self._open = []
        return closed
