"""The graph of a dataset, as far as it must be known to read records: nodes, routers, readers and plans.

A dataset is a function from positions to records. A node does one of two things with a position:

* a ``Routed`` node names one of its children and a position there: pure arithmetic, no data.
* a ``Read`` node plans what must be read for a position, later reads it and makes a record of it.

Nodes of one class are compiled together: a router or a reader serves any number of nodes, and ``which`` holds
the number of its node for each position. So a mixture of 500 shuffled sources costs a few array operations
and not 500 calls. Arrays called ``which`` and ``slots`` have one element for each position, or a single one
for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from seekable.errors import EndlessDataset, InvalidArgument
from seekable.nodes.provenance import of_places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.provenance import Origins


__all__ = [
    "Graph",
    "Plan",
    "Read",
    "Reader",
    "Routed",
    "Router",
    "known_size",
    "must_be_steady",
    "part_of",
    "with_children",
]

T = TypeVar("T")


def part_of(which: Int64s, start: int, stop: int) -> Int64s:
    """Cut an array that has one element for each position, or a single one for all."""
    return which if which.size == 1 else which[start:stop]


class Plan(ABC):
    """What to read for some positions, in the order asked; making one reads no data."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Plan:
        """Return the plan of some of the positions, ``0 <= start <= stop <= len(self)``."""

    @abstractmethod
    def read(self) -> list[Any]:
        """Read the records."""

    @property
    @abstractmethod
    def paths(self) -> set[str]:
        """The files that the records lie in."""

    @abstractmethod
    def advise(self) -> None:
        """Tell the system that the records will be read, if that can save waiting for a disk."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """How many bytes of files the records take; 0 for what is in memory."""

    @abstractmethod
    def locate(self) -> list[Any]:
        """Say where the records lie: a ``Location`` each, nested as the records are."""

    def origins(self) -> Origins:
        """Say which row of which file each record is; plans that know it without ``locate`` are quicker.

        Raises:
            InvalidArgument: a record is made of several.
        """
        return of_places(self.locate())


class Router(ABC):
    """Routes positions of many order nodes of one class."""

    @abstractmethod
    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return, for each position, the slot of a child of its node and the position there."""


class Reader(ABC):
    """Plans the reading of positions of many record nodes of one class."""

    @abstractmethod
    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return what to read for each position."""


class Graph(ABC):
    """A node as its parents see it: what it takes records from, how many it has, and if they stay."""

    @property
    @abstractmethod
    def children(self) -> tuple[Graph, ...]:
        """The nodes that this one takes records from."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The number of records of an epoch; None if the node is endless."""

    @property
    @abstractmethod
    def steady(self) -> bool:
        """True if each row is the same record in every epoch."""


class Routed(Graph):
    """A node that sends each position on to one child."""

    @classmethod
    @abstractmethod
    def router(cls, nodes: Sequence[Any]) -> Router:
        """Return the router of some nodes, all of this class."""


class Read(Graph):
    """A node that makes records."""

    @classmethod
    @abstractmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return the reader of some nodes, all of this class."""


def known_size(node: Graph, wanted_by: str) -> int:
    """Return the number of records of an epoch.

    Args:
        node: a node that must have a length.
        wanted_by: the operation that needs the length, as the error names it.

    Raises:
        EndlessDataset: the node is endless.
    """
    if node.size is None:
        message = f"{wanted_by} needs a length, and this dataset is endless: cut it with take(k) first"
        raise EndlessDataset(message)
    return node.size


def must_be_steady(node: Graph, wanted_by: str) -> None:
    """Refuse a node whose rows are not the same record in every epoch.

    Args:
        node: a node that must be steady.
        wanted_by: the operation that needs it, as the error names it.

    Raises:
        InvalidArgument: the node is not steady.
    """
    if not node.steady:
        message = (
            f"{wanted_by} needs rows that are the same record in every epoch, and here they are not: "
            f"put it before shuffle, mix and map(rng=True), or shuffle with fixed=True"
        )
        raise InvalidArgument(message)


def with_children(node: T, below: Mapping[int, Any]) -> T:
    """Return a node over other children that have the same records as its own.

    It is made without the checks of a new node: this one has passed them.

    Args:
        node: a dataclass whose fields hold its children, or tuples of them.
        below: the new child for each child, by its ``id``.
    """
    made = object.__new__(type(node))
    for field in fields(node):  # type: ignore[arg-type]  # every node that can be made is a dataclass
        object.__setattr__(made, field.name, _replaced(getattr(node, field.name), below))
    return made


def _replaced(value: Any, below: Mapping[int, Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(below.get(id(part), part) for part in value)
    return below.get(id(value), value)
