"""What a node of the dataset graph owes the others.

A dataset is a function from positions to records. A node does one of two things with a position:

* an ``OrderNode`` *routes* it: it names one of its children and a position there. Pure arithmetic.
* a ``RecordNode`` *reads* it: it plans what must be read for a position, later reads it and makes a record
of it.

Nodes of one class are asked together: a router or reader serves any number of nodes, and ``which`` says for
each position whose it is. So a mixture of 500 shuffled sources costs a few array operations and not 500
calls. Arrays called ``which`` and ``slots`` have one element for each position, or a single one for all.

Nodes are immutable and may be shared, pickled, and used from any thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.columns.unify import in_one
from seekable.nodes.provenance import of_places
from seekable.nodes.rewired import rewired
from seekable.state.canonical import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.conditions import Where
    from seekable.nodes.keys.key import Keys
    from seekable.nodes.provenance import Origins

    Int64s = NDArray[np.int64]
    RowsOf = Callable[["Leaf"], Sequence[int]]

__all__ = [
    "Inner",
    "Leaf",
    "Node",
    "OrderNode",
    "Plan",
    "Reader",
    "RecordNode",
    "Router",
    "Within",
    "part_of",
]

_MOST_FOUND = 10_000_000
"""Positions that one search may return."""

_LAST = np.iinfo(np.int64).max


def part_of(which: Int64s, start: int, stop: int) -> Int64s:
    """Cut an array that has one element for each position, or a single one for all."""
    return which if which.size == 1 else which[start:stop]


@dataclass(frozen=True, slots=True)
class Within:
    """The positions that a search looks at: ``start <= p < stop``.

    Without a ``stop`` they are those of the one epoch ``epoch`` of whatever has epochs first, on the way
    down.
    """

    start: int
    stop: int | None
    epoch: int

    def holds(self, positions: Int64s) -> NDArray[np.bool_]:
        """Tell which positions lie in the range."""
        return (positions >= self.start) & (positions < (_LAST if self.stop is None else self.stop))

    def in_each_epoch(self, rows: Int64s, size: int) -> Int64s:
        """Return the positions of some rows in each epoch of ``size`` rows that the range touches.

        Raises:
            InvalidArgument: they are too many to list.
        """
        if not rows.size:
            return rows
        first, last = self.epoch, self.epoch + 1
        if self.stop is not None:
            first, last = self.start // size, max(self.start // size, -(-self.stop // size))
        if (last - first) * rows.size > _MOST_FOUND:
            message = (
                f"a row comes at more than {_MOST_FOUND:,} positions: search a part of the dataset, or "
                f"what is repeated instead of the repetition"
            )
            raise InvalidArgument(message)
        return (np.arange(first, last, dtype=np.int64)[:, None] * size + rows).ravel()


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


class Node(ABC):
    """One node of the graph; see the module's docstring."""

    kind: ClassVar[str]
    """The node's name in fingerprints and random keys: changing it is a breaking change."""

    @property
    @abstractmethod
    def children(self) -> tuple[Node, ...]:
        """The nodes that this one takes records from."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """How many records an epoch has; None without end."""

    @property
    @abstractmethod
    def steady(self) -> bool:
        """Whether a row is the same record in every epoch."""

    @property
    @abstractmethod
    def blocks(self) -> Int64s:
        """The edges of the runs of rows that are cheap to read together; see `seekable.order.blocks`.

        Raises:
            EndlessDataset: the node has no length.
        """

    @property
    @abstractmethod
    def room(self) -> int:
        """How many bytes of files can be read again without meeting a disk, or being decoded again."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """How many lanes the order is made for, row ``r`` belonging to ``r % lanes``; mostly 1."""

    @property
    @abstractmethod
    def scheduled(self) -> bool:
        """Whether the node, or one below, orders records by arguments that change on the way."""

    @abstractmethod
    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return, JSON-safe, what of the node decides records or order before the position ``upto``."""

    @abstractmethod
    def shown(self, children: Sequence[str]) -> str:
        """Return the expression that makes the node, given those of its children."""

    @abstractmethod
    def record(self, position: int) -> Any:
        """Read the record at one position: the twin of planning and reading, without arrays."""

    @abstractmethod
    def find_within(self, rows_of: RowsOf, within: Within) -> Int64s:
        """Return the positions, of those searched, at which some rows of the sources come.

        Args:
            rows_of: names the rows of each source.
            within: the positions that are searched.
        """

    @abstractmethod
    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return, JSON-safe, all that decides records and order before the position ``upto``."""

    @abstractmethod
    def stage(self, upto: int) -> tuple[str, ...]:
        """Return what tells apart the descriptions before different positions, without the files in them."""

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return an equal node, of the same description, of whose records only some columns are looked at.

        Its records may lack the others, which then need not be read.
        """
        return self

    def may_match(self, where: Where) -> Int64s:
        """Return runs of rows among which are all that pass some conditions: starts and stops, ascending.

        Of a steady node with a length; without reading a record.
        """
        return np.array([[0, self.size or 0]], dtype=np.int64)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their Arrow types, as the files tell without reading a record.

        Returns:
            For each column a ``pyarrow.DataType``, or None where only records tell it; None for the whole if
            only records tell which columns there are.
        """
        return None


class Inner(Node):
    """A node with children: what comes at one of its positions comes from positions of theirs."""

    @abstractmethod
    def span(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return a range of a child's positions that holds all that a range of this node's uses."""

    @abstractmethod
    def unroute(self, slot: int, positions: Int64s, within: Within) -> Int64s:
        """Return the positions, of those searched at least, at which the given ones of a child come.

        None, one or several for each.
        """

    @cached
    def room(self) -> int:
        """As many as any child has room for."""
        return min(child.room for child in self.children)

    def find_within(self, rows_of: RowsOf, within: Within) -> Int64s:
        """Search the children and carry what they find up."""
        found = [np.empty(0, dtype=np.int64)]
        for slot, child in enumerate(self.children):
            start, stop = self.span(slot, within.start, within.stop)
            below = child.find_within(rows_of, Within(start, stop, within.epoch))
            if below.size:
                found.append(self.unroute(slot, below, within))
        positions = np.unique(np.concatenate(found))
        return positions[within.holds(positions)]

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the node's kind and arguments, and its children's."""
        spans = [None if upto is None else self.span(slot, 0, upto)[1] for slot in range(len(self.children))]
        below = [child.describe(stop) for child, stop in zip(self.children, spans, strict=True)]
        return {"kind": self.kind, **self.arguments(upto), "of": below}

    @cached
    def scheduled(self) -> bool:
        """Whether the arguments depend on how far they are asked for, here or below."""
        return self.arguments(0) != self.arguments(None) or any(child.scheduled for child in self.children)

    def stage(self, upto: int) -> tuple[str, ...]:
        """Return a digest of the node's own arguments, then what the scheduled children return."""
        stages = [fingerprint_of(self.arguments(upto))]
        for slot, child in enumerate(self.children):
            last = self.span(slot, 0, upto)[1]
            if child.scheduled and last is not None:
                stages.extend(child.stage(last))
        return tuple(stages)


class OrderNode(Inner):
    """A node that sends each position on to one child."""

    @classmethod
    @abstractmethod
    def router(cls, nodes: Sequence[Any]) -> Router:
        """Return what routes positions of these nodes, all of this class."""

    @abstractmethod
    def route_one(self, position: int) -> tuple[int, int]:
        """Return the slot of a child and the position there: the twin of the router, without arrays."""

    def record(self, position: int) -> Any:
        """Read the record where the position leads."""
        slot, position = self.route_one(position)
        return self.children[slot].record(position)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the same order of narrowed children."""
        below = {id(child): child.narrowed(columns) for child in self.children}
        if all(below[id(child)] is child for child in self.children):
            return self
        return rewired(self, below)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the children, in one."""
        return in_one([child.declared() for child in self.children])


class RecordNode(Node):
    """A node that makes records."""

    @classmethod
    @abstractmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return what plans the reading of these nodes, all of this class."""


class Leaf(RecordNode):
    """A node that reads records from outside the graph; its epochs are all the same."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many records there are."""

    @property
    @abstractmethod
    def keys(self) -> Keys | None:
        """The keys of the records; None if the source was not opened with any."""

    @abstractmethod
    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the rows of this source that are row ``row`` of a file."""

    @property
    def children(self) -> tuple[Node, ...]:
        """None: the records come from outside."""
        return ()

    @property
    def steady(self) -> bool:
        """Always: a source has one order."""
        return True

    @property
    def lanes(self) -> int:
        """One: a source's order is the natural one."""
        return 1

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the node's kind and arguments."""
        return {"kind": self.kind, **self.arguments(upto)}

    @property
    def scheduled(self) -> bool:
        """Never: a source has one order."""
        return False

    def stage(self, upto: int) -> tuple[str, ...]:
        """Return nothing: a source has one description."""
        return ()

    def find_within(self, rows_of: RowsOf, within: Within) -> Int64s:
        """Return the rows, in each epoch that the range touches."""
        return within.in_each_epoch(np.array(rows_of(self), dtype=np.int64), self.size)
