"""The items that a function passes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.state.functions import describe_function
from seekable.stream.runs import END, ITEM, ConsumedCounts, Runs, called
from seekable.stream.shapes import SameTokens, add_token
from seekable.stream.stall import CHECK_EVERY, StallDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.runs import Pairs, StageValues
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
    item_by_item: ClassVar[bool] = True

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
        """Call the function on each item, and return the iterator over the items that pass."""
        if lane.inputs[0].has_runs:
            return lane.in_runs(_Passed(self, lane))
        return self._one_by_one(lane)

    def _one_by_one(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
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
                    if stall.over:
                        return

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of the input unchanged.

        Raises:
            BadToken: the function does not pass the item.
        """
        if not self.fn(items[0]):
            raise BadToken(f"the item of token {token!r} is one that {self!r} does not pass")
        return items[0]


@final
class _Passed(Runs):
    """The items that pass the function, in one lane."""

    def __init__(self, stage: FilterItems, lane: Lane) -> None:
        self._stage, self._input = stage, lane.inputs[0]
        self._consumed = ConsumedCounts(0)
        self._stall, self._dropped = StallDetector(stage, lane), 0
        self._error: Exception | None = None

    def take(self, count: int, behind: int) -> Pairs:
        """Return the items that pass of the next run of the input with any."""
        consumed = self._consumed
        consumed.keep(behind)
        while self._error is None:
            if self._stall.over:
                return []
            pairs = self._input.take(count, consumed.taken - consumed.needed)
            passes = self._passes(pairs)
            ends = itertools.compress(itertools.count(consumed.taken + 1), passes)
            consumed.add(ends, taken=consumed.taken + len(pairs))
            passed = list(itertools.compress(pairs, passes))
            if passed or not pairs:
                self._dropped = 0
                return passed
            self._dropped = self._stall.after(self._dropped, len(passes))
            if consumed.taken - consumed.needed > CHECK_EVERY:
                # What the input keeps for states must not grow with the items that do not pass.
                consumed.freeze(lambda end: self._input.cut(consumed.taken - end))
        raise self._error

    def _passes(self, pairs: Pairs) -> list[bool]:
        """Return for each item whether it passes, up to one for which the function raises an error."""
        passes, self._error = called(bool, len(pairs), map(self._stage.fn, map(ITEM, pairs)))
        if self._error is not None:
            add_token(self._error, self._stage, pairs[len(passes)][0])
        return passes

    def values(self, behind: int) -> dict[str, Any]:
        """Return nothing: the stage has no state."""
        return {}

    def below(self, behind: int) -> tuple[int | StageValues]:
        """Return how many of the input's items were taken after the last one that passed."""
        taken = self._consumed.at(behind)
        if behind == END:
            return (END,)
        return (self._consumed.taken - taken if isinstance(taken, int) else taken,)
