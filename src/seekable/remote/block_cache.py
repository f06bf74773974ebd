"""Blocks of remote files, kept on disk up to a number of bytes, and shared by all processes.

A block is a file of its own, ``FOLDER/KEY[:2]/KEY/NUMBER``: a digest, and the bytes. It gets its name when it
is complete. It is not synced to disk: a block that a crash has torn has another digest, and is fetched again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import threading
import time

import xxhash
from filelock import FileLock, Timeout

from seekable.errors import InvalidArgument
from seekable.storage.files import TEMPORARY_SUFFIX, create_new

__all__ = ["BYTES_VARIABLE", "BlockCache", "block_cache", "block_cache_bytes"]

BYTES_VARIABLE = "SEEKABLE_HUB_BYTES"

_MOST_BYTES = 16 << 30
_DIGEST = 16
_SWEEPS = 16
"""A process adds up the blocks on disk whenever it has added a sixteenth of the most bytes."""

_LEFT = 0.9
"""The share of the most bytes that stays when blocks are removed, so that it is not done again at once."""

_TORN_SECONDS = 3600.0
"""The age of an unfinished file from which on its writer is assumed to be dead."""


def block_cache_bytes() -> int:
    """Return the most bytes of blocks on disk: ``SEEKABLE_HUB_BYTES``, or 16 GiB.

    Raises:
        InvalidArgument: the variable is not a number of bytes.
    """
    chosen = os.environ.get(BYTES_VARIABLE, "")
    if not chosen:
        return _MOST_BYTES
    if not chosen.isdecimal():
        message = f"{BYTES_VARIABLE} must be a number of bytes, such as {_MOST_BYTES} (got {chosen!r})"
        raise InvalidArgument(message)
    return int(chosen)


@functools.cache
def block_cache(folder: str, most_bytes: int) -> BlockCache:
    """Return the blocks of a folder: one object in each process, which counts the bytes that it adds."""
    return BlockCache(folder, most_bytes=most_bytes)


class BlockCache:
    """The blocks in one folder. Safe from threads and from other processes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     blocks = BlockCache(folder, most_bytes=1000)
        ...     blocks.save("ab12", 0, b"good day")
        ...     blocks.load("ab12", 0), blocks.load("ab12", 1)
        (b'good day', None)
    """

    def __init__(self, folder: str, *, most_bytes: int) -> None:
        """Access no file yet.

        Args:
            folder: the folder of the blocks; it is made when it is needed.
            most_bytes: the most bytes that are kept; each process may exceed them by a sixteenth for a while.
        """
        self._folder = folder
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._added: int | None = None

    def load(self, key: str, number: int) -> bytes | None:
        """Return a block, None if it is not on disk or damaged.

        Args:
            key: hexadecimal digits that stand for the content of a file.
            number: the number of the block in the file.
        """
        try:
            with open(self._path(key, number), "rb") as file:
                text = file.read()
        except OSError:
            return None
        data = text[_DIGEST:]
        return data if text[:_DIGEST] == _digest(key, number, data) else None

    def save(self, key: str, number: int, data: bytes | memoryview) -> None:
        """Write a block to disk; a disk that is full, or cannot be written, is no error."""
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
        """Remove the oldest blocks if there are too many bytes, and the unfinished files of dead writers.

        Nothing is done while another process does this.

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
            # The first time the number of bytes on disk is unknown.
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
                    if folder != self._folder:  # Only the lock lies there.
                        found.append((status.st_mtime_ns, status.st_size, path))
        return found

    def _path(self, key: str, number: int) -> str:
        return os.path.join(self._folder, key[:2], key, str(number))


def _digest(key: str, number: int, data: bytes | memoryview) -> bytes:
    hasher = xxhash.xxh3_128(f"{key} {number} ".encode())
    hasher.update(data)
    return hasher.digest()


# In a child process the locks may be held, by threads that the child does not have.
os.register_at_fork(after_in_child=block_cache.cache_clear)
