"""Arrow as a format of tables: files, Feather V2, and streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seekable.errors import MissingDependency, SeekableError, UnsupportedFormat
from seekable.formats.arrow.flatbuffer import Torn
from seekable.formats.arrow.layout import find_layout, kept_layout, layout_to_keep
from seekable.formats.arrow.table import ArrowTable
from seekable.formats.table import TableSurvey

if TYPE_CHECKING:
    from seekable.formats.arrow.layout import Layout
    from seekable.formats.table import PageStore, RangeSource

__all__ = ["ArrowFormat"]

_OTHERS: Final = {
    b"FEA1": "Feather V1, which few can read; write it anew: pyarrow.feather.write_feather("
    "pyarrow.feather.read_table(OLD), NEW)",
    b"PAR1": "Parquet; its name should end with .parquet",
    b"\x28\xb5\x2f\xfd": "compressed as a whole (zstd); decompress it, Arrow compresses inside of its files",
    b"\x1f\x8b": "compressed as a whole (gzip); decompress it, Arrow compresses inside of its files",
}


@dataclass(frozen=True, slots=True)
class ArrowFormat:
    """Files of Arrow's IPC format and its streams; each record batch is a group.

    Example:
        >>> import os
        >>> import pyarrow as pa
        >>> from tempfile import NamedTemporaryFile
        >>> from seekable.storage.mapped import MappedFile
        >>> from seekable.storage.source import MappedRanges
        >>> with NamedTemporaryFile() as file:
        ...     with pa.ipc.new_stream(file, pa.schema({"id": pa.int64()})) as stream:
        ...         stream.write_batch(pa.record_batch({"id": [7, 8]}))
        ...         stream.write_batch(pa.record_batch({"id": [9]}))
        ...     file.flush()
        ...     status = os.stat(file.name)
        ...     mapped = MappedFile(file.name, size=status.st_size, mtime_ns=status.st_mtime_ns)
        ...     ArrowFormat().survey(MappedRanges(mapped)).group_rows
        (2, 1)
    """

    name: str = "arrow"

    def survey(self, source: RangeSource) -> TableSurvey:
        """Read the footer and the heads of record batches; of a stream, walk from head to head."""
        layout = _layout(source, None)
        schema = _opened(source, layout).schema
        return TableSurvey(tuple(group.rows for group in layout.groups), schema.serialize().to_pybytes())

    def open(self, source: RangeSource, pages: PageStore | None) -> ArrowTable:
        """Open a file; where the record batches of a stream lie is kept."""
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
    except Torn as torn:
        raise _damaged(source, torn) from torn
    if pages and layout.segments:
        pages.save(layout_to_keep(layout, size=source.size))
    return layout


def _opened(source: RangeSource, layout: Layout) -> ArrowTable:
    try:
        import pyarrow as pa
    except ImportError:
        message = "reading Arrow needs pyarrow: pip install 'seekable[parquet]'"
        raise MissingDependency(message) from None
    try:
        table = ArrowTable(source, layout)
    except SeekableError:
        raise
    except (pa.ArrowException, Torn, ValueError, OSError) as error:
        raise _damaged(source, error) from error
    names = table.schema.names
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        message = f"{source.path!r} has columns of one name: {', '.join(map(repr, twice))}; rename them first"
        raise UnsupportedFormat(message)
    return table


def _damaged(source: RangeSource, error: Exception) -> UnsupportedFormat:
    message = (
        f"{source.path!r} cannot be read as a file or a stream of Arrow: {error}. It has "
        f"{source.size:,} bytes; if it should be Arrow, it was damaged or cut off: write it or copy it again"
    )
    return UnsupportedFormat(message)
