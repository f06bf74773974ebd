"""A stream again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken, NothingPassed
from seekable.stream.shapes import OneInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["RepeatItems"]

_PAIR = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class RepeatItems(OneInput):
    """The items ``times`` times, or for ever; tokens are (round, token)."""

    source: Stream
    times: int | None

    kind: ClassVar[str] = "repeat"

    @property
    def endless(self) -> bool:
        """Without a number of times, or where the input is."""
        return self.times is None or self.source.endless

    def arguments(self) -> dict[str, Any]:
        """How often."""
        return {"times": self.times}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.repeat({'' if self.times is None else self.times})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Run through the input, and begin it anew."""
        memory, source = flow.memory, flow.inputs[0]
        number = memory.get("epochs", 0)
        while self.times is None or number < self.times:
            for token, item in source:
                memory["any"] = True
                yield (number, token), item
            if not memory.pop("any", False):
                if self.times is None:
                    message = f"nothing came out of {self.source!r} in lane {flow.lane} to be repeated"
                    raise NothingPassed(message)
                return
            memory["epochs"] = number = number + 1
            source.restart()

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the input's item."""
        if not isinstance(token, tuple) or len(token) != _PAIR or not self._is_round(token[0]):
            message = f"a token of {self!r} is a pair of a round and a token (got {token!r})"
            raise BadToken(message)
        return ((0, token[1]),)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the input's item."""
        return items[0]

    def _is_round(self, number: Any) -> bool:
        return isinstance(number, int) and number >= 0 and (self.times is None or number < self.times)
