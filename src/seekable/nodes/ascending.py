"""Rows that were chosen once, in the order that they have in the child."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from seekable.nodes.bases import UnaryNode
from seekable.nodes.contract import OrderNode
from seekable.nodes.graph import known_size
from seekable.nodes.routers import ONE_CHILD

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.conditions import Where
    from seekable.nodes.search import SearchRange


__all__ = ["Ascending"]


class Ascending(UnaryNode, OrderNode):
    """A node whose row ``r`` is the ``r``-th of the chosen rows of a steady child."""

    @property
    @abstractmethod
    def chosen(self) -> Int64s:
        """The chosen rows, distinct and ascending."""

    @abstractmethod
    def chosen_one(self, row: int) -> int:
        """Return one of the chosen rows."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows were chosen."""

    @property
    def steady(self) -> bool:
        """Always."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The child's, with the chosen rows of each."""
        return np.unique(np.searchsorted(self.chosen, self.child.blocks))

    @property
    def lanes(self) -> int:
        """One: rows are taken from any lane."""
        return 1

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Look chosen rows up."""
        epochs, rows = np.divmod(positions, self.size)
        return ONE_CHILD, epochs * self._below + self.chosen[rows]

    def route_one(self, position: int) -> tuple[int, int]:
        """Look one chosen row up."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self._below + self.chosen_one(row)

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the whole epochs of the child."""
        size = max(1, self.size)
        return start // size * self._below, None if stop is None else -(-stop // size) * self._below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Search the chosen rows."""
        if not self.size:
            return np.empty(0, dtype=np.int64)
        epochs, rows = np.divmod(positions, self._below)
        chosen = self.chosen
        places = np.searchsorted(chosen, rows)
        found = chosen[np.minimum(places, self.size - 1)] == rows
        own: Int64s = (epochs * self.size + places)[found]
        return own

    def may_match(self, where: Where) -> Int64s:
        """Return the chosen rows of the child's runs."""
        runs: Int64s = np.searchsorted(self.chosen, self.child.may_match(where)).astype(np.int64)
        return runs[runs[:, 0] < runs[:, 1]]

    @property
    def _below(self) -> int:
        return known_size(self.child, self.kind)
