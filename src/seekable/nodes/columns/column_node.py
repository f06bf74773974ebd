"""The base of nodes over columns: each keeps the positions of its child and makes its records anew.

A node states how its records are made (``making``), and which columns of the child some of its own columns
are made of (``needs``). ``narrowed`` returns the node for fewer columns: it reads no more of the child than
it needs, makes no other columns, and has the same description.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from seekable.errors import SeekableError, WrongType
from seekable.index.fileset import FileSet
from seekable.nodes.bases import ElementwiseNode, UnaryNode, UnaryPlan, UnaryReader
from seekable.nodes.columns.making import checked_record
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.hole import HOLE
from seekable.nodes.node import RecordNode
from seekable.nodes.provenance import Origins, of_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.columns.making import Making
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import Reader
    from seekable.nodes.node import Node

__all__ = ["ColumnNode", "ColumnsPlan"]


class ColumnNode(UnaryNode, ElementwiseNode, RecordNode):
    """A node whose position ``p`` is the child's position ``p`` with other columns; a hole stays a hole."""

    only: frozenset[str] | None
    """The columns that are used above; None for all. They are no part of the description."""

    @property
    @abstractmethod
    def making(self) -> Making:
        """The way in which records are made; a record that is given to it stays unchanged.

        ``wrong`` returns what is raised for an error of it.
        """

    @abstractmethod
    def needs(self, columns: frozenset[str]) -> frozenset[str] | None:
        """Return the columns of the child that some columns of this node are made of; None for all."""

    @abstractmethod
    def beneath(self, column: str) -> str | None:
        """Return the name of a column in the child; None if the values there are others."""

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error to raise for a record that could not be made; None for ``error`` itself."""
        return None

    def of_arrays(self, columns: dict[str, Any]) -> dict[str, Any] | None:
        """Return the node's columns, made of those of the child; None, by default, if they need records."""
        return None

    @property
    def size(self) -> int | None:
        """The number of records of the child."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The edges of the blocks of the child."""
        return self.child.blocks

    def looked_at(self, column: str) -> bool:
        """Return True if a column is used above."""
        return self.only is None or column in self.only

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the node for some columns, over a child with the columns that these are made of."""
        only = columns if self.only is None else columns & self.only
        needed = self.needs(only)
        child = self.child if needed is None else self.child.narrowed(needed)
        if child is self.child and only == self.only:
            return self
        return replace(self, child=child, only=only)  # type: ignore[type-var]  # a dataclass

    def may_match(self, where: Where) -> Int64s:
        """Return the runs of the child, if all columns of the conditions are unchanged columns of it."""
        below = where.below(self.beneath)
        return super().may_match(where) if below is None else self.child.may_match(below)

    @classmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return a reader that reads the children of all nodes together, then makes the records of each."""
        return UnaryReader(nodes, ColumnsPlan)

    def record(self, position: int) -> Any:
        """Return the record at a position, made of the child's."""
        record = self.child.record(position)
        if record is HOLE:
            return record
        records = [record]
        self.making.replace(
            records,
            range(1),
            origins=lambda: _origins_of(self.child, position),
            failed=lambda _, error: self.fail(record, error, position),
        )
        return records[0]

    def fail(self, record: Any, error: Exception, position: int) -> None:
        """Raise the error for a record that was not made; or add its place to ``error``, and return.

        Raises:
            WrongType: the record is not a dict.
            SeekableError: ``wrong`` has an error for it.
        """
        meant = self.wrong(record, error) if isinstance(record, dict) else _type_error(record)
        if meant is not None:
            place = describe_place(self.child, position)
            raise type(meant)(f"{place}: {self.kind}: {meant}") from error
        add_place(error, repr(self), self.child, position)


def _origins_of(child: Node, position: int) -> Origins:
    """Return the file and the row of one record; of a source of files without a plan, which takes longer."""
    files = getattr(child, "files", None)
    if not isinstance(files, FileSet) or not child.size:
        return child.plan(np.array([position], dtype=np.int64)).origins()
    row = position % child.size
    file = int(np.searchsorted(files.starts, row, side="right")) - 1
    return of_files(files, np.array([file]), np.array([row]))


def _type_error(record: object) -> WrongType | None:
    """Return the error for a record that is not a dict."""
    try:
        checked_record(record)
    except WrongType as error:
        return error
    return None


@final
class ColumnsPlan(UnaryPlan):
    """A plan that makes the records of nodes over columns from those of the plan of their children."""

    def read(self) -> list[Any]:
        """Return the records, made of those of the children."""
        records, origins = self.child.read(), cache(self.child.origins)

        def make(node: ColumnNode, at: Iterable[int]) -> None:
            def failed(i: int, error: Exception) -> None:
                node.fail(records[i], error, int(self.positions[i]))

            node.making.replace(records, at, origins=origins, failed=failed)

        if self.which.size == 1:
            make(self.nodes[int(self.which[0])], range(len(records)))
        else:
            for i in np.unique(self.which):
                make(self.nodes[int(i)], np.flatnonzero(self.which == i).tolist())
        return records

    def arrays(self) -> dict[str, Any] | None:
        """Return the columns, if those of the children are read as arrays and no record is needed."""
        node = self.nodes[int(self.which[0])]
        columns = self.child.arrays() if self.which.size == 1 else None
        return None if columns is None else node.of_arrays(columns)
