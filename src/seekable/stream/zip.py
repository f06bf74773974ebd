"""Items of several streams side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.dataset.show import listed
from seekable.errors import BadToken
from seekable.stream.several import SeveralInputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["ZipItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class ZipItems(SeveralInputs):
    """Tuples of an item of each stream, until the first of them ends; tokens are tuples of theirs."""

    parts: tuple[Stream, ...]

    kind: ClassVar[str] = "zip"
    call: ClassVar[str] = "zip()"

    @property
    def endless(self) -> bool:
        """Where all are."""
        return all(part.endless for part in self.parts)

    def arguments(self) -> dict[str, Any]:
        """None."""
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call."""
        return f"zip([{listed(inputs)}])"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Take one of each; once one has ended, the others are not asked again."""
        if flow.memory.get("ended"):
            return
        for pairs in zip(*flow.inputs, strict=False):
            tokens, items = zip(*pairs, strict=True)
            yield tokens, items
        flow.memory["ended"] = True

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the item of each input."""
        if not isinstance(token, tuple) or len(token) != len(self.parts):
            message = f"a token of {self!r} is a tuple of {len(self.parts)} tokens (got {token!r})"
            raise BadToken(message)
        return list(enumerate(token))

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the tuple."""
        return tuple(items)
