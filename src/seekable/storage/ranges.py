"""Ranges of bytes: sources that any range can be read from, and the planning of ranges to read."""

from __future__ import annotations

import io
import os
from abc import ABC
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
import xxhash

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from numpy.typing import NDArray


_WINDOW_BYTES = 8 << 20
"""The bytes that a `RangeFile` reads at once: two requests where a file lies elsewhere."""


class SeekableBytes(Protocol):
    """The bytes of one file, with a position: a file that was opened without a buffer, or a `RangeFile`."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move the position, and return it."""

    def tell(self) -> int:
        """Return the position in bytes from the start."""

    def read(self, size: int = -1, /) -> bytes | None:
        """Return the next bytes, at most ``size``; none at the end."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read the next bytes into a buffer, and return their number; 0 at the end."""


class RangeSource(Protocol):
    """The bytes of one file; safe from threads."""

    @property
    def path(self) -> str:
        """The name of the file in error messages."""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, ``0 <= start <= stop <= size``; without a copy where the file is mapped.

        Raises:
            IndexStale: the file is not the one that was indexed.
        """


@final
class DescriptorRanges:
    """Byte ranges of an open file, read by ``pread`` each time."""

    __slots__ = ("_descriptor", "path", "size")

    def __init__(self, descriptor: int, *, path: str, size: int) -> None:
        """Read from an open file; closing it stays the caller's task."""
        self.path = path
        self.size = size
        self._descriptor = descriptor

    def range(self, start: int, stop: int) -> memoryview:
        """Read some bytes; fewer if the file was truncated since it was opened."""
        parts, at = [], start
        while at < stop and (part := os.pread(self._descriptor, stop - at, at)):
            parts.append(part)
            at += len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))


class PositionedFile(io.RawIOBase, ABC):
    """A base of files whose bytes come from elsewhere: the position and its moves. Not safe from threads."""

    def __init__(self, size: int) -> None:
        """Stand at the first byte.

        Args:
            size: the size of the file in bytes.
        """
        super().__init__()
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Return True: the bytes can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: the position can be set."""
        return True

    def tell(self) -> int:
        """Return the position in bytes from the start."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move the position, and return it; nothing is read."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}
        self._at = max(bases[whence] + offset, 0)
        return self._at


@final
class RangeFile(PositionedFile):
    r"""A file over a source of ranges, for readers that go from its start to its end.

    It reads windows of 8 MiB, or of another size. Not safe from threads.

    Example:
        >>> with open(os.devnull, "rb") as file:
        ...     RangeFile(DescriptorRanges(file.fileno(), path="a", size=0)).read()
        b''
    """

    def __init__(self, source: RangeSource, *, window_bytes: int = _WINDOW_BYTES) -> None:
        """Stand at the first byte; nothing is read yet.

        Args:
            source: the ranges.
            window_bytes: the bytes that are read at once, up to a multiple of it.
        """
        super().__init__(source.size)
        self._source = source
        self._window_bytes = window_bytes
        self._start = 0
        self._window = memoryview(b"")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read the next bytes into a buffer, up to the end of a window; return their number, 0 at the end."""
        target = memoryview(buffer).cast("B")
        if self._at >= self._size:
            return 0
        if not self._start <= self._at < self._start + len(self._window):
            # Windows end at multiples of their size, so that readers of neighbouring parts share no block.
            stop = min((self._at // self._window_bytes + 1) * self._window_bytes, self._size)
            self._start = self._at
            self._window = self._source.range(self._at, stop)
        first = self._at - self._start
        piece = self._window[first : first + len(target)]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


@final
class HashedRanges:
    """Byte ranges that are hashed as they are read: readers with equal digests were given equal bytes."""

    __slots__ = ("_hasher", "_source", "path", "size")

    def __init__(self, source: RangeSource) -> None:
        """Hash the size of a source, and the ranges that are read of it."""
        self.path = source.path
        self.size = source.size
        self._source = source
        self._hasher = xxhash.xxh3_64(source.size.to_bytes(8, "little"))

    def range(self, start: int, stop: int) -> memoryview:
        """Read some bytes; fewer if the file was truncated since it was opened."""
        data = self._source.range(start, stop)
        for number in (start, stop):
            self._hasher.update(number.to_bytes(8, "little"))
        self._hasher.update(data)
        return data

    def digest(self) -> bytes:
        """Return the digest of all ranges that were read and their limits, as a little-endian uint64."""
        return self._hasher.intdigest().to_bytes(8, "little")


def merge_near(
    files: NDArray[np.int64], starts: NDArray[np.uint64], ends: NDArray[np.uint64], *, gap: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Return fewer ranges, which together hold all of the given ones. Pure.

    Args:
        files: the index of each range's file, ascending.
        starts: the first byte of each range, ascending within a file.
        ends: the byte after the last of each range.
        gap: ranges of a file become one if at most this many bytes lie between them.

    Returns:
        Files, starts and ends of the merged ranges.

    Example:
        >>> starts, ends = np.array([0, 15, 20], "u8"), np.array([10, 30, 25], "u8")
        >>> [column.tolist() for column in merge_near(np.array([0, 0, 1]), starts, ends, gap=8)]
        [[0, 1], [0, 20], [30, 25]]
    """
    first = np.ones(files.size, dtype=np.bool_)
    first[1:] = (files[1:] != files[:-1]) | (starts[1:] > ends[:-1] + np.uint64(gap))
    heads = np.flatnonzero(first)
    lasts = np.append(heads[1:], files.size)[: heads.size] - 1
    return files[heads], starts[heads], ends[lasts]
