"""Items combined with records drawn at random, such as speech with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import InvalidArgument
from seekable.nodes.graph import known_size
from seekable.nodes.hole import HOLE
from seekable.nodes.randomness import ItemRandomness
from seekable.state.functions import describe_function
from seekable.stream.rebuild import add_token
from seekable.stream.shapes import SameTokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.nodes.contract import Node
    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["Overlay"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Overlay(SameTokens):
    """``fn(item, partner, rng)`` of some items; a hash of the token chooses the items and their partners."""

    other: Node
    """The dataset of the partners."""

    fn: Callable[..., Any]
    prob: float
    """The share of items that are combined, 0 to 1."""

    seed: int
    version: str | int | None

    kind: ClassVar[str] = "overlay"

    def __post_init__(self) -> None:
        """Refuse a function without a name, and an empty dataset of partners."""
        describe_function(self.fn, self.version)
        if not known_size(self.other, "overlay()") and self.prob:
            message = f"overlay() needs partners, and there are no records in {self.other!r}"
            raise InvalidArgument(message)

    @property
    def datasets(self) -> tuple[Node, ...]:
        """The dataset of the partners."""
        return (self.other,)

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version, the probability and the seed."""
        return {
            "fn": describe_function(self.fn, self.version),
            "prob": self.prob,
            "seed": self.seed,
        }

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.overlay`` as an expression."""
        name = describe_function(self.fn, self.version)["name"]
        other = self.other.expression()
        return f"{inputs[0]}.overlay({other}, {name}, prob={self.prob}, seed={self.seed})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield each item, combined with a partner where the token's hash says so."""
        randomness = ItemRandomness(self.seed)
        for token, item in lane.inputs[0]:
            try:
                combined = self._combined(token, item, randomness)
            except Exception as error:
                add_token(error, self, token)
                raise
            yield token, combined

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Combine the item with the same partner again."""
        return self._combined(token, items[0], ItemRandomness(self.seed))

    def _combined(self, token: Token, item: Any, randomness: ItemRandomness) -> Any:
        rng = randomness.rng(token)
        if rng.random() >= self.prob:
            return item
        partner = self.other.record(int(rng.integers(known_size(self.other, "overlay()"))))
        return item if partner is HOLE else self.fn(item, partner, rng)
