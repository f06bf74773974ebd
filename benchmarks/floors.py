"""The floors: each job in as few lines as Python allows, without code of seekable.

No check, no index, no error message: nobody could ship these, and nothing that does the job in Python is
expected to be faster.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Span = tuple[memoryview, int, int]

_NEWLINE = 10


def newlines_by_find(path: str) -> list[int]:
    """Return the offsets of the newlines of a file: ``find`` in chunks of 4 MiB."""
    buffer = bytearray(4 << 20)
    view, find = memoryview(buffer), buffer.find
    ends: list[int] = []
    append = ends.append
    base = 0
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(view):
            end = find(b"\n", 0, count)
            while end >= 0:
                append(base + end)
                end = find(b"\n", end + 1, count)
            base += count
    return ends


def newlines_by_numpy(path: str) -> NDArray[np.int64]:
    """Return the offsets of the newlines of a file: one comparison over chunks of 1 MiB."""
    buffer = bytearray(1 << 20)
    array, view = np.frombuffer(buffer, np.uint8), memoryview(buffer)
    found = []
    base = 0
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(view):
            ends = np.flatnonzero(array[:count] == _NEWLINE)
            ends += base
            found.append(ends)
            base += count
    return np.concatenate(found)


def page_cache(path: str) -> int:
    """Read a file that the page cache holds, and return its size."""
    view = memoryview(bytearray(1 << 20))
    size = 0
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(view):
            size += count
    return size


def mapped(path: str) -> memoryview:
    """Return the bytes of a file, mapped, each page of them touched."""
    with open(path, "rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    np.frombuffer(view, np.uint8)[::4096].sum()
    return view


def decoded(spans: Sequence[Span]) -> list[Any]:
    """Return some records of mapped files: slice and decode."""
    decode = msgspec.json.Decoder().decode
    return [decode(view[start:end]) for view, start, end in spans]


def decoded_in_batches(spans: Sequence[Span], size: int) -> None:
    """Slice and decode some records, keeping only one batch at a time."""
    decode = msgspec.json.Decoder().decode
    for first in range(0, len(spans), size):
        [decode(view[start:end]) for view, start, end in spans[first : first + size]]


def decoded_singly(spans: Sequence[Span]) -> None:
    """Slice and decode some records, keeping none."""
    decode = msgspec.json.Decoder().decode
    for view, start, end in spans:
        decode(view[start:end])


def shuffled(size: int) -> NDArray[np.int64]:
    """Return a permutation that lies in memory, as numpy makes it."""
    return np.random.default_rng(0).permutation(size)
