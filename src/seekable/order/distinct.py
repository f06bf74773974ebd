"""The distinct rows of a few columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["distinct"]


def distinct(*columns: Int64s) -> tuple[Int64s, Int64s]:
    """Return the distinct rows of some columns, and which of them each row is.

    A column of one value stands for that value in every row.

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
    # Neighbours mostly share a block, so rows are first told apart from their neighbours alone.
    which = np.cumsum(changes)
    changes[:1] = True
    heads = np.flatnonzero(changes)
    rows = np.stack([np.broadcast_to(column, size)[heads] for column in columns], axis=1)
    order = np.lexsort(rows.T)
    rows = rows[order]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.cumsum(fresh) - 1
    return rows[fresh], place[which]
