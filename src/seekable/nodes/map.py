"""Maps: a function of each record, with or without randomness."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.bases import ElementwiseNode, UnaryNode, UnaryPlan, UnaryReader
from seekable.nodes.display import add_place
from seekable.nodes.hole import HOLE
from seekable.nodes.node import Node, RecordNode
from seekable.nodes.randomness import ItemRandomness
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import Reader


__all__ = ["Map"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Map(UnaryNode, ElementwiseNode, RecordNode):
    """``fn(record)``, or ``fn(record, rng)`` where a seed is given, at each position; a hole stays one."""

    child: Node
    fn: Callable[..., Any]
    seed: int | None
    version: str | int | None

    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        """Raise an error for a function without a name that a description can hold."""
        describe_function(self.fn, self.version)

    @property
    def size(self) -> int | None:
        """The number of records of an epoch, equal to the child's."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """True if the child is steady and there is no seed; a seed draws anew in each epoch."""
        return self.child.steady and self.seed is None

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child."""
        return self.child.blocks

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the name of the function, and the seed."""
        seed = {} if self.seed is None else {"seed": self.seed}
        return {"fn": describe_function(self.fn, self.version), **seed}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``map``."""
        seed = "" if self.seed is None else f", rng=True, seed={self.seed}"
        return f"{children[0]}.map({describe_function(self.fn, self.version)['name']}{seed})"

    @classmethod
    def reader(cls, nodes: Sequence[Map]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return UnaryReader(nodes, _MapPlan)

    def record(self, position: int) -> Any:
        """Read one record and return the function's result."""
        record = self.child.record(position)
        if record is HOLE:
            return record
        try:
            if self.seed is None:
                return self.fn(record)
            return self.fn(record, self.randomness.rng(position))
        except Exception as error:
            add_place(error, f"the function of {self!r}", self, position)
            raise

    @property
    def randomness(self) -> ItemRandomness:
        """The random generator of this thread."""
        local = self._local
        if not hasattr(local, "randomness"):
            assert self.seed is not None
            local.randomness = ItemRandomness(self.seed)
        randomness: ItemRandomness = local.randomness
        return randomness

    @cached
    def _local(self) -> threading.local:
        return threading.local()


@final
class _MapPlan(UnaryPlan):
    """Calls the function of each record's node."""

    def read(self) -> list[Any]:
        records = self.child.read()
        if self.which.size == 1:
            self._call(self.nodes[int(self.which[0])], range(len(records)), records)
        else:
            for i in np.unique(self.which):
                self._call(self.nodes[int(i)], np.flatnonzero(self.which == i).tolist(), records)
        return records

    def _call(self, node: Map, at: Sequence[int], records: list[Any]) -> None:
        """Replace the records at some indices by the results of the node's function."""
        fn = node.fn
        i = -1
        try:
            if node.seed is None:
                for i in at:
                    record = records[i]
                    if record is not HOLE:
                        records[i] = fn(record)
            else:
                rng = node.randomness.rng
                positions = self.positions.tolist()
                for i in at:
                    record = records[i]
                    if record is not HOLE:
                        records[i] = fn(record, rng(positions[i]))
        except Exception as error:
            add_place(error, f"the function of {node!r}", node, int(self.positions[i]))
            raise
