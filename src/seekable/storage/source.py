"""The bytes of one file, any range of them at a time: what readers of tables are given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, final

import xxhash

if TYPE_CHECKING:
    from seekable.storage.mapped import MappedFile

__all__ = ["DescriptorRanges", "HashedRanges", "MappedRanges", "RangeSource"]


class RangeSource(Protocol):
    """The bytes of one file; safe from threads."""

    @property
    def path(self) -> str:
        """What the file is called in errors."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return some of its bytes, ``0 <= start <= stop <= size``; without a copy where it is mapped.

        Raises:
            IndexStale: it is not the file that was indexed.
        """


@final
class MappedRanges:
    """Ranges of a file that is mapped; whoever reads has looked whether the file is still the same."""

    __slots__ = ("_view", "path", "size")

    def __init__(self, mapped: MappedFile, *, path: str | None = None) -> None:
        """Keep the map.

        Args:
            mapped: the file.
            path: what it is called, if not by its own path.
        """
        self.path = mapped.path if path is None else path
        self.size = mapped.size
        self._view = mapped.view

    def range(self, start: int, stop: int) -> memoryview:
        """Return a slice of the map."""
        return self._view[start:stop]


@final
class DescriptorRanges:
    """Ranges of an open file, read anew each time."""

    __slots__ = ("_descriptor", "path", "size")

    def __init__(self, descriptor: int, *, path: str, size: int) -> None:
        """Read from an open file that stays the caller's to close."""
        self.path = path
        self.size = size
        self._descriptor = descriptor

    def range(self, start: int, stop: int) -> memoryview:
        """Read some bytes; fewer come of a file that was truncated meanwhile."""
        parts, at = [], start
        while at < stop and (part := os.pread(self._descriptor, stop - at, at)):
            parts.append(part)
            at += len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))


@final
class HashedRanges:
    """Ranges that are digested as they are read: two files whose digests agree gave the reader the same."""

    __slots__ = ("_hasher", "_source", "path", "size")

    def __init__(self, source: RangeSource) -> None:
        """Digest what is read of a file, and how large it is."""
        self.path = source.path
        self.size = source.size
        self._source = source
        self._hasher = xxhash.xxh3_64(source.size.to_bytes(8, "little"))

    def range(self, start: int, stop: int) -> memoryview:
        """Read some bytes; fewer come of a file that was truncated meanwhile."""
        data = self._source.range(start, stop)
        for number in (start, stop):
            self._hasher.update(number.to_bytes(8, "little"))
        self._hasher.update(data)
        return data

    def digest(self) -> bytes:
        """Return the digest of all that was read, and of where it lies, as a little-endian uint64."""
        return self._hasher.intdigest().to_bytes(8, "little")
