"""The items that a function passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.state.functions import describe_function
from seekable.stream.rebuild import add_token
from seekable.stream.shapes import SameTokens
from seekable.stream.stall import CHECK_EVERY, StallDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["FilterItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class FilterItems(SameTokens):
    """The items for which ``fn(item)`` is true, with their tokens."""

    fn: Callable[[Any], object]
    version: str | int | None

    kind: ClassVar[str] = "filter"

    def __post_init__(self) -> None:
        """Refuse a function without a name."""
        describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version."""
        return {"fn": describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.filter`` as an expression."""
        return f"{inputs[0]}.filter({describe_function(self.fn, self.version)['name']})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Call the function on each item, and yield the items that pass."""
        fn = self.fn
        stall, dropped = StallDetector(self, lane), 0
        for pair in lane.inputs[0]:
            try:
                passes = fn(pair[1])
            except Exception as error:
                add_token(error, self, pair[0])
                raise
            if passes:
                dropped = 0
                yield pair
            else:
                dropped += 1
                if not dropped % CHECK_EVERY:
                    stall.check(dropped)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of the input unchanged.

        Raises:
            BadToken: the function does not pass the item.
        """
        if not self.fn(items[0]):
            message = f"the item of token {token!r} is one that {self!r} does not pass"
            raise BadToken(message)
        return items[0]
