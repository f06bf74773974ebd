"""Arrow as a format of tables: files, Feather V2, and streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seekable._arguments import repeated
from seekable._optional import optional
from seekable.errors import SeekableError, UnsupportedFormat
from seekable.formats.tables.arrow.ipc import InvalidArrow
from seekable.formats.tables.arrow.layout import find_layout, kept_layout, layout_to_keep
from seekable.formats.tables.arrow.table import ArrowTable
from seekable.formats.tables.table_format import TableLayout

if TYPE_CHECKING:
    import pyarrow as pa

    from seekable.formats.tables.arrow.layout import Layout
    from seekable.formats.tables.table_format import PageStore, RangeSource
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["ArrowFormat"]

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


def _layout(source: RangeSource, pages: PageStore | None) -> Layout:
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


def _opened(source: RangeSource, layout: Layout) -> ArrowTable:
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
