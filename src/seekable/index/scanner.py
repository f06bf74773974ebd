"""What a format must provide to be indexed, and what it is given to read."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from seekable.index.digest import ContentHasher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

CHUNK_BYTES = 1 << 20
"""How much is read at a time: 512 KiB to 4 MiB are within 10 % of it (measured)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive bytes of a file. They are overwritten when the next chunk is read."""

    base: int
    """Where in the file they start."""

    buffer: bytearray
    """What holds them; its first `size` bytes are theirs."""

    size: int
    """How many there are, at least 1."""

    array: NDArray[np.uint8]
    """The same bytes as an array."""


class ByteSource:
    """The bytes of one file, to be read once, from start to end; hashed while they are read."""

    __slots__ = ("_chunk_bytes", "_file", "_hasher", "_on_bytes", "head", "size")

    def __init__(
        self,
        descriptor: int,
        *,
        size: int,
        head: bytes,
        chunk_bytes: int = CHUNK_BYTES,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Read from an open file that stays the caller's to close.

        Args:
            descriptor: the file, at its start.
            size: how many bytes it has; what is appended meanwhile is not read.
            head: its first bytes, at least 4 if it has as many.
            chunk_bytes: how much to read at a time.
            on_bytes: is told the size of each chunk when it is done with.
        """
        self.size = size
        """How many bytes the file has."""
        self.head = head
        """Its first bytes."""
        self._file = io.FileIO(descriptor, closefd=False)
        self._chunk_bytes = max(min(chunk_bytes, size), 1)
        self._on_bytes = on_bytes
        self._hasher = ContentHasher()

    def chunks(self) -> Iterator[Chunk]:
        """Yield the file's bytes in order."""
        buffer = bytearray(self._chunk_bytes)
        view, array = memoryview(buffer), np.frombuffer(buffer, np.uint8)
        base = 0
        while base < self.size:
            count = self._file.readinto(view[: self.size - base])
            if not count:
                return  # It was truncated, which the caller finds out by its size.
            self._hasher.update(view[:count])
            yield Chunk(base, buffer, count, array[:count])
            base += count
            if self._on_bytes:
                self._on_bytes(count)

    def content_digest(self) -> int:
        """Return the digest of the whole file, after its last chunk was read."""
        return self._hasher.digest()


class Scanner(Protocol):
    """Finds where the records of a file start: what a format must provide to be indexed.

    A scanner is a small value without handles: it is pickled to other processes, compared, and used
    from several threads at once. What it finds is a pure function of the file's bytes and of its own
    fields. It reads every chunk of the source to the end. Memory beyond the chunk and the offsets
    themselves must not grow with the file.
    """

    @property
    def name(self) -> str:
        """What the index calls the format, with all options that decide where records start.

        Lower-case letters, digits and ``-``; a file is indexed once for each such name.
        """

    def check_head(self, head: bytes, path: str) -> None:
        """Look at the first 64 KiB of a file (all of it, if it is smaller) before it is scanned.

        Raises:
            UnsupportedFormat: it is certainly of another format; the message says which one and what
                to do. A record that is merely corrupt is no reason: that is an error when it is read.
        """

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return where the records start, ascending and without repeats.

        A record's range ends where the next one starts, the last one's at the end of the file.
        """
