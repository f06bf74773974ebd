"""The bases of nodes over columns: each keeps the positions of its child and makes its records anew.

A node states how its records are made (``making``), and which columns of the child some of its own columns
are made of (``needs``). ``narrowed`` returns the node for fewer columns: it reads no more of the child than
it needs, makes no other columns, and has the same description.

Records are made one by one, by file, or in groups. A way replaces records of a list in place, and leaves
holes as they are. When a record cannot be made, it calls ``failed`` with the index of the record and the
error, and raises the error unless ``failed`` raises.

A ``ColumnarNode`` knows the types of its columns. Where the records of its child are read as columns of
Arrow, so are its own, and no record is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from seekable._lazy import lazy
from seekable.errors import BadValue, SeekableError, WrongType
from seekable.index.fileset import FileSet
from seekable.nodes.bases import EachRecordNode, UnaryPlan, UnaryReader
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.graph import HOLE, ColumnarPlan, Origins, of_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.columns import decode_column, record_batches
    from seekable.nodes.conditions import Where
    from seekable.nodes.graph import Reader
    from seekable.nodes.node import BatchForm, Node

    Record = dict[str, Any]
    Failed = Callable[[int, Exception], None]
else:
    decode_column = lazy("seekable.nodes.columns.decode_column")
    record_batches = lazy("seekable.nodes.columns.record_batches")

__all__ = ["ByFile", "ColumnNode", "ColumnarNode", "InGroups", "Making", "OneByOne"]


class Making(ABC):
    """Replaces records by the records of one node."""

    @abstractmethod
    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace the records at some indices of a list, except holes.

        Args:
            records: the records of the child.
            at: the indices of the records of this node, ascending.
            origins: returns the file and the row of each record of the list.
            failed: called with the index of a record that cannot be made, and the error.

        Raises:
            WrongType: a record is not a dict, and ``failed`` raised nothing.
        """


@final
@dataclass(frozen=True, slots=True)
class OneByOne(Making):
    """Makes each record from the record alone."""

    make: Callable[[Record], Record]
    """Returns the new record; it does not change the given one."""

    together: Callable[[list[Record]], list[Record]] | None = None
    """Returns what ``make`` does of each record of a list, in less time; it does nothing else. None for no
    such way."""

    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace each record by ``make(record)``."""
        if self.together is not None and at == range(len(records)) and {*map(type, records)} == {dict}:
            with suppress(Exception):  # which record it is, and why, is found one by one
                records[:] = self.together(records)
                return
        make, i = self.make, -1
        try:
            for i in at:
                record = records[i]
                if type(record) is dict:
                    records[i] = make(record)
                elif record is not HOLE:
                    records[i] = make(_checked_record(record))
        except Exception as error:
            failed(i, error)
            raise


@final
@dataclass(frozen=True, slots=True)
class ByFile(Making):
    """Makes each record from the record and its place in its file."""

    make: Callable[[Record, str, str, int], Record]
    """Returns the new record of a record, the path of its file, the file's name below the folder that was
    opened, and the row in the file."""

    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace each record by ``make(record, path, name, row)``."""
        places, make, i = origins(), self.make, -1
        files, rows = places.files.tolist(), places.rows.tolist()
        try:
            for i in at:
                record = records[i]
                if record is not HOLE:
                    file = files[i]
                    path, name = places.paths[file], places.names[file]
                    records[i] = make(_checked_record(record), path, name, rows[i])
        except Exception as error:
            failed(i, error)
            raise


@final
@dataclass(frozen=True, slots=True)
class InGroups(Making):
    """Makes several records with one call."""

    make: Callable[[list[Record]], list[Record]]
    """Returns the new records of up to ``size`` records, as many as it takes."""

    size: int

    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace the records by those of ``make``; an error of a group counts for its first record."""
        there, i = [i for i in at if records[i] is not HOLE], -1
        try:
            for first in range(0, len(there), self.size):
                group = there[first : first + self.size]
                i = group[0]
                made = self.make([_checked_record(records[i]) for i in group])
                for place, record in zip(group, made, strict=True):
                    records[place] = record
        except Exception as error:
            failed(i, error)
            raise


def _checked_record(record: object) -> Record:
    """Return a record that is a dict.

    Raises:
        WrongType: the record is of another type.
    """
    if isinstance(record, dict):
        return record
    kind = type(record).__name__
    way = (
        'open them with decode="python" or "numpy"'
        if kind == "RecordBatch"
        else "map the records to dicts first"
    )
    message = f"a record with columns is a dict (got a {kind}): {way}"
    raise WrongType(message)


class ColumnNode(EachRecordNode):
    """A node whose position ``p`` is the child's position ``p`` with other columns; a hole stays a hole."""

    only: frozenset[str] | None
    """The columns that are used above; None for all. They are not part of the description."""

    made: Any
    """Returns a new record; ``wrong`` returns what is raised for an error of it."""

    @property
    def making(self) -> Making:
        """The way in which records are made, by default each by itself."""
        return OneByOne(self.made)

    def needs(self, columns: frozenset[str]) -> frozenset[str] | None:
        """Return the child's columns that some columns of this node are made of, by default the same.

        None stands for all.
        """
        return columns

    @abstractmethod
    def beneath(self, column: str) -> str | None:
        """Return the name of a column in the child; None if the values there are others."""

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error to raise for a record that could not be made; None for ``error`` itself."""
        return None

    def of_arrays(self, columns: dict[str, Any]) -> dict[str, Any] | None:
        """Return the node's columns, made of those of the child; None, by default, if they need records."""
        return None

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the node, if the child declares its own."""
        below = self.child.declared()
        return None if below is None else self.declared_over(below)

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the node and their types, given those of the child; by default the same."""
        return below

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
        """Return the child's runs, if all columns of the conditions are unchanged columns of the child."""
        below = where.below(self.beneath)
        return super().may_match(where) if below is None else self.child.may_match(below)

    @classmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return a reader that reads the children of all nodes together, then makes the records of each."""
        return UnaryReader(nodes, _ColumnsPlan)

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
    """Return the file and the row of one record; for a source of files without a plan, which takes longer."""
    files = getattr(child, "files", None)
    if not isinstance(files, FileSet) or not child.size:
        return child.plan(np.array([position], dtype=np.int64)).origins()
    row = position % child.size
    file = int(np.searchsorted(files.starts, row, side="right")) - 1
    return of_files(files, np.array([file]), np.array([row]))


def _type_error(record: object) -> WrongType | None:
    """Return the error for a record that is not a dict."""
    try:
        _checked_record(record)
    except WrongType as error:
        return error
    return None


@final
class _ColumnsPlan(UnaryPlan):
    """A plan for nodes over columns: it makes their records from those that the children's plan reads."""

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


class ColumnarNode(ColumnNode):
    """A node over columns whose records can be read as one batch of Arrow."""

    @abstractmethod
    def table(self, positions: Int64s) -> pa.RecordBatch:
        """Return the records at some positions as one record batch."""

    @abstractmethod
    def is_columnar(self, positions: Int64s) -> bool:
        """Return True if ``table`` makes no record on the way, and none of these records can be a hole."""

    @abstractmethod
    def without_child(self, positions: Int64s) -> list[Any] | None:
        """Return the records at some positions if they need nothing of the child; None if they do."""

    @property
    def batch_form(self) -> BatchForm:
        """The form of a batch of the child's records."""
        return self.child.batch_form

    @classmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return UnaryReader(nodes, _ColumnarNodesPlan)

    def record(self, position: int) -> Any:
        """Return the record at a position."""
        apart = self.read_apart(np.array([position], dtype=np.int64))
        return super().record(position) if apart is None else apart[0]

    def read_apart(self, positions: Int64s) -> list[Any] | None:
        """Return the records at some positions, unless they are made one by one of the child's records.

        They need nothing of the child, or the child's have the form of numpy or of Arrow.

        Raises:
            BadValue: numpy has no value for one of Arrow's; the error names its file and row.
        """
        apart, form = self.without_child(positions), self.child.batch_form
        if apart is not None or form == "python":
            return apart
        try:
            return decode_column.DECODERS[form](self.table(positions)).records(range(positions.size))
        except decode_column.Unconvertible as error:
            if positions.size > 1:
                return [
                    record for at in range(positions.size) for record in self._one(positions[at : at + 1])
                ]
            place = describe_place(self.child, int(positions[0]))
            message = f"{place}: column {error.column!r}: {form} has no value for it: {error}"
            raise BadValue(message) from error

    def _one(self, position: Int64s) -> list[Any]:
        return self.read_apart(position) or []


@final
class _ColumnarNodesPlan(UnaryPlan, ColumnarPlan):
    """Reads the columns of each node's records as columns, where none is a hole."""

    def read(self) -> list[Any]:
        parts = [(at, node.read_apart(positions)) for node, at, positions in self._by_node()]
        if all(records is None for _, records in parts):
            return self._made()
        out: list[Any] = [None] * len(self)
        for (node, at, positions), (_, records) in zip(self._by_node(), parts, strict=True):
            made = node.plan(positions).read() if records is None else records
            for place, record in zip(at.tolist(), made, strict=True):
                out[place] = record
        return out

    def _made(self) -> list[Any]:
        return _ColumnsPlan(self.nodes, self.which, self.positions, self.child).read()

    def _by_node(self) -> Iterator[tuple[ColumnarNode, NDArray[np.intp], Int64s]]:
        """Yield each node, the places of its records in this plan, and their positions."""
        if self.which.size == 1:
            yield self.nodes[int(self.which[0])], np.arange(len(self)), self.positions
            return
        for number in np.unique(self.which):
            at = np.flatnonzero(self.which == number)
            yield self.nodes[int(number)], at, self.positions[at]

    @property
    def columnar(self) -> bool:
        return all(node.is_columnar(positions) for node, _, positions in self._by_node())

    def table(self) -> Any:
        parts = [(at, node.table(positions)) for node, at, positions in self._by_node()]
        return record_batches.gathered_batch(
            len(self), [at for at, _ in parts], [batch for _, batch in parts]
        )

    def batches(self) -> Iterator[tuple[NDArray[np.intp], Any, Int64s]]:
        every = np.arange(len(self))
        yield every, self.table(), every

    def advise(self) -> None:
        if not all(node.without_child(positions[:1]) is not None for node, _, positions in self._by_node()):
            self.child.advise()
