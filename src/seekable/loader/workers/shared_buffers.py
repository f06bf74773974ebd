"""Shared memory that a worker writes its messages to, and its parent reads them from, again and again."""

from __future__ import annotations

import mmap
import os
import tempfile

__all__ = ["BufferWriter", "SharedBuffers", "memory_without_name"]

_BUFFER_BYTES = 4 << 20
"""A buffer takes memory only where something was written: this bounds what the largest messages keep."""


class SharedBuffers:
    """Some buffers of equal size in one memory, which two processes have mapped.

    New memory for each message would have to be made, mapped on both sides, page by page, and given back: for
    a message of half a megabyte that takes longer than to pickle and load it.

    Args:
        descriptor: the memory; it is made larger where it is too small, and stays open.
        count: the number of buffers.

    Example:
        >>> ours = SharedBuffers(descriptor := memory_without_name(), 2)
        >>> theirs = SharedBuffers(descriptor, 2)
        >>> os.close(descriptor)
        >>> theirs.writer(1).write(b"message"), bytes(ours.view(1, 7))
        (7, b'message')
    """

    def __init__(self, descriptor: int, count: int) -> None:
        size = count * _BUFFER_BYTES
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._view = memoryview(mmap.mmap(descriptor, size))

    def writer(self, buffer: int) -> BufferWriter:
        """Return a file object that writes to a buffer from its start."""
        start = buffer * _BUFFER_BYTES
        return BufferWriter(self._view[start : start + _BUFFER_BYTES])

    def view(self, buffer: int, size: int) -> memoryview:
        """Return the first ``size`` bytes of a buffer, without a copy."""
        return self._view[buffer * _BUFFER_BYTES : buffer * _BUFFER_BYTES + size]


class BufferWriter:
    """A file object to pickle to: a shared buffer, or memory of its own for a message that does not fit.

    Args:
        buffer: the shared buffer; None for memory of its own alone.
    """

    def __init__(self, buffer: memoryview | None = None) -> None:
        self._buffer = memoryview(bytearray()) if buffer is None else buffer
        self._rest: bytearray | None = None
        self.size = 0
        """The number of bytes written."""

    @property
    def fits(self) -> bool:
        """True if all that was written is in the shared buffer."""
        return self._rest is None

    def write(self, data: bytes) -> int:
        """Add some bytes, and return their number."""
        start, self.size = self.size, self.size + len(data)
        if self._rest is None and self.size <= len(self._buffer):
            self._buffer[start : self.size] = data
        else:
            if self._rest is None:
                self._rest = bytearray(self._buffer[:start])
            self._rest += data
        return len(data)

    def taken(self) -> bytes | bytearray:
        """Return a copy of all that was written."""
        return bytes(self._buffer[: self.size]) if self._rest is None else self._rest


def memory_without_name() -> int:
    """Return the descriptor of new memory, which is freed when no process has it open or mapped any more."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("seekable")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
