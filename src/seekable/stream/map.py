"""Functions of each item: what they return (map), whether the item passes (filter), its parts (flatten)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken
from seekable.nodes.map import ItemRandomness
from seekable.state.functions import describe_function
from seekable.stream.runs import END, ConsumedCounts, Run, Runs, called
from seekable.stream.shapes import OneInput, SameTokens, add_token, rebuilt
from seekable.stream.stall import CHECK_EVERY, StallDetector
from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.stream.runs import StageValues
    from seekable.stream.stage import Lane, LaneInput
    from seekable.stream.token import Token

__all__ = ["FilterItems", "Flatten", "MapItems"]


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

    def take(self, count: int, behind: int) -> Run:
        """Return the next run of the input, with the function called on each item."""
        if self._error is not None:
            raise self._error
        run = self._input.take(count, behind)
        arguments = [run.items] if self._rng is None else [run.items, map(self._rng, run.tokens())]
        made, self._error = called(self._stage.fn, len(run.items), *arguments)
        if self._error is not None:
            add_token(self._error, self._stage, list(run.tokens())[len(made)])
            self._lost = len(run.items) - len(made)
            if not made:
                raise self._error
        tokens, count = run.tokens, len(made)
        return Run(made, lambda: itertools.islice(tokens(), count))

    def values(self, behind: int) -> dict[str, Any]:
        """Return nothing: the stage has no state."""
        return {}

    def below(self, behind: int) -> tuple[int]:
        """Return as many of the input's items, and those that could not be made."""
        return (behind if behind == END else behind + self._lost,)


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

    def take(self, count: int, behind: int) -> Run:
        """Return the items that pass of the next run of the input with any."""
        consumed = self._consumed
        consumed.keep(behind)
        while self._error is None and not self._stall.over:
            run = self._input.take(count, consumed.taken - consumed.needed)
            passes = self._passes(run)
            ends = itertools.compress(itertools.count(consumed.taken + 1), passes)
            consumed.add(ends, taken=consumed.taken + len(run.items))
            passed = _selected(run, passes)
            if passed.items or not run.items:
                self._dropped = 0
                return passed
            self._dropped = self._stall.after(self._dropped, len(passes))
            if consumed.taken - consumed.needed > CHECK_EVERY:
                # What the input keeps for states must not grow with the items that do not pass.
                consumed.freeze(lambda end: self._input.cut(consumed.taken - end))
        if self._error is not None:
            raise self._error
        return Run([], list)

    def _passes(self, run: Run) -> list[bool]:
        """Return for each item whether it passes, up to one for which the function raises an error."""
        passes, self._error = called(bool, len(run.items), map(self._stage.fn, run.items))
        if self._error is not None:
            add_token(self._error, self._stage, list(run.tokens())[len(passes)])
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


def _selected(run: Run, passes: Sequence[bool]) -> Run:
    items, tokens = list(itertools.compress(run.items, passes)), run.tokens
    return Run(items, lambda: itertools.compress(tokens(), passes))


_PAIR = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class Flatten(OneInput):
    """The items of ``fn(item)``, or of the item itself. Tokens are (the item's token, index in it)."""

    fn: Callable[[Any], Iterable[Any]] | None
    version: str | int | None

    kind: ClassVar[str] = "flatten"
    item_by_item: ClassVar[bool] = True
    holds: ClassVar[bool] = True
    splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a function without a name."""
        if self.fn is not None:
            describe_function(self.fn, self.version)

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version, or None without a function."""
        return {"fn": None if self.fn is None else describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.flatten`` as an expression."""
        name = "" if self.fn is None else describe_function(self.fn, self.version)["name"]
        return f"{inputs[0]}.flatten({name})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the rest of the outer item that the state names, then the items of the following ones."""
        state = lane.state
        stall, empty = StallDetector(self, lane), 0
        for outer, item in itertools.chain(self._begun(lane), lane.inputs[0]):
            empty += 1
            done = state.get("inner", 0)
            state["outer"] = outer
            try:
                for inner, part in enumerate(self._parts(item)):
                    if inner >= done:
                        empty = 0
                        state["inner"] = inner + 1
                        yield (outer, inner), part
            except Exception as error:
                add_token(error, self, outer)
                raise
            state.clear()
            if empty and not empty % CHECK_EVERY:
                stall.check(empty)
                if stall.over:
                    return

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the outer item's token.

        Raises:
            BadToken: the token is not a pair of a token and a number.
        """
        if not isinstance(token, tuple) or len(token) != _PAIR or not isinstance(token[1], int):
            raise BadToken(f"a token of flatten() is a pair of an outer token and a number (got {token!r})")
        return ((0, token[0]),)

    @staticmethod
    def held(state: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
        """Return the outer item of which some items were delivered, if there is one."""
        return [(0, as_token(state["outer"]))] if "inner" in state else []

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return one of the items of the outer item.

        Raises:
            BadToken: the outer item has fewer items.
        """
        if token[1] >= 0:
            for part in itertools.islice(self._parts(items[0]), token[1], None):
                return part
        raise BadToken(f"the outer item of token {token!r} has no item {token[1]}")

    def _begun(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        if "inner" in lane.state:
            outer = as_token(lane.state["outer"])
            yield outer, rebuilt(self.inputs[0], [outer])[0]

    def _parts(self, item: Any) -> Iterable[Any]:
        return item if self.fn is None else self.fn(item)
