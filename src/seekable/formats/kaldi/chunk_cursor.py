"""A cursor over the bytes that an index build reads, one chunk after the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.formats.kaldi.entry_reader import ENTRY
from seekable.formats.kaldi.objects.cursor import Cursor

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from seekable.index.scanner import ByteSource

__all__ = ["ChunkCursor"]

_SPACES = re.compile(rb"[ \t\n\r\f\v]*")
_PREVIEW_BYTES = 4096
_LONGEST_KEY = 1 << 20
_OF_KEYS = frozenset(range(0x21, 0xFF)) - {0x7F}
_BEHIND_KEYS = frozenset(b" \t\n\r")
_TAKEN_BEHIND_KEYS = frozenset(b" \t")


@final
class ChunkCursor(Cursor):
    """A cursor over a source of bytes, of which one chunk is in memory at a time."""

    __slots__ = ("_at", "_base", "_chunks", "_data", "_end", "_size")

    def __init__(self, source: ByteSource) -> None:
        """Begin at the first byte of the source.

        Args:
            source: the bytes of a whole file.
        """
        self.name, self.key = "", None
        self._chunks = source.chunks()
        self._size = source.content_bytes
        self._data: bytearray | bytes = b""
        self._base = self._at = self._end = 0
        self._more()

    @property
    def position(self) -> int:
        """The number of bytes from the start of the file to the next byte."""
        return self._base + self._at

    @property
    def remaining(self) -> int | None:
        """The number of bytes from here to the end of the file; None of a compressed file."""
        return None if self._size is None else max(self._size - self.position, 0)

    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end of the file."""
        return self._data[self._at] if self._at < self._end or self._more() else -1

    def preview(self) -> bytes:
        """Return at most 4,096 of the next bytes without moving, at least one before the end."""
        if self._at == self._end:
            self._more()
        return bytes(self._data[self._at : min(self._at + _PREVIEW_BYTES, self._end)])

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer at the end of a chunk."""
        return bytes(self._data[self._at : min(self._at + count, self._end)])

    def take(self, count: int, what: str) -> bytes | bytearray:
        """Return the next `count` bytes, copied, and move past them."""
        at = self._at
        if 0 <= count <= self._end - at:
            self._at = at + count
            return bytes(memoryview(self._data)[at : at + count])
        self.check_count(count, what)
        found = bytearray()
        while len(found) < count:
            part = self._data[self._at : min(self._at + count - len(found), self._end)]
            if not part and not self._more():
                raise self.cut_error(count, len(found), what)
            self._at += len(part)
            found += part
        return found

    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes."""
        if 0 <= count <= self._end - self._at:
            self._at += count
            return
        self.check_count(count, what)
        left = count
        while left > self._end - self._at:
            left -= self._end - self._at
            self._at = self._end
            if not self._more():
                raise self.cut_error(count, count - left, what)
        self._at += left

    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return the next `count` items in memory of their own."""
        dtype = np.dtype(dtype)
        if behind:
            self.skip(behind, what)
        return np.frombuffer(self.take(dtype.itemsize * count, what), dtype)

    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`; without it, all that remain."""
        found = bytearray()
        while True:
            start, end = self._at, self._data.find(mark, self._at, self._end)
            self._at = self._end if end < 0 else end + 1
            found += memoryview(self._data)[start : self._at]
            if end >= 0 or not self._more():
                return bytes(found)

    def next_entry(self) -> int | None:
        """Move past whitespace; return the position of the next byte, None at the end of the file."""
        while True:
            found = _SPACES.match(self._data, self._at, self._end)
            self._at = found.end() if found else self._at
            if self._at < self._end:
                return self._base + self._at
            if not self._more():
                return None

    def skip_key(self) -> bool:
        """Move past a key and the space behind it; return False if none is here."""
        found = ENTRY.match(self._data, self._at, self._end)
        if found is not None and found.end() < self._end:
            self._at = found.end()
            return True
        length = 0
        while length < _LONGEST_KEY and (byte := self.peek()) in _OF_KEYS:
            self._at += 1
            length += 1
        if not length or byte not in _BEHIND_KEYS:
            return False
        self._at += byte in _TAKEN_BEHIND_KEYS
        return True

    def finish(self) -> None:
        """Read the rest of the file."""
        while self._more():
            pass

    def _more(self) -> bool:
        """Take the next chunk, after all of this one; return False at the end of the file."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self._base, self._data, self._at, self._end = self._base + self._end, b"", 0, 0
            return False
        self._base, self._data, self._at, self._end = chunk.base, chunk.buffer, 0, chunk.size
        return True
