"""The view of one epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.nodes.bases import ONE_CHILD, UnaryNode, int64s
from seekable.nodes.contract import Node, OrderNode
from seekable.nodes.graph import Router, known_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.nodes.search import SearchRange


__all__ = ["Epoch"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Epoch(UnaryNode, OrderNode):
    """Every epoch of the view is the one epoch ``number`` of the child."""

    child: Node
    number: int

    kind: ClassVar[str] = "epoch"

    def __post_init__(self) -> None:
        """Refuse what has no epochs."""
        known_size(self.child, "epoch()")

    @property
    def size(self) -> int:
        """As many records as the child has."""
        return known_size(self.child, "epoch()")

    @property
    def steady(self) -> bool:
        """Always: there is one epoch."""
        return True

    @property
    def blocks(self) -> Int64s:
        """As the child's."""
        return self.child.blocks

    @property
    def lanes(self) -> int:
        """As the child."""
        return self.child.lanes

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Which epoch."""
        return {"number": self.number}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call."""
        return f"{children[0]}.epoch({self.number})"

    @classmethod
    def router(cls, nodes: Sequence[Epoch]) -> Router:
        """Move the positions of all nodes to their epochs in one call."""
        return _EpochRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Move one position."""
        return 0, self.number * self.size + position % self.size

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the one epoch."""
        return self.number * self.size, (self.number + 1) * self.size

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return where the rows come, in each epoch of the view that is searched."""
        return within.in_each_epoch(positions - self.number * self.size, self.size)


class _EpochRouter(Router):
    def __init__(self, nodes: Sequence[Epoch]) -> None:
        self._sizes = int64s(node.size for node in nodes)
        self._starts = int64s(node.number for node in nodes) * self._sizes

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        return ONE_CHILD, self._starts[which] + positions % self._sizes[which]
