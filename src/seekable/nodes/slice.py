"""Evenly spaced rows, as ``take``, ``skip``, ``shard`` and slices choose them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import ONE_CHILD, UnaryNode, int64s, integer_of
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.blocks import default_blocks, strided_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["Slice", "cut", "sliced", "spaced"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Slice(UnaryNode, OrderNode):
    """Row ``r`` of epoch ``e`` is row ``start + step * r`` of the child's epoch ``e``.

    Of an endless child, position ``p`` is position ``start + step * p``, and ``count`` only says where
    epochs end.
    """

    child: Node
    start: int
    step: int
    count: int | None

    kind: ClassVar[str] = "slice"
    counted: ClassVar[bool] = True

    @property
    def size(self) -> int | None:
        """The number of rows in the slice; None for an open slice of an endless dataset."""
        return self.count

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, cut to the slice; the default blocks for an endless child."""
        count = known_size(self, "blocks")
        if self.child.size is None:
            return default_blocks(count)
        return strided_blocks(self.child.blocks, start=self.start, step=self.step, count=count)

    @property
    def lanes(self) -> int:
        """The child's lanes if the slice takes its first rows, else 1."""
        return self.child.lanes if (self.start, self.step) == (0, 1) else 1

    @property
    def epoch_from(self) -> int:
        """The number of rows in this node's epoch; 0 if positions do not restart with epochs."""
        return 0 if self.child.size is None else self.count or 0

    @property
    def epoch_to(self) -> int:
        """The number of rows in the child's epoch."""
        return self.child.size or 0

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the start, step and count of the slice."""
        return {"start": self.start, "step": self.step, "count": self.count}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Slice:
        """Return the node with these arguments over a child."""
        return cls(
            children[0], integer_of(arguments, "start"), integer_of(arguments, "step"), arguments["count"]
        )

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the slice in its shortest form."""
        if self.count is None:
            stop = ""
        else:
            end = self.start + self.step * self.count
            stop = str(end) if end >= 0 else ""
        step = "" if self.step == 1 else f":{self.step}"
        return f"{children[0]}[{self.start}:{stop}{step}]"

    @classmethod
    def router(cls, nodes: Sequence[Slice]) -> Router:
        """Return a router that scales the positions of all nodes at once."""
        return _SliceRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.epoch_from) if self.epoch_from else (0, position)
        return 0, epoch * self.epoch_to + self.start + self.step * row

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the scaled range; whole epochs of the child if it crosses an epoch's end."""
        if not self.epoch_from:
            return self.start + self.step * start, None if stop is None else self.start + self.step * stop
        epoch, first = divmod(start, self.epoch_from)
        begun = epoch * self.epoch_to
        if stop is None:
            return begun, None
        last = stop - 1 - epoch * self.epoch_from
        if first <= last < self.epoch_from:
            ends = (self.start + self.step * first, self.start + self.step * last)
            return begun + min(ends), begun + max(ends) + 1
        return begun, -(-stop // self.epoch_from) * self.epoch_to

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of those of the child's positions that the slice keeps."""
        epochs, rows = (
            np.divmod(positions, self.epoch_to) if self.epoch_from else (np.zeros_like(positions), positions)
        )
        rows, rest = np.divmod(rows - self.start, self.step)
        kept = (rest == 0) & (rows >= 0)
        if self.epoch_from:
            kept &= rows < self.epoch_from
        places: Int64s = epochs[kept] * self.epoch_from + rows[kept]
        return places


class _SliceRouter(Router):
    def __init__(self, nodes: Sequence[Slice]) -> None:
        self._starts = int64s(node.start for node in nodes)
        self._steps = int64s(node.step for node in nodes)
        # Without a restart of positions, all lie in epoch 0, whose length no position reaches.
        endless = np.iinfo(np.int64).max
        self._from = np.array([node.epoch_from or endless for node in nodes], dtype=np.int64)
        self._to = np.array([node.epoch_to if node.epoch_from else 0 for node in nodes], dtype=np.int64)

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        epochs, rows = np.divmod(positions, self._from[which])
        return ONE_CHILD, epochs * self._to[which] + self._starts[which] + self._steps[which] * rows


def sliced(node: Node, rows: range) -> Slice:
    """Return a node of the rows of a range that lies within an epoch."""
    return Slice(node, rows.start if rows else 0, rows.step, len(rows))


def spaced(node: Node, start: int, step: int) -> Slice:
    """Return a node of every ``step``-th row from ``start`` on, in each epoch or of an endless node."""
    if node.size is None:
        return Slice(node, start, step, None)
    return sliced(node, range(min(start, node.size), node.size, step))


def cut(node: Node, rows: slice) -> Slice:
    """Return a node over the rows of a slice, clamped to the epoch like a list's slice.

    Raises:
        WrongType: a bound or the step is not an integer.
        InvalidArgument: the step is 0, or the node is endless and the slice counts from the end or backwards.
    """
    for each in (rows.start, rows.stop, rows.step):
        if each is not None and not hasattr(each, "__index__"):
            raise WrongType(f"the bounds and the step of a slice are integers (got {each!r} in {rows})")
    if rows.step == 0:
        raise InvalidArgument(f"the step of a slice is above or below 0 (got {rows})")
    if node.size is not None:
        return sliced(node, range(*rows.indices(node.size)))
    start = 0 if rows.start is None else operator.index(rows.start)
    stop = None if rows.stop is None else operator.index(rows.stop)
    step = 1 if rows.step is None else operator.index(rows.step)
    if start < 0 or step < 1 or (stop is not None and stop < 0):
        message = f"a slice of an endless dataset counts from its start, forwards (got {rows})"
        raise InvalidArgument(message)
    if stop is None:
        return spaced(node, start, step)
    return sliced(node, range(start, max(start, stop), step))
