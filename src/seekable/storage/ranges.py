"""Ranges of bytes, planned before they are read. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["merge_near"]


def merge_near(
    files: NDArray[np.int64], starts: NDArray[np.uint64], ends: NDArray[np.uint64], *, gap: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Return fewer ranges that hold all of the given ones.

    Args:
        files: the number of each range's file, ascending.
        starts: where each begins, ascending within a file.
        ends: where each ends.
        gap: ranges of a file that are at most so many bytes apart become one.

    Returns:
        Files, starts and ends of the merged ranges.

    Example:
        >>> starts, ends = np.array([0, 15, 20], "u8"), np.array([10, 30, 25], "u8")
        >>> [column.tolist() for column in merge_near(np.array([0, 0, 1]), starts, ends, gap=8)]
        [[0, 1], [0, 20], [30, 25]]
    """
    first = np.ones(files.size, dtype=np.bool_)
    first[1:] = (files[1:] != files[:-1]) | (starts[1:] > ends[:-1] + np.uint64(gap))
    heads = np.flatnonzero(first)
    lasts = np.append(heads[1:], files.size)[: heads.size] - 1
    return files[heads], starts[heads], ends[lasts]
