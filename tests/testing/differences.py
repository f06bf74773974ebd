"""A stage as somebody would write it; what new processes import of it needs no pytest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import seekable as sk
from seekable.stream import OneInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream import Lane, Token


@dataclass(frozen=True, eq=False, repr=False)
class Differences(OneInput):
    """Each item less the one before it."""

    kind: ClassVar[str] = "differences"

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"{inputs[0]}.then(Differences())"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        last = lane.state.get("last", [])
        for token, item in lane.inputs[0]:
            pair = (token, *last)
            before = self.input_item(last[0]) if last else 0
            lane.state["last"] = last = [token]
            yield pair, item - before

    def input_item(self, token: Token) -> Any:
        return sk.Stream(self.inputs[0])[token]

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        if not isinstance(token, tuple) or len(token) not in (1, 2):
            message = f"a token of Differences is one or two tokens (got {token!r})"
            raise sk.errors.BadToken(message)
        return [(0, each) for each in token]

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        return items[0] - sum(items[1:])
