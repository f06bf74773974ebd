"""Maps by batches: a function of many records at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import ElementwiseNode, UnaryNode, UnaryPlan, UnaryReader
from seekable.nodes.hole import HOLE
from seekable.nodes.node import Node, RecordNode
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import Reader


__all__ = ["MapBatches"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MapBatches(UnaryNode, ElementwiseNode, RecordNode):
    """``fn(records)``, called with up to ``at_once`` records without holes, returns as many."""

    child: Node
    fn: Callable[[list[Any]], Any]
    at_once: int
    version: str | int | None

    kind: ClassVar[str] = "map_batches"

    def __post_init__(self) -> None:
        """Raise an error for a function without a name that a description can hold."""
        describe_function(self.fn, self.version)

    @property
    def size(self) -> int | None:
        """The number of records of an epoch, equal to the child's."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child."""
        return self.child.blocks

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the name of the function; the number of records in a call has no effect on them."""
        return {"fn": describe_function(self.fn, self.version)}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``map_batches``."""
        name = describe_function(self.fn, self.version)["name"]
        return f"{children[0]}.map_batches({name}, size={self.at_once})"

    @classmethod
    def reader(cls, nodes: Sequence[MapBatches]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return UnaryReader(nodes, _MapBatchesPlan)

    def record(self, position: int) -> Any:
        """Read one record and call the function with a list of that one."""
        record = self.child.record(position)
        return record if record is HOLE else self.called([record])[0]

    def called(self, records: list[Any]) -> list[Any]:
        """Call the function and check that it returns as many records."""
        made = self.fn(records)
        name = describe_function(self.fn, self.version)["name"]
        try:
            count = len(made)
        except TypeError:
            message = f"{name} must return a list of records (got {type(made).__name__})"
            raise WrongType(message) from None
        if isinstance(made, dict) or count != len(records):
            message = (
                f"{name} must return a list of as many records as it is given, {len(records)} "
                f"(got a {type(made).__name__} of {count})"
            )
            raise InvalidArgument(message)
        return list(made)


@final
class _MapBatchesPlan(UnaryPlan):
    """Calls the functions with the records of each node."""

    def read(self) -> list[Any]:
        records = self.child.read()
        owners = np.broadcast_to(self.which, len(self))
        there = np.array([record is not HOLE for record in records], dtype=np.bool_)
        for i in np.unique(owners):
            node = self.nodes[int(i)]
            places = np.flatnonzero((owners == i) & there)
            for first in range(0, places.size, node.at_once):
                at = places[first : first + node.at_once].tolist()
                for place, record in zip(at, node.called([records[place] for place in at]), strict=True):
                    records[place] = record
        return records
