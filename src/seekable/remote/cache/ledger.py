"""The number of bytes of a cache on disk, which its processes share, and the lock for all writes.

The file ``ledger`` holds the bytes that the cache takes, and the limit that was chosen when the folder was
made. It is locked while units are written and while extents are removed, and what is going to be written
counts before, so the number is never too low. A killed process may leave it too high by what it was writing
or removing, until the next sweep counts again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import time
from typing import TYPE_CHECKING

import xxhash

from seekable.storage.files import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Ledger", "Lines", "free_bytes"]

_LINES = struct.Struct("=8sQQ")
_MAGIC = b"seekRL1\n"
_DIGEST_BYTES = 8

_PATIENCE_SECONDS = 2.0
"""A stopped process may hold the lock: after this time the others go on without keeping their bytes."""

_FIRST_PAUSE, _LONGEST_PAUSE = 20e-6, 2e-3
_FREE_SHARE = 20
"""One part in so many of the disk stays free."""


class Lines:
    """The content of a ledger, while its lock is held.

    Attributes:
        used: the bytes that the cache takes; None if they must be counted.
        chosen_bytes: the limit that was chosen when the folder was made.
        noted: the bytes that the file says; None if it says nothing.
    """

    __slots__ = ("chosen_bytes", "noted", "used")

    def __init__(self, used: int | None, chosen_bytes: int) -> None:
        self.used = self.noted = used
        self.chosen_bytes = chosen_bytes


class Ledger:
    """The ledger of one folder. Safe from threads and other processes; a forked child calls `forget`."""

    def __init__(self, folder: str) -> None:
        """Name the file, which is not opened yet.

        Args:
            folder: the folder of the cache; it is made when it is needed.
        """
        self._folder = folder
        self._path = os.path.join(folder, "ledger")
        self._descriptor = -1
        self.forget()

    def forget(self) -> None:
        """Close the file, and take a new lock. The lock of a parent process stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._mutex = threading.Lock()

    def __del__(self) -> None:
        """Close the file of the ledger."""
        # When the interpreter ends, names of modules become None before the last objects go.
        if os is not None and getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)

    @contextlib.contextmanager
    def locked(self) -> Iterator[Lines]:
        """Hold the lock; what the block has changed in the lines is written at its end.

        Raises:
            OSError: the folder cannot be written, or another process holds the lock for two seconds.
        """
        with self._mutex:
            descriptor = self._locked_descriptor()
            try:
                lines = self._read(descriptor)
                try:
                    yield lines
                finally:
                    _write(descriptor, lines)
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def note(self, lines: Lines) -> None:
        """Write lines now, before the block that holds the lock ends.

        Args:
            lines: the lines of that block.

        Raises:
            OSError: the disk is full, or cannot be written.
        """
        _write(self._descriptor, lines)

    def peek(self) -> Lines | None:
        """Return the lines without the lock, None if there is no valid ledger."""
        try:
            with open(self._path, "rb") as file:
                return _parsed(file.read())
        except OSError:
            return None

    def _locked_descriptor(self) -> int:
        """Return the locked file, which is the one on disk.

        Raises:
            OSError: the folder cannot be written, or another process holds the lock for two seconds.
        """
        stop = time.monotonic() + _PATIENCE_SECONDS
        while True:
            if self._descriptor < 0:
                make_private_folder(self._folder)
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            _wait_for(self._descriptor, stop)
            # The folder may be deleted at any time.
            if os.fstat(self._descriptor).st_nlink:
                return self._descriptor
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self, descriptor: int) -> Lines:
        lines = _parsed(os.pread(descriptor, _LINES.size + _DIGEST_BYTES, 0))
        if lines is not None:
            return lines
        # The folder was made now, or its ledger is damaged: the next sweep counts.
        status = os.statvfs(self._folder)
        return Lines(None, status.f_bavail * status.f_frsize // 2)


def free_bytes(folder: str) -> int:
    """Return the bytes that may still be written to the disk of a folder, so that 5 % of it stay free.

    The number is negative if less is free.

    Raises:
        OSError: there is no such folder.
    """
    status = os.statvfs(folder)
    return (status.f_bavail - status.f_blocks // _FREE_SHARE) * status.f_frsize


def _wait_for(descriptor: int, stop: float) -> None:
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > stop:
                raise
        else:
            return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _parsed(text: bytes) -> Lines | None:
    if len(text) < _LINES.size + _DIGEST_BYTES:
        return None
    head, digest = text[: _LINES.size], text[_LINES.size : _LINES.size + _DIGEST_BYTES]
    magic, used, chosen = _LINES.unpack(head)
    if magic != _MAGIC or xxhash.xxh3_64_digest(head) != digest:
        return None
    return Lines(used, chosen)


def _write(descriptor: int, lines: Lines) -> None:
    if lines.used is not None and lines.used != lines.noted:
        head = _LINES.pack(_MAGIC, lines.used, lines.chosen_bytes)
        os.pwrite(descriptor, head + xxhash.xxh3_64_digest(head), 0)
        lines.noted = lines.used
