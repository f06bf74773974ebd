"""Blocks of files that lie elsewhere, kept on disk up to a number of bytes; shared by all processes.

A block is a file of its own, ``FOLDER/KEY[:2]/KEY/NUMBER``: a digest, and the bytes. It gets its name when it
is whole. It is not synced to the disk: what a crash tore is told by its digest, and fetched again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time

import xxhash
from filelock import FileLock, Timeout

from seekable.errors import InvalidArgument
from seekable.storage.atomic import TEMPORARY_SUFFIX, create_new

__all__ = ["BYTES_VARIABLE", "BlockStore", "store_bytes"]

BYTES_VARIABLE = "SEEKABLE_HUB_BYTES"

_MOST_BYTES = 16 << 30
_DIGEST = 16
_SWEEPS = 16
"""A process looks at how much there is whenever it has added one part in so many of what may be there."""

_LEFT = 0.9
"""How much of what may be there is left when blocks were removed, so that it is not done again at once."""

_TORN_SECONDS = 3600.0
"""How old an unfinished file is when its writer is taken to be dead."""


def store_bytes() -> int:
    """Return how many bytes of blocks are kept on disk: ``SEEKABLE_HUB_BYTES``, or 16 GiB.

    Raises:
        InvalidArgument: the variable holds no number of bytes.
    """
    chosen = os.environ.get(BYTES_VARIABLE, "")
    if not chosen:
        return _MOST_BYTES
    if not chosen.isdecimal():
        message = f"{BYTES_VARIABLE} must be a number of bytes, such as {_MOST_BYTES} (got {chosen!r})"
        raise InvalidArgument(message)
    return int(chosen)


class BlockStore:
    """The blocks in one folder. Safe from threads and from other processes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = BlockStore(folder, most_bytes=1000)
        ...     store.save("ab12", 0, b"good day")
        ...     store.load("ab12", 0), store.load("ab12", 1)
        (b'good day', None)
    """

    def __init__(self, folder: str, *, most_bytes: int) -> None:
        """Look at nothing yet.

        Args:
            folder: it is made when it is needed.
            most_bytes: how much is kept; each process may have added a sixteenth more before it looks.
        """
        self._folder = folder
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._added: int | None = None

    def load(self, key: str, number: int) -> bytes | None:
        """Return a block, None if it is not there or damaged.

        Args:
            key: what it is part of: hexadecimal digits that stand for a content.
            number: which block of that.
        """
        try:
            with open(self._path(key, number), "rb") as file:
                text = file.read()
        except OSError:
            return None
        data = text[_DIGEST:]
        return data if text[:_DIGEST] == _digest(key, number, data) else None

    def save(self, key: str, number: int, data: bytes | memoryview) -> None:
        """Keep a block, if that can be done: a disk that is full, or cannot be written, is no error."""
        if len(data) > self._most_bytes:
            return
        path = self._path(key, number)
        temporary = f"{path}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with create_new(temporary) as file:
                file.write(_digest(key, number, data))
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return
        if self._is_due(len(data)):
            with contextlib.suppress(OSError):
                self.sweep()

    def sweep(self) -> None:
        """Remove the oldest blocks if there are too many bytes, and what dead writers left behind.

        Where another process is at it, nothing is done.

        Raises:
            OSError: the folder cannot be written.
        """
        os.makedirs(self._folder, exist_ok=True)
        lock = FileLock(os.path.join(self._folder, "lock"), timeout=0)
        with contextlib.suppress(Timeout), lock:
            found = sorted(self._found())
            excess = sum(size for _, size, _ in found) - self._most_bytes
            if excess > 0:
                excess += int((1 - _LEFT) * self._most_bytes)
            torn = time.time_ns() - int(_TORN_SECONDS * 1e9)
            for modified_ns, size, path in found:
                unfinished = path.endswith(TEMPORARY_SUFFIX)
                if excess <= 0 and not unfinished:
                    continue
                if unfinished and modified_ns > torn:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                excess -= size

    def _is_due(self, size: int) -> bool:
        with self._lock:
            added = self._added
            # The first time nothing is known of what is there.
            due = added is None or added + size > self._most_bytes // _SWEEPS
            self._added = 0 if added is None or due else added + size
        return due

    def _found(self) -> list[tuple[int, int, str]]:
        found = []
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(path)
                    if folder != self._folder:  # The lock is no block.
                        found.append((status.st_mtime_ns, status.st_size, path))
        return found

    def _path(self, key: str, number: int) -> str:
        return os.path.join(self._folder, key[:2], key, str(number))


def _digest(key: str, number: int, data: bytes | memoryview) -> bytes:
    hasher = xxhash.xxh3_128(f"{key} {number} ".encode())
    hasher.update(data)
    return hasher.digest()
