"""Arrow as a format of tables: files, Feather V2, and streams."""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from seekable._arguments import repeated
from seekable._optional import optional
from seekable.errors import CorruptRecord, SeekableError, UnsupportedFormat
from seekable.formats.tables.arrow.arrow_layout import find_layout, kept_layout, layout_to_keep, tail_of
from seekable.formats.tables.arrow.ipc import InvalidArrow, buffers_of, head_at
from seekable.formats.tables.table_format import PyarrowFile, TableFile, TableLayout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.tables.arrow.arrow_layout import ArrowLayout
    from seekable.formats.tables.table_format import Bounds, PageStore, RangeSource

    Int64s = NDArray[np.int64]
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ArrowFormat", "ArrowTable", "_check_rows", "_open_reader"]

_OTHERS: Final = {
    b"FEA1": "Feather V1, which few can read; write it anew: pyarrow.feather.write_feather("
    "pyarrow.feather.read_table(OLD), NEW)",
    b"PAR1": "Parquet; its name should end with .parquet",
}


_NO_ARRAYS: Final = frozenset({"month_interval", "day_time_interval"})
"""Types that files can have and pyarrow has no arrays of."""


@dataclass(frozen=True, slots=True)
class ArrowFormat:
    """Files of Arrow's IPC format and its streams; each record batch is a group.

    Example:
        >>> import os
        >>> import pyarrow as pa
        >>> from tempfile import NamedTemporaryFile
        >>> from seekable.storage.mapped import MappedFile, MappedRanges
        >>> with NamedTemporaryFile() as file:
        ...     with pa.ipc.new_stream(file, pa.schema({"id": pa.int64()})) as stream:
        ...         stream.write_batch(pa.record_batch({"id": [7, 8]}))
        ...         stream.write_batch(pa.record_batch({"id": [9]}))
        ...     file.flush()
        ...     status = os.stat(file.name)
        ...     mapped = MappedFile(file.name, size=status.st_size, mtime_ns=status.st_mtime_ns)
        ...     ArrowFormat().read_layout(MappedRanges(mapped)).group_rows
        (2, 1)
    """

    name: str = "arrow"

    def read_layout(self, source: RangeSource) -> TableLayout:
        """Return the layout, from the footer and the heads of record batches; of a stream from all heads."""
        layout = _layout(source, None)
        schema = _opened(source, layout).schema
        return TableLayout(tuple(group.rows for group in layout.groups), schema.serialize().to_pybytes())

    def open(self, source: RangeSource, pages: PageStore | None) -> ArrowTable:
        """Return an open file; the places of the record batches of a stream are saved."""
        return _opened(source, _layout(source, pages))


def _layout(source: RangeSource, pages: PageStore | None) -> ArrowLayout:
    layout = kept_layout(pages.load(), size=source.size) if pages else None
    if layout is not None:
        return layout
    head = bytes(source.range(0, min(source.size, 8)))
    for magic, what in _OTHERS.items():
        if head.startswith(magic):
            message = f"{source.path!r} is no file of Arrow but {what}"
            raise UnsupportedFormat(message)
    try:
        layout = find_layout(source)
    except InvalidArrow as torn:
        raise _damaged(source, torn) from torn
    if pages and layout.segments:
        pages.save(layout_to_keep(layout, size=source.size))
    return layout


def _opened(source: RangeSource, layout: ArrowLayout) -> ArrowTable:
    try:
        table = ArrowTable(source, layout)
    except SeekableError:
        raise
    except (pa.ArrowException, InvalidArrow, ValueError, OSError) as error:
        raise _damaged(source, error) from error
    for field in table.schema:
        if unreadable := _unreadable(field.type):
            message = (
                f"{source.path!r} has the column {field.name!r} of the type {field.type}, and pyarrow has no "
                f"arrays of {unreadable}: write the file again with month_day_nano_interval instead"
            )
            raise UnsupportedFormat(message)
    if twice := repeated(table.schema.names):
        message = f"{source.path!r} has columns of one name: {', '.join(map(repr, twice))}; rename them first"
        raise UnsupportedFormat(message)
    return table


def _unreadable(kind: pa.DataType) -> pa.DataType | None:
    """Return the type, or one within it, that pyarrow has no arrays of; None if there is none."""
    if str(kind) in _NO_ARRAYS:
        return kind
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    if isinstance(kind, pa.BaseExtensionType):
        inner = [kind.storage_type]
    elif pa.types.is_dictionary(kind):
        inner = [kind.value_type]
    return next(filter(None, map(_unreadable, inner)), None)


def _damaged(source: RangeSource, error: Exception) -> UnsupportedFormat:
    message = (
        f"{source.path!r} cannot be read as a file or a stream of Arrow: {error}. It has "
        f"{source.size:,} bytes; if it should be Arrow, it was damaged or cut off: write it or copy it again"
    )
    return UnsupportedFormat(message)


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
        self.sound: set[_Place] = set()
        """The dictionaries that were found to be sound."""


_Batch = tuple["pa.RecordBatch", _Reader]


class ArrowTable(TableFile):
    """Groups are record batches; what is not compressed stays where it is in the mapped file."""

    shares_map: ClassVar[bool] = True

    def __init__(self, source: RangeSource, layout: ArrowLayout) -> None:
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
                _check_rows(column, start, stop, path=name, sound=reader.sound)
            except (pa.ArrowException, ValueError) as error:
                row = _first_wrong(column, start, stop)
                what = f"row {row} of record batch {group}, column {name!r}: {error}"
                raise self._corrupt(group, row, what) from error
        return batch.slice(start, stop - start)

    def _reader(self, segment: int, numbers: tuple[int, ...]) -> _Reader:
        reader = self._readers.pop((segment, numbers), None)
        if reader is None:
            tail = tail_of(self._source, self._layout, segment)
            reader = _Reader(_open_reader(self._source, tail, numbers))
        self._readers[segment, numbers] = reader
        if len(self._readers) > _MOST_READERS:
            self._readers.popitem(last=False)
        return reader

    def _buffer_sizes(self, group: int) -> list[int]:
        """Return the decompressed length of each buffer of a record batch.

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


def _open_reader(source: RangeSource, tail: bytes, columns: tuple[int, ...] = ()) -> pa.RecordBatchFileReader:
    """Return pyarrow's own reader of a file.

    Args:
        source: the file.
        tail: what is put after its end.
        columns: by number, ascending; all if there is none.

    Raises:
        ArrowException: it cannot be read.
    """
    options = pa.ipc.IpcReadOptions(included_fields=list(columns))
    return pa.ipc.open_file(pa.PythonFile(PyarrowFile(source, tail), mode="r"), options=options)


def _of_no_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], names=[""]).select([])


def _first_wrong(column: Any, start: int, stop: int) -> int:
    """Bisect a range that has an unreadable row; return the first such row."""
    below, above = start, stop - 1
    while below < above:
        middle = (below + above) // 2
        try:
            _check_rows(column, below, middle + 1, path="", sound=set())
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


_Place = tuple[int, ...]
"""The addresses of the buffers of an array in memory."""

_Check = Callable[[Any, int, int, str, set[_Place]], None]


def _check_rows(array: pa.Array[Any], start: int, stop: int, *, path: str, sound: set[_Place]) -> None:
    """Check that some rows can be read.

    Args:
        array: what pyarrow's ``validate()`` has passed already.
        start: the first row.
        stop: the row after the last one, not less than the first.
        path: names the array among those of a file.
        sound: the dictionaries that were found to be sound, to which others are added here; they must be
            alive as long as it is.

    Raises:
        ValueError: they cannot.

    Example:
        >>> import numpy as np
        >>> import pyarrow as pa
        >>> offsets = pa.py_buffer(np.array([0, 2, 9, 3], np.int32))
        >>> values = pa.nulls(3, pa.int8())
        >>> lists = pa.Array.from_buffers(pa.list_(pa.int8()), 3, [None, offsets], children=[values])
        >>> _check_rows(lists, 0, 1, path="ids", sound=set())
        >>> _check_rows(lists, 0, 2, path="ids", sound=set())
        Traceback (most recent call last):
        ...
        ValueError: ids: the offsets of lists 0 to 1 go from 0 to 9, over 3 values
    """
    if (check := _checks().get(array.type.id, _check_other)) is not None:
        check(array, start, stop, path, sound)


@cache
def _checks() -> dict[int, _Check | None]:
    """Return the checks of types by their ids; None for types of which all bytes are valid."""
    safe = ("NA BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 HALF_FLOAT FLOAT DOUBLE "
            "DATE32 TIMESTAMP DURATION INTERVAL_MONTH_DAY_NANO FIXED_SIZE_BINARY")  # fmt: skip
    by_name: dict[str, _Check | None] = {
        **dict.fromkeys(safe.split()),
        **dict.fromkeys(("LIST", "LARGE_LIST", "MAP"), _check_lists),
        "FIXED_SIZE_LIST": _check_pieces,
        "STRUCT": _check_struct,
        "DICTIONARY": _check_dictionary,
    }
    return {getattr(pa.lib, f"Type_{name}"): check for name, check in by_name.items()}


def _check_other(array: Any, start: int, stop: int, path: str, sound: set[_Place]) -> None:
    storage = getattr(array, "storage", None)  # of an extension type
    if storage is None:
        array.slice(start, stop - start).validate(full=True)
    else:
        _check_rows(storage, start, stop, path=path, sound=sound)


def _check_struct(array: Any, start: int, stop: int, path: str, sound: set[_Place]) -> None:
    for number in range(array.type.num_fields):
        inner = f"{path}.{array.type.field(number).name}"
        _check_rows(array.field(number), start, stop, path=inner, sound=sound)


def _check_pieces(array: Any, start: int, stop: int, path: str, sound: set[_Place]) -> None:
    size, first = array.type.list_size, array.offset + start
    _check_rows(array.values, first * size, (first + stop - start) * size, path=f"{path}[]", sound=sound)


def _check_lists(array: Any, start: int, stop: int, path: str, sound: set[_Place]) -> None:
    if start == stop:
        return
    offsets = array.slice(start, stop - start).offsets.to_numpy()
    first, last, values = int(offsets[0]), int(offsets[-1]), array.values
    if first < 0 or last > len(values) or (offsets[1:] < offsets[:-1]).any():
        message = f"{path}: the offsets of lists {start} to {stop - 1} go from {first} to {last}, over "
        raise ValueError(
            message + f"{len(values)} values" + (", and back" if first <= last <= len(values) else "")
        )
    _check_rows(values, first, last, path=f"{path}[]", sound=sound)


def _check_dictionary(array: Any, start: int, stop: int, path: str, sound: set[_Place]) -> None:
    values = array.dictionary
    place = tuple(buffer.address if buffer else 0 for buffer in values.buffers())
    if place not in sound:
        values.validate(full=True)
        sound.add(place)
    indices = array.indices.slice(start, stop - start).drop_null().to_numpy()
    if len(indices) and not (indices.min() >= 0 and indices.max() < len(values)):
        message = f"{path}: an index of rows {start} to {stop - 1} is outside of {len(values)} values"
        raise ValueError(message)
