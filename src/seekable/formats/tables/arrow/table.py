"""One Arrow file or stream, open: record batches as they lie in the file, not copied where it is mapped."""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar, Final

from seekable._optional import optional
from seekable.errors import CorruptRecord, SeekableError, UnsupportedFormat
from seekable.formats.tables.arrow.checking import check_rows
from seekable.formats.tables.arrow.ipc import InvalidArrow, buffers_of, head_at
from seekable.formats.tables.arrow.layout import tail_of
from seekable.formats.tables.pyarrow_file import PyarrowFile
from seekable.formats.tables.table_format import TableFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.tables.arrow.checking import Place
    from seekable.formats.tables.arrow.layout import Layout
    from seekable.formats.tables.table_format import Bounds, RangeSource

    Int64s = NDArray[np.int64]
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ArrowTable", "open_reader"]

_MOST_READERS: Final = 8
"""A stream has a reader for each segment, and what is compressed for each choice of columns."""

_MOST_INFLATED: Final = 40_000
"""The most bytes that one compressed byte can stand for: zstd repeats a byte 131,072 times in 4."""

_PREFIX = struct.Struct("<q")
_DENSE: Final = 64
_PREVIEW_BYTES: Final = 80


class _Reader:
    """A segment's record batches, all columns of them or some."""

    def __init__(self, reader: pa.RecordBatchFileReader) -> None:
        self.reader = reader
        self.sound: set[Place] = set()
        """The dictionaries that were found to be sound."""


_Batch = tuple["pa.RecordBatch", _Reader]


class ArrowTable(TableFile):
    """Groups are record batches; what is not compressed stays where it is in the mapped file."""

    shares_map: ClassVar[bool] = True

    def __init__(self, source: RangeSource, layout: Layout) -> None:
        """Open a file whose record batches lie like that.

        Raises:
            InvalidArrow: it is damaged.
            ArrowException: pyarrow finds that it is; as do ValueError and OSError.
        """
        self._source, self._layout = source, layout
        self._lock = threading.Lock()
        self._readers: OrderedDict[tuple[int, tuple[int, ...]], _Reader] = OrderedDict()
        self._schema = self._reader(0, ()).reader.schema.remove_metadata()
        self._numbers = {name: number for number, name in enumerate(self._schema.names)}

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, without metadata of the whole schema."""
        return self._schema

    def rows(self, group: int, rows: Int64s, columns: Sequence[str]) -> pa.RecordBatch:
        """Return some rows of a record batch; long stretches between them are not checked."""
        if not columns:
            return _of_no_columns(len(rows))
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
        found = self._batch(group, columns, first)
        if last - first + 1 == len(rows):
            return self._checked(group, found, first, last + 1)
        if last - first <= _DENSE * len(rows):
            try:
                return self._checked(group, found, first, last + 1).take(pa.array(rows - first))
            except (CorruptRecord, pa.ArrowNotImplementedError):
                pass  # a row between them is damaged, or a type cannot be taken from
        return pa.concat_batches([self._checked(group, found, row, row + 1) for row in rows.tolist()])

    def run(self, group: int, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return a slice of a record batch, after a check of its offsets and its text."""
        if not columns:
            return _of_no_columns(stop - start)
        return self._checked(group, self._batch(group, columns, start), start, stop)

    def run_bytes(self, group: int, columns: Sequence[str]) -> int:
        """Return the number of bytes of the buffers of some columns, decompressed."""
        try:
            sizes = self._buffer_sizes(group)
        except InvalidArrow:  # said with all details when it is read
            return self._layout.groups[group].block.body_bytes
        counts = [_buffers(field.type) for field in self._schema]
        if any(count is None for count in counts) or sum(filter(None, counts)) != len(sizes):
            return sum(sizes)
        wanted, total, at = {self._numbers[name] for name in columns}, 0, 0
        for number, count in enumerate(filter(lambda count: count is not None, counts)):
            assert count is not None
            total += sum(sizes[at : at + count]) if number in wanted else 0
            at += count
        return total

    def index_ranges(self, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return nothing: opening the file has found all record batches."""
        return []

    def row_ranges(self, group: int, rows: Int64s, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes of the record batch; none without a row or a column."""
        return self.run_ranges(group, 0, len(rows), columns)

    def run_ranges(self, group: int, start: int, stop: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes of the record batch; none without a row or a column."""
        first, size = self.span(group)
        return [(first, first + size)] if start < stop and columns else []

    def bounds(self, group: int, columns: Sequence[str]) -> list[tuple[int, int, Mapping[str, Bounds]]]:
        """Return one run without bounds: the format keeps no statistics."""
        return [(0, self._layout.groups[group].rows, {})]

    def walk(self) -> None:
        """Do nothing: opening the file has found all record batches."""

    def span(self, group: int) -> tuple[int, int]:
        """Return the first byte of a record batch, its head included, and its number of bytes."""
        block = self._layout.groups[group].block
        return block.offset, block.head_bytes + block.body_bytes

    def _batch(self, group: int, columns: Sequence[str], row: int) -> _Batch:
        """Return some columns of a record batch, whose buffers are as long as they have to be.

        Raises:
            CorruptRecord: the record batch is damaged as a whole; the error names the row that was wanted.
        """
        try:
            return self._read(group, columns)
        except pa.ArrowNotImplementedError as error:
            raise _unsupported(self._source.path, error) from error
        except SeekableError:
            raise
        except (pa.ArrowException, InvalidArrow, ValueError, OSError, MemoryError) as error:
            raise self._corrupt(group, row, f"record batch {group}: {error}") from error

    def _read(self, group: int, columns: Sequence[str]) -> _Batch:
        place, numbers = self._layout.groups[group], tuple(self._numbers[name] for name in columns)
        if place.compressed:
            self._buffer_sizes(group)
        with self._lock:
            # Only what is compressed is worth a reader of some columns: it copies what it reads.
            reader = self._reader(place.segment, tuple(sorted(numbers)) if place.compressed else ())
            batch = reader.reader.get_batch(place.number)
        batch = batch.select(columns)
        batch.validate()
        if batch.num_rows != place.rows:
            message = f"it has {batch.num_rows} rows, and had {place.rows} when it was indexed"
            raise ValueError(message)
        return batch, reader

    def _checked(self, group: int, found: _Batch, start: int, stop: int) -> pa.RecordBatch:
        """Return some rows of a record batch, after a check that they can be read."""
        batch, reader = found
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                check_rows(column, start, stop, path=name, sound=reader.sound)
            except (pa.ArrowException, ValueError) as error:
                row = _first_wrong(column, start, stop)
                what = f"row {row} of record batch {group}, column {name!r}: {error}"
                raise self._corrupt(group, row, what) from error
        return batch.slice(start, stop - start)

    def _reader(self, segment: int, numbers: tuple[int, ...]) -> _Reader:
        reader = self._readers.pop((segment, numbers), None)
        if reader is None:
            tail = tail_of(self._source, self._layout, segment)
            reader = _Reader(open_reader(self._source, tail, numbers))
        self._readers[segment, numbers] = reader
        if len(self._readers) > _MOST_READERS:
            self._readers.popitem(last=False)
        return reader

    def _buffer_sizes(self, group: int) -> list[int]:
        """Return how long the buffers of a record batch are once they are decompressed.

        Raises:
            InvalidArrow: they cannot be so long.
        """
        place = self._layout.groups[group]
        head = head_at(self._source, place.block.offset)
        if head is None:
            message = f"there is nothing at byte {place.block.offset}"
            raise InvalidArrow(message)
        buffers = buffers_of(head.data, body_bytes=place.block.body_bytes)
        if not place.compressed:
            return [length for _, length in buffers]
        body = place.block.offset + place.block.head_bytes
        return [self._inflated_bytes(body + start, length) for start, length in buffers]

    def _inflated_bytes(self, start: int, length: int) -> int:
        if not length:
            return 0
        prefix = bytes(self._source.range(start, start + min(length, _PREFIX.size)))
        inflated = _PREFIX.unpack(prefix)[0] if len(prefix) == _PREFIX.size else -2
        if inflated == -1:  # it is not compressed after all
            return length - _PREFIX.size
        if not 0 <= inflated <= length * _MOST_INFLATED:
            message = f"{length} compressed bytes at byte {start} are said to be {inflated} bytes of data"
            raise InvalidArrow(message)
        return int(inflated)

    def _corrupt(self, group: int, row: int, what: str) -> CorruptRecord:
        before = sum(place.rows for place in self._layout.groups[:group])
        offset, length = self.span(group)
        return CorruptRecord(
            self._source.path,
            before + row,
            offset=offset,
            length=length,
            preview=bytes(self._source.range(offset, offset + min(length, _PREVIEW_BYTES))),
            cause=ValueError(what),
        )


def open_reader(source: RangeSource, tail: bytes, columns: tuple[int, ...] = ()) -> pa.RecordBatchFileReader:
    """Return pyarrow's own reader of a file.

    Args:
        source: the file.
        tail: what is put behind its end.
        columns: by number, ascending; all if there is none.

    Raises:
        ArrowException: it cannot be read.
    """
    options = pa.ipc.IpcReadOptions(included_fields=list(columns))
    return pa.ipc.open_file(pa.PythonFile(PyarrowFile(source, tail), mode="r"), options=options)


def _of_no_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], names=[""]).select([])


def _first_wrong(column: Any, start: int, stop: int) -> int:
    """Return the first row that cannot be read of those among which there is one."""
    below, above = start, stop - 1
    while below < above:
        middle = (below + above) // 2
        try:
            check_rows(column, below, middle + 1, path="", sound=set())
        except (pa.ArrowException, ValueError):
            above = middle
        else:
            below = middle + 1
    return below


def _buffers(kind: Any) -> int | None:
    """Return how many buffers an array of a type has in a file; None if that differs from batch to batch."""
    if isinstance(kind, pa.BaseExtensionType):
        return _buffers(kind.storage_type)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return None
    own = kind.num_buffers
    if pa.types.is_null(kind) or pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind):
        own -= 1  # the validity that these do not have
    for number in range(kind.num_fields):
        inner = _buffers(kind.field(number).type)
        if inner is None:
            return None
        own += inner
    return int(own)


def _unsupported(path: str, error: Exception) -> UnsupportedFormat:
    message = (
        f"{path!r} needs what this pyarrow cannot do: {error}; install a newer one, or write the file again"
    )
    return UnsupportedFormat(message)
