"""Blocks of another size: the ones that fit are joined, the longer ones cut."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seekable.order.blocks import resized_blocks


def modelled(lengths: list[int], rows: int) -> list[int]:
    """Return the lengths of the new blocks."""
    pieces: list[int] = []
    for length in lengths:
        count = -(-length // rows)
        pieces += [length // count + (number < length % count) for number in range(count)]
    joined: list[int] = []
    for piece in pieces:
        if joined and joined[-1] + piece <= rows:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


@given(st.lists(st.integers(1, 40), max_size=20), st.integers(1, 50))
def test_blocks_are_those_of_the_model(lengths: list[int], rows: int) -> None:
    edges = np.array([0, *itertools.accumulate(lengths)], np.int64)
    found = resized_blocks(edges, rows)
    assert found.dtype == np.int64
    assert np.diff(found).tolist() == modelled(lengths, rows)
    assert found[0] == 0


def test_golden_blocks() -> None:
    edges = np.array([0, 1024, 1500, 2524, 2600, 12_000])
    assert resized_blocks(edges, 4096).tolist() == [0, 2600, 5734, 8867, 12_000]
    assert resized_blocks(edges, 1024).tolist() == [
        *(0, 1024, 1500, 2524, 3540, 4480, 5420, 6360, 7300, 8240, 9180, 10_120, 11_060, 12_000),
    ]
