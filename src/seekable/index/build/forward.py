"""The bytes of a data file for a surveyor, which goes from header to header."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, final

from seekable.storage.memory import DiskActivity, advise, disk_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seekable.index.scanner import ByteSource, Chunk
    from seekable.storage.ranges import SeekableBytes

__all__ = ["ForwardContent", "ForwardFile", "ForwardStream"]

_STEP_BYTES = 4 << 20
"""The bytes between two reports of progress."""

_NEAR_BYTES = 64 << 10
"""A disk reads as many bytes that are not needed in less time than it finds another place."""

_AHEAD_BYTES = 512 << 10


@final
class ForwardFile:
    """The bytes of an open file that is not compressed: what is left out is not read."""

    __slots__ = (
        *("_activity", "_descriptor", "_end", "_file", "_on_bytes", "_passed", "_reads", "_size", "_advised"),
        "path",
    )

    def __init__(
        self,
        file: SeekableBytes,
        path: str,
        *,
        size: int,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Read from an open file, whose position changes; closing it stays the caller's task.

        Args:
            file: the file.
            path: its name in error messages.
            size: its number of bytes; bytes that are appended meanwhile are not read.
            on_bytes: is called with the number of bytes that were passed since the last call.
        """
        self.path = path
        """The name of the file in error messages."""
        self._file = file
        self._descriptor = file.fileno() if isinstance(file, io.FileIO) else None
        self._end = 0
        self._advised = 0
        self._activity = DiskActivity()
        self._reads = disk_reads()
        self._size = size
        self._passed = 0
        self._on_bytes = on_bytes

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, fewer only at the end of the file."""
        count = min(count, self._size - start)
        if count <= 0:
            return b""
        if 0 < start - self._end < _NEAR_BYTES and start > self._advised:
            self._advise(start)
        self._end = start + count
        data = self._part(start, count)
        if len(data) < count:
            parts, missing = [data], count - len(data)
            while missing and (part := self._part(start + count - missing, missing)):
                parts.append(part)
                missing -= len(part)
            data = b"".join(parts)
        if start - self._passed >= _STEP_BYTES:
            self._pass(start)
        return data

    def _part(self, at: int, count: int) -> bytes:
        if self._descriptor is not None:
            return os.pread(self._descriptor, count, at)  # One call of the system, not two.
        self._file.seek(at)
        return self._file.read(count) or b""

    def _advise(self, start: int) -> None:
        """Have a disk read all of what comes next, as reads are near each other; in memory it costs time."""
        self._advised = start + _AHEAD_BYTES // 2
        reads = disk_reads()
        self._activity.note(reads - self._reads)
        self._reads = reads
        if self._activity.may_wait and self._descriptor is not None:
            advise(self._descriptor, start, _AHEAD_BYTES, "WILLNEED")

    def finish(self) -> None:
        """Report the whole file as passed."""
        self._pass(self._size)

    def _pass(self, at: int) -> None:
        if self._on_bytes is not None and at > self._passed:
            self._on_bytes(at - self._passed)
        self._passed = at


@final
class ForwardStream:
    """The bytes of chunks that follow each other: those of a compressed file, decompressed.

    Example:
        >>> stream = ForwardStream([b"good", b" day"], path="a.tar.gz")
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
class ForwardContent:
    """The content of a compressed file: all of it is decompressed, and what is left out is dropped."""

    __slots__ = ("_chunks", "_stream", "path")

    def __init__(self, source: ByteSource, path: str) -> None:
        """Read from the start of a source, whose chunks nothing else reads.

        Args:
            source: the content.
            path: the name of the file in error messages.
        """
        self.path = path
        """The name of the file in error messages."""
        self._chunks: Iterator[Chunk] = source.chunks()
        self._stream = ForwardStream(
            (memoryview(chunk.held)[: chunk.size] for chunk in self._chunks), path=path
        )

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, fewer only at the end of the content."""
        return self._stream.read(start, count)

    def finish(self) -> None:
        """Decompress the rest of the file, so that all of it is hashed and has seek points."""
        for _ in self._chunks:
            pass
