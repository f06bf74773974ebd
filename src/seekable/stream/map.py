"""A function of each item, with or without randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.nodes.randomness import ItemRandomness
from seekable.state.functions import describe_function
from seekable.stream.failures import add_token
from seekable.stream.shapes import SameTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["MapItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MapItems(SameTokens):
    """``fn(item)``, or ``fn(item, rng)`` where a seed is given; tokens stay."""

    source: Stream
    fn: Callable[..., Any]
    seed: int | None
    version: str | int | None

    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        """Refuse a function that has no name."""
        describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """The function by name, and the seed."""
        return {"fn": describe_function(self.fn, self.version), "seed": self.seed}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        seed = "" if self.seed is None else f", rng=True, seed={self.seed}"
        return f"{inputs[0]}.map({describe_function(self.fn, self.version)['name']}{seed})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Call the function."""
        fn = self.fn
        rng = None if self.seed is None else ItemRandomness(self.seed).rng
        for token, item in flow.inputs[0]:
            try:
                made = fn(item) if rng is None else fn(item, rng(token))
            except Exception as error:
                add_token(error, self, token)
                raise
            yield token, made

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Call the function, with the generator of that token."""
        if self.seed is None:
            return self.fn(items[0])
        return self.fn(items[0], ItemRandomness(self.seed).rng(token))
