"""Records as Parquet files whose rows can be read one by one."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

import numpy as np

from seekable._arguments import checked_count, repeated
from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.formats.file_format import FileFormat
from seekable.formats.tables.arrow_table import RecordColumns, inferred_schema
from seekable.writing.encoded_pieces import open_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.file_format import Preview

__all__ = ["Parquet", "parquet"]

_ROW_GROUP_ROWS = 8_192
"""The most rows of a row group by default: as many as the largest block of a windowed shuffle has."""

_ROW_GROUP_BYTES = 64 << 20
"""The most bytes of a row group, which is held in memory; it then has fewer rows than ``row_group_rows``."""

_TABLE_ROWS, _TABLE_BYTES = 960, 1 << 20
"""The most records that become columns at a time, and about their bytes. So an `UnwritableRecord` is at most
one chunk from the end of the records."""

_PAGE_BYTES, _VALUES_AT_ONCE = 64 << 10, 64
"""The bytes after which a page ends, and the number of values after which the writer compares. To read a
row, a page of each column is read and decoded. pyarrow's pages are 16 times that, and take 8 % less space."""


def parquet(
    *, row_group_rows: int = _ROW_GROUP_ROWS, compression: str | None = "zstd", schema: Any = None
) -> Parquet:
    """Return the format of Parquet files; see ``Dataset.write_parquet``.

    Args:
        row_group_rows: the most rows of a row group.
        compression: pyarrow's name of the compression; None for none.
        schema: a ``pyarrow.Schema``; None to infer it from the records.

    Raises:
        MissingDependency: pyarrow is not installed.
        WrongType: ``schema`` is not a ``pyarrow.Schema``.
        InvalidArgument: Parquet does not have a type of the schema, or the compression.
    """
    row_group_rows = checked_count("row_group_rows", row_group_rows, least=1)
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
    if twice := repeated(schema.names):
        message = f"a schema has each column once (got {', '.join(map(repr, twice))} several times)"
        raise InvalidArgument(message)
    _try_schema(schema)
    return Parquet(RecordColumns(schema, inferred=False), compression, row_group_rows)


@dataclass(frozen=True, slots=True)
class Parquet(FileFormat):
    """The format of Parquet files, with small pages and a page index for the reading of single rows."""

    columns: RecordColumns | None
    compression: str | None
    row_group_rows: int

    name: ClassVar[str] = "parquet"
    takes_tables: ClassVar[bool] = True

    @property
    def suffix(self) -> str:
        """The suffix of all Parquet files: ``.parquet``."""
        return ".parquet"

    @property
    def way_out(self) -> str:
        """The advice for a record that does not fit to the schema."""
        assert self.columns is not None
        how = "the records looked at first say so" if self.columns.inferred else "the schema given says so"
        return (
            f"{how}: say with schema= what all columns hold (and overwrite=True, where files were written "
            f"already), or make the records fit with map()"
        )

    @property
    def options(self) -> dict[str, Any]:
        """The compression, the most rows of a row group, and the schema if the user gave one."""
        given = self.columns is not None and not self.columns.inferred
        schema = _told(self.columns.schema) if given and self.columns is not None else "inferred"
        return {
            "compression": self.compression,
            "row_group_rows": self.row_group_rows,
            "schema": schema,
        }

    def of_one_file(self, name: str) -> Self:
        """Return the format unchanged, for a name that ends in ``.parquet``."""
        if name.lower().endswith(self.suffix):
            return self
        message = (
            f"a Parquet file is named *.parquet (got {name!r}); a name without the suffix of a data file is "
            f"that of a folder"
        )
        raise InvalidArgument(message)

    def settled(self, preview: Preview, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format with a schema: that given, that of the files there, or an inferred one."""
        import pyarrow as pa

        if self.columns is not None:
            return self, None
        if kept is not None:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept)))
        else:
            schema = _schema_of(preview)
        declared = _declared(preview) is not None
        settled = replace(self, columns=RecordColumns(schema, inferred=not declared))
        return settled, base64.b64encode(schema.serialize()).decode()

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write row groups; each ends at ``row_group_rows`` rows or 64 MiB."""
        import pyarrow.parquet as pq

        assert self.columns is not None
        sink = _ParquetSink(file)
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
            # The writer writes a footer when it is closed, at the latest when it is garbage-collected.
            sink.is_dropped = True
            raise
        finally:
            writer.close()

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write the columns of the records as an Arrow stream."""
        assert self.columns is not None
        _write_tables(file, self.columns.schema, self._tables(chunks))

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the rows of pieces as record batches."""
        return _merged_batches(pieces, turns)

    def _groups(self, chunks: Iterator[Any]) -> Iterator[pa.Table]:
        """Yield row groups, joined from or cut out of the tables of the records."""
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
        """Yield the records as tables; the larger the records, the fewer are in a table."""
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

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of rows in the footer, None if the footer is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(path).num_rows)
        except pa.ArrowInvalid:
            return None


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the pieces of a table, none of them much larger than 64 MiB."""
    rows = max(1, table.num_rows * _ROW_GROUP_BYTES // max(_ROW_GROUP_BYTES, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


class _ParquetSink(io.RawIOBase):
    """The file of a writer; after an error, ``is_dropped`` discards all further bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_dropped = False

    def write(self, data: Any) -> int:
        return len(data) if self.is_dropped else self._file.write(data)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()


def _schema_of(preview: Preview) -> pa.Schema:
    """Return the schema that the sources of records declare, or else the one inferred from some records.

    Raises:
        InvalidArgument: there is no column, or Parquet does not have the type of a column.
        WrongType: the values of a column have no common type.
    """
    declared = _declared(preview)
    schema = inferred_schema(preview.read()) if declared is None else declared
    if not len(schema) and not preview.is_empty:
        message = "the records that were read have no columns: give the columns with schema="
        raise InvalidArgument(message)
    _try_schema(schema)
    return schema


def _declared(preview: Preview) -> pa.Schema | None:
    import pyarrow as pa

    columns = preview.declared()
    if columns is None or None in columns.values():
        return None
    return pa.schema(list(columns.items()))


def _told(schema: pa.Schema) -> list[str]:
    return [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema]


def _try_schema(schema: pa.Schema) -> None:
    """Write a file without rows for each column, to find the types that Parquet does not have.

    Raises:
        InvalidArgument: Parquet does not have the type of a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for field in schema:
        try:
            pq.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
        except (pa.ArrowException, OSError) as error:  # some refusals of types are an OSError
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


_CODEC = "lz4"
"""A piece is written and read once: this codec costs little time, and halves the bytes on disk."""


def _write_tables(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables as an Arrow stream, which can hold dictionaries that differ from table to table."""
    import pyarrow as pa

    codec = _CODEC if pa.Codec.is_available(_CODEC) else None
    with pa.ipc.new_stream(file, schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for table in tables:
            writer.write_table(table)


def _merged_batches(pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of pieces as record batches.

    Args:
        pieces: the paths of Arrow streams of one schema.
        turns: arrays, one for each record batch, with the number of the piece whose next row comes next.
    """
    import pyarrow as pa

    with open_pieces(pieces) as files:
        rows = [_StreamRows(file) for file in files]
        for turn in turns:
            counts = np.bincount(turn, minlength=len(pieces)).tolist()
            found = [batch for own, count in zip(rows, counts, strict=True) for batch in own.take(count)]
            by_piece = pa.Table.from_batches(found).unify_dictionaries()
            places = np.empty(len(turn), dtype=np.int64)
            places[np.argsort(turn, kind="stable")] = np.arange(len(turn))
            yield from by_piece.take(pa.array(places)).combine_chunks().to_batches()


class _StreamRows:
    """The rows of an Arrow stream, taken some at a time."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow as pa

        self._batches = iter(pa.ipc.open_stream(file))
        self._left: pa.RecordBatch | None = None

    def take(self, count: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the next ``count`` rows."""
        while count:
            batch = next(self._batches) if self._left is None else self._left
            yield batch.slice(0, count)
            self._left = batch.slice(count) if batch.num_rows > count else None
            count -= min(count, batch.num_rows)
