"""A cursor over any binary file, also one that can only be read forward: a pipe, the standard input."""

from __future__ import annotations

import io
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import WrongType
from seekable.formats.kaldi.objects.cursor import Cursor

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

    from numpy.typing import DTypeLike, NDArray

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
    """Give a cursor over a file for one object; the file then stands exactly behind the object.

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
