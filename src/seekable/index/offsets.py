"""The record offsets of a segment, open."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.index.units import UNIT_SHIFT, open_units
from seekable.storage.files import READ_BYTES, read_or_map
from seekable.storage.map_file import drop_pages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.entry import Segment
    from seekable.index.units import Units

__all__ = ["Offsets", "drop_read_pages", "is_whole", "join_small", "open_offsets"]

_FEWEST_JOINED = 2

_WORDS_PER_UNIT = 1 << UNIT_SHIFT


class Offsets:
    """The record offsets of a segment, of which each unit of 4 KiB is compared when it is touched first.

    Those of a small segment are in memory, and were compared as a whole when they were read.
    """

    __slots__ = ("__weakref__", "array", "compare", "compared", "in_memory", "units", "view")

    def __init__(self, data: bytes | memoryview, units: Units | None = None) -> None:
        """Make an array and a memoryview of the bytes; without units, none is compared."""
        self.view = memoryview(data).cast("Q")
        """All numbers, for single ones; a reader looks into ``compared`` first."""
        self.array: NDArray[np.uint64] = np.frombuffer(data, np.uint64)
        """All numbers, none of them compared, for readers with a digest of their own."""
        self.in_memory = isinstance(data, bytes)
        self.units = units
        self.compare = units.compare if units else _nothing
        """Compares a unit, where ``compared`` has 0; it raises ``IndexStale`` if the segment is damaged."""
        self.compared = units.compared if units else b"\1" * (len(self.view) // _WORDS_PER_UNIT + 1)
        """For each unit 1 if it was compared, else 0: that of a number is its index >> 9."""

    def number(self, at: int) -> int:
        """Return one number.

        Raises:
            IndexStale: the segment is damaged.
        """
        if not self.compared[at >> UNIT_SHIFT]:
            self.compare(at >> UNIT_SHIFT)
        return self.view[at]

    def pair(self, at: int) -> tuple[int, int]:
        """Return a number and the next one.

        Raises:
            IndexStale: the segment is damaged.
        """
        if not self.compared[at >> UNIT_SHIFT]:
            self.compare(at >> UNIT_SHIFT)
        return self.view[at], self.view[at + 1]

    def pairs(self, at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return many numbers, and the number behind each.

        Raises:
            IndexStale: the segment is damaged.
        """
        if self.units:
            self.units.compare_all(at)
        return self.array[at], self.array[at + 1]

    def span(self, first: int, stop: int) -> memoryview:
        """Return consecutive numbers, given the index of the first and that behind the last; no copy.

        Raises:
            IndexStale: the segment is damaged.
        """
        if self.units:
            self.units.compare_span(first, stop)
        return self.view[first:stop]


def _nothing(_: int) -> None:
    """Compare nothing: all units were compared, or cannot be."""


def join_small(
    offsets: tuple[Offsets, ...],
) -> tuple[tuple[Offsets, ...], NDArray[np.int64], NDArray[np.int64]]:
    """Join the offsets that are in memory, so that they are read as one array.

    Returns:
        The joined offsets; for each given one, the number of the joined one that holds it; and its first
        index there.

    Example:
        >>> one, two = (Offsets(np.array(numbers, np.uint64).tobytes()) for numbers in ([0, 7], [0, 3, 9]))
        >>> (joined,), number, before = join_small((one, two))
        >>> joined.array.tolist(), number.tolist(), before.tolist()
        ([0, 7, 0, 3, 9], [0, 0], [0, 2])
    """
    small = [i for i, some in enumerate(offsets) if some.in_memory]
    large = [i for i, some in enumerate(offsets) if not some.in_memory]
    number, before = np.arange(len(offsets)), np.zeros(len(offsets), np.int64)
    if len(small) < _FEWEST_JOINED:
        return offsets, number, before
    number[small], number[large] = 0, np.arange(1, len(large) + 1)
    lengths = np.array([len(offsets[i].array) for i in small])
    before[small] = np.cumsum(lengths) - lengths
    joined = Offsets(b"".join([offsets[i].view for i in small]))
    return (joined, *(offsets[i] for i in large)), number, before


_open: weakref.WeakValueDictionary[str, Offsets] = weakref.WeakValueDictionary()


def open_offsets(folder: str, segment: Segment) -> Offsets:
    """Return the offsets of a segment; one open object serves all callers of the process.

    Raises:
        FileNotFoundError: the segment does not exist, is cut off, or is a small one that is damaged.
    """
    path = os.path.join(folder, segment.file_name)
    offsets = _open.get(path)
    if offsets is None or (offsets.units and offsets.units.damaged):
        data = read_or_map(path, size=segment.bytes)
        if isinstance(data, bytes):
            if xxhash.xxh3_64_intdigest(data) != segment.digest:
                raise FileNotFoundError(f"the bytes of {path!r} are not those that were written")
            offsets = Offsets(data)
        else:
            offsets = Offsets(data, open_units(path, data, segment.digest))
        _open[path] = offsets
    return offsets


def is_whole(folder: str, segment: Segment) -> bool:
    """Return True if a segment can be read and has its length; the bytes of a small one are compared too."""
    path = os.path.join(folder, segment.file_name)
    try:
        # Of another user's index a part may be unreadable: as good as not there.
        if segment.bytes > READ_BYTES:
            return os.path.getsize(path) == segment.bytes and os.access(path, os.R_OK)
        open_offsets(folder, segment)
    except OSError:
        return False
    return True


def drop_read_pages() -> None:
    """Give back the memory of the pages of all open segments, for a reader that passes over an index once.

    Later reads find the pages in the cache of the system.
    """
    for offsets in list(_open.values()):
        if not offsets.in_memory:
            drop_pages(offsets.view)
