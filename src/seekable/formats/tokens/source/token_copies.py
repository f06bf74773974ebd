"""Copies of many slices of stored arrays: with one call where all are of one length, in a loop else."""

from __future__ import annotations

from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.storage.mapped import View

    Array = NDArray[Any]

__all__ = ["copy_elements", "copy_slices"]

_FEWEST_TOGETHER = 4
"""From this many slices of one length on, one call of numpy is faster than a loop."""

_MOST_JOINED = 128
"""The most slices that are joined before they are copied, so that what is joined stays in the cache."""


def copy_elements(
    target: Array,
    source: View | list[View],
    *,
    to: Int64s,
    starts: Int64s,
    counts: Int64s,
    dtype: np.dtype[Any],
    minus: int = 0,
) -> None:
    """Copy slices of stored elements into an array, converted to its type where that is another one.

    Args:
        target: the array to write, of any shape, contiguous.
        source: the bytes of the stored elements: one view of all slices, or a view for each.
        to: the first element of each slice in the flat target, int64.
        starts: its first byte in the source, int64.
        counts: its number of elements, int64.
        dtype: the type of the stored elements.
        minus: a number that is subtracted from each.
    """
    assert target.flags.c_contiguous
    if not target.size or not counts.size:
        return
    wide, narrow = target.dtype.itemsize, dtype.itemsize
    if target.dtype == dtype and not minus:
        copy_slices(_bytes_of(target), source, to * wide, starts, counts * wide)
        return
    ends = np.cumsum(counts)
    stored = np.empty(int(ends[-1]), dtype)
    if stored.size:
        copy_slices(_bytes_of(stored), source, (ends - counts) * narrow, starts, counts * narrow)
        made = (stored - dtype.type(minus)).astype(target.dtype)
        copy_slices(_bytes_of(target), _bytes_of(made), to * wide, (ends - counts) * wide, counts * wide)


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def copy_slices(
    target: memoryview, source: View | list[View], to: Int64s, starts: Int64s, counts: Int64s
) -> None:
    """Copy slices of buffers of bytes into another one; slices of the target must not overlap.

    Slices that are side by side in the target are joined, which takes half the time of copying each.

    Args:
        target: the bytes to write, in one dimension.
        source: the bytes to read, one view of all slices, or a list with a view for each; a memory map may
            be aligned or not.
        to: the first byte of each slice in the target, int64.
        starts: its first byte in the source, int64.
        counts: its number of bytes, int64; no slice may go beyond the end of a buffer.

    Example:
        >>> out = bytearray(b"......")
        >>> copy_slices(memoryview(out), memoryview(b"abcdef"), *np.array([[3, 0], [1, 4], [3, 2]]))
        >>> bytes(out)
        b'ef.bcd'
    """
    several = isinstance(source, memoryview) and len(counts) >= _FEWEST_TOGETHER
    if several and counts[0] and (counts == counts[0]).all():
        _copy_equal(target, cast("memoryview", source), to, starts, int(counts[0]))
        return
    views = source if isinstance(source, list) else repeat(source)
    slices = zip(views, starts.tolist(), (starts + counts).tolist(), strict=False)
    for first, end, size in _side_by_side(to, to + counts):
        target[first:end] = b"".join([view[start:stop] for view, start, stop in islice(slices, size)])


def _side_by_side(firsts: Int64s, ends: Int64s) -> Iterator[tuple[int, int, int]]:
    """Yield the begin and the end of groups of slices that are side by side, and the size of each group."""
    heads = np.ones(len(firsts), np.bool_)
    heads[1:] = firsts[1:] != ends[:-1]
    heads[::_MOST_JOINED] = True
    begins = np.flatnonzero(heads)
    sizes = np.diff(begins, append=len(firsts))
    lasts = begins + sizes - 1
    return zip(firsts[begins].tolist(), ends[lasts].tolist(), sizes.tolist(), strict=True)


def _copy_equal(target: memoryview, source: memoryview, to: Int64s, starts: Int64s, count: int) -> None:
    """Copy slices of one length: each is one element, of a type of so many bytes."""
    kind = np.dtype((np.void, count))
    phase = int(starts[0]) % count
    picked, rest = np.divmod(starts - phase, count)
    if rest.any():
        _elements(target, kind)[to] = _elements(source, kind)[starts]
        return
    # Elements that stand side by side, as those of fixed windows do, are taken without a copy between.
    whole = np.frombuffer(source, kind, (len(source) - phase) // count, phase)
    if (np.diff(to) == count).all():
        np.take(whole, picked, out=np.frombuffer(target, kind, len(to), int(to[0])), mode="clip")
    else:
        _elements(target, kind)[to] = np.take(whole, picked)


def _elements(view: memoryview, kind: np.dtype[np.void]) -> Any:
    """Return an array of overlapping elements, one of which begins at each byte of a buffer."""
    count = len(view) - kind.itemsize + 1
    return np.ndarray((count,), kind, buffer=cast("Any", view), strides=(1,))
