"""The bytes of one archive, of a file or of a stream, and the window of them that a walk looks at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.index.surveyor import ForwardBytes

__all__ = ["DescriptorForward", "HeaderWindow", "StreamForward"]

_NEAR_BYTES = 2 << 10
_NEAR_READ = 256 << 10
"""The bytes to read where headers are less than `_NEAR_BYTES` apart, extended ones counted."""

_FAR_READ = 6 << 10
"""The bytes to read elsewhere: the headers of a sample of small members, and of the large one behind it."""

_NEWEST_SHARE = 0.25
"""How much the newest distance between headers weighs in the mean."""

_MOST_OFFSET = 1 << 62


@final
class DescriptorForward:
    """The bytes of an open file, by ``pread``; its position does not change."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, descriptor: int, *, path: str) -> None:
        """Read from an open file; closing it stays the caller's task."""
        self.path = path
        self._descriptor = descriptor

    def read(self, start: int, count: int) -> bytes:
        """Return bytes of the file."""
        data = os.pread(self._descriptor, count, start)
        if len(data) == count or not data:
            return data
        parts, have = [data], len(data)
        while have < count and (part := os.pread(self._descriptor, count - have, start + have)):
            parts.append(part)
            have += len(part)
        return b"".join(parts)


@final
class StreamForward:
    """The bytes of chunks that follow each other: those of a compressed file, decompressed.

    Example:
        >>> stream = StreamForward([b"good", b" day"], path="a.tar.gz")
        >>> stream.read(1, 5), stream.read(6, 9)
        (b'ood d', b'ay')
    """

    __slots__ = ("_chunks", "_held", "_start", "path")

    def __init__(self, chunks: Iterable[bytes | bytearray | memoryview], *, path: str) -> None:
        """Read from chunks; each is copied before the next one is made."""
        self.path = path
        self._chunks = iter(chunks)
        self._start = 0
        self._held = b""

    def read(self, start: int, count: int) -> bytes:
        """Return bytes of the stream; what lies before them is dropped where a chunk is added."""
        stop, end = start + count, self._start + len(self._held)
        parts = [] if end >= stop else [self._held[max(start - self._start, 0) :]]
        while end < stop and (chunk := next(self._chunks, None)) is not None:
            parts = parts if end > start else []
            parts.append(bytes(chunk))
            end += len(chunk)
        if parts:
            self._held = b"".join(parts)
            self._start = end - len(self._held)
        return self._held[max(start - self._start, 0) : max(stop - self._start, 0)]


@final
class HeaderWindow:
    """A part of an archive, which moves from header to header; it is long where they are near each other."""

    __slots__ = ("_at", "_headers", "_source", "_spacing", "base", "buffer")

    def __init__(self, source: ForwardBytes) -> None:
        """Begin with an empty window."""
        self.buffer = b""
        """The bytes of the window."""
        self.base = 0
        """The offset of the first of them."""
        self._source = source
        self._at = 0
        self._headers = 0
        self._spacing = 0.0

    def fill(self, at: int, count: int, *, headers: int) -> bool:
        """Move the window, so that it begins one byte before an offset.

        That byte is the last of the data that end there, so that a file which ends before it is told from one
        which ends there.

        Args:
            at: the offset.
            count: the number of bytes that are needed from there on, besides the next header.
            headers: the number of headers before the offset.

        Returns:
            False if the file ends before that byte.
        """
        if headers > self._headers:
            newest = (at - self._at) / (headers - self._headers)
            self._spacing += (newest - self._spacing) * _NEWEST_SHARE
            self._at, self._headers = at, headers
        self.base = max(at - 1, 0)
        count += _NEAR_READ if self._spacing < _NEAR_BYTES else _FAR_READ
        self.buffer = self._source.read(self.base, count + 1) if at < _MOST_OFFSET else b""
        return bool(self.buffer) or not at

    def take(self, at: int, count: int) -> bytes:
        """Return bytes of the window from an offset on; fewer where it ends."""
        return self.buffer[at - self.base : at - self.base + count]
