"""The contract of table formats: their files hold groups of rows, column by column.

The layout of a file, its groups and its schema, is read once from its footer, when the file is indexed. To
read records the file is opened as a ``TableFile``, which returns columns of a group's rows as Arrow arrays.
Nothing here imports pyarrow, so that a line of JSON can be read without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol, final

from seekable.index.finder import TableIndexer, TableLayout
from seekable.nodes.conditions import Bounds
from seekable.storage.ranges import PositionedFile, RangeSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["Bounds", "PageStore", "PyarrowFile", "RangeSource", "TableFile", "TableFormat", "TableLayout"]


class PageStore(Protocol):
    """Keeps the page tables of a file between processes, as bytes that only the format reads."""

    def load(self) -> bytes | None:
        """Return the bytes that were saved; None if there are none."""

    def save(self, pages: bytes) -> None:
        """Save the bytes; a folder that cannot be written raises no error."""


class TableFile(ABC):
    """One file, open; its methods are called from several threads at once. It is never pickled."""

    shares_map: ClassVar[bool]
    """True if batches may be slices of the mapped file, which then stays mapped as long as they are kept."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the file and their types, equal to those of its `TableLayout`."""

    @abstractmethod
    def rows(self, group: int, rows: Int64s, columns: Sequence[str]) -> pa.RecordBatch:
        """Return some rows of a group, of as few bytes as that takes.

        Args:
            group: the group's number.
            rows: within the group, ascending and distinct.
            columns: names of columns that the file has, each once; maybe none, but the batch then has as
                many rows all the same.

        Raises:
            CorruptRecord: the file is damaged there.
        """

    @abstractmethod
    def run(self, group: int, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return consecutive rows of a group, at the rate at which the format is read from end to end.

        Args:
            group: the group's number.
            start: the first row within the group.
            stop: the row after the last one.
            columns: as for ``rows``.

        Raises:
            CorruptRecord: the file is damaged there.
        """

    @abstractmethod
    def index_ranges(self, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes that say where rows of a group lie, as far as they are not known yet.

        Args:
            group: the group's number.
            columns: as for ``rows``.

        Returns:
            The first byte of each range and the byte after its last; none if all is known.

        Raises:
            CorruptRecord: the file is damaged.
        """

    @abstractmethod
    def row_ranges(self, group: int, rows: Int64s, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes that ``rows`` reads; arguments as of ``rows``, result as of ``index_ranges``."""

    @abstractmethod
    def run_ranges(self, group: int, start: int, stop: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return the bytes that ``run`` reads; arguments as of ``run``, result as of ``index_ranges``."""

    @abstractmethod
    def bounds(self, group: int, columns: Sequence[str]) -> list[tuple[int, int, Mapping[str, Bounds]]]:
        """Return bounds of values from the statistics of the file, without reading values.

        Args:
            group: the group's number.
            columns: as for ``rows``.

        Returns:
            Runs of the group's rows, from the first row to the last: the start and the stop of each, and the
            bounds by column, without columns of unknown bounds.
        """

    @abstractmethod
    def walk(self) -> None:
        """Find the places of all pages of the file, and save them.

        Raises:
            CorruptRecord: the file is damaged.
        """

    @abstractmethod
    def span(self, group: int) -> tuple[int, int]:
        """Return the first byte of a group in the file, and the number of its bytes."""


class TableFormat(TableIndexer, Protocol):
    """A format of tables; a small value without handles, picklable, used from several threads at once."""

    def open(self, source: RangeSource, pages: PageStore | None) -> TableFile:
        """Return an open file whose layout was read.

        Raises:
            UnsupportedFormat: as ``read_layout``.
            MissingDependency: a package is needed.
        """


@final
class PyarrowFile(PositionedFile):
    """The bytes of a source, and bytes after its end; bytes of a mapped source are not copied.

    The file has a position, so threads must not share it.
    """

    def __init__(self, source: RangeSource, tail: bytes = b"") -> None:
        """Set the position to byte 0.

        Args:
            source: the file.
            tail: bytes that stand after the last byte of the file.
        """
        super().__init__(source.size + len(tail))
        self._source = source
        self._tail = memoryview(tail)

    def read_buffer(self, size: int) -> memoryview:
        """Return the next bytes, fewer at the end. pyarrow calls this instead of ``read`` to save a copy."""
        start, stop = min(self._at, self._size), min(self._at + size, self._size)
        self._at, end = stop, self._source.size
        if stop <= end:
            return self._source.range(start, stop)
        if start >= end:
            return self._tail[start - end : stop - end]
        return memoryview(bytes(self._source.range(start, end)) + self._tail[: stop - end])

    def read(self, size: int = -1) -> bytes:
        """Return a copy of the next bytes, fewer at the end; all of them if ``size`` is negative."""
        return bytes(self.read_buffer(self._size if size < 0 else size))
