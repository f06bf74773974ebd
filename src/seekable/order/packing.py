"""Documents packed into sequences: best fit, with a bounded number of open bins.

Each piece goes into the open bin that it leaves the least room in. Where it fits none, it opens one, and if
there are as many as may be, the fullest is closed. A bin that is full is closed at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

__all__ = ["BestFit", "Placed"]


@dataclass(frozen=True, slots=True)
class Placed:
    """The bin of a piece."""

    bin: int
    closed: int | None
    """The bin that is complete now, if any: this one, or another that had to make room."""


class BestFit:
    """The room that open bins have; of equal ones the oldest comes first.

    Example:
        >>> bins = BestFit(10, most=2)
        >>> [bins.place(size) for size in (6, 5, 4)]
        [Placed(bin=0, closed=None), Placed(bin=1, closed=None), Placed(bin=0, closed=0)]
        >>> bins.place(7), bins.place(9)
        (Placed(bin=2, closed=None), Placed(bin=3, closed=2))
    """

    def __init__(self, capacity: int, *, most: int) -> None:
        """Begin without open bins."""
        self._capacity, self._most = capacity, most
        self._open: list[tuple[int, int]] = []
        """(room, bin) of each open one, ascending."""
        self.next_bin = 0

    def restore(self, rooms: dict[int, int], next_bin: int) -> None:
        """Have the bins open that have some room, and go on numbering."""
        self._open = sorted((room, number) for number, room in rooms.items())
        self.next_bin = next_bin

    def place(self, size: int) -> Placed:
        """Put a piece somewhere, of at least 1 and less than a bin holds."""
        at = bisect_left(self._open, (size, -1))
        if at < len(self._open):
            room, number = self._open.pop(at)
            if room == size:
                return Placed(number, number)
            insort(self._open, (room - size, number))
            return Placed(number, None)
        closed = self._open.pop(0)[1] if len(self._open) == self._most else None
        number, self.next_bin = self.next_bin, self.next_bin + 1
        insort(self._open, (self._capacity - size, number))
        return Placed(number, closed)

    def close(self) -> list[int]:
        """Close all bins, and return them, the fullest first."""
        closed = [number for _, number in self._open]
        self._open = []
        return closed
