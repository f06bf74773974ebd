"""The first slots of a stream, or all but these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.order.lanes import num_lane_rows
from seekable.stream.shapes import SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["SkipSlots", "TakeSlots"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TakeSlots(SameItems):
    """The items of the first ``count`` slots."""

    source: Stream
    count: int

    kind: ClassVar[str] = "take"

    @property
    def endless(self) -> bool:
        """Never."""
        return False

    def arguments(self) -> dict[str, Any]:
        """How many slots."""
        return {"count": self.count}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.take({self.count})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Pass on what lies in the slots, and ask for no more."""
        memory = flow.memory
        taken, most = memory.get("taken", 0), num_lane_rows(self.count, self.lanes, flow.lane)
        if taken >= most:
            return
        for token, item in flow.inputs[0]:
            memory["taken"] = taken = taken + 1
            yield token, item
            if taken >= most:
                return


@final
@dataclass(frozen=True, eq=False, repr=False)
class SkipSlots(SameItems):
    """The items after those of the first ``count`` slots."""

    source: Stream
    count: int

    kind: ClassVar[str] = "skip"

    def arguments(self) -> dict[str, Any]:
        """How many slots."""
        return {"count": self.count}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.skip({self.count})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Leave out the first ones, unless that was done."""
        left = 0 if flow.memory.get("done") else num_lane_rows(self.count, self.lanes, flow.lane)
        for token, item in flow.inputs[0]:
            if left:
                left -= 1
                continue
            flow.memory["done"] = True
            yield token, item
