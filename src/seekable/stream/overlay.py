"""Items combined with records drawn at random, such as speech with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, NothingPassed, WrongType
from seekable.nodes.graph import HOLE, known_size
from seekable.nodes.map import ItemRandomness
from seekable.state.functions import describe_function
from seekable.stream.shapes import SameTokens, add_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from seekable.nodes.node import Node
    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["Overlay", "Partners", "checked_partners"]

Partners = tuple[int, int] | Literal["endless"] | None
"""The least and the most partners of an item, or "endless" for an iterator of them; None for one alone."""

_MOST_HOLES = 10_000
"""The holes in a row after which the partners of an item are taken to be holes alone."""


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
    partners: Partners = None

    kind: ClassVar[str] = "overlay"

    def __post_init__(self) -> None:
        """Refuse a function without a name, and an empty dataset of partners."""
        describe_function(self.fn, self.version)
        if not known_size(self.other, "overlay()") and self.prob:
            raise InvalidArgument(f"overlay() needs partners, and there are no records in {self.other!r}")

    @property
    def datasets(self) -> tuple[Node, ...]:
        """The dataset of the partners."""
        return (self.other,)

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version, the probability, the seed and the number of partners."""
        partners = {} if self.partners is None else {"partners": _as_json(self.partners)}
        return {
            "fn": describe_function(self.fn, self.version),
            "prob": self.prob,
            "seed": self.seed,
            **partners,
        }

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.overlay`` as an expression."""
        name = describe_function(self.fn, self.version)["name"]
        other = self.other.expression()
        partners = "" if self.partners is None else f", partners={self.partners!r}"
        return f"{inputs[0]}.overlay({other}, {name}, prob={self.prob}, seed={self.seed}{partners})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield each item, combined with its partners where the token's hash says so."""
        randomness = self._randomness()
        for token, item in lane.inputs[0]:
            try:
                combined = self._combined(token, item, randomness)
            except Exception as error:
                add_token(error, self, token)
                raise
            yield token, combined

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Combine the item with the same partners again."""
        return self._combined(token, items[0], self._randomness())

    def _randomness(self) -> tuple[ItemRandomness, ItemRandomness]:
        """Return the generator of an item, and the one that draws partners without end meanwhile."""
        return ItemRandomness(self.seed), ItemRandomness(self.seed)

    def _combined(self, token: Token, item: Any, randomness: tuple[ItemRandomness, ItemRandomness]) -> Any:
        rng = randomness[0].rng(token)
        if rng.random() >= self.prob:
            return item
        if self.partners == "endless":
            return self.fn(item, self._endless(randomness[1].rng(["partners", token])), rng)
        size = known_size(self.other, "overlay()")
        if self.partners is None:
            partner = self.other.record(int(rng.integers(size)))
            return item if partner is HOLE else self.fn(item, partner, rng)
        least, most = self.partners
        rows = rng.integers(size, size=int(rng.integers(least, most + 1))).tolist()
        drawn = [record for record in map(self.other.record, rows) if record is not HOLE]
        return self.fn(item, drawn, rng) if drawn else item

    def _endless(self, rng: np.random.Generator) -> Iterator[Any]:
        """Yield records that are not holes.

        Raises:
            NothingPassed: too many in a row are holes.
        """
        size, holes = known_size(self.other, "overlay()"), 0
        while holes < _MOST_HOLES:
            record = self.other.record(int(rng.integers(size)))
            holes = holes + 1 if record is HOLE else 0
            if record is not HOLE:
                yield record
        message = f"overlay() drew {holes:,} partners in a row from {self.other!r}, and all are holes"
        raise NothingPassed(message)


def checked_partners(partners: object) -> Partners:
    """Return the argument ``partners=`` of ``Stream.overlay``.

    Raises:
        WrongType: it is of another type.
        InvalidArgument: a number is less than 1, or the numbers are not in order.

    Example:
        >>> checked_partners(2), checked_partners((1, 3)), checked_partners("endless")
        ((2, 2), (1, 3), 'endless')
    """
    if partners is None or partners == "endless":
        return None if partners is None else "endless"
    limits = partners if isinstance(partners, tuple | list) else (partners, partners)
    if isinstance(partners, str) or len(limits) != 2:  # noqa: PLR2004 - the least and the most
        raise WrongType(f"partners must be a number, a pair of numbers, or 'endless' (got {partners!r})")
    least, most = (checked_count("partners", number, least=1) for number in limits)
    if least > most:
        raise InvalidArgument(f"partners must be a pair of the least and the most (got {partners!r})")
    return least, most


def _as_json(partners: tuple[int, int] | Literal["endless"]) -> Any:
    return partners if isinstance(partners, str) else list(partners)
