"""What several kinds of node have in common: one child, its rows in another order, or its very positions."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

from seekable.dataset.base import known_size
from seekable.dataset.cached import cached
from seekable.dataset.contract import Inner, Plan
from seekable.order.blocks import runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset
    from seekable.dataset.contract import Within

    Int64s = NDArray[np.int64]

__all__ = ["Aligned", "Fileless", "OverOne", "Rearranged"]


class OverOne(Inner):
    """A node over one child."""

    child: Dataset

    @property
    def children(self) -> tuple[Dataset, ...]:
        """The one child."""
        return (self.child,)


class Rearranged(OverOne):
    """A node whose rows, in each epoch, are the child's of that epoch in another order."""

    @property
    def size(self) -> int:
        """As many records as the child has."""
        return known_size(self.child, self.kind)

    @property
    def blocks(self) -> Int64s:
        """None of the child's: rows of several are beside each other."""
        return runs(self.size)

    def span(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Widen the range to whole epochs."""
        size = max(1, self.size)
        return start // size * size, None if stop is None else -(-stop // size) * size


class Fileless(Plan):
    """A plan whose records are read from no file."""

    @property
    def paths(self) -> set[str]:
        """None."""
        return set()

    @property
    def bytes(self) -> int:
        """None."""
        return 0

    def advise(self) -> None:
        """Do nothing: there is nothing to fetch."""


class Aligned(Inner):
    """A node whose position ``p`` is made of position ``p`` of each child."""

    @cached
    def lanes(self) -> int:
        """As many as make each lane part of one lane of every child."""
        return lcm(*(child.lanes for child in self.children))

    def span(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the same range."""
        return start, stop

    def unroute(self, slot: int, positions: Int64s, within: Within) -> Int64s:
        """Return the same positions."""
        return positions
