"""Rows dealt to lanes, and blocks of rows, against lists."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seekable.order.blocks import BLOCK_ROWS, default_blocks_within, joined_blocks, strided_blocks
from seekable.order.lane_rows import dealt_rows, lane_starts, source_row, source_rows


@given(st.integers(1, 200), st.integers(1, 230))
def test_rows_are_dealt_in_turn(size: int, lanes: int) -> None:
    places = iter(range(size))
    runs = [[next(places) for _ in range(lane, size, lanes)] for lane in range(lanes)]
    dealt = [runs[row % lanes][row // lanes] for row in range(size)]
    rows = np.arange(size)
    assert source_rows(rows, np.array([size]), np.array([lanes])).tolist() == dealt
    assert source_rows(rows, np.full(size, size), np.full(size, lanes)).tolist() == dealt
    assert [source_row(row, size, lanes) for row in range(size)] == dealt
    assert dealt_rows(np.array(dealt), size, lanes).tolist() == rows.tolist()
    starts = lane_starts(np.array([size]), np.array([lanes]), np.arange(lanes + 1))
    assert np.diff(starts).tolist() == [len(run) for run in runs]


@given(st.lists(st.integers(0, 3000), max_size=8))
def test_runs_do_not_cross_files(lengths: list[int]) -> None:
    edges = default_blocks_within(np.array(lengths, dtype=np.int64)).tolist()
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    assert edges[0] == 0
    assert edges[-1] == sum(lengths)
    assert set(ends) <= set(edges) or not sum(lengths)
    assert all(0 < b - a <= BLOCK_ROWS for a, b in pairwise(edges))
    # None is shorter than it has to be.
    assert len(edges) - 1 == sum(-(-length // BLOCK_ROWS) for length in lengths)


EDGES = st.lists(st.integers(1, 20), max_size=8).map(lambda lengths: np.cumsum([0, *lengths]))


@given(st.lists(EDGES, min_size=1, max_size=5))
def test_blocks_are_joined(parts: list[np.ndarray]) -> None:
    lengths = [length for edges in parts for length in np.diff(edges).tolist()]
    assert joined_blocks(parts).tolist() == np.cumsum([0, *lengths]).tolist()


@given(EDGES, st.data())
def test_blocks_of_a_slice(edges: np.ndarray, data: st.DataObject) -> None:
    n = int(edges[-1])
    bound = st.integers(-n - 2, n + 2)
    step = data.draw(st.integers(-5, 5).filter(bool))
    rows = range(*slice(data.draw(bound), data.draw(bound), step).indices(n))
    block = [int(np.searchsorted(edges, row, side="right")) for row in rows]
    wanted = [0, *(i for i in range(1, len(rows)) if block[i] != block[i - 1]), len(rows)]
    found = strided_blocks(edges, start=rows.start if rows else 0, step=step, count=len(rows))
    assert found.tolist() == (wanted if rows else [0])
