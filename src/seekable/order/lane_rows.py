"""Lanes: row ``r`` of an epoch belongs to lane ``r % lanes``.

Two things are computed here. Rows can be *dealt* to lanes: the source is cut into one stretch of consecutive
rows for each lane, and row ``r`` is the next one of the stretch of lane ``r % lanes``. The stretches are
equal, or longer by one row in the lower lanes, and lie in the order of their lanes. And a lane can count its
own rows over all epochs: with ``n`` rows and ``m`` of them in the lane, number ``k`` is row
``(k % m) * lanes + lane`` of epoch ``k // m``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.order.arrays import divided

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = [
    "dealt_rows",
    "lane_positions",
    "lane_starts",
    "num_lane_rows",
    "num_lane_rows_before",
    "source_row",
    "source_rows",
]


def lane_starts(sizes: Int64s, lanes: Int64s, lane: Int64s) -> Int64s:
    """Return the first row of the stretch of each lane; lane number ``lanes`` would begin at the end.

    Example:
        >>> lane_starts(np.array([10]), np.array([4]), np.arange(5)).tolist()
        [0, 3, 6, 8, 10]
    """
    each = sizes // lanes
    starts: Int64s = lane * each + np.minimum(lane, sizes - each * lanes)
    return starts


def source_rows(rows: Int64s, sizes: Int64s, lanes: Int64s) -> Int64s:
    """Return the rows of the source that are dealt as ``rows``.

    Args:
        rows: an int64 array of rows of the dealt order.
        sizes: the number of rows, for each element of ``rows`` or for all.
        lanes: the number of lanes, for each element of ``rows`` or for all.

    Example:
        >>> source_rows(np.arange(10), np.array([10]), np.array([4])).tolist()
        [0, 3, 6, 8, 1, 4, 7, 9, 2, 5]
    """
    turn, lane = divided(rows, int(lanes[0])) if lanes.size == 1 else np.divmod(rows, lanes)
    return lane_starts(sizes, lanes, lane) + turn


def source_row(row: int, size: int, lanes: int) -> int:
    """Return `source_rows` of one row, without arrays.

    Example:
        >>> source_row(4, 10, 4)
        1
    """
    turn, lane = divmod(row, lanes)
    each, longer = divmod(size, lanes)
    return lane * each + min(lane, longer) + turn


def dealt_rows(rows: Int64s, size: int, lanes: int) -> Int64s:
    """Return the rows in the dealt order that source rows become: the inverse of `source_rows`.

    Example:
        >>> dealt_rows(np.array([1, 8]), 10, 4).tolist()
        [4, 3]
    """
    each, longer = divmod(size, lanes)
    # The first `longer` stretches have a row more than the others.
    after = rows - longer * (each + 1)
    lane = np.where(after < 0, rows // (each + 1), longer + after // max(each, 1))
    turns = rows - lane_starts(np.array([size]), np.array([lanes]), lane)
    dealt: Int64s = turns * lanes + lane
    return dealt


def num_lane_rows(size: int, lanes: int, lane: int) -> int:
    """Return the number of the first ``size`` rows that belong to a lane.

    Example:
        >>> [num_lane_rows(10, 4, lane) for lane in range(4)]
        [3, 3, 2, 2]
    """
    return len(range(lane, size, lanes))


def num_lane_rows_before(position: int, size: int | None, lanes: int, lane: int) -> int:
    """Return the number of a lane's rows before a position, over all epochs.

    Args:
        position: a position, 0 or more.
        size: the number of rows of an epoch; None for one endless epoch.
        lanes: the number of lanes.
        lane: the lane.

    Example:
        >>> num_lane_rows_before(13, 10, 4, 0)
        4
    """
    epoch, row = (0, position) if size is None else divmod(position, size) if size else (0, 0)
    whole = 0 if size is None else epoch * num_lane_rows(size, lanes, lane)
    return whole + num_lane_rows(row, lanes, lane)


def lane_positions(numbers: Int64s, size: int | None, lanes: int, lane: int) -> Int64s:
    """Return the positions of a lane's rows, given by their numbers in the lane.

    Args:
        numbers: an int64 array; the lane's first row of epoch 0 is number 0.
        size: the number of rows of an epoch; None for one endless epoch.
        lanes: the number of lanes.
        lane: the lane.

    Example:
        >>> lane_positions(np.arange(5), 10, 4, 0).tolist()
        [0, 4, 8, 10, 14]
    """
    if size is None:
        return numbers * lanes + lane
    epochs, turns = np.divmod(numbers, num_lane_rows(size, lanes, lane))
    positions: Int64s = epochs * size + turns * lanes + lane
    return positions
