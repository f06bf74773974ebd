"""The file objects that `open_rx` and `open_wx` return, and the raw streams below them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import weakref
from typing import TYPE_CHECKING, ClassVar, Final, final

from seekable.errors import InvalidArgument, PipeFailed
from seekable.formats.kaldi.files.pipes import RunningCommand
from seekable.storage.files import put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from _typeshed import ReadableBuffer, WriteableBuffer

    from seekable.formats.kaldi.files.specifiers import RxKind, WxKind

_READ_BYTES: Final = 64 << 10
_BUFFER_BYTES: Final = 64 << 10


@final
class Process:
    """The present process. To ask the system for it takes a fifth of the time of writing a number."""

    id: ClassVar[int] = os.getpid()
    """Its number."""

    @classmethod
    def begin(cls) -> None:
        """Note the number of a forked process."""
        cls.id = os.getpid()


os.register_at_fork(after_in_child=Process.begin)


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
        """Fill the start of a buffer; return how many bytes it got, 0 after the last piece."""
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
        """Take the present ``sys.stdin``.

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
    """Write bytes to ``sys.stdout``, after all text that was written there before, and flush them.

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


@final
class RxFile(io.BufferedReader):
    """An rxfilename, open for reading: a binary file object. `open_rx` makes it.

    ``tell()`` is the byte of the file, of the decompressed content, or of the output of the command. Files
    that are not compressed can seek.
    """

    def __init__(
        self,
        raw: io.RawIOBase,
        *,
        rxfilename: str,
        kind: RxKind,
        buffer_size: int,
        owner: RunningCommand | StandardInput | None,
    ) -> None:
        """Take the raw stream of the bytes.

        Args:
            raw: the bytes.
            rxfilename: the extended filename, for messages.
            kind: its kind.
            buffer_size: the number of bytes of the buffer.
            owner: the running command, or standard input, that the bytes come from.
        """
        self.rxfilename = rxfilename
        """The extended filename that was opened."""
        self.kind = kind
        """The kind of the extended filename."""
        self.binary: bool | None = None
        """True if the binary header was there, and consumed; False for text, None with ``header=False``."""
        self._owner = owner
        self._failure: PipeFailed | None = None
        super().__init__(raw, buffer_size)

    def __del__(self) -> None:
        """Close the file as after an error: a command is waited for, and its exit code ignored."""
        with contextlib.suppress(OSError, ValueError):
            self.abandon()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; after an error in the block, that error counts and not the exit code."""
        if error is None:
            self.close()
        else:
            self.abandon()

    def close(self, *, check: bool = True) -> bool:  # type: ignore[override] # the status of the command
        """Close the file, and return True unless it is a command that failed.

        A command whose output was read to the end has failed if its exit code is not 0. A command is not
        failed if it still had output: it was ended by SIGPIPE, as in a shell. Closing waits until the command
        has ended. Closing again does nothing, and returns the same.

        Args:
            check: raise an error for a command that failed.

        Raises:
            PipeFailed: a command failed, and ``check`` is true.
        """
        if not self.closed:
            self._end(look=True)
            if check and self._failure is not None:
                raise self._failure
        return self._failure is None

    def abandon(self) -> None:
        """Close the file as after an error: a command is waited for, and its exit code is ignored."""
        if not self.closed:
            self._end(look=False)

    def _end(self, *, look: bool) -> None:
        """Close the stream and what it comes from.

        Args:
            look: find out if a command has more output; without it the exit code is ignored.
        """
        try:
            if isinstance(self._owner, StandardInput):
                self._owner.put_back(self._taken_too_early())
            is_at_end = look and isinstance(self._owner, RunningCommand) and not self.peek(1)
        finally:
            super().close()
            code = self._owner.finish() if isinstance(self._owner, RunningCommand) else 0
        if code and is_at_end and isinstance(self._owner, RunningCommand):
            self._failure = PipeFailed(self._owner.command, code)

    def _taken_too_early(self) -> bytes:
        raw = self.raw
        assert isinstance(raw, PieceReader)
        return self.read(raw.tell() - self.tell()) + raw.rest_of_piece()


@final
class WxFile(io.BufferedWriter):
    """A wxfilename, open for writing: a binary file object. `open_wx` makes it.

    ``tell()`` is the byte of the file, or the number of bytes written to the command or to standard output.
    """

    def __init__(
        self,
        raw: io.RawIOBase,
        *,
        wxfilename: str,
        kind: WxKind,
        command: RunningCommand | None = None,
        temporary: str = "",
        target: str = "",
    ) -> None:
        """Take the raw stream of the bytes.

        Args:
            raw: takes the bytes.
            wxfilename: the extended filename, for messages.
            kind: its kind.
            command: the running command, if the bytes go to one.
            temporary: the path of the file until it is closed; empty for a file that has its name.
            target: the path of the file after that.
        """
        self._process_id = os.getpid()
        self.wxfilename = wxfilename
        """The extended filename that was opened."""
        self.kind = kind
        """The kind of the extended filename."""
        self.binary = True
        """True if binary objects are written, False for text."""
        self._command = command
        self._temporary = temporary
        self._target = target
        self._failure: PipeFailed | None = None
        self._synced = -1
        super().__init__(raw, _BUFFER_BYTES)

    def __del__(self) -> None:
        """Close the file as after an error: an atomic file is removed, unless this is a child process."""
        with contextlib.suppress(OSError, ValueError):
            if os.getpid() == self._process_id:
                self.discard()
            else:
                self.raw.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; after an error in the block, remove an atomic file, and ignore an exit code."""
        if error is None:
            self.close()
        else:
            with contextlib.suppress(OSError):
                self.discard()

    def close(self, *, check: bool = True) -> bool:  # type: ignore[override] # the status of the command
        """Write what is in the buffer, close the file, and return True unless it is a command that failed.

        A command has failed if its exit code is not 0, or if it did not read everything. Closing waits until
        the command has ended. An atomic file gets its name. Closing again does nothing, and returns the same.

        Args:
            check: raise an error for a command that failed.

        Raises:
            PipeFailed: a command failed, and ``check`` is true.
            OSError: the disk is full; an atomic file is removed then.
        """
        if not self.closed:
            self._end(keep=True)
            if check and self._failure is not None:
                raise self._failure
        return self._failure is None

    def discard(self) -> None:
        """Close the file; an atomic one is removed, and its name stays as it was.

        Other files and commands get what was written. The exit code of a command is ignored.
        """
        if not self.closed:
            self._end(keep=False)

    def sync(self) -> None:
        """Write what is in the buffer; an atomic file is synced to disk, so that closing it only names it.

        Raises:
            OSError: the disk is full.
            PipeFailed: the command does not read any more.
        """
        self.flush()
        if self._temporary and self._synced != self.tell():
            os.fsync(self.fileno())
            self._synced = self.tell()

    def _end(self, *, keep: bool) -> None:
        is_complete = False
        try:
            # `_end_command` makes the error of a command again, with the exit code.
            with contextlib.suppress(PipeFailed):
                if keep:
                    self.sync()
                    super().close()
                    is_complete = True
        finally:
            if not self.closed:
                with contextlib.suppress(OSError):
                    super().close()
            self._end_command()
            self._end_temporary(keep=is_complete)

    def _end_command(self) -> None:
        if self._command is not None:
            code = self._command.finish()
            if code or self._command.lost:
                self._failure = PipeFailed(self._command.command, code)

    def _end_temporary(self, *, keep: bool) -> None:
        if self._temporary:
            if keep:
                put_in_place(self._temporary, self._target)
            elif os.path.lexists(self._temporary):
                os.unlink(self._temporary)
