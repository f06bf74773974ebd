"""Compressed files of which any range can be read, from one seek point to the next.

The content between two seek points is a *stretch*. The stretches that were read last stay in memory.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, final

import xxhash

from seekable.errors import IndexStale, UnsupportedFormat
from seekable.storage.cache import Cache
from seekable.storage.compression import inflated
from seekable.storage.mapped import MappedFile
from seekable.storage.memory import most_record_bytes, record_too_large
from seekable.storage.seek_points import inflate_from_bit

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from seekable.storage.compression import Compression
    from seekable.storage.mapped import View
    from seekable.storage.seek_points import SeekPoint, SeekPoints

__all__ = ["CACHE_BYTES", "CompressedContent", "CompressedFile"]

CACHE_BYTES = 128 << 20
"""The most bytes of content that are kept in memory, of all compressed files of the process."""


class CompressedFile(MappedFile):
    """A compressed data file, open, as it was when it was indexed: its view is the content.

    Safe from threads. A range takes the time to decompress its stretches, unless these are in memory.
    """

    __slots__ = ("_points",)

    def __init__(
        self,
        path: str,
        *,
        size: int,
        mtime_ns: int,
        kind: Compression,
        points: SeekPoints,
        name: str | None = None,
    ) -> None:
        """Open a file that has this size and modification time.

        Args:
            path: the file.
            size: its number of bytes, compressed.
            mtime_ns: its modification time.
            kind: its compression.
            points: its seek points.
            name: the name of the file in messages; None for its path.

        Raises:
            IndexStale: the file does not exist, or has another size or modification time.
            AccessDenied: this user may not read it.
        """
        super().__init__(path, size=size, mtime_ns=mtime_ns)
        self._points = points
        self.name = name or path
        self.view = CompressedContent(self.name, (size, mtime_ns), self.view, kind=kind, points=points)

    def advise(self, start: int, end: int) -> None:
        """Let the operating system fetch the bytes of the file that hold some content; wait for nothing."""
        if start < end:
            first, last = self._points.containing(start), self._points.containing(end - 1)
            super().advise(self._points.bytes_of(first)[0], self._points.bytes_of(last)[1])


@final
class CompressedContent:
    """The content of a compressed file, of which slices are decompressed when they are taken."""

    __slots__ = ("_data", "_key", "_kind", "_path", "_points")

    def __init__(
        self, path: str, version: Hashable, data: View, *, kind: Compression, points: SeekPoints
    ) -> None:
        """Map the compressed file; nothing is decompressed yet.

        Args:
            path: the name of the file in messages.
            version: with the path, the identity of its bytes.
            data: the bytes of the file, compressed.
            kind: its compression.
            points: its seek points.
        """
        self._path, self._data, self._kind, self._points = path, data, kind, points
        self._key = path, version

    def __getitem__(self, at: slice) -> memoryview:
        """Return some bytes of the content.

        Raises:
            IndexStale: the content is not the content that was indexed.
            UnsupportedFormat: they are more than a record may have.
        """
        start, stop, _ = at.indices(self._points.size)
        if start >= stop:
            return memoryview(b"")
        if stop - start > most_record_bytes():
            message = f"{self._path!r}, byte {start:,} of the content: {record_too_large(stop - start)}"
            raise UnsupportedFormat(message)
        first, last = self._points.containing(start), self._points.containing(stop - 1)
        begin = self._points.start(first)
        if not begin <= start < stop <= self._points.start(last + 1):
            message = (
                f"the seek points of {self._path!r} do not lead to the bytes {start:,} to {stop:,} of the "
                f"content: they are damaged. Remove its .seekable folder and open it again"
            )
            raise IndexStale(message)
        if first == last:
            return memoryview(self._stretch(first))[start - begin : stop - begin]
        whole = b"".join([self._stretch(number) for number in range(first, last + 1)])
        return memoryview(whole)[start - begin : stop - begin]

    def span_to_read(self, start: int, stop: int) -> tuple[int, int] | None:
        """Return the bytes of the file that hold some content; None if all of it is in memory.

        Args:
            start: the first byte of the content.
            stop: the byte behind its last, more than ``start``.
        """
        first, last = self._points.containing(start), self._points.containing(stop - 1)
        if all(_cache.get((*self._key, number)) is not None for number in range(first, last + 1)):
            return None
        return self._points.bytes_of(first)[0], self._points.bytes_of(last)[1]

    def _stretch(self, number: int) -> bytes:
        content = _cache.get((*self._key, number))
        if content is None:
            content = self._read(number)
            _cache.put((*self._key, number), content)
        return content

    def _read(self, number: int) -> bytes:
        first, last = self._points.bytes_of(number)
        size = self._points.start(number + 1) - self._points.start(number)
        why: object = "another digest"
        try:
            point = self._points.point(number)
            content = _up_to(size, decompressed(self._data[first:last], point, self._kind, self._path))
        except (UnsupportedFormat, zlib.error, ValueError, OverflowError) as error:
            why = error
        else:
            if xxhash.xxh3_64_intdigest(content) == point.digest:
                return content
        message = (
            f"{self._path!r}, bytes {first:,} to {last:,}, are not the block {number} of content that was "
            f"indexed ({why}): the file or its index is damaged; `seekable verify --deep` says which. Get "
            f"the file again, or remove its .seekable folder and open it again"
        )
        raise IndexStale(message)


def decompressed(data: memoryview, point: SeekPoint, kind: Compression, path: str) -> Iterator[bytes]:
    """Yield the content from a seek point to the next one, and perhaps more.

    Args:
        data: the bytes of the file that hold this content.
        point: the seek point.
        kind: the compression of the file.
        path: the name of the file in error messages.
    """
    if point.window:
        return inflate_from_bit(data, bit=point.bit % 8, window=point.window, path=path)
    return inflated([bytes(data)], kind, path)


def _up_to(size: int, pieces: Iterator[bytes]) -> bytes:
    """Return the first ``size`` bytes. The bytes behind them are not decompressed: they may be cut off."""
    found, held = [], 0
    while held < size and (piece := next(pieces, None)) is not None:
        found.append(piece)
        held += len(piece)
    return b"".join(found)[:size]


_cache: Cache[bytes] = Cache(len, most_bytes=CACHE_BYTES)

# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_cache.forget)
