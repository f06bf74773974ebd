"""Best fit, against bins that are filled piece by piece, and golden values."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.order.packing import lists
from tests.thrift import some

from seekable.order.keys import mix_one
from seekable.packing.order.best_fit import BestFit, best_fit, best_fit_patterns
from seekable.packing.order.length_order import length_classes, length_order

if TYPE_CHECKING:
    from seekable.packing.order.best_fit import Long

LENGTHS = st.one_of(
    st.lists(st.integers(0, 40), min_size=1, max_size=40),
    st.lists(st.sampled_from([0, 3, 7]), min_size=1, max_size=60),
)
LONG: list[Long] = ["split", "truncate", "drop"]


def packing(lengths: list[int], capacity: int, **options: object) -> BestFit:
    return best_fit(length_order(np.array(lengths)), capacity=capacity, seed=7, **options)  # type: ignore[arg-type]


def parts(lengths: list[int], capacity: int, long: Long) -> list[lists.Token]:
    """All tokens that are packed, as (document, token)."""
    kept = {"split": max([0, *lengths]), "truncate": capacity, "drop": capacity}[long]
    return [
        (document, token)
        for document, length in enumerate(lengths)
        if long != "drop" or length <= capacity
        for token in range(min(length, kept))
    ]


def plain_bins(lengths: list[int], capacity: int) -> int:
    """The number of bins of best-fit-decreasing, piece by piece."""
    rests = [length % capacity for length in lengths if length % capacity]
    spaces: list[int] = []
    for rest in sorted(rests, reverse=True):
        fitting = [space for space in spaces if space >= rest]
        if fitting:
            spaces.remove(min(fitting))
        spaces.append(min([capacity, *fitting]) - rest)
    return len(spaces) + sum(length // capacity for length in lengths)


def check(
    lengths: list[int], capacity: int, most: int | None, long: Long, epoch: int, every: int = 1
) -> None:
    found = packing(lengths, capacity, most=most, long=long)
    samples = lists.pieces_of(found, epoch)
    tokens = [token for pieces in samples for token in lists.tokens_of(pieces)]
    assert sorted(tokens) == parts(lengths, capacity, long)
    for pieces in samples:
        assert sum(count for _, _, count, _ in pieces) <= capacity
        assert 1 <= len(pieces) <= (most or capacity)
        # No document is cut that fits, and long ones only at full pieces.
        assert all(start % capacity == 0 for _, start, _, _ in pieces)
        assert all(count == min(capacity, lengths[document] - start) for document, start, count, _ in pieces)
    lists.check(found, [lists.tokens_of(pieces) for pieces in samples], len(lengths), epoch, every)
    if most is None and long == "split":
        assert found.samples == plain_bins(lengths, capacity)


@settings(max_examples=some(30, of=3))
@given(
    LENGTHS,
    st.integers(1, 50),
    st.one_of(st.none(), st.integers(1, 4)),
    st.sampled_from(LONG),
    st.integers(0, 5),
)
def test_each_token_comes_once(
    lengths: list[int], capacity: int, most: int | None, long: Long, epoch: int
) -> None:
    check(lengths, capacity, most, long, epoch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(some(10)))
def test_each_token_of_a_thousand_corpora_comes_once(part: int) -> None:
    for number in range(part * 100, part * 100 + 100):
        rng = np.random.default_rng(number)
        lengths = rng.integers(0, rng.integers(2, 31), size=rng.integers(1, 15)).tolist()
        most = None if rng.integers(2) else int(rng.integers(1, 5))
        for epoch in range(3):
            check(lengths, int(rng.integers(1, 70)), most, LONG[rng.integers(3)], epoch, every=11)


def test_as_many_bins_as_plain_best_fit_decreasing() -> None:
    for number in range(300):
        rng = np.random.default_rng(number)
        capacity = int(rng.integers(1, 60))
        lengths = rng.integers(0, 2 * capacity, size=rng.integers(1, 200)).tolist()
        assert packing(lengths, capacity).samples == plain_bins(lengths, capacity)


@pytest.mark.parametrize(
    ("lengths", "capacity"),
    [
        pytest.param([7], 3, id="one document"),
        pytest.param([0, 0], 3, id="no token"),
        pytest.param([3, 0, 4], 1, id="samples of one token"),
        pytest.param([2, 2, 3], 30, id="all in one sample"),
        pytest.param([5] * 20, 7, id="one class"),
        pytest.param(list(range(20)), 7, id="classes of one"),
        pytest.param([2, 9, 2, 16], 7, id="rests of long documents are as long as whole ones"),
    ],
)
@pytest.mark.parametrize("long", LONG)
def test_bins_at_the_edges(lengths: list[int], capacity: int, long: Long) -> None:
    check(lengths, capacity, None, long, epoch=1)


def test_at_most_so_many_pieces_in_a_bin() -> None:
    assert packing([1] * 10, 10).samples == 1
    assert packing([1] * 10, 10, most=4).samples == 3
    assert packing([1] * 10, 10, most=1).samples == 10


def test_an_epoch_puts_other_documents_of_equal_length_into_a_bin() -> None:
    found = packing([3, 4] * 50, 7)
    mates = [
        {tuple(sorted(piece[0] for piece in pieces)) for pieces in lists.pieces_of(found, e)} for e in (0, 1)
    ]
    assert len(mates[0]) == 50
    assert len(mates[0] & mates[1]) < 10


def test_a_pickled_packing_gives_the_same_samples() -> None:
    found = packing([3, 4, 3, 9], 5)
    assert lists.pieces_of(pickle.loads(pickle.dumps(found)), 3) == lists.pieces_of(found, 3)


def test_rows_of_several_epochs_at_once() -> None:
    found = packing([3, 4, 3, 9, 4, 4], 5)
    rows, epochs = np.array([0, 3, 0, 1]), np.array([0, 10**12, 1, 0])
    pieces = found.pieces(rows, epochs)
    columns = (pieces.documents, pieces.starts, pieces.counts)
    flat = list(zip(*(column.tolist() for column in columns), strict=True))
    expected = [found.pieces_of_one(row, epoch) for row, epoch in zip(rows, epochs.tolist(), strict=True)]
    assert flat == [piece[:3] for one in expected for piece in one]
    assert np.diff(pieces.bounds).tolist() == [len(one) for one in expected]


def test_facts_of_best_fit() -> None:
    assert packing([3, 5, 2, 9, 1, 0], 5, long="drop").facts() == {
        "documents": 6,
        "tokens": 20,
        "samples": 3,
        "padding": 4,
        "long_documents": 1,
        "lost_tokens": 9,
        "patterns": 3,
        "classes": 4,
        "unmoved_pieces": 4,
        "unmoved_tokens": 11,
    }


def test_patterns_of_a_histogram() -> None:
    found = best_fit_patterns(np.array([1, 3, 4]), np.array([2, 5, 2]), capacity=4)
    bounds = found.bounds.tolist()
    runs = list(zip(found.lengths.tolist(), found.repeats.tolist(), strict=True))
    assert [runs[start:stop] for start, stop in pairwise(bounds)] == [
        [(3, 1), (1, 1)],
        [(3, 1)],
        [(4, 1)],
    ]
    assert found.times.tolist() == [2, 3, 2]
    assert (found.bins, found.members) == (7, 4)


def test_a_billion_documents_have_few_patterns() -> None:
    """The patterns follow from the histogram: their number depends on the lengths, not on the documents."""
    rng = np.random.default_rng(0)
    mould = length_classes(np.maximum(1, np.exp(rng.normal(6, 1, size=20_000))).astype(np.int64))
    short = mould.lengths < 2048
    found = best_fit_patterns(mould.lengths[short], mould.counts[short] * 50_000, capacity=2048)
    tokens = int((mould.lengths * mould.counts)[short].sum()) * 50_000
    assert found.times.size < 10_000
    assert sum(array.nbytes for array in (found.times, found.bounds, found.lengths, found.repeats)) < 10**6
    assert 0 <= found.bins * 2048 - tokens < 0.001 * tokens
    packed = Counter[int]()
    sizes = np.repeat(found.times, np.diff(found.bounds)) * found.repeats
    for length, size in zip(found.lengths.tolist(), sizes.tolist(), strict=True):
        packed[length] += size
    assert [packed[length] for length in mould.lengths[short].tolist()] == (
        mould.counts[short] * 50_000
    ).tolist()


GOLDEN_LENGTHS = [1 + mix_one(document) % 97 for document in range(1000)]


@pytest.mark.parametrize(("epoch", "expected"), [(0, "bd6f2f58491d7684"), (1, "78b99e85ee1fc4a7")])
def test_golden_digests(epoch: int, expected: str) -> None:
    found = packing(GOLDEN_LENGTHS, 64)
    pieces = lists.pieces_of(found, epoch)
    table = [(row, *piece[:3]) for row, one in enumerate(pieces) for piece in one]
    assert (found.samples, found.patterns.times.size, len(table)) == (793, 69, 1365)
    assert xxhash.xxh3_64_hexdigest(np.array(table, dtype="<i8").tobytes()) == expected
