"""The file object that `open_wx` returns."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING, Final, final

from seekable.errors import PipeFailed
from seekable.storage.files import put_in_place

if TYPE_CHECKING:
    from types import TracebackType

    from seekable.formats.kaldi.files.filenames import WxKind
    from seekable.formats.kaldi.files.pipes import RunningCommand

__all__ = ["WxFile"]

_BUFFER_BYTES: Final = 64 << 10


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
