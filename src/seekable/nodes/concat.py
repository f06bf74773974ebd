"""Concatenation: several datasets, one after another."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.bases import EachRouter
from seekable.nodes.display import listed
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.blocks import joined_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import SearchRange


__all__ = ["Concat"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Concat(OrderNode):
    """Epoch ``e`` is epoch ``e`` of the first part, then that of the second, and so on."""

    parts: tuple[Node, ...]

    kind: ClassVar[str] = "concat"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise EndlessDataset if a part has no length."""
        for part in self.parts:
            known_size(part, "concat()")

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts, in their order."""
        return self.parts

    @property
    def size(self) -> int:
        """The number of records of all parts together."""
        return self._starts[-1]

    @cached
    def steady(self) -> bool:
        """True if every part is steady."""
        return all(part.steady for part in self.parts)

    @property
    def blocks(self) -> Int64s:
        """The blocks of all parts, shifted to where the parts begin."""
        return joined_blocks([part.blocks for part in self.parts])

    @property
    def lanes(self) -> int:
        """1: the parts come one after another."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return an empty dict: the parts alone decide the order."""
        return {}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Concat:
        """Return the node with these arguments over its parts."""
        return cls(children)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``concat``."""
        return f"concat([{listed(children)}])"

    @classmethod
    def router(cls, nodes: Sequence[Concat]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the part of each row, found by binary search, and the position there."""
        starts, sizes = self._table
        epochs, rows = np.divmod(positions, self.size)
        slots = np.searchsorted(starts, rows, side="right") - 1
        return slots, epochs * sizes[slots] + rows - starts[slots]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return the part of one row and the position there."""
        epoch, row = divmod(position, self.size)
        slot = bisect_right(self._starts, row) - 1
        start = self._starts[slot]
        return slot, epoch * (self._starts[slot + 1] - start) + row - start

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of whole epochs of one part."""
        below = self._starts[slot + 1] - self._starts[slot]
        size = max(1, self.size)
        return start // size * below, None if stop is None else -(-stop // size) * below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions, moved past the parts that come before."""
        epochs, rows = np.divmod(positions, self._starts[slot + 1] - self._starts[slot])
        return epochs * self.size + self._starts[slot] + rows

    def may_match(self, where: Where) -> Int64s:
        """Return the runs of all parts, shifted to where the parts begin."""
        runs = [part.may_match(where) + start for part, start in zip(self.parts, self._starts, strict=False)]
        return np.concatenate(runs)

    @cached
    def _starts(self) -> tuple[int, ...]:
        return (0, *accumulate(known_size(part, "concat()") for part in self.parts))

    @cached
    def _table(self) -> tuple[Int64s, Int64s]:
        starts = np.array(self._starts, dtype=np.int64)
        return starts[:-1], np.diff(starts)
