"""The rows of one lane, epoch after epoch: row ``r`` of an epoch belongs to lane ``r % lanes``.

A lane's own count runs over its rows of all epochs: with ``n`` rows and ``m`` of them in the lane, number
``k`` is row ``(k % m) * lanes + lane`` of epoch ``k // m``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["number_from", "positions_of", "rows_in_lane"]


def rows_in_lane(size: int, lanes: int, lane: int) -> int:
    """Return how many of ``size`` rows are a lane's.

    Example:
        >>> [rows_in_lane(10, 4, lane) for lane in range(4)]
        [3, 3, 2, 2]
    """
    return len(range(lane, size, lanes))


def number_from(position: int, size: int | None, lanes: int, lane: int) -> int:
    """Return how many of a lane's rows come before a position; without a size there is one endless epoch.

    Example:
        >>> number_from(13, 10, 4, 0)
        4
    """
    epoch, row = (0, position) if size is None else divmod(position, size) if size else (0, 0)
    whole = 0 if size is None else epoch * rows_in_lane(size, lanes, lane)
    return whole + rows_in_lane(row, lanes, lane)


def positions_of(numbers: Int64s, size: int | None, lanes: int, lane: int) -> Int64s:
    """Return the positions of some of a lane's numbers.

    Example:
        >>> positions_of(np.arange(5), 10, 4, 0).tolist()
        [0, 4, 8, 10, 14]
    """
    if size is None:
        return numbers * lanes + lane
    epochs, turns = np.divmod(numbers, rows_in_lane(size, lanes, lane))
    positions: Int64s = epochs * size + turns * lanes + lane
    return positions
