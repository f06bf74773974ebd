"""What pyarrow reads an Arrow file through: ranges of its source, without a copy where that is mapped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seekable.formats.table import RangeSource

__all__ = ["Ranges"]


class Ranges:
    """A source and what is put behind its last byte, as a file for pyarrow; not safe from threads."""

    closed = False

    def __init__(self, source: RangeSource, tail: bytes) -> None:
        self._source, self._tail, self._at = source, memoryview(tail), 0
        self._size = source.size + len(tail)

    def read_buffer(self, count: int) -> memoryview:
        """Return the next bytes, fewer at the end; pyarrow takes what it can get so without copying it."""
        start, stop = self._at, min(self._at + count, self._size)
        self._at, held = stop, self._source.size
        if stop <= held:
            return self._source.range(start, stop)
        if start >= held:
            return self._tail[start - held : stop - held]
        return memoryview(bytes(self._source.range(start, held)) + self._tail[: stop - held])

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes, fewer at the end."""
        return bytes(self.read_buffer(self._size if count < 0 else count))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go somewhere, and return where that is."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._at

    def close(self) -> None:
        """Do nothing: the source is not ours to close."""
