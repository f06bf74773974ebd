"""A file object for pyarrow over ranges of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable.storage.ranges import PositionedFile

if TYPE_CHECKING:
    from seekable.formats.tables.table_format import RangeSource

__all__ = ["PyarrowFile"]


@final
class PyarrowFile(PositionedFile):
    """The bytes of a source, and bytes behind its end; bytes of a mapped source are not copied.

    The file has a position, so threads must not share it.
    """

    def __init__(self, source: RangeSource, tail: bytes = b"") -> None:
        """Set the position to byte 0.

        Args:
            source: the file.
            tail: bytes that stand behind the last byte of the file.
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
