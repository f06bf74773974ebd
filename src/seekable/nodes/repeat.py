"""Several epochs as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable._arguments import POSITIONS
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ElementwiseNode, PassOn, UnaryNode
from seekable.nodes.contract import Node, OrderNode
from seekable.nodes.graph import Router, known_size
from seekable.order.blocks import joined_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s


__all__ = ["Repeat"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Repeat(UnaryNode, ElementwiseNode, OrderNode):
    """Positions are the child's; only epochs are ``times`` as long."""

    child: Node
    times: int

    kind: ClassVar[str] = "repeat"

    def __post_init__(self) -> None:
        """Refuse what has no end anyway, or more positions than there are."""
        if self.times * known_size(self.child, "repeat()") >= POSITIONS:
            message = f"repeat(n) must leave positions below 2**63 (got {self.times} times {self.child.size})"
            raise InvalidArgument(message)

    @property
    def size(self) -> int:
        """``times`` as many records as the child has."""
        return self.times * known_size(self.child, "repeat()")

    @property
    def steady(self) -> bool:
        """As the child."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The child's, again and again."""
        return joined_blocks([self.child.blocks] * self.times)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """How often."""
        return {"times": self.times}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call."""
        return f"{children[0]}.repeat({self.times})"

    @classmethod
    def router(cls, nodes: Sequence[Repeat]) -> Router:
        """Pass positions on."""
        return PassOn()

    def route_one(self, position: int) -> tuple[int, int]:
        """Pass one position on."""
        return 0, position
