"""A cursor over a file that nobody else reads: it reads large pieces, ahead of the objects."""

from __future__ import annotations

import functools
import io
import os
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from seekable.formats.kaldi.objects.cursor import Cursor

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from numpy.typing import DTypeLike, NDArray

    from seekable.storage.ranges import RangeSource

_FIRST_READ: Final = 4 << 10
_LARGEST_READ: Final = 64 << 10
"""Reads grow from the first size to this one, while objects are small; a large array is read by itself."""

_SMALL: Final = 16 << 10
"""The most bytes of an object, or of a field of one, that are read by way of the buffer."""

_HEAD_BYTES: Final = 1 << 10
"""The bytes behind a large array of a regular file that are read with it: the next key, and its header."""

_STEP_BYTES: Final = 1 << 20
"""The most memory that is taken before its bytes have arrived, of a file whose size is not known."""

_PREVIEW_BYTES: Final = 4 << 10


@final
class BufferedCursor(Cursor):
    """A cursor over a file of this process alone: it reads bytes behind the last object.

    Arrays have memory of their own, and large ones are read right into it.

    Args:
        file: a raw file, which is read forward. A regular file is read without moving its position, so that
            other processes may read it too. A source of ranges is read like a regular file.
        name: for messages.
        key: for messages.
        position: the first byte that is read; of other files than regular ones, the number of bytes that were
            read before.
        size: the size of a regular file, or of a source of ranges; None for other files.

    Example:
        >>> import io
        >>> cursor = BufferedCursor(io.BytesIO(b"one two"), name="demo")
        >>> cursor.through(b" "), cursor.position, cursor.preview()
        (b'one ', 4, b'two')
    """

    __slots__ = ("_at", "_base", "_buffer", "_descriptor", "_read", "_read_into", "_size", "_step")

    def __init__(
        self,
        file: io.RawIOBase | io.BytesIO | RangeSource,
        *,
        name: str,
        key: str | None = None,
        position: int = 0,
        size: int | None = None,
    ) -> None:
        self.name = name
        self.key = key
        self._size = size
        self._base = position
        """The place of the first byte of the buffer in the file."""
        self._buffer = b""
        self._at = 0
        """The number of bytes of the buffer that were read."""
        self._step = _FIRST_READ
        self._descriptor = -1
        self._read: Callable[[int, int], bytes | None]
        self._read_into: Callable[[Any, int], int | None]
        if not isinstance(file, io.IOBase):
            self._read = lambda count, at: bytes(file.range(at, at + count))
            self._read_into = functools.partial(_copy_into, file)
        elif size is None:
            self._read = lambda count, _: file.read(count)
            self._read_into = lambda view, _: file.readinto(view)
        else:
            self._descriptor = file.fileno()
            self._read = functools.partial(os.pread, file.fileno())
            self._read_into = functools.partial(_pread_into, file.fileno())

    @property
    def position(self) -> int:
        """The number of bytes from the start of the file to the next byte."""
        return self._base + self._at

    @property
    def remaining(self) -> int | None:
        """The number of bytes to the end of a regular file; None for other files."""
        return None if self._size is None else max(0, self._size - self.position)

    def seek(self, position: int) -> None:
        """Move to a byte of a regular file."""
        at = position - self._base
        if 0 <= at <= len(self._buffer):
            self._at = at
        else:
            self._move(position)

    def _move(self, position: int) -> None:
        """Move to a byte, with an empty buffer."""
        self._buffer, self._base, self._at, self._step = b"", position, 0, _FIRST_READ

    def _more(self) -> bool:
        """Read more into the buffer; return False at the end of the file."""
        data = self._read(self._step, self._base + len(self._buffer))
        if not data:
            return False
        at = self._at
        self._buffer = self._buffer[at:] + data if at < len(self._buffer) else data
        self._base += at
        self._at = 0
        self._step = min(2 * self._step, _LARGEST_READ)
        return True

    def _has(self, count: int) -> bool:
        """Return True if the buffer has the next bytes, after reading more if they are few."""
        while len(self._buffer) - self._at < count:
            if count > _SMALL or not self._more():
                return False
        return count >= 0

    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end."""
        if self._at < len(self._buffer) or self._more():
            return self._buffer[self._at]
        return -1

    def preview(self) -> bytes:
        """Return at most 4,096 of the bytes that have arrived, without moving; none at the end."""
        if self._at == len(self._buffer):
            self._more()
        return self._buffer[self._at : self._at + _PREVIEW_BYTES]

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer at the end, or if fewer have arrived."""
        if len(self._buffer) - self._at < count and (self._size is not None or self._at == len(self._buffer)):
            self._more()
        return self._buffer[self._at : self._at + count]

    def match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Move past bytes that match a pattern, and return the match; None, without moving, if none do."""
        while (found := pattern.match(self._buffer, self._at)) is None:
            if len(self._buffer) - self._at >= _PREVIEW_BYTES or not self._more():
                return None
        self._at = found.end()
        return found

    def take(self, count: int, what: str) -> bytes | bytearray:
        """Return the next `count` bytes and move past them."""
        at = self._at
        end = at + count
        if end > len(self._buffer) or count < 0:
            if not self._has(count):
                return self._gathered(count, what)
            at, end = self._at, self._at + count
        self._at = end
        return self._buffer[at:end]

    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes, which are not read from a regular file."""
        at = self._at + count
        if self._at <= at <= len(self._buffer):
            self._at = at
            return
        self.check_count(count, what)
        if self._size is not None:
            self._move(self.position + count)
            return
        left = count
        while left:
            if self._at == len(self._buffer) and not self._more():
                raise self.cut_error(count, count - left, what)
            part = min(left, len(self._buffer) - self._at)
            self._at += part
            left -= part

    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return the next `count` items in writable memory of their own.

        Args:
            dtype: the dtype of an item.
            count: the number of items.
            what: the name of the items, for messages.
            behind: the number of bytes to move past first; `ahead` has returned them.
        """
        dtype = np.dtype(dtype)
        self._at += behind
        size = dtype.itemsize * count
        if size == 0:
            return np.empty(0, dtype)
        if self._has(size):
            at = self._at
            self._at = at + size
            return np.frombuffer(self._buffer, dtype, count, at).copy()
        if self._size is None and size > _STEP_BYTES:
            return np.frombuffer(self._gathered(size, what), dtype)
        self.check_count(size, what)
        found = np.empty(count, dtype)
        if self._descriptor < 0 or not self._filled_at_once(found):
            self._fill(found.view(np.uint8).data, what)
        return found

    def _filled_at_once(self, found: NDArray[Any]) -> bool:
        """Fill an array from a regular file, and the buffer with what follows; return False if that fails."""
        start, ahead = self._base + self._at, bytearray(_HEAD_BYTES)
        extra = os.preadv(self._descriptor, [found.data, ahead], start) - found.nbytes
        if extra < 0:
            return False
        self._move(start + found.nbytes)
        self._buffer = bytes(ahead[:extra])
        return True

    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`; without it, all that remain."""
        parts, size = [], 0
        while True:
            at = self._at
            end = self._buffer.find(mark, at) + 1
            if end:
                self._at = end
                parts.append(self._buffer[at:end])
                break
            parts.append(self._buffer[at:])
            size += len(parts[-1])
            self.check_record(size)
            self._at = len(self._buffer)
            if not self._more():
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _gathered(self, count: int, what: str) -> bytearray:
        """Return the next bytes, more than the buffer has; memory grows with the bytes that arrive."""
        self.check_count(count, what)
        self.check_record(count)
        found = bytearray()
        while len(found) < count:
            start = len(found)
            found += bytes(min(count - start, _STEP_BYTES))
            with memoryview(found) as view:
                self._fill(view[start:], what)
        return found

    def _fill(self, view: memoryview, what: str) -> None:
        """Fill memory from the buffer and then from the file; the buffer is empty then."""
        count = len(view)
        start = self.position
        filled = min(count, len(self._buffer) - self._at)
        view[:filled] = self._buffer[self._at : self._at + filled]
        while filled < count:
            part = self._read_into(view[filled:], start + filled)
            if not part:
                self._move(start)
                raise self.cut_error(count, filled, what)
            filled += part
        self._move(start + count)


def _copy_into(source: RangeSource, view: memoryview, position: int) -> int:
    data = source.range(position, position + len(view))
    view[: len(data)] = data
    return len(data)


def _pread_into(descriptor: int, view: memoryview, position: int) -> int:
    return os.preadv(descriptor, [view], position)
