"""Rows dealt to lanes: row ``r`` of an epoch is the next one of lane ``r % lanes``.

Each lane has a run of consecutive places of its own. The runs are equal, or longer by one place in the lower
lanes, and lie one behind the other in the order of their lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.order.division import divided

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["lane_starts", "place_of", "place_of_one", "row_of"]


def lane_starts(sizes: Int64s, lanes: Int64s, lane: Int64s) -> Int64s:
    """Return where the runs of lanes begin; the run of lane ``lanes`` would begin at the end.

    Example:
        >>> lane_starts(np.array([10]), np.array([4]), np.arange(5)).tolist()
        [0, 3, 6, 8, 10]
    """
    each = sizes // lanes
    starts: Int64s = lane * each + np.minimum(lane, sizes - each * lanes)
    return starts


def place_of(rows: Int64s, sizes: Int64s, lanes: Int64s) -> Int64s:
    """Return the place of each row; sizes and lanes have one element for each row, or one for all.

    Example:
        >>> place_of(np.arange(10), np.array([10]), np.array([4])).tolist()
        [0, 3, 6, 8, 1, 4, 7, 9, 2, 5]
    """
    turn, lane = divided(rows, int(lanes[0])) if lanes.size == 1 else np.divmod(rows, lanes)
    return lane_starts(sizes, lanes, lane) + turn


def place_of_one(row: int, size: int, lanes: int) -> int:
    """Return ``place_of`` of one row, without arrays.

    Example:
        >>> place_of_one(4, 10, 4)
        1
    """
    turn, lane = divmod(row, lanes)
    each, longer = divmod(size, lanes)
    return lane * each + min(lane, longer) + turn


def row_of(places: Int64s, size: int, lanes: int) -> Int64s:
    """Return which row has each place: the inverse of ``place_of``.

    Example:
        >>> row_of(np.array([1, 8]), 10, 4).tolist()
        [4, 3]
    """
    each, longer = divmod(size, lanes)
    # The first `longer` runs have a place more than the others.
    after = places - longer * (each + 1)
    lane = np.where(after < 0, places // (each + 1), longer + after // max(each, 1))
    turns = places - lane_starts(np.array([size]), np.array([lanes]), lane)
    rows: Int64s = turns * lanes + lane
    return rows
