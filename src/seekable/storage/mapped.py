"""Memory maps of data files, a bounded number of them open for the whole process.

A map is opened by path, size and modification time, those that the file had when it was indexed; a file
with others is refused. Once it is open, one ``fstat`` in `MappedFile.check` finds out if the file has
changed. A reader calls it once per batch and file, so a truncated file is an error before it can be a SIGBUS.
"""

from __future__ import annotations

import mmap
import os
import resource
import threading
from typing import TYPE_CHECKING, Protocol

from seekable.errors import IndexStale
from seekable.storage.files import unreadable_error

if TYPE_CHECKING:
    from collections.abc import Callable

_RESERVED_DESCRIPTORS = 128
_FEWEST_MAPS = 64
_MOST_MAPS = 4096
_ADVISES = hasattr(os, "posix_fadvise")


class View(Protocol):
    """Bytes of which any range can be read as a slice."""

    def __getitem__(self, at: slice, /) -> memoryview:
        """Return the bytes of a slice."""


class MappedFile:
    """A data file, open and mapped, as it was when it was indexed.

    Safe from threads. A map that was dropped from the cache stays readable while it, or any slice of its
    view, is referenced.
    """

    __slots__ = (
        "__weakref__",
        "_change_ns",
        "_descriptor",
        "_inode",
        "mtime_ns",
        "path",
        "size",
        "used",
        "view",
    )

    def __init__(self, path: str, *, size: int, mtime_ns: int) -> None:
        """Open and map a file that has this size and modification time.

        Raises:
            IndexStale: there is no such file, or it has another size or modification time.
            AccessDenied: this user may not read it.
        """
        self.path = path
        self.size = size
        self.mtime_ns = mtime_ns
        self.used = False
        """True if it was used since the cache last looked for a map to drop."""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise _stale(self, None) from None
        except PermissionError:
            raise unreadable_error(path) from None
        status = os.fstat(self._descriptor)
        if status.st_size != size or status.st_mtime_ns != mtime_ns:
            raise _stale(self, status)
        self._inode = (status.st_dev, status.st_ino)
        self._change_ns = status.st_ctime_ns
        self.view: View = _view(self._descriptor, size)
        """The bytes of the file, decompressed if it is a compressed one."""

    def __del__(self) -> None:
        """Close the descriptor; the map itself goes with the last slice of the view."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def advise(self, start: int, end: int) -> None:
        """Let the operating system fetch some bytes, without waiting for them."""
        if _ADVISES:
            os.posix_fadvise(self._descriptor, start, end - start, os.POSIX_FADV_WILLNEED)

    def check(self) -> None:
        """Make sure that the file is still the one that was indexed.

        Raises:
            IndexStale: it was changed, replaced, renamed or removed.
        """
        status = os.fstat(self._descriptor)
        # Content, size, mtime, links and names: each change of one of them changes ctime.
        if status.st_ctime_ns != self._change_ns or status.st_size != self.size:
            self._check_by_path()

    def _check_by_path(self) -> None:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            raise _stale(self, None) from None
        if (
            (status.st_dev, status.st_ino) != self._inode
            or status.st_size != self.size
            or status.st_mtime_ns != self.mtime_ns
        ):
            raise _stale(self, status)
        self._change_ns = status.st_ctime_ns


def _view(descriptor: int, size: int) -> memoryview:
    if not size:
        return memoryview(b"")  # A map of no bytes is an error for mmap.
    data = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    if _ADVISES:
        # Else a page fault reads megabytes around the page; `advise` names the bytes that will be read.
        data.madvise(mmap.MADV_RANDOM)
    return memoryview(data)


class _Cache:
    """The open maps. Hits take no lock; a second chance goes to those used since the last search."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.maps: dict[tuple[str, int, int], MappedFile] = {}
        self.lock = threading.Lock()

    def add(self, path: str, size: int, mtime_ns: int, make: Callable[[], MappedFile] | None) -> MappedFile:
        # Opened outside the lock: a slow disk must not hold up the hits of other threads' misses.
        mapped = make() if make else MappedFile(path, size=size, mtime_ns=mtime_ns)
        with self.lock:
            while len(self.maps) >= most_maps():
                self._drop_one()
            return self.maps.setdefault((path, size, mtime_ns), mapped)

    def _drop_one(self) -> None:
        while True:
            key = next(iter(self.maps))
            mapped = self.maps.pop(key)
            if not mapped.used:
                return
            mapped.used = False
            self.maps[key] = mapped


_cache = _Cache()


def open_mapped(
    path: str, size: int, mtime_ns: int, make: Callable[[], MappedFile] | None = None
) -> MappedFile:
    """Return the map of a file that has this size and modification time, open already or opened now.

    Args:
        path: an absolute path.
        size: the file's size when it was indexed.
        mtime_ns: its modification time when it was indexed.
        make: opens the file if it cannot be mapped as it is (a compressed one); None to map it.

    Raises:
        IndexStale: there is no such file, or it has another size or modification time.

    Example:
        >>> import os, tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"good day"), file.flush()
        ...     status = os.stat(file.name)
        ...     mapped = open_mapped(file.name, status.st_size, status.st_mtime_ns)
        ...     mapped.check()
        ...     bytes(mapped.view[5:])
        b'day'
    """
    mapped = _cache.maps.get((path, size, mtime_ns))
    if mapped is None:
        return _cache.add(path, size, mtime_ns, make)
    mapped.used = True
    return mapped


def most_maps() -> int:
    """Return the most maps that stay open: a map and its file take a descriptor each."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return _MOST_MAPS
    return min(max((limit - _RESERVED_DESCRIPTORS) // 2, _FEWEST_MAPS), _MOST_MAPS)


def _stale(mapped: MappedFile, status: os.stat_result | None) -> IndexStale:
    indexed = f"{mapped.size} bytes, modified at {mapped.mtime_ns} ns"
    if status is None:
        found = "is not there any more"
    elif status.st_size == mapped.size and status.st_mtime_ns == mapped.mtime_ns:
        found = "was replaced by another file of that size and time"
    else:
        found = f"now has {status.st_size} bytes, modified at {status.st_mtime_ns} ns"
    return IndexStale(
        f"{mapped.path!r} {found}; it was indexed with {indexed}. "
        f"Open the dataset again to index the new content, or put the old file back"
    )


# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_cache.forget)
