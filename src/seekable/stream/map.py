"""A function of each item, with or without randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.nodes.map import ItemRandomness
from seekable.state.functions import describe_function
from seekable.stream.runs import END, ITEM, TOKEN, Runs, called
from seekable.stream.shapes import SameTokens, add_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.runs import Pairs
    from seekable.stream.stage import Lane, LaneInput
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

    @property
    def repeats(self) -> bool:
        """True if the input gives the same items in each epoch, and the function draws no random numbers."""
        return self.seed is None and self.inputs[0].repeats

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
        """Return the iterator over what the function returns for each item."""
        if lane.inputs[0].has_runs:
            return lane.in_runs(_Mapped(self, lane.inputs[0]))
        return self._one_by_one(lane)

    def _one_by_one(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
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


@final
class _Mapped(Runs):
    """The results of the function for the items of one lane."""

    def __init__(self, stage: MapItems, below: LaneInput) -> None:
        self._stage, self._input = stage, below
        self._rng = None if stage.seed is None else ItemRandomness(stage.seed).rng
        self._error: Exception | None = None
        self._lost = 0
        """The items of the last run that were not made, because of the error."""

    def take(self, count: int, behind: int) -> Pairs:
        """Return the next run of the input, with the function called on each item."""
        if self._error is not None:
            raise self._error
        pairs = self._input.take(count, behind)
        arguments = (
            [map(ITEM, pairs)] if self._rng is None else [map(ITEM, pairs), map(self._rng, map(TOKEN, pairs))]
        )
        made, self._error = called(self._stage.fn, len(pairs), *arguments)
        if self._error is not None:
            add_token(self._error, self._stage, pairs[len(made)][0])
            self._lost = len(pairs) - len(made)
            if not made:
                raise self._error
        return list(zip(map(TOKEN, pairs), made, strict=False))

    def values(self, behind: int) -> dict[str, Any]:
        """Return nothing: the stage has no state."""
        return {}

    def below(self, behind: int) -> tuple[int]:
        """Return as many of the input's items, and those that could not be made."""
        return (behind if behind == END else behind + self._lost,)
