"""Claims: one process of a machine, and one thread of it, fetches a unit; the others wait for it.

A claim is a lock of consecutive bytes of the file ``claims`` (an open-file-description lock of Linux). It
costs some microseconds, and it is gone when its owner dies. Where the system or the file system has no such
locks, a claim holds for the threads of this process alone; so it does on network file systems.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import sys
import threading
from typing import TYPE_CHECKING, Self

from seekable.storage.files import make_private_folder

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Claims", "UnitClaim", "is_network_folder"]

_SET = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
_LOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, first byte, number of bytes, process."""

_TAKEN = (errno.EAGAIN, errno.EACCES)
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"})


class UnitClaim:
    """The right of this thread to fetch some units, until `release` or the end of a ``with`` statement."""

    __slots__ = ("_claims", "_description", "_numbers", "_process")

    def __init__(self, claims: Claims, numbers: range, description: _Description | None) -> None:
        self._claims: Claims | None = claims
        self._numbers = numbers
        self._description = description
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        """Release the claim if it was not released."""
        if os is not None:  # At the end of the interpreter names of modules become None.
            self.release()

    def release(self) -> None:
        """Give the right up. A second call does nothing, and neither does the call of a forked child."""
        claims, self._claims = self._claims, None
        if claims is not None and self._process == os.getpid():
            claims.release(self._numbers, self._description)


class Claims:
    """The claims of this process in one folder. Safe from threads and from other processes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     claims = Claims(folder)
        ...     with claims.claim(range(5, 8)) as first:
        ...         second = claims.claim(range(7, 9))
        ...     third = claims.claim(range(7, 9))
        >>> first is not None, second is None, third is not None
        (True, True, True)
    """

    def __init__(self, folder: str) -> None:
        """Begin without claims; no file is opened yet.

        Args:
            folder: the folder of the file of locks; it may be missing, and no claim is refused then.
        """
        self._folder = folder
        self._path = os.path.join(folder, "claims")
        self._description: _Description | None = None
        self.forget()

    def forget(self) -> None:
        """Drop all claims without releasing them: in a forked child they are the parent's."""
        if self._description is not None:
            self._description.close()
        # The garbage collector may release a lost claim while this thread makes another one.
        self._mutex = threading.RLock()
        self._held: set[int] = set()
        self._description = None
        self._has_locks: bool | None = None

    def claim(self, numbers: range) -> UnitClaim | None:
        """Claim consecutive numbers together, None if another thread or another process has one of them.

        Args:
            numbers: numbers from 0 to 2^62, at least one.
        """
        with self._mutex:
            if not self._held.isdisjoint(numbers):
                return None
            description = self._current()
            if description is not None and not description.lock(numbers):
                return None
            self._held.update(numbers)
        return UnitClaim(self, numbers, description)

    def release(self, numbers: range, description: _Description | None) -> None:
        """Release the numbers of a claim, so that others can claim them.

        Args:
            numbers: the numbers of one claim.
            description: the open file that holds the lock of them, None if there is no lock.
        """
        with self._mutex:
            self._held.difference_update(numbers)
            if description is not None:
                description.unlock(numbers)

    def _current(self) -> _Description | None:
        """Return the open file of locks, opened again if it was deleted; None if there can be no locks."""
        if self._has_locks is None:
            self._has_locks = _SET is not None and not is_network_folder(self._folder)
        if not self._has_locks:
            return None
        if self._description is None or self._description.is_deleted():
            try:
                make_private_folder(self._folder)
                self._description = _Description(self._path)
            except OSError:
                return None
        return self._description


class _Description:
    """An open file of locks. The claims that it holds keep it open."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor") and os is not None:
            self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def is_deleted(self) -> bool:
        return os.fstat(self._descriptor).st_nlink == 0

    def lock(self, numbers: range) -> bool:
        """Lock bytes; return False if another process has one. Without support they count as locked."""
        try:
            self._set(fcntl.F_WRLCK, numbers)
        except OSError as error:
            return error.errno not in _TAKEN
        return True

    def unlock(self, numbers: range) -> None:
        with contextlib.suppress(OSError):
            self._set(fcntl.F_UNLCK, numbers)

    def _set(self, kind: int, numbers: range) -> None:
        assert _SET is not None
        fcntl.fcntl(self._descriptor, _SET, _LOCK.pack(kind, os.SEEK_SET, numbers.start, len(numbers), 0))


def is_network_folder(folder: str) -> bool:
    """Return True if a folder, or the folder above it that exists, lies on a network file system.

    Where the system has no list of mounts, the answer is False.
    """
    folder = os.path.realpath(folder)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split()[1:3] for line in file if line.count(" ") >= 2]  # noqa: PLR2004 - its fields
    except OSError:
        return False
    best, kind = "", ""
    for path, name in mounts:
        point = path.encode("utf-8", "surrogateescape").decode("unicode_escape", "replace").rstrip("/")
        if (folder == point or folder.startswith(f"{point}/")) and len(point) >= len(best):
            best, kind = point, name
    return kind in _NETWORK or (kind.startswith("fuse.") and kind != "fuse.overlayfs")
