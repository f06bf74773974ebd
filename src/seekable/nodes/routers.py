"""Routers that loop, for nodes whose arithmetic does not fit one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from seekable.nodes.graph import Router

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable._typing import Int64s


__all__ = ["ONE_CHILD", "EachRouter", "PassOn", "int64s"]

ONE_CHILD = np.zeros(1, dtype=np.int64)
"""The slot of the one child, for all positions."""


class Routes(Protocol):
    """A node that can route an array of its own positions."""

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the slot of a child and the position there, for each position."""
        ...


class PassOn(Router):
    """Routes every position to the one child's same position."""

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the positions as they are."""
        return ONE_CHILD, positions


class EachRouter(Router):
    """Asks one node after another; right where few nodes of the class stand beside each other."""

    def __init__(self, nodes: Sequence[Routes]) -> None:
        """Serve these nodes."""
        self._nodes = nodes

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Route the positions of each node apart."""
        if which.size == 1:
            return self._nodes[int(which[0])].route(positions)
        slots, below = np.empty_like(positions), np.empty_like(positions)
        for i in np.unique(which):
            at = which == i
            slots[at], below[at] = self._nodes[int(i)].route(positions[at])
        return slots, below


def int64s(values: Iterable[int | None]) -> Int64s:
    """Return one value of each node as an array; None becomes 0.

    Example:
        >>> int64s([3, None]).tolist()
        [3, 0]
    """
    return np.array([value or 0 for value in values], dtype=np.int64)
