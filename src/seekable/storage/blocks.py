"""Compressed files of which any range can be read: block by block, the last ones kept in memory."""

from __future__ import annotations

import os
import threading
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING

import xxhash

from seekable.errors import IndexStale, UnsupportedFormat
from seekable.storage.compression import inflated
from seekable.storage.deflate import resumed
from seekable.storage.mapped import MappedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.storage.compression import Compression
    from seekable.storage.points import Block, Points

__all__ = ["CACHE_BYTES", "CompressedFile"]

CACHE_BYTES = 128 << 20
"""Content that is kept in memory, of all compressed files of the process."""


class CompressedFile(MappedFile):
    """A compressed data file, open, as it was when it was indexed: its view is the content.

    Safe from threads. A range costs the blocks that it is in, unless they were read a moment ago.
    """

    __slots__ = ("_points",)

    def __init__(self, path: str, *, size: int, mtime_ns: int, kind: Compression, points: Points) -> None:
        """Open a file that has this size and modification time.

        Args:
            path: the file.
            size: how many bytes it has, compressed.
            mtime_ns: when it was modified.
            kind: how it is compressed.
            points: where it can be entered.

        Raises:
            IndexStale: there is no such file, or it has another size or modification time.
            AccessDenied: this user may not read it.
        """
        super().__init__(path, size=size, mtime_ns=mtime_ns)
        self._points = points
        self.view = _Content(path, mtime_ns, self.view[:], kind, points)

    def advise(self, start: int, end: int) -> None:
        """Tell the system that some bytes of the content will be read."""
        if start < end:
            first, last = self._points.containing(start), self._points.containing(end - 1)
            super().advise(self._points.bytes_of(first)[0], self._points.bytes_of(last)[1])


class _Content:
    """The content of a compressed file: slices of it are decompressed when they are taken."""

    __slots__ = ("_data", "_key", "_kind", "_path", "_points")

    def __init__(self, path: str, mtime_ns: int, data: memoryview, kind: Compression, points: Points) -> None:
        self._path, self._data, self._kind, self._points = path, data, kind, points
        self._key = path, len(data), mtime_ns

    def __getitem__(self, at: slice) -> memoryview:
        """Return some bytes of the content.

        Raises:
            IndexStale: they are not those that were indexed.
        """
        start, stop, _ = at.indices(self._points.size)
        if start >= stop:
            return memoryview(b"")
        first, last = self._points.containing(start), self._points.containing(stop - 1)
        begin = self._points.start(first)
        if first == last:
            return memoryview(self._block(first))[start - begin : stop - begin]
        whole = b"".join([self._block(number) for number in range(first, last + 1)])
        return memoryview(whole)[start - begin : stop - begin]

    def _block(self, number: int) -> bytes:
        kept = _cache.get((*self._key, number))
        if kept is None:
            kept = self._read(number)
            _cache.add((*self._key, number), kept)
        return kept

    def _read(self, number: int) -> bytes:
        first, last = self._points.bytes_of(number)
        size = self._points.start(number + 1) - self._points.start(number)
        why: object = "its digest is another"
        try:
            block = self._points.block(number)
            content = _up_to(size, decompressed(self._data[first:last], block, self._kind, self._path))
        except (UnsupportedFormat, zlib.error) as error:
            why = error
        else:
            if xxhash.xxh3_64_intdigest(content) == block.digest:
                return content
        message = (
            f"{self._path!r}, bytes {first:,} to {last:,}, are not the block {number} of content that was "
            f"indexed ({why}): the file or its index is damaged; `seekable verify --deep` tells which. Get "
            f"the file again, or remove its .seekable folder and open it again"
        )
        raise IndexStale(message)


def decompressed(data: memoryview, block: Block, kind: Compression, path: str) -> Iterator[bytes]:
    """Yield the content of a block, and perhaps more.

    Args:
        data: the bytes of the file that hold the block.
        block: the block.
        kind: how the file is compressed.
        path: what it is called in errors.
    """
    if block.window:
        return resumed(data, bit=block.bit % 8, window=block.window, path=path)
    return inflated([bytes(data)], kind, path)


def _up_to(size: int, pieces: Iterator[bytes]) -> bytes:
    """Return so many bytes; what follows is not looked at, because it may be cut off."""
    found, held = [], 0
    while held < size and (piece := next(pieces, None)) is not None:
        found.append(piece)
        held += len(piece)
    return b"".join(found)[:size]


class _Cache:
    """The blocks that were read last, bounded in bytes."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._blocks: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> bytes | None:
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def add(self, key: tuple[object, ...], block: bytes) -> None:
        with self._lock:
            if key in self._blocks:  # Another thread was as fast.
                return
            self._blocks[key] = block
            self._bytes += len(block)
            while self._bytes > CACHE_BYTES and len(self._blocks) > 1:
                self._bytes -= len(self._blocks.popitem(last=False)[1])


_cache = _Cache()

# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=_cache.forget)
