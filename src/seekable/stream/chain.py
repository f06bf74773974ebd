"""Streams one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.dataset.show import listed
from seekable.stream.several import SeveralInputs, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["Chain"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Chain(SeveralInputs):
    """All items of the first stream, then of the next, lane by lane; tokens are (number of it, token)."""

    parts: tuple[Stream, ...]

    kind: ClassVar[str] = "chain"
    call: ClassVar[str] = "concat()"

    @property
    def endless(self) -> bool:
        """Where one of them is."""
        return any(part.endless for part in self.parts)

    def arguments(self) -> dict[str, Any]:
        """None."""
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call."""
        return f"concat([{listed(inputs)}])"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Run through the inputs."""
        for number in range(flow.memory.get("part", 0), len(flow.inputs)):
            flow.memory["part"] = number
            for token, item in flow.inputs[number]:
                yield (number, token), item

    def gone_by(self, flow: Flow) -> int:
        """Return the epochs of a part without end: from any other there is a way on."""
        part = flow.memory.get("part", 0)
        return flow.inputs[part].epochs if self.parts[part].endless else 0

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the item of one input."""
        return (numbered(self, token),)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return it."""
        return items[0]
