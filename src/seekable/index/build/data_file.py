"""A data file that is open to be indexed or verified: a file of this machine, or an object of a store."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

from seekable.index.digest import END_BYTES, head_tail_digest
from seekable.storage.compression import compression_of
from seekable.storage.far import far, is_far
from seekable.storage.files import PLACEHOLDER_HEAD, failed_read, stat_file, unreadable_error
from seekable.storage.ranges import DescriptorRanges, HashedRanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from io import FileIO

    from seekable.storage.compression import Compression
    from seekable.storage.ranges import SeekableBytes


@dataclass(frozen=True, slots=True)
class Data:
    """An open data file; for a placeholder, the file that it stands for."""

    file: SeekableBytes
    """The open file."""

    size: int
    """Its size in bytes."""

    head: bytes
    """Its first 64 KiB."""

    name: str
    """Its name in error messages: its path, or its address on the Hub."""

    @property
    def compression(self) -> Compression | None:
        """The compression of the file by its name."""
        return compression_of(self.name)


class DataFile(Protocol):
    """A data file that is open, on this machine or in a store."""

    @property
    def version(self) -> tuple[int, int]:
        """The number of bytes, of a placeholder its own, and the modification time.

        Of an object the second one is the number of its version.
        """

    @property
    def holder(self) -> tuple[int, int]:
        """The device and the inode; of an object, 0 and the number of its version."""

    def head_tail(self) -> int:
        """Return the digest of both ends."""

    def ranges(self) -> HashedRanges:
        """Return the bytes for a reader of a footer, hashed as they are read.

        Of a placeholder they are the bytes of the file that it stands for.
        """

    def data(self, start: int, stop: int, *, headers: bool) -> AbstractContextManager[Data]:
        """Yield the bytes for a scanner of a part; of a placeholder, those that it stands for.

        Args:
            start: the first byte of the part.
            stop: the byte after its last.
            headers: True for a scanner that goes from header to header.
        """

    def is_unchanged(self) -> bool:
        """Return True if the file is still as it was when it was opened."""


@contextmanager
def opened_file(
    path: str, *, version: tuple[int, int], on_wait: Callable[[int], None] | None = None
) -> Iterator[DataFile]:
    """Yield an open data file.

    Args:
        path: its path, or its address.
        version: the number of bytes of an object, and the number of its version; a local file is opened as it
            is.
        on_wait: is called with 0 about ten times a second while bytes of an object are awaited.

    Raises:
        DataNotFound: the file does not exist, or is not a regular file.
        AccessDenied: this user may not read it.
    """
    found: DataFile
    if is_far(path):
        found = far().builds.file(path, version, on_wait)
        yield found
        return
    status = stat_file(path)
    try:
        opened = open(path, "rb", buffering=0)  # noqa: SIM115 - an error below is not one of opening
    except PermissionError:
        raise unreadable_error(path) from None
    with opened:
        found = _LocalFile(opened, path, status)
        try:
            head = os.pread(opened.fileno(), len(PLACEHOLDER_HEAD), 0)
        except OSError as error:
            raise failed_read(path, error, at=0) from None
        if head == PLACEHOLDER_HEAD:
            found = far().builds.file_of_placeholder(found, opened.fileno(), path)
        yield found


@final
class _LocalFile:
    """An open file of this machine."""

    __slots__ = ("_descriptor", "_opened", "_path", "_status")

    def __init__(self, opened: FileIO, path: str, status: os.stat_result) -> None:
        """Read from an open file; closing it stays the caller's task.

        Args:
            opened: the file; its position changes.
            path: its path.
            status: its status before it was opened.
        """
        self._opened = opened
        self._descriptor = opened.fileno()
        self._path = path
        self._status = status

    @property
    def version(self) -> tuple[int, int]:
        """The number of bytes and the modification time."""
        return self._status.st_size, self._status.st_mtime_ns

    @property
    def holder(self) -> tuple[int, int]:
        """The device and the inode."""
        return self._status.st_dev, self._status.st_ino

    def head_tail(self) -> int:
        """Return the digest of both ends."""
        return head_tail_digest(self._descriptor, size=self._status.st_size, head=self._head())

    def ranges(self) -> HashedRanges:
        """Return the bytes for a reader of a footer, hashed as they are read."""
        return HashedRanges(DescriptorRanges(self._descriptor, path=self._path, size=self._status.st_size))

    def data(
        self,
        start: int,
        stop: int,
        *,
        headers: bool,
    ) -> AbstractContextManager[Data]:
        """Yield the bytes for a scanner."""
        return nullcontext(Data(self._opened, self._status.st_size, self._head(), self._path))

    def is_unchanged(self) -> bool:
        """Return True if the path still has this file, with its size and modification time."""
        return _identity(self._status) == _identity(stat_file(self._path))

    def _head(self) -> bytes:
        return os.pread(self._descriptor, END_BYTES, 0)


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
