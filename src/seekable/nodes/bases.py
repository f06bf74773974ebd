"""Bases of nodes, plans, readers and routers.

Nodes: over one child, with its rows in another order, with some of its rows in ascending order, or with the
positions of all children. Routers: ``EachRouter`` loops over nodes whose arithmetic does not fit one table.
"""

from __future__ import annotations

from abc import abstractmethod
from math import lcm
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.contract import InnerNode, OrderNode
from seekable.nodes.graph import Plan, Reader, Router, known_size
from seekable.order.blocks import default_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.conditions import Where
    from seekable.nodes.contract import Node
    from seekable.nodes.provenance import Origins
    from seekable.nodes.search import SearchRange


__all__ = [
    "ONE_CHILD",
    "Ascending",
    "EachRouter",
    "ElementwiseNode",
    "InMemoryPlan",
    "PassOn",
    "PermutationNode",
    "UnaryNode",
    "UnaryPlan",
    "UnaryReader",
    "int64s",
]


class UnaryNode(InnerNode):
    """A node over one child."""

    child: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The one child."""
        return (self.child,)


class PermutationNode(UnaryNode):
    """A node whose rows, in each epoch, are the child's of that epoch in another order."""

    @property
    def size(self) -> int:
        """As many records as the child has."""
        return known_size(self.child, self.kind)

    @property
    def blocks(self) -> Int64s:
        """None of the child's: rows of several are beside each other."""
        return default_blocks(self.size)

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Widen the range to whole epochs."""
        size = max(1, self.size)
        return start // size * size, None if stop is None else -(-stop // size) * size


class InMemoryPlan(Plan):
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


class UnaryPlan(Plan):
    """A plan whose records are made of those of another, each of one."""

    child: Plan

    def locate(self) -> list[Any]:
        """Say where the records lie that these are made of."""
        return self.child.locate()

    def origins(self) -> Origins:
        """Say which rows of which files these are."""
        return self.child.origins()

    @property
    def paths(self) -> set[str]:
        """Their files."""
        return self.child.paths

    def advise(self) -> None:
        """Tell the system of them."""
        self.child.advise()

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return self.child.bytes


@final
class UnaryReader(Reader):
    """Plans the reading of the children of some nodes together, and then what each node makes of it."""

    def __init__(
        self, nodes: Sequence[Any], plan: Callable[[Sequence[Any], Int64s, Int64s, Plan], Plan]
    ) -> None:
        """Compile the children.

        Args:
            nodes: nodes with a ``child`` each.
            plan: makes the plan of the nodes, whose each position is, the positions, and the children's plan.
        """
        self._nodes = nodes
        self._plan = plan
        self._children = CompiledGraph([node.child for node in nodes])

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Plan what the children read, and put the nodes over it."""
        return self._plan(self._nodes, which, positions, self._children.plan(which, positions))


class ElementwiseNode(InnerNode):
    """A node whose position ``p`` is made of position ``p`` of each child."""

    @cached
    def lanes(self) -> int:
        """As many as make each lane part of one lane of every child."""
        return lcm(*(child.lanes for child in self.children))

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the same range."""
        return start, stop

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the same positions."""
        return positions


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
