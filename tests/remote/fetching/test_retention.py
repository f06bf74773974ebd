"""What stays in memory for a reader, compared with a slow model."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thrift import some

from seekable.remote.fetching.look_ahead import Needs
from seekable.remote.fetching.wants import DENSE

Span = tuple[int, int, int]
spans = st.tuples(st.integers(0, 2), st.integers(0, 90), st.integers(0, 40)).map(
    lambda found: (found[0], found[1], found[1] + found[2])
)


def expected(needs: list[Span], blocks: list[Span], most_bytes: int) -> list[bool]:
    """Return for each block True if it stays."""
    sharing = [
        [
            (number, stop - start)
            for number, (which, start, stop) in enumerate(needs)
            if which == block[0] and start < stop and start < block[2] and stop > block[1]
        ]
        for block in blocks
    ]
    stays = [
        bool(of) and DENSE * sum(size for _, size in of) >= b - a
        for of, (_, a, b) in zip(sharing, blocks, strict=True)
    ]
    sparse = sorted((min(of)[0], row) for row, of in enumerate(sharing) if of and not stays[row])
    left, is_over = most_bytes, False
    for _, row in sparse:
        size = blocks[row][2] - blocks[row][1]
        is_over |= size > left
        left -= size
        stays[row] = not is_over
    return stays


@settings(max_examples=some(60, of=3), deadline=None)
@given(
    needs=st.lists(spans, max_size=30),
    sizes=st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(1, 60), max_size=6)), max_size=3),
    most_bytes=st.integers(0, 200),
)
def test_blocks_stay_as_in_a_model(
    needs: list[Span], sizes: list[tuple[int, list[int]]], most_bytes: int
) -> None:
    # Ranges that a look-ahead is given contain no other: it joins those that share bytes.
    needs = [each for row, each in enumerate(needs) if not any(shares(each, other) for other in needs[:row])]
    blocks = []
    for which, lengths in sizes:
        edges = np.cumsum([0, *lengths]).tolist()
        blocks += [(which, start, stop) for start, stop in itertools.pairwise(edges)]
    ranges, spans = (np.array(each, np.int64).reshape(-1, 3).T.copy() for each in (needs, blocks))
    found = Needs(*ranges).kept(*spans, most_bytes=most_bytes).tolist()
    assert found == expected(needs, blocks, most_bytes)


def shares(one: Span, other: Span) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
