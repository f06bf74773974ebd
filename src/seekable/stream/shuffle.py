"""Items drawn at random from a buffer of the items that come next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.order.keys import derive, kind_key
from seekable.stream.shapes import SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["ShuffleItems"]

_KIND = kind_key("shuffle-buffer")


@final
@dataclass(frozen=True, eq=False, repr=False)
class ShuffleItems(SameItems):
    """Items in random order, each drawn from a buffer of ``size`` items.

    Draw ``k`` of a lane takes the item at index ``hash(seed, lane, k) % waiting``, and the next item of the
    input takes its index. After the end of the input the items behind it move up.
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
