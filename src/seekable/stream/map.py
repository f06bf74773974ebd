"""A function of each item, with or without randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.nodes.randomness import ItemRandomness
from seekable.state.functions import describe_function
from seekable.stream.rebuild import add_token
from seekable.stream.shapes import SameTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["MapItems"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MapItems(SameTokens):
    """``fn(item)`` of each item, or ``fn(item, rng)`` if there is a seed; tokens stay the same."""

    fn: Callable[..., Any]
    seed: int | None
    version: str | int | None

    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        """Refuse a function without a name."""
        describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version, and the seed."""
        return {"fn": describe_function(self.fn, self.version), "seed": self.seed}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.map`` as an expression."""
        seed = "" if self.seed is None else f", rng=True, seed={self.seed}"
        return f"{inputs[0]}.map({describe_function(self.fn, self.version)['name']}{seed})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield what the function returns for each item."""
        fn = self.fn
        rng = None if self.seed is None else ItemRandomness(self.seed).rng
        for token, item in lane.inputs[0]:
            try:
                made = fn(item) if rng is None else fn(item, rng(token))
            except Exception as error:
                add_token(error, self, token)
                raise
            yield token, made

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Call the function again, with the same random numbers."""
        if self.seed is None:
            return self.fn(items[0])
        return self.fn(items[0], ItemRandomness(self.seed).rng(token))
