"""Repetition: several epochs of a dataset as one epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable._arguments import POSITIONS
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ElementwiseNode, PassOn, UnaryNode, integer_of
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.blocks import joined_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s


__all__ = ["Repeat"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Repeat(UnaryNode, ElementwiseNode, OrderNode):
    """Positions are those of the child; an epoch is ``times`` epochs of the child."""

    child: Node
    times: int

    kind: ClassVar[str] = "repeat"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise an error for an endless child, or for more than 2**63 positions."""
        if self.times * known_size(self.child, "repeat()") >= POSITIONS:
            message = f"repeat(n) must leave positions below 2**63 (got {self.times} times {self.child.size})"
            raise InvalidArgument(message)

    @property
    def size(self) -> int:
        """The number of records in ``times`` epochs of the child."""
        return self.times * known_size(self.child, "repeat()")

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child, repeated ``times`` times."""
        return joined_blocks([self.child.blocks] * self.times)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the number of repetitions."""
        return {"times": self.times}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Repeat:
        """Return the node with these arguments over a child."""
        return cls(children[0], integer_of(arguments, "times"))

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``repeat``."""
        return f"{children[0]}.repeat({self.times})"

    @classmethod
    def router(cls, nodes: Sequence[Repeat]) -> Router:
        """Return a router that keeps all positions unchanged."""
        return PassOn()

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the position unchanged."""
        return 0, position
