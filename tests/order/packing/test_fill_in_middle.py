"""Fill-in-the-middle: rearranged documents and their samples, against lists of tokens and golden values."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.order.packing import lists
from tests.thrift import some

from seekable.errors import InvalidArgument, WrongType
from seekable.order.keys import derive, kind_key, mix_one
from seekable.packing.order.fill_in_middle import Fim, Marks, Rearranged
from seekable.packing.order.length_order import length_order, offsets_of
from seekable.packing.order.table_order import Exchange, TableOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.packing.order.sample_pieces import Packing

PREFIX, SUFFIX, MIDDLE = 901, 902, 903

LENGTHS = st.one_of(
    st.lists(st.integers(0, 30), min_size=1, max_size=30),
    st.lists(st.sampled_from([0, 3, 7]), min_size=1, max_size=40),
)
RATES = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0])
SHARES = st.sampled_from([0.0, 0.5, 1.0])


def fim(rate: float, spm: float = 0.5, end_tokens: int = 0) -> Fim:
    return Fim(rate=rate, prefix=PREFIX, suffix=SUFFIX, middle=MIDDLE, spm=spm, end_tokens=end_tokens)


def exchange(lengths: Sequence[int], seed: int, stride: int, overlap: int, how: Fim | None) -> Exchange:
    order = length_order(np.array(lengths))
    return Exchange(order, stride=stride, overlap=overlap, seed=seed, fim=how)


def table(lengths: Sequence[int], seed: int, stride: int, overlap: int, how: Fim | None) -> TableOrder:
    return TableOrder(offsets_of(np.array(lengths)), stride=stride, overlap=overlap, seed=seed, fim=how)


def is_marked(interval: int, rate: float) -> bool:
    share = Fraction(repr(rate)).limit_denominator(10**6)
    return int((interval + 1) * share) > int(interval * share)


def rearranged(document: int, length: int, how: Fim, seed: int, epoch: int) -> list[lists.Token]:
    """The tokens of a document between the three sentinels."""
    tokens = [(document, token) for token in range(length)]
    end = max(0, length - how.end_tokens)
    draws = [derive(kind_key("pack-fim"), seed, epoch, document, number) for number in range(3)]
    low, high = sorted(draw * (end + 1) // 2**64 for draw in draws[:2])
    prefix, middle, suffix, rest = tokens[:low], tokens[low:high], tokens[high:end], tokens[end:]
    before, between, after = (-1, PREFIX), (-1, SUFFIX), (-1, MIDDLE)
    if draws[2] // 2 < Fraction(how.spm) * 2**63:
        return [before, between, *suffix, after, *prefix, *middle, *rest]
    return [before, *prefix, between, *suffix, after, *middle, *rest]


def contents(
    lengths: Sequence[int], order: Sequence[int], how: Fim, seed: int, epoch: int
) -> list[list[lists.Token]]:
    """The tokens of each interval."""
    return [
        rearranged(document, lengths[document], how, seed, epoch)
        if is_marked(interval, how.rate)
        else [(document, token) for token in range(lengths[document])]
        for interval, document in enumerate(order)
    ]


def check(
    lengths: list[int], seed: int, stride: int, overlap: int, how: Fim, epoch: int, every: int = 1
) -> None:
    orders = (lists.exchanged(lengths, seed, epoch), lists.tabled(lengths, seed, epoch))
    for make, order in zip((exchange, table), orders, strict=True):
        held = contents(lengths, order, how, seed, epoch)
        # Each token once, and three sentinels for each marked document.
        assert sorted(token for one in held for token in one if token[0] >= 0) == [
            (document, token) for document, length in enumerate(lengths) for token in range(length)
        ]
        axis = [token for one in held for token in one]
        begins = [not at for one in held for at in range(len(one))]
        if make is exchange:
            axis = lists.turned(axis, seed, epoch)
            begins = lists.turned(begins, seed, epoch)
        packing = make(lengths, seed, stride, overlap, how)
        samples = lists.shuffled(lists.windows(axis, stride, overlap), seed, epoch)
        lists.check(packing, samples, len(lengths), epoch, every)
        # A segment begins with a sample and with an interval, and nowhere else.
        expected = lists.shuffled(lists.windows(begins, stride, overlap), seed, epoch)
        for pieces, new in zip(lists.pieces_of(packing, epoch), expected, strict=True):
            at = np.cumsum([0, *(count for _, _, count, _ in pieces)]).tolist()
            firsts = [first for first, piece in zip(at, pieces, strict=False) if not piece[3]]
            assert firsts == [place for place, is_new in enumerate(new) if is_new or not place]


@settings(max_examples=some(30, of=3))
@given(LENGTHS, st.integers(1, 40), st.integers(0, 1), RATES, SHARES, st.integers(0, 2), st.integers(0, 5))
def test_samples_are_those_of_lists(
    lengths: list[int], stride: int, overlap: int, rate: float, spm: float, end_tokens: int, epoch: int
) -> None:
    check(lengths, 7, stride, overlap, fim(rate, spm, end_tokens), epoch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(some(10)))
def test_samples_of_a_thousand_corpora_are_those_of_lists(part: int) -> None:
    for number in range(part * 100, part * 100 + 100):
        rng = np.random.default_rng(number)
        lengths = rng.integers(0, rng.integers(2, 31), size=rng.integers(1, 15)).tolist()
        how = fim(float(rng.integers(0, 11)) / 10, float(rng.integers(0, 3)) / 2, int(rng.integers(0, 3)))
        stride, overlap, seed = int(rng.integers(1, 70)), int(rng.integers(2)), int(rng.integers(2**62))
        for epoch in range(3):
            check(lengths, seed, stride, overlap, how, epoch, every=11)


@pytest.mark.parametrize(
    ("lengths", "stride"),
    [
        pytest.param([7], 3, id="one document"),
        pytest.param([7], 10, id="one sample that is all"),
        pytest.param([0], 1, id="sentinels alone"),
        pytest.param([0] * 300, 7, id="many empty documents"),
        pytest.param([5] * 20, 7, id="one class"),
        pytest.param(list(range(20)), 7, id="classes of one"),
        pytest.param([1] * 300, 13, id="more documents than from one coarse offset to the next"),
    ],
)
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_samples_at_the_edges(lengths: list[int], stride: int, rate: float) -> None:
    check(lengths, 3, stride, 0, fim(rate), epoch=1, every=1 + len(lengths) // 40)


@pytest.mark.parametrize("make", [exchange, table])
def test_a_rate_of_zero_changes_nothing(make: Any) -> None:
    lengths = [3, 5, 2, 3, 5, 3, 0, 9]
    plain = lists.pieces_of(make(lengths, 7, 4, 1, None), 2)
    assert lists.pieces_of(make(lengths, 7, 4, 1, fim(0)), 2) == plain


@pytest.mark.parametrize("make", [exchange, table])
def test_rows_of_several_epochs_at_once(make: Any) -> None:
    packing = make([3, 5, 2, 3, 5, 3, 0, 8], 7, 4, 1, fim(0.7))
    rows, epochs = np.array([3, 0, 4, 4, 1, 2, 0, 6]), np.array([0, 10**12, 1, 0, 5000, 10**12, 2, 2])
    found = packing.pieces(rows, epochs)
    columns = (found.documents, found.starts, found.counts, found.joined)
    pieces = list(zip(*(column.tolist() for column in columns), strict=True))
    for number, (row, epoch) in enumerate(zip(rows.tolist(), epochs.tolist(), strict=True)):
        one = packing.pieces_of_one(row, epoch)
        assert pieces[found.bounds[number] : found.bounds[number + 1]] == one


@pytest.mark.parametrize(("share", "of"), [(0, 1), (1, 1), (1, 3), (2, 3), (999, 1000)])
def test_marks_are_spread_evenly(share: int, of: int) -> None:
    marks = Marks(share, of)
    each = marks.each(np.arange(3 * of)).tolist()
    assert [marks.sentinels_in(interval) // 3 for interval in range(min(50, 3 * of))] == each[:50]
    assert sum(each) == 3 * share
    counted = np.cumsum([0, *each])
    assert (np.abs(counted - np.arange(counted.size) * share / of) < 1).all()


def test_cuts_are_uniform_and_change_with_the_epoch() -> None:
    """Of 4 tokens, both cuts are uniform over 5 places; the pair is two draws, sorted."""
    how = Rearranged(fim(1, spm=0.25), seed=7)
    seen: Counter[tuple[int, int]] = Counter()
    reversed_ones = 0
    for document in range(8000):
        segments = how.segments_of_one(document, 4, document % 3)
        (_, _, prefix), (_, begin, _), (_, middle, _) = segments[1:6:2]
        seen[middle, begin] += 1
        reversed_ones += prefix == middle == 0
    # With a share of 1/4 first-suffix documents, whose first range is empty, 1/4 + 3/4 * 9/25 begin at 0.
    assert abs(reversed_ones - 8000 * (1 / 4 + 3 / 4 * 9 / 25)) < 200
    for low in range(1, 5):
        for high in range(low, 5):
            expected = 8000 * 3 / 4 * (1 if low == high else 2) / 25
            assert abs(seen[low, high] - expected) < 5 * expected**0.5
    assert how.segments_of_one(5, 100, 0) != how.segments_of_one(5, 100, 1)


def test_cuts_of_very_long_documents_are_exact() -> None:
    """Lengths beyond 2**32 take products of 128 bits in both forms."""
    how = Rearranged(fim(1, spm=0), seed=7)
    lengths = np.array([2**33 + 5, 2**62, 1])
    starts, counts, _ = how._segments(np.arange(3), lengths, np.array([4]))
    for document, length in enumerate(lengths.tolist()):
        segments = how.segments_of_one(document, length, 4)
        assert [(first, count) for _, first, count in segments] == list(
            zip(starts[document].tolist(), counts[document].tolist(), strict=True)
        )


def digest(packing: Packing, epoch: int) -> tuple[int, int, str]:
    pieces = lists.pieces_of(packing, epoch)
    flat = [(row, *piece) for row, one in enumerate(pieces) for piece in one]
    return packing.samples, len(flat), xxhash.xxh3_64_hexdigest(np.array(flat, dtype="<i8").tobytes())


GOLDEN_LENGTHS = [1 + mix_one(document) % 97 for document in range(1000)]


def test_key_of_cuts() -> None:
    assert kind_key("pack-fim") == 0x62CB8C90B67C491B


@pytest.mark.parametrize(
    ("make", "overlap", "epoch", "expected"),
    [
        (exchange, 0, 0, (815, 3958, "1d47423a88265cda")),
        (exchange, 0, 1, (815, 3919, "ad9ff425e2da7477")),
        (exchange, 1, 0, (815, 4015, "9996e6e7f53d10a4")),
        (table, 0, 0, (815, 3943, "71b0ed18a03a3608")),
        (table, 1, 1, (815, 3975, "3fe63159f4924c98")),
    ],
)
def test_golden_digests(make: Any, overlap: int, epoch: int, expected: tuple[int, int, str]) -> None:
    assert digest(make(GOLDEN_LENGTHS, 7, 64, overlap, fim(0.5)), epoch) == expected


def test_golden_first_sample() -> None:
    packing = exchange([3, 5, 2, 3, 5, 3], 7, 8, 0, fim(0.5))
    assert (packing.samples, packing.tokens) == (3, 30)
    assert lists.pieces_of(packing, 0) == [
        [
            (1, 2, 3, False),
            (-1, 901, 1, False),
            (-1, 902, 1, True),
            (5, 2, 1, True),
            (-1, 903, 1, True),
            (5, 0, 1, True),
        ],
        [
            (5, 1, 1, False),
            (0, 0, 3, False),
            (-1, 901, 1, False),
            (4, 0, 1, True),
            (-1, 902, 1, True),
            (4, 4, 1, True),
        ],
        [
            (-1, 901, 1, False),
            (3, 0, 2, True),
            (-1, 902, 1, True),
            (-1, 903, 1, True),
            (3, 2, 1, True),
            (1, 0, 2, False),
        ],
    ]


def test_facts_count_the_sentinels() -> None:
    assert exchange([3, 5, 2, 3, 5, 3], 7, 8, 0, fim(0.5)).facts() == {
        "documents": 6,
        "tokens": 30,
        "samples": 3,
        "sentinels": 9,
        "tail": 6,
        "classes": 3,
        "unmoved_documents": 1,
        "unmoved_tokens": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"rate": 1.5}, InvalidArgument, "rate must be from 0 to 1"),
        ({"rate": "half"}, WrongType, "rate must be a number"),
        ({"rate": float("nan")}, InvalidArgument, "rate must be from 0 to 1"),
        ({"spm": -0.1}, InvalidArgument, "spm must be from 0 to 1"),
        ({"prefix": -1}, InvalidArgument, "prefix must be at least 0"),
        ({"middle": 3.0}, WrongType, "middle must be an integer"),
        ({"suffix": 1}, InvalidArgument, "prefix and suffix must differ"),
        ({"end_tokens": -1}, InvalidArgument, "end_tokens must be at least 0"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Fim(**{"rate": 0.5, "prefix": 1, "suffix": 2, "middle": 3, **arguments})


def test_arguments_are_made_plain() -> None:
    numbers: Any = {"rate": np.float64(0.5), "prefix": np.int32(1), "suffix": 2, "middle": 3, "spm": 1}
    made = Fim(**numbers)
    assert repr(made) == "Fim(rate=0.5, prefix=1, suffix=2, middle=3, spm=1.0, end_tokens=0)"
    assert made == Fim(0.5, 1, 2, 3, spm=1.0)
