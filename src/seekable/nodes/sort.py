"""Sorting: the records of a dataset in the order of keys, which are read once, when the dataset is made."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.bases import ONE_CHILD, EachRouter, PermutationNode
from seekable.nodes.by import narrowed_to
from seekable.nodes.evaluated import Evaluated, Evaluation, evaluated_rows
from seekable.nodes.graph import known_size, must_be_steady
from seekable.nodes.node import Node, OrderNode
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.nodes.sort_keys import KeyRange, ReadKeys
from seekable.nodes.sort_order import CollectedKeys
from seekable.parallel.map_ranges import map_ranges
from seekable.state.functions import code_digest, describe_function

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.by import By
    from seekable.nodes.evaluated import Running
    from seekable.nodes.graph import Router, SearchRange
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch

__all__ = ["Sort", "sorted_by"]


def sorted_by(child: Node, by: By, *, reverse: bool, version: str | int | None, running: Running) -> Node:
    """Return a node of the records in the order of their keys; see ``Dataset.sort``."""
    known_size(child, "sort()")
    must_be_steady(child, "sort()")
    name = repr(by) if isinstance(by, str) else getattr(by, "__qualname__", type(by).__qualname__)
    name += ", reverse=True" if reverse else ""
    job = ReadKeys(narrowed_to(child, by, "sort()"), by, f"sort({name})")

    def find(size: int, using: ExecutionOptions, watch: Watch) -> Iterator[Int64s]:
        with contextlib.closing(CollectedKeys(job)) as collected:
            with contextlib.closing(map_ranges(job, size, using=using, restored=KeyRange.of_kept)) as found:
                for done, keys in found:
                    watch(done)
                    collected.add(keys)
            yield from collected.in_order(reverse=reverse)

    rows = evaluated_rows(
        child, _question(by, reverse, version, named=running.save is not None), find, running
    )
    return Sort(child, rows, name)


def _question(by: By, reverse: bool, version: str | int | None, *, named: bool) -> Evaluation:  # noqa: FBT001
    """Return what decides the order; without the function, whose name is needed only for saved rows."""
    function: dict[str, Any] = {"name": f"the column {by!r}"}
    code = None
    if not isinstance(by, str) and named:
        function = describe_function(by, version)
        code = code_digest(by) if version is None else None
    if reverse:
        function["reverse"] = True
    return Evaluation("sort", "sorting", function, code)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sort(Evaluated, PermutationNode, OrderNode):
    """Row ``r`` is row ``rows[r]`` of the child."""

    child: Node
    rows: KeptRows
    name: str

    kind: ClassVar[str] = "sorted"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = "the description has a digest of the order of the rows, and not the order"

    @property
    def steady(self) -> bool:
        """True: the child is steady, and the order is the same in every epoch."""
        return True

    @property
    def lanes(self) -> int:
        """1: rows come from any lane of the child."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the count and digest of the rows; the keys have no other effect on the order."""
        return {"count": self.rows.count, "rows": self.rows.digest}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``sort``."""
        return f"{children[0]}.sort({self.name})"

    @classmethod
    def router(cls, nodes: Sequence[Sort]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the child's positions of the sorted rows."""
        epochs, rows = np.divmod(positions, self.size)
        return ONE_CHILD, epochs * self.size + self.rows.array[rows]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one sorted row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self.size + self.rows.view[row]

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of the child's rows in the sorted order."""
        epochs, rows = np.divmod(positions, self.size)
        return epochs * self.size + self._places.array[rows]

    @cached
    def _places(self) -> KeptRows:
        """The place of each row of the child in the sorted order: 8 bytes a record in a temporary file."""
        places = np.empty(self.size, dtype=np.int64)
        places[self.rows.array] = np.arange(self.size, dtype=np.int64)
        return keep_unnamed([places], "sort")
