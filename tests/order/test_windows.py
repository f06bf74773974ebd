"""Windowed shuffles: what the model says, inverted, and near."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.order import models

from seekable.order import shuffle_windows as windows
from seekable.order.blocks import default_blocks
from seekable.order.shuffle_windows import WindowedOrder, WindowTables, windows_of

KEYS = st.integers(0, 2**64 - 1)


def order_of(lengths: list[int], window: int, lanes: int) -> WindowedOrder:
    return WindowedOrder(np.cumsum([0, *lengths]), window, lanes)


ORDERS = st.builds(
    order_of,
    st.lists(st.integers(1, 40), min_size=1, max_size=25),
    st.integers(1, 9),
    st.integers(1, 11),
)


def tables(order: WindowedOrder, key: int) -> WindowTables:
    return windows_of([order], np.array([key], dtype=np.uint64))


def rows_of(order: WindowedOrder, key: int) -> list[int]:
    rows: list[int] = tables(order, key).forward(np.zeros(1, dtype=np.int64), np.arange(order.size)).tolist()
    return rows


@given(st.lists(st.tuples(ORDERS, KEYS), min_size=1, max_size=8), st.integers(1, 60))
def test_tables_are_the_same_however_many_blocks_are_computed_at_once(
    epochs: list[tuple[WindowedOrder, int]], most: int
) -> None:
    orders, keys = [order for order, _ in epochs], np.array([key for _, key in epochs], dtype=np.uint64)
    together = windows_of(orders, keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_BLOCKS_AT_ONCE", most)
        apart = windows_of(orders, keys)
    for name in WindowTables.__struct_fields__:
        column, other = getattr(together, name), getattr(apart, name)
        assert (column.dtype, column.tolist()) == (other.dtype, other.tolist())


@given(ORDERS, KEYS)
def test_it_is_its_model(order: WindowedOrder, key: int) -> None:
    model = models.windowed(order.edges.tolist(), key=key, window=order.window, lanes=order.lanes)
    assert rows_of(order, key) == model
    table = tables(order, key)
    assert [table.forward_one(row) for row in range(order.size)] == model
    assert table.inverse(0, np.array(model)).tolist() == list(range(order.size))


@given(st.lists(st.tuples(ORDERS, KEYS), min_size=1, max_size=6), st.data())
def test_epochs_laid_behind_each_other_do_not_mix(
    epochs: list[tuple[WindowedOrder, int]], data: st.DataObject
) -> None:
    table = windows_of([order for order, _ in epochs], np.array([key for _, key in epochs], dtype=np.uint64))
    asked = data.draw(st.lists(st.integers(0, len(epochs) - 1), min_size=1, max_size=30))
    rows = [data.draw(st.integers(0, epochs[i][0].size - 1)) for i in asked]
    wanted = [rows_of(*epochs[i])[row] for i, row in zip(asked, rows, strict=True)]
    assert table.forward(np.array(asked), np.array(rows)).tolist() == wanted
    for i, row, below in zip(asked, rows, wanted, strict=True):
        assert table.inverse(i, np.array([below])).tolist() == [row]


@given(ORDERS, KEYS)
def test_a_window_is_of_few_blocks_and_comes_in_one_go(order: WindowedOrder, key: int) -> None:
    rows = np.array(rows_of(order, key))
    assert sorted(rows.tolist()) == list(range(order.size))
    blocks = np.searchsorted(order.edges, rows, side="right") - 1
    for lane in range(order.lanes):
        here = blocks[lane :: order.lanes].tolist()
        for block in set(here):
            first, last = here.index(block), len(here) - here[::-1].index(block)
            # Between a block's first and last row, its lane has read of no more blocks than a window holds.
            assert len(set(here[first:last])) <= order.window


@given(ORDERS, KEYS)
def test_windows_of_a_lane_are_balanced(order: WindowedOrder, key: int) -> None:
    table = tables(order, key)
    edges = [*table.windows.tolist(), order.size]
    places = set(table.places.tolist())
    runs_of_lanes = [len(range(lane, order.size, order.lanes)) for lane in range(order.lanes)]
    starts = np.cumsum([0, *runs_of_lanes]).tolist()
    for start, stop in pairwise(starts):
        inside = [(a, b) for a, b in pairwise(edges) if start <= a and b <= stop and a < b]
        pieces = [1 + len([place for place in places if a < place < b]) for a, b in inside]
        assert max(pieces, default=0) - min(pieces, default=0) <= 1


def test_each_lane_has_blocks_of_its_own_but_for_its_ends() -> None:
    order = WindowedOrder(default_blocks(200 * 1024), 4, 8)
    blocks = np.array(rows_of(order, 3)) // 1024
    read = {
        world: max(len(set(blocks[np.arange(blocks.size) % world == rank].tolist())) for rank in range(world))
        for world in (1, 2, 4, 8)
    }
    # A lane's share, and one more for each of its lanes, whose ends may cut a block.
    assert all(read[world] <= (200 + 8) // world for world in read)
    assert read[1] == 200


@pytest.mark.parametrize("lanes", [1, 8])
def test_a_window_of_everything_mixes_a_lane_as_a_whole(lanes: int) -> None:
    order = WindowedOrder(default_blocks(100 * 1024), 1000, lanes)
    rows = np.array(rows_of(order, 1))[::lanes]
    size = rows.size
    # Which of two neighbours is larger says nothing, nor does the place of a row say which it is.
    assert abs(float((np.diff(rows) > 0).mean()) - 0.5) < 5 / size**0.5
    assert abs(float(np.corrcoef(np.arange(size), rows)[0, 1])) < 5 / size**0.5


def test_a_million_blocks_need_no_table_of_records() -> None:
    order = WindowedOrder(np.arange(0, 10**12 + 1, 10**6), 16, 8)
    table = tables(order, 9)
    size = sum(
        column.nbytes
        for column in (
            table.windows,
            table.widths,
            table.keys,
            table.edges,
            table.order,
            table.places,
            table.moved,
        )
    )
    assert size < 48 * 10**6
    rows = np.arange(10**12 - 1000, 10**12)
    below = table.forward(np.zeros(1, dtype=np.int64), rows)
    assert table.inverse(0, below).tolist() == rows.tolist()
