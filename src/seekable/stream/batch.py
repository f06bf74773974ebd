"""Lists of consecutive items of a lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.stream.shapes import OneInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["BatchItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class BatchItems(OneInput):
    """Lists of ``size`` items, the last list of a lane shorter. A token is the tuple of the items' tokens."""

    size: int

    kind: ClassVar[str] = "batch"

    def arguments(self) -> dict[str, Any]:
        """Return the size of the lists."""
        return {"size": self.size}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.batch`` as an expression."""
        return f"{inputs[0]}.batch({self.size})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Collect items; between two lists there is no state."""
        tokens: list[Token] = []
        batch: list[Any] = []
        for token, item in lane.inputs[0]:
            tokens.append(token)
            batch.append(item)
            if len(batch) == self.size:
                yield tuple(tokens), batch
                tokens, batch = [], []
        if batch:
            yield tuple(tokens), batch

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the items of the list.

        Raises:
            BadToken: the token is not a tuple of tokens.
        """
        if not isinstance(token, tuple) or not token:
            message = f"a token of batch() is a tuple of tokens (got {token!r})"
            raise BadToken(message)
        return [(0, each) for each in token]

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the list of some items.

        Raises:
            BadToken: the token has more tokens than a list has items.
        """
        if len(items) > self.size:
            message = f"a token of {self!r} is a tuple of at most {self.size} tokens (got {token!r:.200})"
            raise BadToken(message)
        return list(items)
