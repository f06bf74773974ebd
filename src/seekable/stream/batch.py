"""Lists of consecutive items of a lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.stream.shapes import OneInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["BatchItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class BatchItems(OneInput):
    """Lists of ``size`` items, the last one of a lane shorter; tokens are tuples of theirs."""

    source: Stream
    size: int

    kind: ClassVar[str] = "batch"

    def arguments(self) -> dict[str, Any]:
        """How many items."""
        return {"size": self.size}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.batch({self.size})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Collect items; nothing is kept between two lists."""
        tokens: list[Token] = []
        batch: list[Any] = []
        for token, item in flow.inputs[0]:
            tokens.append(token)
            batch.append(item)
            if len(batch) == self.size:
                yield tuple(tokens), batch
                tokens, batch = [], []
        if batch:
            yield tuple(tokens), batch

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the items of the list."""
        if not isinstance(token, tuple) or not 0 < len(token) <= self.size:
            message = f"a token of {self!r} is a tuple of at most {self.size} tokens (got {token!r})"
            raise BadToken(message)
        return [(0, each) for each in token]

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the list."""
        return list(items)
