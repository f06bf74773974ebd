"""The record offsets of a segment, open."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

import numpy as np

from seekable.storage.files import read_or_map
from seekable.storage.map_file import drop_pages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.entry import Segment

_FEWEST_JOINED = 2


class Offsets:
    """The record offsets of a segment: an array for many at once, a memoryview for single ones."""

    __slots__ = ("__weakref__", "array", "in_memory", "view")

    def __init__(self, data: bytes | memoryview) -> None:
        """Make an array and a memoryview of the bytes."""
        self.view = memoryview(data).cast("Q")
        self.array: NDArray[np.uint64] = np.frombuffer(data, np.uint64)
        self.in_memory = isinstance(data, bytes)


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
        FileNotFoundError: the segment does not exist, or is cut off.
    """
    path = os.path.join(folder, segment.file_name)
    if offsets := _open.get(path):
        return offsets
    return _open.setdefault(path, Offsets(read_or_map(path, size=segment.bytes)))


def drop_read_pages() -> None:
    """Give back the memory of the pages of all open segments, for a reader that passes over an index once.

    Later reads find the pages in the cache of the system.
    """
    for offsets in list(_open.values()):
        if not offsets.in_memory:
            drop_pages(offsets.view)
