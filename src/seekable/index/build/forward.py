"""The bytes of a data file for a surveyor, which goes from header to header."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.index.scanner import ByteSource, Chunk
    from seekable.storage.ranges import SeekableBytes

__all__ = ["ForwardContent", "ForwardFile"]

_STEP_BYTES = 4 << 20
"""The bytes between two reports of progress."""

_NEAR_BYTES = 64 << 10
"""A disk reads as many bytes that are not needed in less time than it finds another place."""

_AHEAD_BYTES = 512 << 10
_ADVISES = hasattr(os, "posix_fadvise")


@final
class ForwardFile:
    """The bytes of an open file that is not compressed: what is left out is not read."""

    __slots__ = ("_descriptor", "_end", "_file", "_on_bytes", "_passed", "_size", "_told", "path")

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
        self._told = 0
        self._size = size
        self._passed = 0
        self._on_bytes = on_bytes

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, fewer only at the end of the file."""
        count = min(count, self._size - start)
        if count <= 0:
            return b""
        self._advise(start, count)
        parts, missing = [], count
        while missing and (part := self._part(start + count - missing, missing)):
            parts.append(part)
            missing -= len(part)
        if start - self._passed >= _STEP_BYTES:
            self._pass(start)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, at: int, count: int) -> bytes:
        if self._descriptor is not None:
            return os.pread(self._descriptor, count, at)  # One call of the system, not two.
        self._file.seek(at)
        return self._file.read(count) or b""

    def _advise(self, start: int, count: int) -> None:
        """Have a disk read all of what comes next, where reads are near each other."""
        near = 0 < start - self._end < _NEAR_BYTES and start > self._told
        self._end = start + count
        if near and _ADVISES and self._descriptor is not None:
            self._told = start + _AHEAD_BYTES // 2
            os.posix_fadvise(self._descriptor, start, _AHEAD_BYTES, os.POSIX_FADV_WILLNEED)

    def finish(self) -> None:
        """Report the whole file as passed."""
        self._pass(self._size)

    def _pass(self, at: int) -> None:
        if self._on_bytes is not None and at > self._passed:
            self._on_bytes(at - self._passed)
        self._passed = at


@final
class ForwardContent:
    """The content of a compressed file: all of it is decompressed, and what is left out is dropped."""

    __slots__ = ("_chunks", "_held", "_start", "path")

    def __init__(self, source: ByteSource, path: str) -> None:
        """Read from the start of a source, whose chunks nothing else reads.

        Args:
            source: the content.
            path: the name of the file in error messages.
        """
        self.path = path
        """The name of the file in error messages."""
        self._chunks: Iterator[Chunk] = source.chunks()
        self._held = memoryview(b"")
        self._start = 0

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, fewer only at the end of the content."""
        parts: list[memoryview] = []
        at, missing = start, count
        while missing:
            piece = self._held[max(at - self._start, 0) :][:missing]
            parts.append(piece)
            at, missing = at + len(piece), missing - len(piece)
            if missing and not self._next(keep_from=start):
                break
        return b"".join(parts)

    def finish(self) -> None:
        """Decompress the rest of the file, so that all of it is hashed and has seek points."""
        for _ in self._chunks:
            pass

    def _next(self, *, keep_from: int) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        # A later read may begin where this one did, so that what it was given is held on.
        kept = self._held[max(keep_from - self._start, 0) :]
        self._start = chunk.base - len(kept)
        self._held = memoryview(bytes(kept) + memoryview(chunk.buffer)[: chunk.size])
        return True
