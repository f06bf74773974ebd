"""Windowed shuffles: the order of an epoch in which each lane reads within a few blocks at a time.

The blocks are permuted. The rows, in the order of their blocks, are dealt to lanes in equal runs, and each
run is cut into windows of at most ``window`` blocks (or the pieces of blocks that a lane's ends have cut),
balanced, so that the last one is no smaller than the others. Within a window the rows are permuted.

The tables of an epoch have an entry for each block and each window, and none for a record. Those of several
epochs, and of several shuffles, are laid one after the other on one axis, so that rows of all of them are
looked up together.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from seekable._typing import Value
from seekable.order.keys import derive_each
from seekable.order.lane_rows import dealt_rows, lane_starts, source_row, source_rows
from seekable.order.permutation import permute, permute_one, unpermute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Uint64s = NDArray[np.uint64]

__all__ = ["WindowTables", "WindowedOrder", "windows_of"]

_BLOCKS, _WINDOWS = np.zeros(1, dtype=np.uint64), np.ones(1, dtype=np.uint64)
"""The numbers that, absorbed into an epoch's key, make the keys of the blocks' and windows' permutations."""

_BLOCKS_AT_ONCE = 1 << 20
"""The blocks whose tables are made together, but for those of one epoch."""


class WindowedOrder(Value, frozen=True, eq=False):
    """The arguments of a windowed shuffle, without the epoch."""

    edges: Int64s
    """The edges of the blocks; see `seekable.order.blocks`."""

    window: int
    """The most blocks in a window."""

    lanes: int
    """The number of lanes."""

    @property
    def size(self) -> int:
        """The number of rows of an epoch."""
        return int(self.edges[-1])


class WindowTables(Value, frozen=True, eq=False):
    """The tables of some epochs, one after the other on an axis of places.

    Example:
        >>> order = WindowedOrder(np.array([0, 4, 8, 12]), window=2, lanes=1)
        >>> tables = windows_of([order], np.array([7], dtype=np.uint64))
        >>> rows = tables.forward(np.zeros(1, dtype=np.int64), np.arange(12))
        >>> sorted(rows.tolist()) == list(range(12)), tables.inverse(0, rows).tolist() == list(range(12))
        (True, True)
    """

    sizes: Int64s
    """The number of rows of each epoch."""
    lanes: Int64s
    """The number of lanes of each epoch."""
    bases: Int64s
    """The place of the first row of each."""
    windows: Int64s
    """The first place of each window."""
    widths: Int64s
    """The number of places of each window."""
    keys: Uint64s
    """The key of each window's permutation."""
    edges: Int64s
    """The edges of the blocks in the order of their rows, each with its epoch's base added."""
    order: Int64s
    """The block of each turn."""
    places: Int64s
    """The first place of each block, in the order of the turns."""
    moved: Int64s
    """The difference between the row and the place, for the block of each turn."""

    def forward(self, epoch: Int64s, rows: Int64s) -> Int64s:
        """Return the rows of the child that come at rows of shuffled epochs.

        Args:
            epoch: the index in these tables of each row's epoch; or one for all.
            rows: rows of the shuffled epochs.
        """
        places = self.bases[epoch] + source_rows(rows, self.sizes[epoch], self.lanes[epoch])
        window = np.searchsorted(self.windows, places, side="right") - 1
        first = self.windows[window]
        places = first + permute(places - first, self.widths[window], self.keys[window])
        return places + self.moved[np.searchsorted(self.places, places, side="right") - 1]

    def forward_one(self, row: int) -> int:
        """Return ``forward`` of one row of the first epoch, without arrays."""
        place = source_row(row, int(self.sizes[0]), int(self.lanes[0]))
        window = bisect_right(self.windows.data, place) - 1
        first = int(self.windows[window])
        place = first + permute_one(place - first, int(self.widths[window]), int(self.keys[window]))
        return place + int(self.moved[bisect_right(self.places.data, place) - 1])

    def inverse(self, epoch: int, rows: Int64s) -> Int64s:
        """Return the rows of a shuffled epoch at which rows of the child come."""
        base, size, lanes = (int(column[epoch]) for column in (self.bases, self.sizes, self.lanes))
        turns = np.empty_like(self.order)
        turns[self.order] = np.arange(self.order.size)
        turn = turns[np.searchsorted(self.edges, rows + base, side="right") - 1]
        places = rows - self.moved[turn]
        window = np.searchsorted(self.windows, places, side="right") - 1
        first = self.windows[window]
        places = first + unpermute(places - first, self.widths[window], self.keys[window])
        return dealt_rows(places - base, size, lanes)


def windows_of(orders: Sequence[WindowedOrder], keys: Uint64s) -> WindowTables:
    """Return the tables of some epochs.

    Args:
        orders: the shuffle that each epoch is of; none is empty.
        keys: the key of each epoch.
    """
    counts = np.array([order.edges.size - 1 for order in orders], dtype=np.int64)
    # What is computed on the way takes several times the memory of the tables.
    cuts = np.flatnonzero(np.diff((np.cumsum(counts) - 1) // _BLOCKS_AT_ONCE)) + 1
    runs = [slice(start, stop) for start, stop in itertools.pairwise([0, *cuts.tolist(), len(orders)])]
    if len(runs) == 1:
        return _windows_at_once(orders, keys)
    return _joined([_windows_at_once(orders[run], keys[run]) for run in runs])


def _joined(parts: Sequence[WindowTables]) -> WindowTables:
    """Return the tables of several runs of epochs, one after the other."""
    rows = np.cumsum([0, *(int(part.sizes.sum()) for part in parts)]).tolist()
    blocks = np.cumsum([0, *(part.order.size for part in parts)]).tolist()
    moved = {"bases": 1, "windows": 1, "edges": 1, "places": 1, "moved": -1}
    joined = {}
    for name in WindowTables.__struct_fields__:
        columns = [getattr(part, name) for part in parts]
        if name == "order":
            columns = [column + before for column, before in zip(columns, blocks, strict=False)]
        elif (sign := moved.get(name)) is not None:
            columns = [column + sign * before for column, before in zip(columns, rows, strict=False)]
        joined[name] = np.concatenate(columns)
    return WindowTables(**joined)


def _windows_at_once(orders: Sequence[WindowedOrder], keys: Uint64s) -> WindowTables:
    sizes = np.array([order.size for order in orders], dtype=np.int64)
    lanes = np.array([order.lanes for order in orders], dtype=np.int64)
    blocks = np.array([order.edges.size - 1 for order in orders], dtype=np.int64)
    bases = np.cumsum(sizes) - sizes
    edges = np.concatenate([order.edges[:-1] + base for order, base in zip(orders, bases, strict=True)])

    owner, number, before = _numbered(blocks)
    order = before[owner] + permute(number, blocks[owner], derive_each(keys, _BLOCKS)[owner])
    lengths = np.diff(edges, append=sizes.sum())[order]
    places = np.cumsum(lengths) - lengths

    windows, keys = _windows(orders, keys, np.append(places, sizes.sum()))
    return WindowTables(
        sizes=sizes,
        lanes=lanes,
        bases=bases,
        windows=windows,
        widths=np.diff(windows, append=sizes.sum()),
        keys=keys,
        edges=edges,
        order=order,
        places=places,
        moved=edges[order] - bases[owner] - places,
    )


def _windows(orders: Sequence[WindowedOrder], keys: Uint64s, places: Int64s) -> tuple[Int64s, Uint64s]:
    """Cut the lanes of epochs into windows of blocks; return the windows' first places and their keys.

    ``places`` are the blocks' edges, in the order of their turns.
    """
    sizes = np.array([order.size for order in orders], dtype=np.int64)
    lanes = np.array([order.lanes for order in orders], dtype=np.int64)
    most = np.array([order.window for order in orders], dtype=np.int64)
    epoch, lane, _ = _numbered(lanes)
    base = (np.cumsum(sizes) - sizes)[epoch]
    start = base + lane_starts(sizes[epoch], lanes[epoch], lane)
    stop = base + lane_starts(sizes[epoch], lanes[epoch], lane + 1)
    turn = np.searchsorted(places, start, side="right") - 1
    pieces = np.maximum(1, np.searchsorted(places, stop, side="left") - turn)
    counts = -(-pieces // most[epoch])
    run, number, _ = _numbered(counts)
    cut = turn[run] + number * pieces[run] // counts[run]
    keys = derive_each(derive_each(keys, _WINDOWS)[epoch], lane.astype(np.uint64))
    keys = derive_each(keys[run], number.astype(np.uint64))
    return np.maximum(places[cut], start[run]), keys


def _numbered(counts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return each element's group, its number in the group, and the number of elements before each group.

    ``counts`` are the numbers of elements of the groups.
    """
    before = np.cumsum(counts) - counts
    group = np.repeat(np.arange(counts.size), counts)
    return group, np.arange(group.size) - before[group], before
