"""Raw streams below the files of this room: they count bytes, so that errors can say where they are."""

from __future__ import annotations

import io
import sys
import weakref
from typing import TYPE_CHECKING, Final, final

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["PieceReader", "PieceWriter", "StandardInput", "write_to_stdout"]

_READ_BYTES: Final = 64 << 10


@final
class PieceReader(io.RawIOBase):
    """A raw stream over pieces of bytes, which can only be read forward.

    Example:
        >>> stream = PieceReader(iter([b"good ", b"day"]), name="greeting")
        >>> stream.read(7), stream.tell(), stream.read(7), stream.tell()
        (b'good ', 5, b'day', 8)
    """

    def __init__(
        self,
        pieces: Iterator[bytes],
        *,
        name: str,
        position: int = 0,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        """Take the pieces; none is read yet.

        Args:
            pieces: the bytes, in pieces of any size.
            name: the name of what they come from, for messages.
            position: the number of bytes before the first piece.
            on_close: is called when the stream is closed.
        """
        super().__init__()
        self.name = name
        """The name of what the bytes come from."""
        self._on_close = on_close
        self._error: Exception | None = None
        self._pieces = pieces
        self._rest = memoryview(b"")
        self._position = position

    def readable(self) -> bool:
        """Return True, as files of the standard library do."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the start of a buffer, and return the number of bytes, 0 at the end of the pieces."""
        while not self._rest:
            piece = self._next_piece()
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        with memoryview(buffer).cast("B") as target:
            count = min(len(target), len(self._rest))
            target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._position += count
        return count

    def _next_piece(self) -> bytes | None:
        # A generator that has failed ends, and the next read would take that for the end of the content.
        if self._error is not None:
            raise self._error
        try:
            return next(self._pieces, None)
        except Exception as error:
            self._error = error
            raise

    def tell(self) -> int:
        """Return the number of bytes before the next one."""
        return self._position

    def rest_of_piece(self) -> bytes:
        """Return the bytes of the present piece that were not read."""
        return bytes(self._rest)

    def close(self) -> None:
        """Close the stream, and the generator of the pieces if they are made by one."""
        if not self.closed:
            super().close()
            end = getattr(self._pieces, "close", None)
            if end is not None:
                end()
            if self._on_close is not None:
                self._on_close()


@final
class PieceWriter(io.RawIOBase):
    """A raw stream that passes bytes to a function, and counts them.

    Example:
        >>> stream = PieceWriter(len, name="nowhere")
        >>> stream.write(b"good day"), stream.tell()
        (8, 8)
    """

    def __init__(self, write: Callable[[memoryview], int], *, name: str) -> None:
        """Take the function that writes.

        Args:
            write: takes bytes, and returns how many of them it took.
            name: the name of what it writes to, for messages.
        """
        super().__init__()
        self.name = name
        """The name of what the bytes go to."""
        self._write = write
        self._position = 0

    def writable(self) -> bool:
        """Return True, as files of the standard library do."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Pass bytes on, and return how many were taken."""
        with memoryview(data).cast("B") as view:
            count = self._write(view)
        self._position += count
        return count

    def tell(self) -> int:
        """Return the number of bytes that were taken."""
        return self._position


_unread: weakref.WeakKeyDictionary[io.BufferedIOBase, bytes] = weakref.WeakKeyDictionary()
"""Bytes that a reader of standard input took and did not use, for the next one."""


@final
class StandardInput:
    """Standard input, which several files read one after the other: each goes on where the last one ended."""

    def __init__(self) -> None:
        """Take the ``sys.stdin`` of this moment.

        Raises:
            InvalidArgument: there is none, or it was replaced by a stream of text without bytes below.
        """
        buffer = getattr(sys.stdin, "buffer", None)
        if buffer is None:
            message = "standard input has no bytes: sys.stdin is closed, or was replaced by a stream of text"
            raise InvalidArgument(message)
        self._buffer: io.BufferedIOBase = buffer

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes up to the end, each piece as soon as it is there."""
        if before := _unread.pop(self._buffer, b""):
            yield before
        while piece := self._buffer.read1(_READ_BYTES):
            yield piece

    def peek(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or fewer at the end, and leave them for the next reader."""
        head = b""
        for piece in self.pieces():
            head += piece
            if len(head) >= count:
                break
        self.put_back(head)
        return head[:count]

    def put_back(self, data: bytes) -> None:
        """Keep bytes that were taken too early for the next reader."""
        if data:
            _unread[self._buffer] = data + _unread.get(self._buffer, b"")


def write_to_stdout(data: memoryview) -> int:
    """Write bytes to ``sys.stdout``, behind all text that was written there before, and flush them.

    Raises:
        InvalidArgument: ``sys.stdout`` is closed, or was replaced by a stream of text without bytes below.
        BrokenPipeError: nobody reads it any more.
    """
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        message = "standard output takes no bytes: sys.stdout is closed, or was replaced by a stream of text"
        raise InvalidArgument(message)
    sys.stdout.flush()
    buffer.write(data)
    buffer.flush()
    return len(data)
