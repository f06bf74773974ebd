"""All bytes of a file that does not change: in memory if they are few, mapped if they are many."""

from __future__ import annotations

import mmap
import os

_READ_BYTES = 64 << 10
"""A file up to this size is read: a map costs a descriptor, and hundreds of sources have an index each."""


def whole_file(path: str, *, size: int | None = None) -> bytes | mmap.mmap:
    """Return the bytes of a file; a large one takes no memory of its own.

    Args:
        path: the file.
        size: how many bytes it should have.

    Raises:
        FileNotFoundError: it is not there, or does not have that size.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"good day"), file.flush()
        ...     whole_file(file.name, size=8)
        b'good day'
    """
    with open(path, "rb") as file:
        found = os.fstat(file.fileno()).st_size
        if size is not None and found != size:
            raise FileNotFoundError(f"{path!r} has {found} bytes and not {size}")
        if found <= _READ_BYTES:
            return file.read()
        return mmap.mmap(file.fileno(), found, access=mmap.ACCESS_READ)
