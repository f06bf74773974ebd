"""Several streams joined: one after another (concat), or side by side (zip)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.nodes.display import listed
from seekable.stream.shapes import InputItems, SeveralInputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["Chain", "ZipItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Chain(SeveralInputs, InputItems):
    """In each lane all items of the first stream, then of the next. Tokens are (stream's index, token)."""

    kind: ClassVar[str] = "chain"
    item_by_item: ClassVar[bool] = True
    call: ClassVar[str] = "concat()"

    @property
    def endless(self) -> bool:
        """True if one of the streams never ends."""
        return any(part.endless for part in self.parts)

    def arguments(self) -> dict[str, Any]:
        """Return nothing: the inputs decide everything."""
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``sk.concat``."""
        return f"concat([{listed(inputs)}])"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the items of one input after another."""
        for number in range(lane.state.get("part", 0), len(lane.inputs)):
            lane.state["part"] = number
            for token, item in lane.inputs[number]:
                yield (number, token), item

    def epochs_done(self, lane: Lane) -> int:
        """Return the epochs of the current stream if it never ends, otherwise 0: another stream follows."""
        part = lane.state.get("part", 0)
        return lane.inputs[part].epochs if self.parts[part].endless else 0


@final
@dataclass(frozen=True, eq=False, repr=False)
class ZipItems(SeveralInputs):
    """Tuples with an item of each stream, until the first stream ends. A token is a tuple of their tokens."""

    kind: ClassVar[str] = "zip"
    call: ClassVar[str] = "zip()"

    @property
    def endless(self) -> bool:
        """True if no stream ever ends."""
        return all(part.endless for part in self.parts)

    def arguments(self) -> dict[str, Any]:
        """Return nothing: the inputs decide everything."""
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``sk.zip``."""
        return f"zip([{listed(inputs)}])"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Take one item of each input; after the first end draw from no input again."""
        if lane.state.get("ended"):
            return
        for pairs in zip(*lane.inputs, strict=False):
            tokens, items = zip(*pairs, strict=True)
            yield tokens, items
        lane.state["ended"] = True

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the item of each input.

        Raises:
            BadToken: the token is not a tuple.
        """
        if not isinstance(token, tuple):
            raise BadToken(f"a token of zip() is a tuple of a token of each stream (got {token!r})")
        return list(enumerate(token))

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the tuple of some items.

        Raises:
            BadToken: the token has fewer tokens than there are streams.
        """
        if len(items) != len(self.parts):
            raise BadToken(f"a token of {self!r} is a tuple of {len(self.parts)} tokens (got {token!r})")
        return tuple(items)
