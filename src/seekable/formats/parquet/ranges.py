"""A file as pyarrow wants it, of the ranges of a source."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seekable.formats.table import RangeSource

__all__ = ["Ranges"]


class Ranges(io.RawIOBase):
    """The bytes of a source, read as pyarrow reads files; nothing is copied where the source is mapped."""

    def __init__(self, source: RangeSource) -> None:
        super().__init__()
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """Any place of it can be gone to."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        self._at = start + offset
        return self._at

    def read_buffer(self, size: int) -> memoryview:
        """Return the next bytes, fewer at the end: what pyarrow asks for in place of ``read``."""
        start = min(self._at, self._source.size)
        self._at = min(start + size, self._source.size)
        return self._source.range(start, self._at)

    def read(self, size: int = -1) -> bytes:
        """Return a copy of the next bytes."""
        return bytes(self.read_buffer(self._source.size if size < 0 else size))
