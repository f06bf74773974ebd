"""Records as Parquet files whose rows can be read one by one."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.nodes.graph import known_size
from seekable.writing.arrow_table import Columns, inferred_schema, looked_at
from seekable.writing.file_format import FileFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from seekable.nodes.contract import Node

__all__ = ["Parquet", "parquet"]

_ROW_GROUP_BYTES = 64 << 20
"""A row group ends here, however few rows it has: so much is held in memory."""

_TABLE_ROWS, _TABLE_BYTES = 960, 1 << 20
"""Limits of the records that become columns at a time; an `UnwritableRecord` is at most one chunk back."""

_PAGE_BYTES, _VALUES_AT_ONCE = 64 << 10, 64
"""A page ends behind so many bytes, which is looked at after so many values: whoever wants one row reads and
decodes a page of each column. pyarrow's own are sixteen times that, and cost 8 % less space."""


def parquet(schema: Any, *, compression: str | None, row_group_rows: int) -> Parquet:
    """Return how Parquet files are written.

    Args:
        schema: a ``pyarrow.Schema``; None if the records are to tell it.
        compression: what pyarrow calls it; None for none.
        row_group_rows: the most rows of a row group.

    Raises:
        MissingDependency: pyarrow is needed.
        WrongType: the schema is none.
        InvalidArgument: the schema or the compression is one that Parquet does not have.
    """
    try:
        import pyarrow as pa
    except ImportError:
        message = "Parquet files need the package pyarrow: pip install 'seekable[parquet]'"
        raise MissingDependency(message) from None
    _try_compression(compression)
    if schema is None:
        return Parquet(None, compression, row_group_rows)
    if not isinstance(schema, pa.Schema):
        message = f"schema must be a pyarrow.Schema (got {schema!r} of type {type(schema).__name__})"
        raise WrongType(message)
    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        message = f"a schema has each column once (got {', '.join(map(repr, twice))} several times)"
        raise InvalidArgument(message)
    _try_schema(schema)
    return Parquet(Columns(schema, inferred=False), compression, row_group_rows)


@dataclass(frozen=True, slots=True)
class Parquet(FileFormat):
    """A Parquet file with small pages and an index of them."""

    columns: Columns | None
    compression: str | None
    row_group_rows: int

    name: ClassVar[str] = "parquet"
    takes_tables: ClassVar[bool] = True

    @property
    def suffix(self) -> str:
        """``.parquet``."""
        return ".parquet"

    @property
    def way_out(self) -> str:
        """What to do with records that do not fit."""
        assert self.columns is not None
        how = "the records looked at first say so" if self.columns.inferred else "the schema given says so"
        return (
            f"{how}: say with schema= what all columns hold (and overwrite=True, where files were written "
            f"already), or make the records fit with map()"
        )

    @property
    def options(self) -> dict[str, Any]:
        """The schema if it was given, the compression and the size of row groups."""
        given = self.columns is not None and not self.columns.inferred
        schema = _told(self.columns.schema) if given and self.columns is not None else "inferred"
        return {
            "compression": self.compression,
            "row_group_rows": self.row_group_rows,
            "schema": schema,
        }

    def settled(self, dataset: Node, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the form with a schema: that given, that of the files that are there, or of some records."""
        import pyarrow as pa

        if self.columns is not None:
            return self, None
        if kept is not None:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept)))
        else:
            schema = _schema_of(dataset)
        declared = _declared(dataset) is not None
        settled = replace(self, columns=Columns(schema, inferred=not declared))
        return settled, base64.b64encode(schema.serialize()).decode()

    def write(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write row groups, each when it has all of its rows or enough bytes."""
        import pyarrow.parquet as pq

        assert self.columns is not None
        sink = _Sink(file)
        writer = pq.ParquetWriter(
            sink,
            self.columns.schema,
            compression=self.compression or "none",
            write_page_index=True,
            data_page_size=_PAGE_BYTES,
            write_batch_size=_VALUES_AT_ONCE,
        )
        try:
            for group in self._groups(chunks):
                writer.write_table(group, row_group_size=group.num_rows)
        except BaseException:
            # The writer would write its footer when it is closed, and is closed when it is collected.
            sink.is_dropped = True
            raise
        finally:
            writer.close()

    def _groups(self, chunks: Iterator[Any]) -> Iterator[pa.Table]:
        """Cut tables into row groups."""
        import pyarrow as pa

        held: list[pa.Table] = []
        rows = size = 0
        for piece in chain.from_iterable(map(_cut, self._tables(chunks))):
            table = piece
            if held and size + table.nbytes > _ROW_GROUP_BYTES:
                yield pa.concat_tables(held)
                held, rows, size = [], 0, 0
            while rows + table.num_rows >= self.row_group_rows:
                room = self.row_group_rows - rows
                yield pa.concat_tables([*held, table.slice(0, room)])
                table = table.slice(room)
                held, rows, size = [], 0, 0
            if table.num_rows:
                held.append(table)
                rows, size = rows + table.num_rows, size + table.nbytes
        if held:
            yield pa.concat_tables(held)

    def _tables(self, chunks: Iterator[Any]) -> Iterator[pa.Table]:
        """Make tables, of few records where these are large."""
        assert self.columns is not None
        held: list[Any] = []
        wanted = 1
        for records in chunks:
            if not isinstance(records, list):
                yield self.columns.of_batch(records)
                continue
            held += records
            if len(held) >= wanted:
                table = self.columns.table(held)
                yield table
                wanted = min(_TABLE_ROWS, _TABLE_BYTES * len(held) // max(1, table.nbytes))
                held = []
        if held:
            yield self.columns.table(held)

    def rows_in(self, path: str) -> int | None:
        """Return what the footer says."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(path).num_rows)
        except pa.ArrowInvalid:
            return None


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    """Cut a table that is larger than a row group."""
    rows = max(1, table.num_rows * _ROW_GROUP_BYTES // max(_ROW_GROUP_BYTES, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


class _Sink(io.RawIOBase):
    """What a writer writes to: a file, until what was written there is of no use any more."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_dropped = False

    def write(self, data: Any) -> int:
        return len(data) if self.is_dropped else self._file.write(data)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()


def _schema_of(dataset: Node) -> pa.Schema:
    """Return the columns of a dataset as its sources declare them, or as some records have them.

    Raises:
        InvalidArgument: there is none, or one that Parquet does not have.
        WrongType: records do not fit together.
    """
    declared = _declared(dataset)
    schema = (
        inferred_schema(dataset, looked_at(known_size(dataset, "write_parquet()")))
        if declared is None
        else declared
    )
    if not len(schema) and dataset.size:
        message = "the records that were looked at have no columns: say with schema= which there are"
        raise InvalidArgument(message)
    _try_schema(schema)
    return schema


def _declared(dataset: Node) -> pa.Schema | None:
    import pyarrow as pa

    columns = dataset.declared()
    if columns is None or None in columns.values():
        return None
    return pa.schema(list(columns.items()))


def _told(schema: pa.Schema) -> list[str]:
    return [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema]


def _try_schema(schema: pa.Schema) -> None:
    """Write no rows of each column.

    Raises:
        InvalidArgument: Parquet has no such column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for field in schema:
        try:
            pq.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
        except pa.ArrowException as error:
            message = (
                f"column {field.name!r} would be of the type {field.type}, which Parquet does not have "
                f"({error}): say another with schema=, or make another value of it with map()"
            )
            raise InvalidArgument(message) from None


def _try_compression(compression: object) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if compression is not None and not isinstance(compression, str):
        message = f"compression must be a str or None (got {compression!r})"
        raise WrongType(message)
    try:
        pq.ParquetWriter(io.BytesIO(), pa.schema([]), compression=compression or "none").close()
    except (pa.ArrowException, OSError) as error:
        message = (
            f"compression must be 'zstd', 'snappy', 'gzip', 'brotli', 'lz4' or None "
            f"(got {compression!r}: {error})"
        )
        raise InvalidArgument(message) from None
