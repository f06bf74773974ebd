"""The files of tables: the open ones, where rows lie in files, groups and blocks, and one schema for all.

The columns of files may differ: the schema has those of all files, and the conversions that each file needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import repeated
from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import UnsupportedFormat
from seekable.index.location import Location
from seekable.nodes.columns.unified_type import NoCommonType, unified_type
from seekable.nodes.graph import Origins
from seekable.order.blocks import cut_long_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tables.table_format import TableFile, TableFormat
    from seekable.index.fileset import FileSet
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ColumnMapping", "OpenTables", "RowBlocks", "RowPlaces", "read_schemas", "row_bytes", "unified"]


@dataclass(frozen=True, slots=True, eq=False)
class RowBlocks:
    """The groups and the blocks of the rows of some files. Rows and groups are counted over all files."""

    edges: Int64s
    """The first row of each block, and the number of all rows."""

    group_of: Int64s
    """The group that each block is part of."""

    group_starts: Int64s
    """The first row of each group, and the number of all rows."""

    file_of: Int64s
    """The file that each group is in."""

    first_groups: Int64s
    """The first group of each file."""

    @classmethod
    def of(cls, files: FileSet) -> RowBlocks:
        """Return the groups and blocks of indexed tables."""
        counts, firsts = files.groups()
        file_of = np.repeat(np.arange(len(counts)), counts)
        starts = np.append(firsts + files.starts[:-1][file_of], files.starts[-1])
        edges = cut_long_blocks(np.diff(starts))
        group_of = np.searchsorted(starts, edges[:-1], side="right") - 1
        return cls(edges, group_of, starts, file_of, np.cumsum(counts) - counts)

    def blocks(self, rows: Int64s) -> Int64s:
        """Return the block of each row, int64."""
        found: Int64s = np.searchsorted(self.edges, rows, side="right") - 1
        return found

    def groups(self, rows: Int64s) -> Int64s:
        """Return the group of each row, int64."""
        found: Int64s = np.searchsorted(self.group_starts, rows, side="right") - 1
        return found

    def group_in_file(self, group: int) -> tuple[int, int]:
        """Return a group's file, and the group's index in that file."""
        file = int(self.file_of[group])
        return file, group - int(self.first_groups[file])


@dataclass(frozen=True, slots=True, eq=False)
class OpenTables:
    """The tables of some files; each is open as long as its file is. Safe from threads and after fork."""

    files: FileSet

    form: TableFormat
    """The format of all files."""

    def get(self, file: int) -> TableFile:
        """Return an open table, after a check that its file has not changed since it was indexed.

        Raises:
            IndexStale: the file has changed.
            UnsupportedFormat: the file cannot be opened.
        """
        mapped = self.files.mapped(file)
        mapped.check()
        table: TableFile | None = mapped.reader
        if table is None:
            table = mapped.reader = self.form.open(self.files.source(file), self.files.pages(file))
        return table

    def has(self, file: int) -> bool:
        """Return True if a table is open."""
        return self.files.mapped(file).reader is not None


def row_bytes(files: FileSet) -> NDArray[np.float64]:
    """Return the mean bytes of a row in each file, float64; placeholders count as files on the Hub."""
    return files.data_sizes / np.maximum(files.records, 1)


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """The places of rows: their files, and their bytes in the files."""

    files: FileSet
    blocks: RowBlocks
    open: OpenTables

    def path(self, file: int) -> str:
        """Return the path of a file for messages; of a file on the Hub its name there."""
        return self.files.shown_path(file)

    def in_file(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the file of each row, and the row in that file."""
        files = self.blocks.file_of[self.blocks.groups(rows)]
        return files, rows - self.files.starts[files]

    def span(self, group: int) -> tuple[int, int]:
        """Return the first byte of a group in its file, and the number of its bytes."""
        file, number = self.blocks.group_in_file(group)
        return self.open.get(file).span(number)

    def locate(self, rows: Int64s) -> list[Any]:
        """Return the location of each row: the file, the row in it, and the bytes of the row's group."""
        files, within = self.in_file(rows)
        groups = self.blocks.groups(rows).tolist()
        return [
            Location(self.path(file), row, *self.span(group), is_shared=True)
            for file, row, group in zip(files.tolist(), within.tolist(), groups, strict=True)
        ]

    def origins(self, rows: Int64s) -> Origins:
        """Return the file and the row in it of each row."""
        files, within = self.in_file(rows)
        present, numbers = np.unique(files, return_inverse=True)
        paths = tuple(map(self.path, present.tolist()))
        return Origins(paths, tuple(map(self.files.name, present.tolist())), numbers, within)

    def paths(self, rows: Int64s) -> set[str]:
        """Return the paths of the files of some rows."""
        return set(map(self.path, np.unique(self.in_file(rows)[0]).tolist()))

    def bytes(self, rows: Int64s) -> int:
        """Return the approximate number of bytes of some rows in their files."""
        return int(self.row_bytes[self.in_file(rows)[0]].sum())

    @cached
    def row_bytes(self) -> NDArray[np.float64]:
        """The bytes that a row takes in each file, on average."""
        return row_bytes(self.files)


def read_schemas(schemas: Sequence[bytes]) -> list[pa.Schema]:
    """Return the schemas that the index keeps as bytes."""
    return [pa.ipc.read_schema(pa.py_buffer(schema)).remove_metadata() for schema in schemas]


def unified(
    schemas: Sequence[pa.Schema],
    *,
    examples: Sequence[str],
    strict: bool,
    only: Collection[str] | None = None,
) -> pa.Schema:
    """Return a schema with the columns of all files, each of a type that holds all values.

    Columns stand in the order in which they come first. One that is missing in a file, there is None for.

    Args:
        schemas: the distinct schemas, in the order of the files.
        examples: for each, the path of a file that has it.
        strict: whether all must have the same columns of the same types.
        only: the names of the columns to return, as far as there are any; None for all.

    Raises:
        UnsupportedFormat: types of a column have no common one; or they differ, and ``strict`` forbids it.

    Example:
        >>> import pyarrow as pa
        >>> old, new = pa.schema({"id": pa.int32()}), pa.schema({"id": pa.int64(), "text": pa.string()})
        >>> unified([old, new], examples=["a", "b"], strict=False).names
        ['id', 'text']
    """
    whole = _chosen(schemas[0], only)
    for schema, path in zip(schemas, examples, strict=True):
        _refuse_twins(schema, path)
        if strict and not schema.equals(schemas[0]):
            raise UnsupportedFormat(_difference(schemas[0], schema, examples[0], path))
        whole = _joined(whole, _chosen(schema, only), examples[0], path)
    return whole


def _chosen(schema: pa.Schema, only: Collection[str] | None) -> pa.Schema:
    return schema if only is None else pa.schema([field for field in schema if field.name in only])


def _joined(whole: pa.Schema, other: pa.Schema, path: str, other_path: str) -> pa.Schema:
    """Merge two schemas: each column gets a type that holds the values of both.

    Raises:
        UnsupportedFormat: some have no such type.
    """
    try:
        return pa.unify_schemas([whole, other], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass  # pyarrow joins no dictionary with a text, and no view
    fields = {field.name: field for field in whole}
    without: list[str] = []
    for field in other:
        known = fields.setdefault(field.name, field)
        try:
            fields[field.name] = _joined_field(known, field)
        except NoCommonType as error:
            within = f", in its field {error.within!r}" if error.within else ""
            without.append(f"{field.name!r} is {error.other} and not {error.one}{within}")
    if without:
        message = (
            f"the files from {path!r} on and {other_path!r} have no common type for a column: "
            f"{'; '.join(without)}. Read the others with columns=; or open the files apart, and cast the "
            f"column of one: sk.concat([a, b.cast(...)])"
        )
        raise UnsupportedFormat(message)
    return pa.schema(list(fields.values()))


def _joined_field(one: pa.Field, other: pa.Field) -> pa.Field:
    """Return a column of a type that holds the values of two.

    Raises:
        NoCommonType: there is none.
    """
    try:
        (joined,) = pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kind = unified_type(one.type, other.type)
        return pa.field(one.name, kind, nullable=one.nullable or other.nullable)
    return joined


def _refuse_twins(schema: pa.Schema, path: str) -> None:
    if twins := repeated(schema.names):
        message = (
            f"{path!r} has several columns called {twins[0]!r}, and the fields of a record have different "
            f"names: write it anew with other names"
        )
        raise UnsupportedFormat(message)


def _difference(first: pa.Schema, other: pa.Schema, path: str, other_path: str) -> str:
    return (
        f"strict=True wants the same columns of the same types in all files, and {other_path!r} differs from "
        f"{path!r}: {'; '.join(_differences(first, other))}. Leave strict=True out to fill what is missing "
        f"with None and convert to common types"
    )


def _differences(first: pa.Schema, other: pa.Schema) -> list[str]:
    ours, theirs = ({field.name: field.type for field in schema} for schema in (first, other))
    found = [f"it lacks {name!r}" for name in ours if name not in theirs]
    found += [f"it adds {name!r}" for name in theirs if name not in ours]
    found += [
        f"{name!r} is {theirs[name]} and not {kind}"
        for name, kind in ours.items()
        if name in theirs and theirs[name] != kind
    ]
    return found or ["its columns stand in another order, or may or may not be null"]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Maps the schema of a file to the wanted columns: which are read, cast, or filled with nulls."""

    wanted: pa.Schema
    """Names and types of the columns of records."""

    file: pa.Schema
    """Names and types of the columns of the file."""

    there: tuple[str, ...]
    """The names of the wanted columns that the file has."""

    @classmethod
    def of(cls, wanted: pa.Schema, file: pa.Schema) -> ColumnMapping:
        """Return the mapping from the schema of a file to the wanted columns."""
        names = set(file.names)
        return cls(wanted, file, tuple(name for name in wanted.names if name in names))

    def take(
        self, batch: pa.RecordBatch, cast: Callable[[str, pa.Array, pa.DataType], pa.Array]
    ) -> pa.RecordBatch:
        """Return the wanted columns of a batch.

        Args:
            batch: the columns ``there``, of a file.
            cast: returns the named column in another type.
        """
        if batch.schema.equals(self.wanted):
            return batch
        arrays = []
        there = dict(zip(self.there, batch.columns, strict=True))
        for field in self.wanted:
            array = there.get(field.name)
            if array is None:
                arrays.append(pa.nulls(batch.num_rows, field.type))
                continue
            arrays.append(array if array.type == field.type else cast(field.name, array, field.type))
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.wanted)
