"""Operations on int64 arrays that numpy lacks, or does several times slower."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["distinct", "divided", "numbered", "present", "united"]


def divided(values: Int64s, by: int) -> tuple[Int64s, Int64s]:
    """Return ``np.divmod(values, by)``, several times as fast: numpy multiplies for a scalar divisor.

    Example:
        >>> [part.tolist() for part in divided(np.array([7, 8, 9]), 4)]
        [[1, 2, 2], [3, 0, 1]]
    """
    quotients = values // by
    return quotients, values - quotients * by


def united(values: Int64s) -> Int64s:
    """Return an array of one element if all are equal, which broadcasts and is cheaper; else the array.

    Example:
        >>> united(np.array([3, 3, 3])).tolist(), united(np.array([3, 4])).tolist()
        ([3], [3, 4])
    """
    # Where any elements differ, the first and the last mostly do.
    same = values.size > 0 and values[0] == values[-1] and bool((values == values[0]).all())
    return values[:1] if same else values


def numbered(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Return each element's group, and the element's index in its group.

    Args:
        counts: the number of elements of each group.

    Example:
        >>> [part.tolist() for part in numbered(np.array([2, 0, 3]))]
        [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    group = np.repeat(np.arange(counts.size), counts)
    return group, np.arange(group.size) - np.repeat(np.cumsum(counts) - counts, counts)


def present(numbers: Int64s) -> list[int]:
    """Return the distinct numbers of an array of small ones, none negative, in ascending order.

    Counting them is five to fifteen times as fast as ``np.unique``.

    Example:
        >>> present(np.array([3, 0, 3]))
        [0, 3]
    """
    return np.flatnonzero(np.bincount(numbers)).tolist()


def distinct(*columns: Int64s) -> tuple[Int64s, Int64s]:
    """Return the distinct rows in a table of columns, and for each row the index of its distinct row.

    Args:
        columns: arrays of equal length; one of length 1 stands for that value in every row.

    Returns:
        An array of shape (distinct rows, columns), sorted, and an array with an index into it for each row.

    Example:
        >>> rows, which = distinct(np.array([7, 7, 8]), np.array([1]))
        >>> rows.tolist(), which.tolist()
        ([[7, 1], [8, 1]], [0, 0, 1])
    """
    size = max((column.size for column in columns), key=lambda size: (size != 1, size))
    changes = np.zeros(size, dtype=np.bool_)
    for column in columns:
        if column.size > 1:
            changes[1:] |= column[1:] != column[:-1]
    # Neighbours are mostly equal, so rows are first compared with their neighbours alone.
    which = np.cumsum(changes)
    changes[:1] = True
    heads = np.flatnonzero(changes)
    rows = np.stack([np.broadcast_to(column, size)[heads] for column in columns], axis=1)
    order = np.lexsort(rows.T)
    rows = rows[order]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(fresh) - 1
    return rows[fresh], number[which]
