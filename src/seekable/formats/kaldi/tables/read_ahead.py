"""Option ``bg``: a thread reads the next entry while the caller works with the present one."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, final

from seekable.errors import ForkUnsafe, InvalidArgument

if TYPE_CHECKING:
    from seekable.formats.kaldi.tables.entries import Entries

__all__ = ["ReadAhead"]


class _Read(NamedTuple):
    """An entry that the thread read, or the end of the table."""

    key: str | None
    """None at the end of the table, and where the table cannot be read on."""

    value: Any = None
    error: BaseException | None = None
    """The error of the object, or without a key of the table."""


@final
class ReadAhead:
    """The entries of a table, each read while the caller uses the one before it.

    One thread reads; it begins with an entry when the one before has been taken, so one object is ahead.
    """

    def __init__(self, entries: Entries) -> None:
        """Take the entries, and start to read the first one."""
        self._entries = entries
        self._process_id = os.getpid()
        self._wanted = threading.Semaphore(1)
        self._is_read = threading.Semaphore(0)
        self._is_closed = False
        self._next: _Read | None = None
        self._present: _Read | None = None
        self._thread = threading.Thread(target=self._run, name="seekable kaldi bg", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._is_closed:
                return
            # Errors go to the caller, who would wait for ever if this thread ended by one.
            self._next = self._read()
            is_last = self._next.key is None
            self._is_read.release()
            if is_last:
                return

    def _read(self) -> _Read:
        try:
            key = self._entries.advance()
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the caller
            return _Read(None, error=error)
        if key is None:
            return _Read(None)
        try:
            return _Read(key, self._entries.value())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the caller
            return _Read(key, error=error)

    def advance(self) -> str | None:
        """Move to the next entry, after it has been read.

        Raises:
            ForkUnsafe: this process was forked from the one that has the thread.
            CorruptTable, PipeFailed, OSError: the table cannot be read on.
        """
        if os.getpid() != self._process_id:
            raise ForkUnsafe(
                f"option bg reads in a thread of process {self._process_id}, which a forked process does not "
                f"have: open the table after the fork"
            )
        self._present = None
        self._is_read.acquire()
        found, self._next = self._next, None
        assert found is not None
        self._wanted.release()
        if found.key is None and found.error is not None:
            raise found.error
        self._present = found
        return found.key

    def value(self) -> Any:
        """Return the object of the present entry, or raise the error that its reading ended with."""
        if self._present is None:
            raise InvalidArgument(
                "the present object was freed: option bg does not read it again. Call next()"
            )
        if self._present.error is not None:
            raise self._present.error
        return self._present.value

    def free(self) -> None:
        """Drop the object of the present entry."""
        self._present = None

    def close(self) -> None:
        """Wait until the thread has ended, and close all files."""
        self._is_closed = True
        self._wanted.release()
        if os.getpid() == self._process_id:
            self._thread.join()
        self._entries.close()
