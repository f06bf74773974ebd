"""Memory maps that hold no file descriptor.

Before Python 3.13 ``mmap.mmap`` keeps a descriptor of its own for each map, so an open file would take two,
and one of them could not be closed while a slice of the map is in use. A map made here takes none: the
descriptor stays the caller's, who may close it at any time.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from typing import Any

import numpy as np

__all__ = ["drop_pages", "map_file"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t),
)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

_FAILED = ctypes.c_void_p(-1).value


def map_file(descriptor: int, size: int, *, random: bool = False) -> memoryview:
    """Return the first bytes of an open file, mapped into memory and read-only.

    The map lasts as long as the view or any slice of it; the descriptor may be closed at once.

    Args:
        descriptor: the file.
        size: the number of bytes to map, at most as many as the file has.
        random: True if the system shall not read ahead around the bytes that are used.

    Raises:
        OSError: the file cannot be mapped.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(b"good day"), file.flush()
        ...     view = map_file(file.fileno(), 8)
        >>> bytes(view[5:])
        b'day'
    """
    if not size:
        return memoryview(b"")  # The system refuses a map of no bytes.
    address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    mapped = _bytes_type(size.bit_length()).from_address(address)
    # When the process exits, other threads may still read: the system removes the map then.
    weakref.finalize(mapped, _LIBC.munmap, address, size).atexit = False
    if random and hasattr(mmap, "MADV_RANDOM"):
        _LIBC.madvise(address, size, mmap.MADV_RANDOM)
    return memoryview(mapped).cast("B")[:size].toreadonly()


def drop_pages(mapped: memoryview) -> None:
    """Give the memory of a map back to the system, for a reader of all of a large file.

    Later readers find the same bytes: the pages may stay in the cache of the system.

    Args:
        mapped: what `map_file` returned, or a slice of it; other memory would lose its bytes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(b"good day" * 10_000), file.flush()
        ...     view = map_file(file.fileno(), 80_000)
        >>> drop_pages(view[8:])
        >>> bytes(view) == b"good day" * 10_000
        True
    """
    page, count = mmap.PAGESIZE, mapped.nbytes
    if not count or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = np.frombuffer(mapped, np.uint8).ctypes.data
    first, end = -(-start // page) * page, (start + count) // page * page
    if first < end:
        _LIBC.madvise(first, end - first, mmap.MADV_DONTNEED)


@functools.cache
def _bytes_type(bits: int) -> Any:
    """Return the type of an array of bytes that is longer than any number of so many bits.

    There are few such types, and each takes memory; the view is cut to the size of the file.
    """
    return ctypes.c_char * (1 << bits)
