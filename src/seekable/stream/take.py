"""The first slots of a stream, or all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.order.lane_rows import num_lane_rows
from seekable.stream.shapes import SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["SkipSlots", "TakeSlots"]


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
