"""Parquet as a format of tables: reads layouts for the index, and opens files."""

from __future__ import annotations

import binascii
import itertools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import CorruptRecord, SeekableError, UnsupportedFormat
from seekable.formats.tables.parquet.footer import (
    ColumnPages,
    NamedFields,
    ParquetLayout,
    bounds_of_group,
    page_bounds,
    read_footer,
    runs_of,
)
from seekable.formats.tables.parquet.paged_column import OneColumnFiles, Paged
from seekable.formats.tables.parquet.pages import PageTables, index_of
from seekable.formats.tables.parquet.point_read import point_reader
from seekable.formats.tables.parquet.thrift import ThriftError
from seekable.formats.tables.table_format import PyarrowFile, TableFile, TableLayout
from seekable.nodes.columns.decode_column import one_array, take_array
from seekable.storage.mapped import MappedRanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from seekable.formats.tables.parquet.footer import Footer, LeafColumn
    from seekable.formats.tables.table_format import Bounds, Int64s, PageStore, RangeSource
else:
    pa = optional("pyarrow", extra="parquet")
    pq = optional("pyarrow.parquet", extra="parquet")

__all__ = ["ParquetFormat", "ParquetTable", "page_tables"]


def page_tables(source: RangeSource, pages: PageStore | None = None) -> bytes:
    """Return the page tables of all columns that can have them, as a `PageStore` keeps them.

    Args:
        source: the file.
        pages: the store that they are saved in, and loaded from as far as it has them.

    Raises:
        UnsupportedFormat: the file cannot be opened.
        CorruptRecord: it is damaged.
        MissingDependency: pyarrow is not installed.
    """
    table = ParquetFormat().open(source, pages)
    table.walk()
    return table.page_tables()


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Parquet files; needs pyarrow.

    Example:
        >>> ParquetFormat().name
        'parquet'
    """

    name: str = "parquet"
    """The name of the format in the index."""

    def read_layout(self, source: RangeSource) -> TableLayout:
        """Return a file's groups and columns, from its footer.

        Raises:
            UnsupportedFormat: it is of another format, damaged or encrypted.
            MissingDependency: pyarrow is not installed.
        """
        footer = read_footer(source)
        metadata = footer.metadata
        rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        # Some writers leave the number of rows of the whole file at 0; readers go by the groups.
        if metadata.num_rows not in (0, sum(rows)) or min(rows, default=0) < 0:
            raise UnsupportedFormat(
                f"{source.path}: the footer at byte {footer.start} says {metadata.num_rows} rows, "
                f"and its groups have {sum(rows)}: the file is damaged, write it again"
            )
        return TableLayout(rows, footer.schema.serialize().to_pybytes())

    def open(self, source: RangeSource, pages: PageStore | None) -> ParquetTable:
        """Return an open file.

        Raises:
            UnsupportedFormat: as ``read_layout``.
            MissingDependency: pyarrow is not installed.
        """
        return ParquetTable(source, read_footer(source), pages)


_LEAST_VALUE = 4
"""The fewest bytes of a value in memory; in the file it may have been a few bits."""

_OPENED = itertools.count()

_MOST_LEAVES = 32
"""A column of more leaves is decoded with its group: the footer for pages of one leaf names all of them."""

_MANY_ROWS = 1 << 17
"""The most rows that a byte of a column can stand for; with more, rows are counted page by page first."""


class ParquetTable(TableFile):
    """One Parquet file, open; safe from threads.

    Rows come from the pages that hold them, leaf by leaf; a column whose pages do not tell where rows begin
    is decoded as a group.
    """

    shares_map: ClassVar[bool] = False

    def __init__(self, source: RangeSource, footer: Footer, pages: PageStore | None) -> None:
        self._source = source
        self._opened = next(_OPENED)
        self._footer = footer
        self._store = pages
        self._layout = ParquetLayout(footer.raw, footer.writer.decode("utf-8", "replace"))
        self._fields = NamedFields(self._layout, footer.schema.names)
        self._damage = _Damage(source, footer, self._layout, self._fields)
        self._column_files = OneColumnFiles(footer, self._layout)
        self._paged: dict[tuple[int, str], tuple[Paged, ...]] = {}
        self._undecodable: dict[tuple[int, str], Exception] = {}

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self._footer.schema

    def rows(self, group: int, rows: Int64s, columns: Sequence[str]) -> pa.RecordBatch:
        """Return some rows of a group, of as few bytes as that takes."""
        rows = np.asarray(rows, np.int64)
        try:
            return self._rows(group, rows, columns)
        except CorruptRecord:
            for row in range(len(rows) if len(rows) > 1 else 0):
                self._rows(group, rows[row : row + 1], columns)  # so that the error is about the row it is of
            raise

    def _rows(self, group: int, rows: Int64s, columns: Sequence[str]) -> pa.RecordBatch:
        if not len(rows):
            return self._batch(0, columns, [self.schema.field(name).type for name in columns])
        arrays = self._arrays(
            group,
            int(rows[0]),
            columns,
            of_pages=lambda leaf: one_array(pa.chunked_array(leaf.rows(rows))),
            of_group=lambda column: take_array(column, rows),
        )
        return self._batch(len(rows), columns, arrays)

    def run(self, group: int, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return consecutive rows of a group, at the rate at which pyarrow reads."""
        count = stop - start
        if not count or not columns:
            return self._batch(count, columns, [self.schema.field(name).type for name in columns])
        by_pages = count <= self._group_rows(group) // 2
        arrays = self._arrays(
            group,
            start,
            columns,
            of_pages=(lambda leaf: one_array(leaf.run(start, stop))) if by_pages else None,
            of_group=lambda column: one_array(column.slice(start, count)),
        )
        return self._batch(count, columns, arrays)

    def _arrays(
        self,
        group: int,
        row: int,
        columns: Sequence[str],
        *,
        of_pages: Callable[[Paged], pa.Array] | None,
        of_group: Callable[[pa.ChunkedArray], pa.Array],
    ) -> list[pa.Array]:
        """Return rows of some columns, from their pages or else from the whole group.

        pyarrow decides about what is read here by pages and refused: what it makes of the group is right.

        Args:
            group: the group.
            row: its row that an error is about.
            columns: the columns.
            of_pages: returns the rows of a leaf that is read by its pages; None to read no column so.
            of_group: returns the rows of a column of the whole group.

        Raises:
            CorruptRecord: neither way reads a column.
        """
        found: dict[str, pa.Array] = {}
        refused: dict[str, Exception] = {}
        for name in columns:
            if of_pages is None:
                break
            try:
                if leaves := self._pages(group, name):
                    found[name] = self._typed(name, [of_pages(leaf) for leaf in leaves])
            except SeekableError:
                raise
            except _damage_errors() as error:
                refused[name] = error
        if whole := [name for name in columns if name not in found]:
            table = self._group_of(group, row, whole, refused)
            for name in whole:
                with self._damage.named(group, row, name):
                    found[name] = self._typed(name, [of_group(table.column(name))])
        return [found[name] for name in columns]

    def _group_of(
        self, group: int, row: int, columns: Sequence[str], refused: Mapping[str, Exception]
    ) -> pa.Table:
        """Return some columns of a whole group, decoded by pyarrow.

        Args:
            group: the group.
            row: its row that an error is about.
            columns: the columns.
            refused: why some of them cannot be read by their pages.

        Raises:
            CorruptRecord: a column cannot be read.
        """
        for name in columns:
            if (known := self._undecodable.get((group, name))) is not None:
                raise self._damage.corrupt(group, row, name, refused.get(name, known))
        try:
            return self._group(group, columns)
        except SeekableError:
            raise
        except _damage_errors() as error:
            if len(columns) == 1:
                (name,) = columns
                # Remembered, for each of the rows that are damaged would decode the group anew.
                if not isinstance(error, MemoryError):
                    self._undecodable[group, name] = error
                raise self._damage.corrupt(group, row, name, refused.get(name, error)) from error
            for name in columns:
                self._group_of(group, row, [name], refused)  # so that the error names the column it is of
            raise self._damage.corrupt(group, row, columns[0], error) from error

    def index_ranges(self, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the page indexes and heads of chunks whose pages are not known; whole chunks without one."""
        found: list[tuple[int, int]] = []
        for name in columns:
            with self._damage.named(group, 0, name):
                for leaf in self._fields.field(name).leaves:
                    if not self._tables.has(group, leaf):
                        chunk = self._layout.chunk(group, leaf.number, self._footer.start)
                        found += index_of(chunk)
        return found

    def row_ranges(self, group: int, rows: Int64s, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes of the pages that hold some rows, and of dictionaries."""
        found: list[tuple[int, int]] = []
        for name in columns if len(rows) else ():
            with self._damage.named(group, 0, name):
                leaves = self._pages_if_any(group, name)
                found += [each for leaf in leaves for each in leaf.row_ranges(rows)]
                if not leaves:
                    found += self._chunk_ranges(group, name)
        return found

    def run_ranges(self, group: int, start: int, stop: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes of the pages that hold the rows, or of whole chunks where these are decoded."""
        found: list[tuple[int, int]] = []
        paged = stop - start <= self._group_rows(group) // 2
        for name in columns if stop > start else ():
            with self._damage.named(group, 0, name):
                leaves = self._pages_if_any(group, name) if paged else ()
                found += [each for leaf in leaves for each in leaf.run_ranges(start, stop)]
                if not leaves:
                    found += self._chunk_ranges(group, name)
        return found

    def _chunk_ranges(self, group: int, name: str) -> list[tuple[int, int]]:
        """Return the bytes of the chunks of a column."""
        numbers = [leaf.number for leaf in self._fields.field(name).leaves]
        chunks = [self._layout.chunk(group, number, self._footer.start) for number in numbers]
        return [(chunk.start, chunk.stop) for chunk in chunks]

    def bounds(self, group: int, columns: Sequence[str]) -> list[tuple[int, int, Mapping[str, Bounds]]]:
        """Return the bounds of the group, and of its pages if the file has them."""
        of_group: dict[str, Bounds] = {}
        of_pages: dict[str, ColumnPages] = {}
        metadata = self._footer.metadata.row_group(group)
        for name in columns:
            leaves, kind = self._fields.field(name).leaves, self.schema.field(name).type
            if len(leaves) != 1 or leaves[0].repeated:
                continue
            leaf = leaves[0]
            with self._damage.named(group, 0, name):
                self._layout.chunk(group, leaf.number, self._footer.start)  # pyarrow ends at an encrypted one
                known = bounds_of_group(metadata.column(leaf.number), kind)
                if known is not None:
                    of_group[name] = known
                place = self._layout.column_index(group, leaf.number)
                paged = self._pages_if_any(group, name) if place is not None else ()
                if place is not None and paged:
                    first = paged[0].table.first
                    found = page_bounds(self._source, place, kind, len(first) - 1)
                    if found is not None:
                        of_pages[name] = ColumnPages(first, tuple(found))
        return runs_of(metadata.num_rows, of_group, of_pages)

    def span(self, group: int) -> tuple[int, int]:
        """Return the first byte of a group in the file, and the number of its bytes."""
        with self._damage.named(group, 0, None):
            chunks = self._layout.chunks(group, self._footer.start)
            start = min((chunk.start for chunk in chunks), default=0)
            return start, max((chunk.stop for chunk in chunks), default=0) - start

    def walk(self) -> None:
        """Make the page tables of all columns that can have them, and keep them."""
        for group in range(self._footer.metadata.num_row_groups):
            for name in self.schema.names if self._group_rows(group) else ():
                try:
                    self._pages(group, name)
                except SeekableError:
                    raise
                except _damage_errors() as error:
                    self._group_of(group, 0, [name], {name: error})
        self._tables.save()

    def page_tables(self) -> bytes:
        """Return the page tables that were made, as bytes for a `PageStore`."""
        return self._tables.as_bytes()

    def _pages(self, group: int, name: str) -> tuple[Paged, ...]:
        """Return the leaves of a column in a group; none if they cannot be read by their pages."""
        key = group, name
        if key not in self._paged:
            self._paged[key] = self._find_pages(group, name)
        return self._paged[key]

    def _pages_if_any(self, group: int, name: str) -> tuple[Paged, ...]:
        """Return what ``_pages`` does, and nothing where the pages are damaged: reading says so."""
        try:
            return self._pages(group, name)
        except SeekableError:
            raise
        except _damage_errors():
            return ()

    def _find_pages(self, group: int, name: str) -> tuple[Paged, ...]:
        field = self._fields.field(name)
        if _leaves_of(self.schema.field(name).type) != len(field.leaves):
            return ()  # of a shape that is not known here
        if len(field.leaves) > _MOST_LEAVES:
            return ()
        found = [self._leaf_pages(group, name, leaf) for leaf in field.leaves]
        leaves = tuple(leaf for leaf in found if leaf is not None)
        return leaves if len(leaves) == len(found) else ()

    def _leaf_pages(self, group: int, name: str, leaf: LeafColumn) -> Paged | None:
        chunk = self._layout.chunk(group, leaf.number, self._footer.start)
        if (chunk.path, chunk.physical) != (leaf.path, leaf.physical):
            return None  # what this is of is for pyarrow to say
        table = self._tables.table(group, chunk, leaf, self._group_rows(group))
        if table is None:
            return None
        points = point_reader(self.schema.field(name).type, leaf)
        return Paged(
            self._source,
            chunk,
            leaf,
            table,
            self._column_files.of(self._fields.field(name), leaf),
            points,
            self._opened,
        )

    @cached
    def _tables(self) -> PageTables:
        fields = self._layout.fields
        leaves = sum(len(field.leaves) for field in fields)
        groups = self._footer.metadata.num_row_groups
        return PageTables(self._source, self._footer.raw, (groups, leaves), self._store)

    def _group_rows(self, group: int) -> int:
        rows: int = self._footer.metadata.row_group(group).num_rows
        return rows

    def _group(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a whole group, decoded by pyarrow's threads."""
        rows = self._group_rows(group)
        leaves: list[int] = []
        for name in columns:
            field = self._fields.field(name)
            for leaf in field.leaves:
                leaves.append(leaf.number)
                chunk = self._layout.chunk(group, leaf.number, self._footer.start)
                if rows > _MANY_ROWS * (chunk.stop - chunk.start):
                    self._pages(group, name)  # so many rows in so few bytes are counted first
        file = pq.ParquetFile(
            PyarrowFile(self._source),
            metadata=self._footer.metadata,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        # What is not mapped is read by Python, which threads of pyarrow must not run while a process ends.
        threads = isinstance(self._source, MappedRanges)
        table = file.reader.read_row_group(group, column_indices=leaves, use_threads=threads)
        if table.num_rows != rows:
            raise ThriftError(f"group {group} has {table.num_rows} rows; the footer says {rows}")
        return table

    def _typed(self, name: str, parts: list[pa.Array]) -> pa.Array:
        """Return a column in its type, merged from the columns of its leaves."""
        return _merged(self.schema.field(name).type, parts)

    def _batch(self, rows: int, columns: Sequence[str], arrays: list[Any]) -> pa.RecordBatch:
        """Return columns as a batch; a column given as a type has no rows."""
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
        schema = pa.schema([self.schema.field(name) for name in columns])
        arrays = [pa.array([], array) if isinstance(array, pa.DataType) else array for array in arrays]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


_PREVIEW_BYTES = 80


def _damage_errors() -> tuple[type[Exception], ...]:
    """Return the errors that damaged bytes raise; those of seekable, which may be such, are others."""
    return pa.ArrowException, ThriftError, binascii.Error, OSError, ValueError, MemoryError


@dataclass(frozen=True, slots=True)
class _Damage:
    """Names the damage of one file."""

    source: RangeSource
    footer: Footer
    layout: ParquetLayout
    fields: NamedFields

    @contextmanager
    def named(self, group: int, row: int, column: str | None) -> Iterator[None]:
        """Raise what damaged bytes raise as a `CorruptRecord`.

        Args:
            group: the group that is read.
            row: the row of it that is wanted.
            column: the column; None for all of them.
        """
        try:
            yield
        except SeekableError:
            raise
        except _damage_errors() as error:
            raise self.corrupt(group, row, column, error) from error

    def corrupt(self, group: int, row: int, column: str | None, error: Exception) -> CorruptRecord:
        """Return the error; arguments as of ``named``."""
        start, stop = self.footer.start, self.source.size
        try:
            leaf = self.fields.field(column).leaves[0].number if column is not None else 0
            chunk = self.layout.chunk(group, leaf, start)
            start, stop = chunk.start, chunk.stop
        except (ThriftError, IndexError):
            pass  # then it is the footer that is damaged
        where = f"group {group}" if column is None else f"column {column!r} of group {group}"
        before = (self.footer.metadata.row_group(number).num_rows for number in range(group))
        return CorruptRecord(
            self.source.path,
            sum(before) + row,
            offset=start,
            length=stop - start,
            preview=bytes(self.source.range(start, min(stop, start + _PREVIEW_BYTES))),
            cause=ValueError(f"{where}: {error}"),
        )


def _leaves_of(kind: pa.DataType) -> int:
    """Return the number of leaves of a type in Parquet; too few if it cannot be put together from leaves.

    An extension type over several leaves is such a type: pyarrow makes its values of all leaves alone.

    Example:
        >>> import pyarrow as pa
        >>> _leaves_of(pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])))
        2
    """
    count = sum(_leaves_of(child) for child in children) if (children := _children(kind)) else 1
    return 0 if isinstance(kind, pa.BaseExtensionType) and count > 1 else count


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    if pa.types.is_map(kind):
        return [_entries(kind)]
    if pa.types.is_struct(kind):
        return [field.type for field in kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_type]
    return []


def _entries(kind: pa.MapType) -> pa.StructType:
    return pa.struct([kind.key_field, kind.item_field])


def _merged(kind: pa.DataType, parts: list[Any]) -> pa.Array:
    """Return a column merged from its leaves.

    Args:
        kind: the column's type.
        parts: for each leaf the column as it is without the others.

    Raises:
        ThriftError: the parts do not fit together.
    """
    if len(parts) == 1 and parts[0].type == kind:
        return parts[0]
    if len({len(part) for part in parts}) != 1 or _leaves_of(kind) != len(parts) or not _children(kind):
        raise ThriftError(f"values of {len(parts)} leaves do not make {kind}")
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(
            kind, _merged(kind.storage_type, [_storage(part) for part in parts])
        )
    shape = parts[0]
    nulls = shape.is_valid().buffers()[1] if shape.null_count else None
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, len(shape), [nulls], children=_fields(kind, parts))
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        inner = [part.values.slice(part.offset * size, len(part) * size) for part in parts]
        return pa.Array.from_buffers(kind, len(shape), [nulls], children=[_merged(kind.value_type, inner)])
    (below,) = _children(kind)
    values = _merged(below, [part.flatten() for part in parts])
    return pa.Array.from_buffers(kind, len(shape), [nulls, _offsets(kind, parts)], children=[values])


def _fields(kind: pa.StructType, parts: list[Any]) -> list[Any]:
    made, at = [], 0
    for field in kind:
        count = _leaves_of(field.type)
        made.append(_merged(field.type, [part.field(0) for part in parts[at : at + count]]))
        at += count
    return made


def _offsets(kind: pa.DataType, parts: list[Any]) -> pa.Buffer:
    """Return the offset of each list; a null has an empty one."""
    bounds = []
    for part in parts:
        lengths = np.diff(part.offsets.to_numpy())
        lengths[part.is_null().to_numpy(zero_copy_only=False)] = 0
        bounds.append(np.cumsum(np.append(0, lengths), dtype=np.int64))
    if any(not np.array_equal(bound, bounds[0]) for bound in bounds[1:]):
        raise ThriftError(f"lists of different lengths do not make {kind}")
    width = np.int64 if pa.types.is_large_list(kind) else np.int32
    return pa.py_buffer(bounds[0].astype(width))


def _storage(part: pa.Array) -> pa.Array:
    return part.storage if isinstance(part.type, pa.BaseExtensionType) else part
