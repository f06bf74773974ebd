"""No item, one item or several items made of each item."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.state.functions import describe_function
from seekable.stream.shapes import OneInput, add_token, rebuilt
from seekable.stream.stall import CHECK_EVERY, StallDetector
from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["Flatten"]

_PAIR = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class Flatten(OneInput):
    """The items of ``fn(item)``, or of the item itself. Tokens are (the item's token, index in it)."""

    fn: Callable[[Any], Iterable[Any]] | None
    version: str | int | None

    kind: ClassVar[str] = "flatten"
    item_by_item: ClassVar[bool] = True
    holds: ClassVar[bool] = True
    splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a function without a name."""
        if self.fn is not None:
            describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version, or None without a function."""
        return {"fn": None if self.fn is None else describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.flatten`` as an expression."""
        name = "" if self.fn is None else describe_function(self.fn, self.version)["name"]
        return f"{inputs[0]}.flatten({name})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the rest of the outer item that the state names, then the items of the following ones."""
        state = lane.state
        stall, empty = StallDetector(self, lane), 0
        for outer, item in itertools.chain(self._begun(lane), lane.inputs[0]):
            empty += 1
            done = state.get("inner", 0)
            state["outer"] = outer
            try:
                for inner, part in enumerate(self._parts(item)):
                    if inner >= done:
                        empty = 0
                        state["inner"] = inner + 1
                        yield (outer, inner), part
            except Exception as error:
                add_token(error, self, outer)
                raise
            state.clear()
            if empty and not empty % CHECK_EVERY:
                stall.check(empty)
                if stall.over:
                    return

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the outer item's token.

        Raises:
            BadToken: the token is not a pair of a token and a number.
        """
        if not isinstance(token, tuple) or len(token) != _PAIR or not isinstance(token[1], int):
            raise BadToken(f"a token of flatten() is a pair of an outer token and a number (got {token!r})")
        return ((0, token[0]),)

    @staticmethod
    def held(state: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
        """Return the outer item of which some items were delivered, if there is one."""
        return [(0, as_token(state["outer"]))] if "inner" in state else []

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return one of the items of the outer item.

        Raises:
            BadToken: the outer item has fewer items.
        """
        if token[1] >= 0:
            for part in itertools.islice(self._parts(items[0]), token[1], None):
                return part
        raise BadToken(f"the outer item of token {token!r} has no item {token[1]}")

    def _begun(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        if "inner" in lane.state:
            outer = as_token(lane.state["outer"])
            yield outer, rebuilt(self.inputs[0], [outer])[0]

    def _parts(self, item: Any) -> Iterable[Any]:
        return item if self.fn is None else self.fn(item)
