"""What several kinds of node have in common: one child, its rows in another order, or its very positions."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any, final

from seekable._cached import cached
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.contract import InnerNode
from seekable.nodes.graph import Plan, Reader, known_size
from seekable.order.blocks import default_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.contract import Node
    from seekable.nodes.provenance import Origins
    from seekable.nodes.search import SearchRange


__all__ = ["ElementwiseNode", "InMemoryPlan", "PermutationNode", "UnaryNode", "UnaryPlan", "UnaryReader"]


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
