"""Views of one epoch of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.nodes.bases import ONE_CHILD, UnaryNode, int64s, integer_of
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["Epoch"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Epoch(UnaryNode, OrderNode):
    """A view whose every epoch is epoch ``number`` of the child."""

    child: Node
    number: int

    kind: ClassVar[str] = "epoch"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise EndlessDataset if the child has no epochs."""
        known_size(self.child, "epoch()")

    @property
    def size(self) -> int:
        """The number of records of an epoch, equal to the child's."""
        return known_size(self.child, "epoch()")

    @property
    def steady(self) -> bool:
        """True: the view shows one epoch alone."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child."""
        return self.child.blocks

    @property
    def lanes(self) -> int:
        """The number of lanes of the child."""
        return self.child.lanes

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the number of the epoch."""
        return {"number": self.number}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Epoch:
        """Return the node with these arguments over a child."""
        return cls(children[0], integer_of(arguments, "number"))

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``epoch``."""
        return f"{children[0]}.epoch({self.number})"

    @classmethod
    def router(cls, nodes: Sequence[Epoch]) -> Router:
        """Return a router that moves the positions of all nodes at once."""
        return _EpochRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        return 0, self.number * self.size + position % self.size

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of the child's one epoch."""
        return self.number * self.size, (self.number + 1) * self.size

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of the rows, in each searched epoch of the view."""
        return within.in_each_epoch(positions - self.number * self.size, self.size)


class _EpochRouter(Router):
    def __init__(self, nodes: Sequence[Epoch]) -> None:
        self._sizes = int64s(node.size for node in nodes)
        self._starts = int64s(node.number for node in nodes) * self._sizes

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        return ONE_CHILD, self._starts[which] + positions % self._sizes[which]
