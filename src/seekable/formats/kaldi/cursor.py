"""Cursors, from which every holder reads its bytes: forward only, with exact positions and checked sizes.

There are four, because they differ in what they may read and in who owns the memory of arrays:

- `MemoryCursor` reads bytes or a memory map; its arrays are views, so nothing is copied.
- `FileCursor` reads any binary file, and takes no byte after an object: the file belongs to somebody else.
- `BufferedCursor` reads a file of its own in large pieces, ahead of the objects.
- A fourth, in `seekable.formats.kaldi.table_entries`, reads the chunks of an index build and skips objects.

A size that a file states is checked against the bytes that remain before memory is taken. Where the number of
bytes that remain is not known (a pipe), memory grows only with the bytes that arrive.
"""

from __future__ import annotations

import functools
import io
import os
import stat
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, final

import numpy as np

from seekable.errors import CorruptObject, WrongType
from seekable.storage.memory import most_record_bytes, record_too_large

if TYPE_CHECKING:
    import mmap
    import re
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import DTypeLike, NDArray

    from seekable.storage.ranges import RangeSource


END_OF_FILE = "the end of the file"
"""The beginning of ``found`` in the errors of objects that end too early."""

_SHOWN_BYTES = 24
_LITTLE = 1 << 20
"""No limit is smaller: up to here it is not looked at."""

_SPACES = frozenset(b" \t\n\r\f\v")

_READS_INTO = hasattr(os, "preadv")
"""True if the system reads into memory that is there; macOS does from version 11 on."""


class Output(Protocol):
    """A binary file that is written."""

    def write(self, data: Any, /) -> Any:
        """Write all of `data`, which is bytes or has their buffer protocol."""


class Run(NamedTuple):
    """Entries of an archive that stand one after the other, read at once."""

    keys: Sequence[str]
    values: Sequence[Any]
    end: int
    """The byte behind the last one."""


NO_RUN: Final = Run((), (), 0)


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
            seen = self.preview()[:_SHOWN_BYTES]
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
        """Return the error for a file that ends after `there` of the `count` bytes that `what` has."""
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


_AHEAD_BYTES = 64  # of a file that has to go back after them
_STEP_BYTES = 1 << 20  # 1 MiB: the most memory that is taken before its bytes have arrived


@final
class FileCursor(Cursor):
    """A cursor over a binary file that may only be readable forward (a pipe, the standard input).

    Exactly the bytes of the objects that are read are consumed from the file.

    Args:
        file: it has ``read`` and ``peek``, as files of ``open(path, "rb")`` and pipes have, or it
            is seekable. Any other file is read ahead by one byte at most, for the next read of this cursor.
        name: for messages; by default the name of the file.
        key: for messages.
        position: where the file stands; by default what its ``tell`` says, or 0.

    Example:
        >>> file = io.BytesIO(b"one two")
        >>> cursor = FileCursor(file)
        >>> cursor.through(b" "), cursor.position
        (b'one ', 4)
    """

    __slots__ = ("_ahead", "_file", "_position", "_size")

    def __init__(
        self, file: Any, *, name: str | None = None, key: str | None = None, position: int | None = None
    ) -> None:
        self.name = str(getattr(file, "name", "<stream>")) if name is None else name
        self.key = key
        self._file = _peeking(file)
        self._ahead: Callable[[int], bytes] = self._file.peek
        self._position = _position_of(file) if position is None else position
        self._size = _known_size(file)

    @property
    def position(self) -> int:
        """The number of bytes from the start of the file to the next byte."""
        return self._position

    @property
    def remaining(self) -> int | None:
        """The number of bytes to the end of a regular file; None for other files."""
        return None if self._size is None else max(0, self._size - self._position)

    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end."""
        ahead = self._ahead(1)
        return ahead[0] if ahead else -1

    def preview(self) -> bytes:
        """Return the bytes that have already arrived, at least one before the end, without moving."""
        return bytes(self._ahead(1))

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer if fewer have arrived."""
        return bytes(self._ahead(count)[:count])

    def match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Move past bytes that match a pattern, and return the match; None, without moving, if none do."""
        found = pattern.match(self.preview())
        if found is not None:
            self.skip(found.end(), "bytes")
        return found

    def take(self, count: int, what: str) -> bytes | bytearray:
        """Return the next `count` bytes and move past them; they are not views of memory used again."""
        self.check_count(count, what)
        self.check_record(count)
        if count <= _STEP_BYTES:
            data = self._file.read(count) if count else b""
            self._position += len(data)
            if len(data) == count:
                return bytes(data)
        else:
            data = b""
        return self._gathered(bytearray(data), count, what)

    def _gathered(self, data: bytearray, count: int, what: str) -> bytearray:
        while len(data) < count:
            part = self._file.read(min(count - len(data), _STEP_BYTES))
            if not part:
                raise self.cut_error(count, len(data), what)
            self._position += len(part)
            data += part
        return data

    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes: by a seek in a regular file, by reading them in any other."""
        self.check_count(count, what)
        if self._size is not None and isinstance(self._file, io.BufferedReader):
            self._file.seek(count, os.SEEK_CUR)
            self._position += count
            return
        left = count
        while left:
            part = len(self._file.read(min(left, _STEP_BYTES)))
            if not part:
                raise self.cut_error(count, count - left, what)
            self._position += part
            left -= part

    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return the next `count` items in memory of their own."""
        dtype = np.dtype(dtype)
        if behind:
            self.skip(behind, what)
        size, remaining = dtype.itemsize * count, self.remaining
        if remaining is None or not 0 <= size <= remaining or not isinstance(self._file, io.BufferedReader):
            data = self.take(size, what)
            return np.frombuffer(data if isinstance(data, bytearray) else bytearray(data), dtype)
        found = np.empty(size, np.uint8)
        read = self._file.readinto(found.data)
        self._position += read
        if read < size:
            raise self.cut_error(size, read, what)
        return found.view(dtype)

    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`; without it, all that remain."""
        found = bytearray()
        while ahead := self._ahead(1):
            end = ahead.find(mark) + 1
            part = self._file.read(end or len(ahead))
            self._position += len(part)
            found += part
            if end:
                break
            self.check_record(len(found))
        return bytes(found)


def _peeking(file: Any) -> Any:
    """Return the file itself if it can peek; otherwise one around it that can."""
    if hasattr(file, "peek"):
        return file
    return _SeekingBack(file) if _is_seekable(file) else _OneAhead(file)


def _is_seekable(file: Any) -> bool:
    return hasattr(file, "seekable") and bool(file.seekable())


class _SeekingBack:
    """A seekable file without ``peek``: it reads, and goes back."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.read = file.read

    def peek(self, _: int) -> bytes:
        ahead = bytes(self._file.read(_AHEAD_BYTES))
        self._file.seek(-len(ahead), os.SEEK_CUR)
        return ahead


class _OneAhead:
    """A file without ``peek``, read ahead by one byte where it must be."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.byte = b""

    def peek(self, _: int) -> bytes:
        if not self.byte:
            self.byte = bytes(self._file.read(1) or b"")
        return self.byte

    def read(self, size: int) -> bytes:
        if not size:
            return b""
        byte, self.byte = self.byte, b""
        return byte + bytes(self._file.read(size - len(byte)) or b"") if size > len(byte) else byte


@contextmanager
def borrowed(file: Any) -> Iterator[Cursor]:
    """Give a cursor over a file for one object; the file then stands exactly after the object.

    Raises:
        WrongType: the file can neither peek nor seek, so that it could not be given back exactly.
    """
    if isinstance(file, Cursor):
        yield file
        return
    if not hasattr(file, "peek") and not _is_seekable(file):
        kind = type(file).__name__
        raise WrongType(
            f"file must have peek() or be seekable (got {kind}); wrap it in io.BufferedReader(file)"
        )
    yield FileCursor(file)


def _position_of(file: Any) -> int:
    """Return the position of a file, 0 for a file without one."""
    try:
        return int(file.tell())
    except (AttributeError, OSError):
        return 0


def _known_size(file: Any) -> int | None:
    """Return the size of a regular file or of bytes in memory; None for others, such as compressed files."""
    if isinstance(file, io.BytesIO):
        return file.getbuffer().nbytes
    if not isinstance(file, io.BufferedReader):
        return None
    if isinstance(stated := getattr(file.raw, "size", None), int) and file.seekable():
        return stated
    if isinstance(file.raw, io.FileIO):
        status = os.fstat(file.fileno())
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    return None


_FIRST_READ: Final = 4 << 10
_LARGEST_READ: Final = 64 << 10
"""Reads grow from the first size to this one, while objects are small; a large array is read by itself."""

_SMALL: Final = 16 << 10
"""The most bytes of an object, or of a field of one, that are read by way of the buffer."""

_HEAD_BYTES: Final = 1 << 10
"""The bytes after a large array in a regular file that are read with it: the next key, and its header."""


_PREVIEW_BYTES: Final = 4 << 10


@final
class BufferedCursor(Cursor):
    """A cursor over a file of this process alone: it reads bytes after the last object.

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

    def run(self, read: Callable[[bytes, int], Run]) -> Run:
        """Return the entries that `read` finds in the bytes that have arrived, and move past them."""
        found = read(self._buffer, self._at)
        if found.keys:
            self._at, self.key = found.end, found.keys[-1]
        return found

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
        size = dtype.itemsize * count
        at = self._at = self._at + behind
        if size == 0:
            return np.empty(0, dtype)
        if 0 < size <= len(self._buffer) - at or self._has(size):
            at, self._at = self._at, self._at + size
            return np.frombuffer(self._buffer, dtype, count, at).copy()
        if self._size is None and size > _STEP_BYTES:
            return np.frombuffer(self._gathered(size, what), dtype)
        if not 0 < size <= (size if self._size is None else self._size - self._base - at):
            self.check_count(size, what)
        found = np.empty(count, dtype)
        if self._descriptor < 0 or not _READS_INTO or not self._filled_at_once(found):
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
    if _READS_INTO:
        return os.preadv(descriptor, [view], position)
    data = os.pread(descriptor, len(view), position)
    view[: len(data)] = data
    return len(data)
