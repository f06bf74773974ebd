"""The file object that `open_rx` returns."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, final

from seekable.errors import PipeFailed
from seekable.formats.kaldi.files.pipes import RunningCommand
from seekable.formats.kaldi.files.streams import PieceReader, StandardInput

if TYPE_CHECKING:
    from types import TracebackType

    from seekable.formats.kaldi.files.filenames import RxKind

__all__ = ["RxFile"]


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
