"""Stages that choose, repeat or reorder items: take, skip, repeat, shuffle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadToken, NothingPassed
from seekable.order.keys import derive, kind_key
from seekable.order.lane_rows import num_lane_rows
from seekable.stream.shapes import OneInput, SameItems
from seekable.stream.stall import passes_in_another_lane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["RepeatItems", "ShuffleItems", "SkipSlots", "TakeSlots"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TakeSlots(SameItems):
    """The items of the first ``count`` slots."""

    count: int

    kind: ClassVar[str] = "take"

    @property
    def endless(self) -> bool:
        """True if it never ends: always False."""
        return False

    def arguments(self) -> dict[str, Any]:
        """Return the number of slots."""
        return {"count": self.count}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.take`` as an expression."""
        return f"{inputs[0]}.take({self.count})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the items of the lane's slots, and draw no further item from the input."""
        state = lane.state
        taken, most = state.get("taken", 0), num_lane_rows(self.count, self.lanes, lane.number)
        if taken >= most:
            return
        for token, item in lane.inputs[0]:
            state["taken"] = taken = taken + 1
            yield token, item
            if taken >= most:
                return


@final
@dataclass(frozen=True, eq=False, repr=False)
class SkipSlots(SameItems):
    """The items after those of the first ``count`` slots."""

    count: int

    kind: ClassVar[str] = "skip"

    def arguments(self) -> dict[str, Any]:
        """Return the number of slots."""
        return {"count": self.count}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.skip`` as an expression."""
        return f"{inputs[0]}.skip({self.count})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Drop the items of the lane's first slots, unless the state says that this was done."""
        left = 0 if lane.state.get("done") else num_lane_rows(self.count, self.lanes, lane.number)
        for token, item in lane.inputs[0]:
            if left:
                left -= 1
                continue
            lane.state["done"] = True
            yield token, item


_PAIR = 2


@final
@dataclass(frozen=True, eq=False, repr=False)
class RepeatItems(OneInput):
    """The items of the input ``times`` times, or for ever if that is None. Tokens are (round, token)."""

    times: int | None

    kind: ClassVar[str] = "repeat"
    item_by_item: ClassVar[bool] = True

    @property
    def endless(self) -> bool:
        """True without a number of times, or if the input never ends."""
        return self.times is None or self.inputs[0].endless

    def arguments(self) -> dict[str, Any]:
        """Return the number of times."""
        return {"times": self.times}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.repeat`` as an expression."""
        return f"{inputs[0]}.repeat({'' if self.times is None else self.times})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the input's items, and restart the input at its end."""
        state, source = lane.state, lane.inputs[0]
        number = state.get("epochs", 0)
        while self.times is None or number < self.times:
            for token, item in source:
                state["any"] = True
                yield (number, token), item
            if not state.pop("any", False):
                if self.times is None and not lane.is_probe and not passes_in_another_lane(self, lane.number):
                    raise NothingPassed(f"nothing came out of any lane of {self.inputs[0]!r} to be repeated")
                return
            state["epochs"] = number = number + 1
            source.restart()

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the input item's token.

        Raises:
            BadToken: the token is not a pair of a round and a token.
        """
        if not isinstance(token, tuple) or len(token) != _PAIR or not _is_round(token[0]):
            raise BadToken(f"a token of repeat() is a pair of a round and a token (got {token!r})")
        return ((0, token[1]),)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of the input unchanged.

        Raises:
            BadToken: there are fewer rounds.
        """
        if self.times is not None and token[0] >= self.times:
            raise BadToken(f"{self!r} has {self.times} rounds, numbered from 0 (got token {token!r})")
        return items[0]


def _is_round(number: Any) -> bool:
    return isinstance(number, int) and number >= 0


_KIND = kind_key("shuffle-buffer")


@final
@dataclass(frozen=True, eq=False, repr=False)
class ShuffleItems(SameItems):
    """Items in random order, each drawn from a buffer of ``size`` items.

    Draw ``k`` of a lane takes the item at index ``hash(seed, lane, k) % waiting``, and the next item of the
    input takes its index. After the end of the input the items after it move up.
    """

    size: int
    seed: int

    kind: ClassVar[str] = "shuffle"
    item_by_item: ClassVar[bool] = True
    holds: ClassVar[bool] = True

    def arguments(self) -> dict[str, Any]:
        """Return the size of the buffer, and the seed."""
        return {"buffer": self.size, "seed": self.seed}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.shuffle`` as an expression."""
        return f"{inputs[0]}.shuffle(buffer={self.size}, seed={self.seed})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Fill the buffer, then draw from it."""
        state, buffer, size = lane.state, lane.buffer(), self.size
        key = derive(_KIND, self.seed, lane.number)
        drawn = state.get("drawn", 0)
        for token, item in lane.inputs[0]:
            if len(buffer) < size:
                buffer.append(token, item)
                continue
            at = derive(key, drawn) % size
            state["drawn"] = drawn = drawn + 1
            yield buffer.swap(at, token, item)
        while buffer:
            at = derive(key, drawn) % len(buffer)
            state["drawn"] = drawn = drawn + 1
            yield buffer.pop(at)
