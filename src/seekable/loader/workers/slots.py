"""Memory that a worker writes its messages to and its parent reads them from, again and again."""

from __future__ import annotations

import mmap
import os
import tempfile

__all__ = ["Slots", "memory_without_name"]

_SLOT_BYTES = 4 << 20
"""A slot takes no memory that nothing was written to: this bounds what the largest messages keep."""


class Slots:
    """Some slots of memory that two processes have mapped.

    A new memory for each message would have to be made, mapped on both sides, page by page, and given back:
    for a message of half a megabyte that takes longer than to pickle and load it.

    Example:
        >>> ours = Slots(descriptor := memory_without_name(), 2)
        >>> theirs = Slots(descriptor, 2)
        >>> os.close(descriptor)
        >>> theirs.writer(1).write(b"message"), bytes(ours.view(1, 7))
        (7, b'message')
    """

    def __init__(self, descriptor: int, count: int) -> None:
        """Map the slots of a memory; the descriptor stays the caller's."""
        size = count * _SLOT_BYTES
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._view = memoryview(mmap.mmap(descriptor, size))

    def writer(self, slot: int) -> SlotWriter:
        """Return what writes to a slot from its start."""
        start = slot * _SLOT_BYTES
        return SlotWriter(self._view[start : start + _SLOT_BYTES])

    def view(self, slot: int, size: int) -> memoryview:
        """Return the first bytes of a slot."""
        return self._view[slot * _SLOT_BYTES : slot * _SLOT_BYTES + size]


class SlotWriter:
    """A file to pickle to: a slot, if there is one, and memory of its own for what does not fit into it."""

    def __init__(self, slot: memoryview | None = None) -> None:
        """Begin at the slot's first byte."""
        self._slot = memoryview(bytearray()) if slot is None else slot
        self._rest: bytearray | None = None
        self.size = 0
        """The bytes that were written."""

    @property
    def fits(self) -> bool:
        """Whether all that was written is in the slot."""
        return self._rest is None

    def write(self, data: bytes) -> int:
        """Add some bytes, and return how many."""
        start, self.size = self.size, self.size + len(data)
        if self._rest is None and self.size <= len(self._slot):
            self._slot[start : self.size] = data
        else:
            if self._rest is None:
                self._rest = bytearray(self._slot[:start])
            self._rest += data
        return len(data)

    def taken(self) -> bytes | bytearray:
        """Return all that was written, in memory of its own."""
        return bytes(self._slot[: self.size]) if self._rest is None else self._rest


def memory_without_name() -> int:
    """Return the descriptor of new memory, which is freed when nobody has it open or mapped any more."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("seekable")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
