"""A stream delivered several times, or for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken, NothingPassed
from seekable.stream.shapes import OneInput
from seekable.stream.stall import passes_in_another_lane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["RepeatItems"]

_PAIR = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class RepeatItems(OneInput):
    """The items of the input ``times`` times, or for ever if that is None. Tokens are (round, token)."""

    times: int | None

    kind: ClassVar[str] = "repeat"
    item_by_item: ClassVar[bool] = True

    @property
    def endless(self) -> bool:
        """True without a number of times, or if the input never ends."""
        return self.times is None or self.inputs[0].endless

    def arguments(self) -> dict[str, Any]:
        """Return the number of times."""
        return {"times": self.times}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.repeat`` as an expression."""
        return f"{inputs[0]}.repeat({'' if self.times is None else self.times})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the input's items, and restart the input at its end."""
        state, source = lane.state, lane.inputs[0]
        number = state.get("epochs", 0)
        while self.times is None or number < self.times:
            for token, item in source:
                state["any"] = True
                yield (number, token), item
            if not state.pop("any", False):
                if self.times is None and not lane.is_probe and not passes_in_another_lane(self, lane.number):
                    message = f"nothing came out of any lane of {self.inputs[0]!r} to be repeated"
                    raise NothingPassed(message)
                return
            state["epochs"] = number = number + 1
            source.restart()

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the input item's token.

        Raises:
            BadToken: the token is not a pair of a round and a token.
        """
        if not isinstance(token, tuple) or len(token) != _PAIR or not _is_round(token[0]):
            message = f"a token of repeat() is a pair of a round and a token (got {token!r})"
            raise BadToken(message)
        return ((0, token[1]),)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of the input unchanged.

        Raises:
            BadToken: there are fewer rounds.
        """
        if self.times is not None and token[0] >= self.times:
            message = f"{self!r} has {self.times} rounds, numbered from 0 (got token {token!r})"
            raise BadToken(message)
        return items[0]


def _is_round(number: Any) -> bool:
    return isinstance(number, int) and number >= 0
