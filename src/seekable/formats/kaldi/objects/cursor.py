"""The reader of bytes that every holder uses: forward only, with exact positions and checked sizes.

There are four, because they differ in what they may read and in who owns the memory of arrays:

- `MemoryCursor` reads bytes or a memory map; its arrays are views, so nothing is copied.
- `FileCursor` reads any binary file, and takes no byte behind an object: the file belongs to somebody else.
- `BufferedCursor` reads a file of its own in large pieces, ahead of the objects.
- `ChunkCursor` (`formats/kaldi`) reads the chunks of an index build, in which objects are skipped.

A size that a file states is checked against the bytes that remain before memory is taken. Where the number of
bytes that remain is not known (a pipe), memory grows only with the bytes that arrive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from seekable.errors import CorruptObject
from seekable.storage.memory import most_record_bytes, record_too_large

if TYPE_CHECKING:
    import mmap

    from numpy.typing import DTypeLike, NDArray

END_OF_FILE = "the end of the file"
"""The beginning of ``found`` in the errors of objects that end too early."""

_PREVIEW_BYTES = 24
_LITTLE = 1 << 20
"""No limit is smaller: up to here it is not looked at."""

_SPACES = frozenset(b" \t\n\r\f\v")


class Output(Protocol):
    """A binary file that is written."""

    def write(self, data: Any, /) -> Any:
        """Write all of `data`, which is bytes or has their buffer protocol."""


class Cursor(ABC):
    """A position in a binary file, which moves forward as objects are read.

    A cursor is not safe for use by several threads at a time, and cannot be pickled.
    """

    __slots__ = ("key", "name")

    name: str
    """The name of the file, for messages."""
    key: str | None
    """The key of the entry that is read, for messages; None if it is not known."""

    @property
    @abstractmethod
    def position(self) -> int:
        """The number of bytes from the start of the file to the next byte."""

    @property
    @abstractmethod
    def remaining(self) -> int | None:
        """The number of bytes from here to the end of the file; None if it is not known."""

    @abstractmethod
    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end of the file."""

    @abstractmethod
    def preview(self) -> bytes:
        """Return a few of the next bytes without moving; none at the end of the file."""

    @abstractmethod
    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer if the file ends, or if fewer have arrived."""

    @abstractmethod
    def take(self, count: int, what: str) -> Any:
        """Return the next `count` bytes (bytes or a view of them) and move past them.

        Raises:
            CorruptObject: the file ends before; the message says that `what` was expected.
        """

    @abstractmethod
    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes.

        Raises:
            CorruptObject: the file ends before.
        """

    @abstractmethod
    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return the next `count` items as an array: over memory, a read-only view at any alignment.

        Args:
            dtype: the dtype of an item.
            count: the number of items.
            what: the name of the items, for messages.
            behind: the number of bytes to move past first; `ahead` has returned them.

        Raises:
            CorruptObject: the file ends before, or the count is negative.
        """

    @abstractmethod
    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`, one byte; without it, all that remain. Move past them."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, as a binary file does; all that remain if it is negative."""
        remaining = self.remaining
        if remaining is not None:
            return bytes(self.take(min(size, remaining) if size >= 0 else remaining, "bytes"))
        chunks = bytearray()
        while (size < 0 or len(chunks) < size) and self.peek() >= 0:
            self.check_record(len(chunks))
            part = self.preview() if size < 0 else self.preview()[: size - len(chunks)]
            chunks += self.take(len(part), "bytes")
        return bytes(chunks)

    def skip_spaces(self) -> int:
        """Move past whitespace; return the next byte without moving, -1 at the end."""
        while (byte := self.peek()) in _SPACES:
            self.skip(1, "whitespace")
        return byte

    def word(self, what: str, *, at_most: int = 1 << 20) -> bytes:
        """Return the bytes up to the next whitespace, which stays unread; refuse an empty word."""
        found = bytearray()
        while (byte := self.peek()) >= 0 and byte not in _SPACES and len(found) < at_most:
            found += self.take(1, what)
        if not found:
            raise self.error(what)
        return bytes(found)

    def error(self, expected: str, found: str | None = None, *, at: int | None = None) -> CorruptObject:
        """Return an error at a byte of the file, by default at the next one, with the bytes found there."""
        if found is None:
            seen = self.preview()[:_PREVIEW_BYTES]
            found = repr(bytes(seen)) if seen else END_OF_FILE
        return CorruptObject(self.name, self.key, self.position if at is None else at, expected, found)

    def check_count(self, count: int, what: str) -> None:
        """Raise an error for a count of bytes that is negative, or more than remain where that is known.

        Raises:
            CorruptObject: it is; the message says that `what` was expected.
        """
        remaining = self.remaining
        if count < 0 or (remaining is not None and count > remaining):
            raise self.cut_error(count, remaining or 0, what)

    def check_record(self, count: int) -> None:
        """Raise an error for an object of a stream that has more bytes than a record may have.

        Raises:
            CorruptObject: it has.
        """
        if count > _LITTLE and self.remaining is None and count > most_record_bytes():
            raise self.error("the end of an object", record_too_large(count))

    def cut_error(self, count: int, there: int, what: str) -> CorruptObject:
        """Return the error of a file that ends after `there` of the `count` bytes of `what`."""
        if count < 0:
            return self.error(what, f"a negative size ({count})")
        return self.error(f"{what} ({count} bytes)", f"{END_OF_FILE} after {there} bytes")


@final
class MemoryCursor(Cursor):
    """A cursor over bytes or a memory map, from `position` to `end`.

    Args:
        data: the bytes.
        name: for messages.
        key: for messages.
        position: the first byte that is read.
        end: the byte at which reading ends; by default the end of `data`.

    Example:
        >>> cursor = MemoryCursor(b"abcdef", name="demo", position=2)
        >>> bytes(cursor.take(3, "a code")), cursor.position, cursor.remaining
        (b'cde', 5, 1)
    """

    __slots__ = ("_at", "_data", "_end", "_view")

    def __init__(
        self,
        data: bytes | bytearray | memoryview | mmap.mmap,
        *,
        name: str = "<memory>",
        key: str | None = None,
        position: int = 0,
        end: int | None = None,
    ) -> None:
        self.name = name
        self.key = key
        self._data = data
        self._view = memoryview(data)
        self._end = len(self._view) if end is None else min(end, len(self._view))
        self._at = min(position, self._end)

    @property
    def position(self) -> int:
        """The number of bytes from the start of the memory to the next byte."""
        return self._at

    @property
    def remaining(self) -> int:
        """The number of bytes from here to the end."""
        return self._end - self._at

    def seek(self, position: int) -> None:
        """Move to a byte, counted from the start of the memory."""
        self._at = max(0, min(position, self._end))

    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end."""
        at = self._at
        return self._view[at] if at < self._end else -1

    def preview(self) -> bytes:
        """Return at most 4,096 of the next bytes without moving."""
        return bytes(self._view[self._at : min(self._at + 4096, self._end)])

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer at the end."""
        at = self._at
        return bytes(self._data[at : min(at + count, self._end)])

    def take(self, count: int, what: str) -> memoryview:
        """Return a view of the next `count` bytes and move past them."""
        at = self._at
        if count < 0 or count > self._end - at:
            raise self.cut_error(count, self._end - at, what)
        self._at = at + count
        return self._view[at : at + count]

    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes, which are not touched."""
        if count < 0 or count > self._end - self._at:
            raise self.cut_error(count, self._end - self._at, what)
        self._at += count

    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return a view of the next `count` items."""
        dtype = np.dtype(dtype)
        size = dtype.itemsize * count
        at = self._at + behind
        end = at + size
        if count < 0 or end > self._end:
            self.skip(behind, what)
            raise self.cut_error(size, self._end - at, what)
        self._at = end
        if not count:
            return np.empty(0, dtype)
        return np.frombuffer(self._data, dtype, count, at)

    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`; without it, all that remain."""
        if isinstance(self._data, bytes):
            start, found = self._at, self._data.find(mark, self._at, self._end)
            self._at = self._end if found < 0 else found + 1
            return self._data[start : self._at]
        # The search of a memory map is slow, that of bytes is fast: copies that grow are searched.
        parts, size = [], 256
        while True:
            part = bytes(self._view[self._at : min(self._at + size, self._end)])
            end = part.find(mark) + 1
            self._at += end or len(part)
            parts.append(part[:end] if end else part)
            if end or not part:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            size = min(8 * size, 1 << 20)
