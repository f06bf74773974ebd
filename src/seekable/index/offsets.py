"""The record offsets of a segment, open."""

from __future__ import annotations

import mmap
import os
import weakref
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.entry import Segment

_READ_BYTES = 64 << 10
"""A segment up to this size is read instead of mapped: a map costs a descriptor, and there may be a
segment to each of hundreds of sources."""


class Offsets:
    """The numbers of one segment: an array for many at once, a memoryview for one."""

    __slots__ = ("__weakref__", "array", "view")

    def __init__(self, path: str, *, size: int) -> None:
        """Open a segment that has this many bytes.

        Raises:
            FileNotFoundError: it is not there, or is shorter or longer.
        """
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                raise FileNotFoundError(f"{path!r} does not have {size} bytes")
            data = (
                file.read()
                if size <= _READ_BYTES
                else mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
            )
        self.view = memoryview(data).cast("Q")
        self.array: NDArray[np.uint64] = np.frombuffer(data, np.uint64)


_open: weakref.WeakValueDictionary[str, Offsets] = weakref.WeakValueDictionary()


def open_offsets(folder: str, segment: Segment) -> Offsets:
    """Return the offsets of a segment, opened now or held open by somebody else.

    Raises:
        FileNotFoundError: it is not there, or not whole.
    """
    path = os.path.join(folder, segment.file_name)
    if offsets := _open.get(path):
        return offsets
    return _open.setdefault(path, Offsets(path, size=segment.bytes))
