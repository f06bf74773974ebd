"""The items that a function passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.state.functions import describe_function
from seekable.stream.failures import add_token
from seekable.stream.shapes import SameTokens
from seekable.stream.starving import LOOK_EVERY, Hunger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["FilterItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class FilterItems(SameTokens):
    """The items of which ``fn(item)`` is true, with their tokens."""

    source: Stream
    fn: Callable[[Any], object]
    version: str | int | None

    kind: ClassVar[str] = "filter"

    def __post_init__(self) -> None:
        """Refuse a function that has no name."""
        describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """The function by name."""
        return {"fn": describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.filter({describe_function(self.fn, self.version)['name']})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Pass on what the function passes."""
        fn = self.fn
        hunger, taken = Hunger(self, flow), 0
        for pair in flow.inputs[0]:
            try:
                passes = fn(pair[1])
            except Exception as error:
                add_token(error, self, pair[0])
                raise
            if passes:
                taken = 0
                yield pair
            else:
                taken += 1
                if not taken % LOOK_EVERY:
                    hunger.look(taken)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the input's item, if it passes."""
        if not self.fn(items[0]):
            message = f"the item of token {token!r} is one that {self!r} does not pass"
            raise BadToken(message)
        return items[0]
