"""What this machine can do at best: each job in as few lines as Python allows, with no check and no index."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Span = tuple[memoryview, int, int]
"""The bytes of a file, and where in them a record starts and ends."""

_NEWLINE = 10
_CHUNK_BYTES = 1 << 20
_PAGE_BYTES = 4096
_SAMPLED_PAGES = 512


def read_all(paths: Sequence[str]) -> int:
    """Read files, and return how many bytes they have."""
    view, size = memoryview(bytearray(_CHUNK_BYTES)), 0
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(view):
                size += count
    return size


def find_newlines(paths: Sequence[str]) -> int:
    """Find each newline of some files, and return how many there are."""
    buffer = bytearray(_CHUNK_BYTES)
    array, view, found = np.frombuffer(buffer, np.uint8), memoryview(buffer), 0
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(view):
                found += len(np.flatnonzero(array[:count] == _NEWLINE))
    return found


def mapped(path: str) -> memoryview:
    """Return the bytes of a file."""
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def decode_singly(spans: Sequence[Span], decode: Callable[[memoryview], Any]) -> None:
    """Slice and decode records, keeping none."""
    for view, start, end in spans:
        decode(view[start:end])


def decode_in_batches(spans: Sequence[Span], decode: Callable[[memoryview], Any], *, size: int) -> None:
    """Slice and decode records, keeping one batch at a time."""
    for first in range(0, len(spans), size):
        [decode(view[start:end]) for view, start, end in spans[first : first + size]]


def cached_share(paths: Sequence[str]) -> float | None:
    """Return which share of some files is in memory, told from a few pages; None if it cannot be told."""
    sizes = np.array([os.path.getsize(path) for path in paths], np.int64)
    pages = -(-sizes // _PAGE_BYTES)
    ends = np.cumsum(pages)
    if not ends.size or not ends[-1]:
        return None
    hits = []
    for page in np.unique(np.linspace(0, ends[-1] - 1, num=_SAMPLED_PAGES).astype(np.int64)).tolist():
        number = int(np.searchsorted(ends, page, side="right"))
        hit = _is_cached(paths[number], (page - int(ends[number] - pages[number])) * _PAGE_BYTES)
        if hit is None:
            return None
        hits.append(hit)
    return sum(hits) / len(hits)


def _is_cached(path: str, offset: int) -> bool | None:
    """Tell whether a byte can be had without waiting for the disk."""
    if not hasattr(os, "RWF_NOWAIT"):
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    except OSError:
        return None  # The file system cannot tell.
    finally:
        os.close(descriptor)
