"""Items drawn from a buffer of those that come next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.order.keys import derive, kind_key
from seekable.stream.shapes import SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["ShuffleItems"]

_KIND = kind_key("shuffle-buffer")


@final
@dataclass(frozen=True, eq=False, repr=False)
class ShuffleItems(SameItems):
    """Draw ``k`` of a lane takes the item at ``hash(seed, lane, k) % waiting``; the next one fills its place.

    Once the input has ended, those behind it move up.
    """

    source: Stream
    size: int
    seed: int

    kind: ClassVar[str] = "shuffle"
    holds: ClassVar[bool] = True

    def arguments(self) -> dict[str, Any]:
        """The size of the buffer, and the seed."""
        return {"buffer": self.size, "seed": self.seed}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.shuffle(buffer={self.size}, seed={self.seed})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Fill the buffer, then draw from it."""
        memory, buffer, size = flow.memory, flow.buffer(), self.size
        key = derive(_KIND, self.seed, flow.lane)
        drawn = memory.get("drawn", 0)
        for token, item in flow.inputs[0]:
            if len(buffer) < size:
                buffer.append(token, item)
                continue
            at = derive(key, drawn) % size
            memory["drawn"] = drawn = drawn + 1
            yield buffer.swap(at, token, item)
        while buffer:
            at = derive(key, drawn) % len(buffer)
            memory["drawn"] = drawn = drawn + 1
            yield buffer.pop(at)
