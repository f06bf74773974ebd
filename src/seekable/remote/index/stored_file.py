"""An object of a store, open to be indexed or verified."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from seekable.index.build.content import needs_points
from seekable.index.build.data_file import Data
from seekable.index.digest import END_BYTES, ends_digest
from seekable.remote.index.object_reader import STREAMED_BYTES, ObjectReader
from seekable.remote.index.pinned_object import Ends, PinnedObject
from seekable.storage.compression import compression_of
from seekable.storage.ranges import HashedRanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


__all__ = ["StoredFile"]

_WHOLE_BYTES = 4 * END_BYTES
"""A file up to this size is fetched in one request where otherwise its two ends would be."""


@final
class StoredFile:
    """One version of an object, for one scan. Nothing of it is kept in a cache."""

    def __init__(self, address: str, version: tuple[int, int], on_wait: Callable[[int], None] | None) -> None:
        """Fetch nothing yet.

        Args:
            address: the address of the object.
            version: its number of bytes, and the number of its version.
            on_wait: is called with 0 about ten times a second while bytes are awaited.
        """
        self.version = version
        """The number of bytes, and the number of the version."""
        self._size, self._identity = version
        self._address = address
        self._whole: memoryview | None = None
        self._object = PinnedObject(address, size=self._size, identity=self._identity, on_wait=on_wait)

    @property
    def holder(self) -> tuple[int, int]:
        """A zero, and the number of the version."""
        return 0, self._identity

    def head_tail(self) -> int:
        """Return the digest of both ends."""
        return ends_digest(*self._ends(), size=self._size)

    def ranges(self) -> HashedRanges:
        """Return the bytes for a reader of a footer, hashed as they are read."""
        return HashedRanges(_EndsFirst(self._object, *self._ends()))

    @contextmanager
    def data(self, start: int, stop: int, *, headers: bool) -> Iterator[Data]:
        """Yield the bytes for a scanner, those of the part fetched ahead.

        Args:
            start: the first byte of the part.
            stop: the byte after its last.
            headers: True for a scanner that goes from header to header.
        """
        first = self._all() if self._size <= STREAMED_BYTES else memoryview(b"")
        if not first and headers:
            first = memoryview(self._ends()[0])
        # A scanner of a part looks at the byte before it.
        before = max(start - 1, 0)
        with ObjectReader(self._object, start=before, stop=stop, headers=headers, first=first) as reader:
            if not first:
                reader.begin()
            head = self._ends()[0]
            if compression_of(self._object.path) == "gz" and needs_points(self._size, head):
                reader.keep()  # It is read twice.
            # Files beside it are found by the address, which a message has without the suffix of a mount.
            yield Data(reader, self._size, head, self._address)

    def is_unchanged(self) -> bool:
        """Return True: a range of another version is refused when it is fetched."""
        return True

    def _all(self) -> memoryview:
        """Return all bytes of a small object."""
        # No cached_property: until Python 3.12 its lock is one for all objects, and is held during the fetch.
        if self._whole is None:
            self._whole = self._object.range(0, self._size)
        return self._whole

    def _ends(self) -> Ends:
        """Return the first and the last 64 KiB."""
        if self._whole is None and self._size > _WHOLE_BYTES:
            return self._object.ends()
        whole = self._all()
        return bytes(whole[:END_BYTES]), bytes(whole[max(self._size - END_BYTES, 0) :])


@final
class _EndsFirst:
    """The byte ranges of an object whose ends are here."""

    __slots__ = ("_head", "_object", "_tail", "path", "size")

    def __init__(self, source: PinnedObject, head: bytes, tail: bytes) -> None:
        self.path = source.path
        self.size = source.size
        self._object = source
        self._head, self._tail = memoryview(head), memoryview(tail)

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes; those between the ends are fetched."""
        if stop <= len(self._head):
            return self._head[start:stop]
        first = self.size - len(self._tail)
        if start >= first:
            return self._tail[start - first : stop - first]
        return self._object.range(start, stop)
