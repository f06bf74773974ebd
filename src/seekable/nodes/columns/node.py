"""What all nodes over columns have in common: records stay where they are, and each is made anew.

A node says how one record is made (``made``), and which columns of the child it takes for some of its own
(``needs``). When only some of its columns will be looked at (``narrowed``), it asks its child for no more
than those, makes no others, and stays the same node in every description.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from seekable.errors import InvalidArgument, SeekableError, WrongType
from seekable.nodes.bases import ElementwiseNode, UnaryNode, UnaryPlan, UnaryReader
from seekable.nodes.contract import RecordNode
from seekable.nodes.failures import add_place
from seekable.nodes.graph import part_of
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import Plan, Reader
    from seekable.nodes.provenance import Origins


__all__ = ["ColumnNode", "checked_name", "checked_names"]


class ColumnNode(UnaryNode, ElementwiseNode, RecordNode):
    """A node whose position ``p`` is the child's position ``p`` with other columns; a hole stays one."""

    only: frozenset[str] | None
    """The columns that will be looked at; None for all. It changes nothing of what the node is."""

    by_file: ClassVar[bool] = False
    """Whether a record's file is needed to make it; then ``made_of`` makes it."""

    @abstractmethod
    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record with its columns changed; the given one stays as it is.

        Any error that it raises is told by ``wrong``.
        """

    def made_of(self, record: dict[str, Any], path: str, name: str, row: int) -> dict[str, Any]:
        """Return the record with its columns changed, of a file."""
        return self.made(record)

    @property
    def at_once(self) -> int | None:
        """How many records are made together by ``made_together``; None for each by itself."""
        return None

    def made_together(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return some records with their columns changed."""
        return [self.made(record) for record in records]

    @abstractmethod
    def needs(self, columns: frozenset[str]) -> frozenset[str] | None:
        """Return the columns of the child that some columns of this node are made of; None for all."""

    @abstractmethod
    def beneath(self, column: str) -> str | None:
        """Return what a column is called in the child; None where its values are others there."""

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return what to raise for a record that could not be made; None for the error as it is."""
        return None

    @property
    def size(self) -> int | None:
        """As many records as the child has."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """As the child."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """As the child's."""
        return self.child.blocks

    def looked_at(self, column: str) -> bool:
        """Tell whether a column will be looked at."""
        return self.only is None or column in self.only

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Make no others, and take from the child what these are made of."""
        only = columns if self.only is None else columns & self.only
        needed = self.needs(only)
        child = self.child if needed is None else self.child.narrowed(needed)
        if child is self.child and only == self.only:
            return self
        return replace(self, child=child, only=only)  # type: ignore[type-var]  # a dataclass

    def may_match(self, where: Where) -> Int64s:
        """Ask the child, of the columns that are the same there."""
        below = where.below(self.beneath)
        return super().may_match(where) if below is None else self.child.may_match(below)

    @classmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Read the children of all nodes together, then make each node's records."""
        return UnaryReader(nodes, _ColumnsPlan)

    def record(self, position: int) -> Any:
        """Read one record and make it anew."""
        record = self.child.record(position)
        if record is HOLE:
            return record
        try:
            if not self.by_file:
                return self.made(_dict(record))
            origin = self.child.plan(np.array([position], dtype=np.int64)).origins()
            file, row = int(origin.files[0]), int(origin.rows[0])
            return self.made_of(_dict(record), origin.paths[file], origin.names[file], row)
        except Exception as error:
            self.tell(record, error, position)
            raise

    def tell(self, record: Any, error: Exception, position: int) -> None:
        """Raise what a user has to know of a record that was not made; return to raise the error itself."""
        told = WrongType(_no_dict(record)) if not isinstance(record, dict) else self.wrong(record, error)
        if told is not None:
            place = place_of(self.child, position)
            raise type(told)(f"{place}: {self.kind}: {told}") from error
        add_place(error, repr(self), self.child, position)


def place_of(node: Any, position: int) -> str:
    """Return where a record lies, for people."""
    place = node.plan(np.array([position], dtype=np.int64)).locate()[0]
    return f"{place.path} row {place.row}" if hasattr(place, "path") else f"the record at {place}"


@dataclass(frozen=True, slots=True)
class _ColumnsPlan(UnaryPlan):
    nodes: Sequence[Any]
    which: Int64s
    positions: Int64s
    child: Plan

    def __len__(self) -> int:
        return self.positions.size

    def slice(self, start: int, stop: int) -> Plan:
        which = part_of(self.which, start, stop)
        return _ColumnsPlan(self.nodes, which, self.positions[start:stop], self.child.slice(start, stop))

    def read(self) -> list[Any]:
        records = self.child.read()
        origins = self.child.origins() if self.nodes[0].by_file else None
        if self.which.size == 1:
            self._make(self.nodes[int(self.which[0])], range(len(records)), records, origins)
        else:
            for i in np.unique(self.which):
                self._make(self.nodes[int(i)], np.flatnonzero(self.which == i).tolist(), records, origins)
        return records

    def _make(self, node: ColumnNode, at: Iterable[int], records: list[Any], origins: Origins | None) -> None:
        """Replace the records at some places by what the node makes of them."""
        i = -1
        try:
            if node.at_once is not None:
                there = [i for i in at if records[i] is not HOLE]
                for first in range(0, len(there), node.at_once):
                    some = there[first : first + node.at_once]
                    i = some[0]
                    together = node.made_together([_dict(records[i]) for i in some])
                    for i, record in zip(some, together, strict=True):
                        records[i] = record
            elif origins is None:
                made = node.made
                for i in at:
                    record = records[i]
                    if record is not HOLE:
                        records[i] = made(_dict(record))
            else:
                made_of = node.made_of
                files, rows = origins.files.tolist(), origins.rows.tolist()
                for i in at:
                    record = records[i]
                    if record is not HOLE:
                        file = files[i]
                        path, name = origins.paths[file], origins.names[file]
                        records[i] = made_of(_dict(record), path, name, rows[i])
        except Exception as error:
            node.tell(records[i], error, int(self.positions[i]))
            raise


def _dict(record: Any) -> dict[str, Any]:
    if isinstance(record, dict):
        return record
    raise WrongType(_no_dict(record))


def _no_dict(record: object) -> str:
    kind = type(record).__name__
    way = (
        'open them with decode="python" or "numpy"'
        if kind == "RecordBatch"
        else "map the records to dicts first"
    )
    return f"a record with columns is a dict (got a {kind}): {way}"


def checked_names(what: str, columns: object) -> tuple[str, ...]:
    """Return the names of columns, each once.

    Raises:
        WrongType: they are no list of strings.
        InvalidArgument: a name comes twice.
    """
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        message = f"{what} takes a list of names of columns (got {columns!r})"
        raise WrongType(message)
    names = tuple(checked_name(what, column) for column in columns)
    if twice := {name for name in names if names.count(name) > 1}:
        message = f"{what} takes each column once (got {', '.join(map(repr, sorted(twice)))} several times)"
        raise InvalidArgument(message)
    return names


def checked_name(what: str, column: object) -> str:
    """Return the name of a column.

    Raises:
        WrongType: it is no string.
    """
    if not isinstance(column, str):
        message = f"{what}: the name of a column is a string (got {column!r} of type {type(column).__name__})"
        raise WrongType(message)
    return column
