"""The natural order, cut into equal runs of rows, of which each lane reads one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.nodes.bases import ONE_CHILD, PermutationNode, int64s, integer_of
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.lane_rows import dealt_rows, source_row, source_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["Interleave"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Interleave(PermutationNode, OrderNode):
    """Row ``r`` of epoch ``e`` is the next row of run ``r % lanes`` in the child's epoch ``e``."""

    child: Node
    dealt_to: int

    kind: ClassVar[str] = "interleave"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise EndlessDataset if the child has no length."""
        known_size(self.child, "interleave()")

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def lanes(self) -> int:
        """The number of lanes that the call of ``interleave`` gave."""
        return self.dealt_to

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the number of lanes."""
        return {"lanes": self.dealt_to}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Interleave:
        """Return the node with these arguments over a child."""
        return cls(children[0], integer_of(arguments, "lanes"))

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``interleave``."""
        return f"{children[0]}.interleave(lanes={self.dealt_to})"

    @classmethod
    def router(cls, nodes: Sequence[Interleave]) -> Router:
        """Return a router that deals the positions of all nodes at once."""
        return _InterleaveRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self.size + source_row(row, self.size, self.dealt_to)

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions at which the child's rows come."""
        epochs, rows = np.divmod(positions, self.size)
        return epochs * self.size + dealt_rows(rows, self.size, self.dealt_to)


class _InterleaveRouter(Router):
    def __init__(self, nodes: Sequence[Interleave]) -> None:
        self._sizes = int64s(node.size for node in nodes)
        self._lanes = int64s(node.dealt_to for node in nodes)

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        sizes = self._sizes[which]
        epochs, rows = np.divmod(positions, sizes)
        return ONE_CHILD, epochs * sizes + source_rows(rows, sizes, self._lanes[which])
