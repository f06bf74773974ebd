"""Batches: records that are lists of consecutive records of the child."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.errors import NothingPassed
from seekable.nodes.bases import UnaryNode, int64s, integer_of
from seekable.nodes.compile import CompiledGraph
from seekable.nodes.graph import HOLE, ChildPlan, Plan, Reader
from seekable.nodes.node import Node, RecordNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange
    from seekable.nodes.node import Taking


__all__ = ["Batch"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Batch(UnaryNode, RecordNode):
    """Row ``r`` is the list of the child's rows from ``k*r`` to ``k*r + k - 1``; the last may be short.

    Holes are left out of the lists; a list of holes alone is an error.
    """

    child: Node
    length: int

    kind: ClassVar[str] = "batch"
    apart: ClassVar[bool] = True

    @property
    def size(self) -> int | None:
        """The number of batches of an epoch."""
        size = self.child.size
        return None if size is None else -(-size // self.length)

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, with their edges moved to the edges of batches."""
        return np.unique(-(-self.child.blocks // self.length))

    @property
    def lanes(self) -> int:
        """1: a batch takes records of several lanes."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the number of records in a batch."""
        return {"length": self.length}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Batch:
        """Return the node with these arguments over a child."""
        return cls(children[0], integer_of(arguments, "length"))

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``batch``."""
        return f"{children[0]}.batch({self.length})"

    @classmethod
    def reader(cls, nodes: Sequence[Batch]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return _BatchReader(nodes)

    def record(self, position: int) -> Any:
        """Read the records of one batch, without holes."""
        return self.plan(np.array([position], dtype=np.int64)).read()[0]

    def start_of(self, position: int) -> int:
        """Return the child's position at which a batch begins."""
        if self.size is None:
            return position * self.length
        epoch, row = divmod(position, max(1, self.size))
        return epoch * (self.child.size or 0) + row * self.length

    def batch_of(self, position: int) -> int:
        """Return the batch that holds a position of the child."""
        if not self.child.size or self.size is None:
            return position // self.length
        epoch, row = divmod(position, self.child.size)
        return epoch * self.size + row // self.length

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and the position there at which a batch begins."""
        return self.child, self.start_of(position)

    def taking(self, old: Node, go: Taking) -> Node | None:
        """Return batches of the old length over the old order of the child."""
        return Batch(go(old.child, self.child), old.length) if isinstance(old, Batch) else None

    def rows_of_one(self, position: int) -> tuple[int, int]:
        """Return the child's positions of a batch: the first, and the one after the last."""
        return self.start_of(position), self.start_of(position + 1)

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of the batches' records, in whole epochs where the child has epochs."""
        if self.size is None:
            return start * self.length, None if stop is None else stop * self.length
        size, below = max(1, self.size), self.child.size or 0
        return start // size * below, None if stop is None else -(-stop // size) * below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the batches that hold the positions."""
        if self.size is None:
            return positions // self.length
        epochs, rows = np.divmod(positions, self.child.size or 1)
        batches: Int64s = epochs * self.size + rows // self.length
        return batches


class _BatchReader(Reader):
    def __init__(self, nodes: Sequence[Batch]) -> None:
        self._children = CompiledGraph([node.child for node in nodes])
        endless = np.iinfo(np.int64).max
        self._lengths = int64s(node.length for node in nodes)
        self._sizes = np.array(
            [endless if node.size is None else node.size for node in nodes], dtype=np.int64
        )
        self._below = np.array([node.child.size or 0 for node in nodes], dtype=np.int64)
        self._ends = np.array(
            [endless if node.size is None else node.child.size for node in nodes], dtype=np.int64
        )

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        epochs, rows = np.divmod(positions, self._sizes[which])
        lengths = self._lengths[which]
        starts = rows * lengths
        counts = np.minimum(lengths, self._ends[which] - starts)
        bounds = np.concatenate(([0], np.cumsum(counts)))
        first = epochs * self._below[which] + starts - bounds[:-1]
        inner = np.repeat(first, counts) + np.arange(bounds[-1])
        owners = which if which.size == 1 else np.repeat(which, counts)
        return _BatchPlan(bounds, self._children.plan(owners, inner))


@dataclass(frozen=True, slots=True)
class _BatchPlan(ChildPlan):
    bounds: Int64s
    """The start of each batch among the child's records, then the end of the last batch: int64."""
    child: Plan

    def __len__(self) -> int:
        return self.bounds.size - 1

    def slice(self, start: int, stop: int) -> Plan:
        bounds = self.bounds[start : stop + 1]
        return _BatchPlan(bounds - bounds[0], self.child.slice(int(bounds[0]), int(bounds[-1])))

    def read(self) -> list[Any]:
        return [_without_holes(records) for records in self._cut(self.child.read())]

    def locate(self) -> list[Any]:
        return self._cut(self.child.locate())

    def _cut(self, items: list[Any]) -> list[Any]:
        bounds = self.bounds.tolist()
        return [items[start:stop] for start, stop in itertools.pairwise(bounds)]


def _without_holes(records: list[Any]) -> list[Any]:
    left = [record for record in records if record is not HOLE]
    if records and not left:
        message = f"a list that batch(k) made has nothing but holes, {len(records)} of them: take a larger k"
        raise NothingPassed(message)
    return left
