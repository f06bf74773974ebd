"""Open data files: a bounded number of them for each source, and for the whole process.

A file is opened by path, size and modification time, those that it had when it was indexed; a file with
others is refused. Once it is open, one ``fstat`` in `MappedFile.check` finds out if the file has changed. A
reader calls it once per batch and file; of a file that is read more often, one call in 50 ms looks at it.

An open file takes one descriptor. `OpenFiles` closes the descriptor of the file that was used least recently
before it opens one more; the map lasts until the last slice of it is gone. A source whose records lie far
apart keeps the maps of thousands of closed files, because a map takes no descriptor: such a file is read
again after one ``stat``, which is several times cheaper than to open and map it.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import resource
import threading
import weakref
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Protocol, final

from seekable.errors import IndexStale
from seekable.storage.files import map_file, unreadable_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.storage.ranges import RangeSource

MOST_OPEN_FILES = 128
"""The number of files that a source keeps open by default; of files that were closed the maps stay longer."""

_RESERVED_DESCRIPTORS = 128
_FEWEST_MAPS = 64
_MOST_MAPS = 4096
_ADVISES = hasattr(os, "posix_fadvise")
_CLOSED = -1

_LOOK_NS = 50_000_000
"""The nanoseconds for which a look at a file that is read often is good."""
_FIRST_LOOKS = 16
"""Checks of a file that all look at it. Most readers of a file make no more, and see each change at once."""

_MOST_KEPT = 4096
"""The most maps of closed files that are kept; the system allows 65,530 maps a process."""

_descriptors: set[int] = set()
"""The descriptors of all data files that are open in this process."""

_kept: collections.deque[tuple[int, MappedFile]] = collections.deque(maxlen=_MOST_KEPT)
"""The source, by its ``id``, and the file of each kept map, in the order in which the files were closed."""

next_use = itertools.count(1).__next__
"""Returns a higher number each time: the time of a use, for `MappedFile.last_use`."""


class View(Protocol):
    """Bytes of which any range can be read as a slice."""

    def __getitem__(self, at: slice, /) -> memoryview:
        """Return the bytes of a slice."""


class MappedFile:
    """A data file, open and mapped, as it was when it was indexed.

    Safe from threads. A file that was closed stays readable while it, or any slice of its view, is
    referenced.
    """

    __slots__ = (
        "__weakref__",
        "_change_ns",
        "_descriptor",
        "_inode",
        "_looks",
        "last_use",
        "mtime_ns",
        "name",
        "next_look_ns",
        "path",
        "reader",
        "size",
        "view",
    )

    def __init__(self, path: str, *, size: int, mtime_ns: int) -> None:
        """Open and map a file that has this size and modification time.

        Raises:
            IndexStale: there is no such file, or it has another size or modification time.
            AccessDenied: this user may not read it.
        """
        self.path = path
        self.name = path
        """The name of the file in messages: its path, or the address of the file that it stands for."""
        self.size = size
        self.mtime_ns = mtime_ns
        self.last_use = next_use()
        """What `next_use` returned when the file was used last; readers set it."""
        self.reader: Any = None
        """The object of a format that reads the file; None before it was made. It goes with the file."""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise _stale(self, None) from None
        except PermissionError:
            raise unreadable_error(path) from None
        _descriptors.add(self._descriptor)
        status = os.fstat(self._descriptor)
        if status.st_size != size or status.st_mtime_ns != mtime_ns:
            raise _stale(self, status)
        self._inode = (status.st_dev, status.st_ino)
        self._change_ns = status.st_ctime_ns
        self._looks = 0
        self.next_look_ns = 0
        """The time, by ``time.monotonic_ns``, from which on `check` looks at the file again."""
        # Else a page fault reads megabytes around the page; `advise` names the bytes that will be read.
        self.view: View = map_file(self._descriptor, size, random=True)
        """The bytes of the file, decompressed if it is a compressed one."""

    def __del__(self) -> None:
        """Close the descriptor; the map itself goes with the last slice of the view."""
        # When the interpreter ends, names of modules become None before the last objects go.
        if hasattr(self, "_descriptor") and _descriptors is not None:
            self.close()

    def close(self) -> None:
        """Close the descriptor; threads that read the file go on. Two threads must not call this at once."""
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            _descriptors.discard(descriptor)
            os.close(descriptor)

    @property
    def source(self) -> RangeSource:
        """The bytes of the file for a reader of ranges; the caller has called `check`."""
        return MappedRanges(self, path=self.name)

    def advise(self, start: int, end: int) -> None:
        """Let the operating system fetch some bytes, without waiting for them."""
        if not _ADVISES:
            return
        with contextlib.suppress(OSError):  # Another thread may have closed the file meanwhile.
            if (descriptor := self._descriptor) != _CLOSED:
                os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_WILLNEED)
                return
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)

    def check(self) -> None:
        """Make sure that the file is, or was at most 50 ms ago, the one that was indexed.

        Raises:
            IndexStale: it was changed, replaced, renamed or removed.
        """
        now = monotonic_ns()
        if now < self.next_look_ns:
            return
        self._look()
        self._looks += 1
        if self._looks >= _FIRST_LOOKS:
            self.next_look_ns = now + _LOOK_NS

    def _look(self) -> None:
        if self._descriptor == _CLOSED:
            self._check_by_path()
            return
        try:
            status = os.fstat(self._descriptor)
        except OSError:  # Another thread has closed the file to open a further one.
            self._check_by_path()
            return
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


@final
class MappedRanges:
    """Byte ranges of a memory-mapped file. The caller must have called ``mapped.check()``."""

    __slots__ = ("_view", "path", "size")

    def __init__(self, mapped: MappedFile, *, path: str | None = None) -> None:
        """Read from a memory-mapped file.

        Args:
            mapped: the file.
            path: its name in error messages, if not its own path.
        """
        self.path = mapped.path if path is None else path
        self.size = mapped.size
        self._view = mapped.view

    def range(self, start: int, stop: int) -> memoryview:
        """Return a slice of the memory map."""
        return self._view[start:stop]


class OpenFiles:
    """The open files of one source, a bounded number at once. Safe from threads and after fork.

    Files are numbered by the caller. A pickle has the bounds alone.

    Example:
        >>> import os, tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"good day"), file.flush()
        ...     status = os.stat(file.name)
        ...     files = OpenFiles(1)
        ...     mapped = files.open(0, lambda: MappedFile(file.name, size=8, mtime_ns=status.st_mtime_ns))
        ...     mapped.check()
        ...     files.close()
        ...     bytes(mapped.view[5:]), len(files)
        (b'day', 0)
    """

    def __init__(self, most: int, *, keeps_maps: bool = False) -> None:
        """Open nothing yet.

        Args:
            most: the most files that are open at once.
            keeps_maps: True to keep the maps of files that were closed to open others. They take no
                descriptors, and to map a file again takes longer than to read a dozen records. Files whose
                readers take memory are not kept.
        """
        self.most = most
        self.keeps_maps = keeps_maps
        self._has_kept = False
        self.forget()
        _sources[id(self)] = self

    def __len__(self) -> int:
        return len(self._files)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(OpenFiles, keeps_maps=self.keeps_maps), (self.most,)

    def __del__(self) -> None:
        """Drop the kept maps: they hold the space of files that were removed from the disk."""
        # When the interpreter ends, names of modules become None before the last objects go.
        if self._has_kept and _kept is not None:
            self._drop_kept()

    def forget(self) -> None:
        """Drop all files, and take a new lock."""
        self._files: dict[int, MappedFile] = {}
        self._by_use: list[tuple[int, int]] = []
        self._opening = 0
        self._changed = threading.Condition(threading.Lock())

    def open(self, number: int, make: Callable[[], MappedFile]) -> MappedFile:
        """Return a file, open already or opened now, after closing others if they are too many.

        Args:
            number: the index of the file.
            make: opens it.

        Raises:
            IndexStale: there is no such file, or it is not the file that was indexed.
            AccessDenied: this user may not read it.
        """
        with self._changed:
            while len(self._files) + self._opening >= self.most:
                if self._files:
                    self._close_oldest()
                else:
                    self._changed.wait()
            self._opening += 1
        _stay_below_limit()
        opened = None
        try:
            # Opened outside the lock: a slow disk must not hold up other threads.
            opened = make()
        finally:
            with self._changed:
                self._opening -= 1
                kept = None if opened is None else self._files.setdefault(number, opened)
                self._changed.notify()
        assert kept is not None
        if kept is not opened:
            opened.close()
        return kept

    def close(self) -> None:
        """Close all files. A file that is read again later is opened again."""
        with self._changed:
            while self._files:
                self._files.popitem()[1].close()
        if self._has_kept:
            self._drop_kept()

    def close_oldest(self) -> None:
        """Close the file that was used least recently, if any is open."""
        with self._changed:
            if self._files:
                self._close_oldest()

    def _close_oldest(self) -> None:
        while True:
            if not self._by_use:
                # Sorted once for many files: of those unused since, the first one was used least recently.
                uses = ((file.last_use, number) for number, file in self._files.items())
                self._by_use = sorted(uses, reverse=True)
            use, number = self._by_use.pop()
            file = self._files.get(number)
            if file is not None and file.last_use == use:
                file = self._files.pop(number)
                file.close()
                if self.keeps_maps:
                    self._has_kept = True
                    _kept.append((id(self), file))
                return

    def _drop_kept(self) -> None:
        """Drop the maps of files of this source that were closed."""
        own = id(self)
        for _ in range(len(_kept)):
            with contextlib.suppress(IndexError):  # Another thread drops its own meanwhile.
                source, file = _kept.popleft()
                if source != own:
                    _kept.append((source, file))


_sources: weakref.WeakValueDictionary[int, OpenFiles] = weakref.WeakValueDictionary()


def _stay_below_limit() -> None:
    """Close files of the sources that have most, while the process has as many open as it may have."""
    while len(_descriptors) >= most_maps():
        fullest = max((files for known in _sources.valuerefs() if (files := known())), key=len)
        if not len(fullest):
            return  # All are read at this moment.
        fullest.close_oldest()


def most_maps() -> int:
    """Return the most data files that stay open in this process; each takes one descriptor."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return _MOST_MAPS
    return min(max(limit - _RESERVED_DESCRIPTORS, min(_FEWEST_MAPS, limit // 2)), _MOST_MAPS)


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


def _forget_all() -> None:
    for known in _sources.valuerefs():
        if (files := known()) is not None:
            files.forget()


# In a child process a lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_forget_all)
