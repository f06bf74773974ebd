"""Concatenation by exchange and by table, and fixed windows, against lists of tokens and golden values."""

from __future__ import annotations

import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.order.packing import lists
from tests.thrift import some

from seekable.order.keys import derive, kind_key, mix_one
from seekable.packing.order.axis import FixedWindows, OffsetsAxis
from seekable.packing.order.fill_in_middle import Fim
from seekable.packing.order.length_order import length_order, offsets_of
from seekable.packing.order.table_order import Exchange, TableOrder

if TYPE_CHECKING:
    from seekable.packing.order.sample_pieces import Packing

GOLDEN_LENGTHS = [1 + mix_one(document) % 97 for document in range(1000)]

LENGTHS = st.one_of(
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
    st.lists(st.sampled_from([0, 3, 7]), min_size=1, max_size=60),
    st.lists(st.just(5), min_size=1, max_size=20),
)


def exchange(lengths: list[int], stride: int, overlap: int, seed: int) -> Exchange:
    return Exchange(length_order(np.array(lengths)), stride=stride, overlap=overlap, seed=seed)


def table(lengths: list[int], stride: int, overlap: int, seed: int) -> TableOrder:
    return TableOrder(offsets_of(np.array(lengths)), stride=stride, overlap=overlap, seed=seed)


def check(lengths: list[int], stride: int, overlap: int, seed: int, epoch: int, every: int = 1) -> None:
    axis = lists.end_to_end(lengths, lists.exchanged(lengths, seed, epoch))
    samples = lists.windows(lists.turned(axis, seed, epoch), stride, overlap)
    samples = lists.shuffled(samples, seed, epoch)
    lists.check(exchange(lengths, stride, overlap, seed), samples, len(lengths), epoch, every)
    check_once(lengths, samples, overlap)
    axis = lists.end_to_end(lengths, lists.tabled(lengths, seed, epoch))
    samples = lists.shuffled(lists.windows(axis, stride, overlap), seed, epoch)
    lists.check(table(lengths, stride, overlap, seed), samples, len(lengths), epoch, every)
    check_once(lengths, samples, overlap)
    axis = lists.end_to_end(lengths, range(len(lengths)))
    windows = FixedWindows(OffsetsAxis.of(offsets_of(np.array(lengths))), stride=stride, overlap=overlap)
    lists.check(windows, lists.windows(axis, stride, overlap), len(lengths), epoch, every)


def check_once(lengths: list[int], samples: list[list[lists.Token]], overlap: int) -> None:
    """Each token comes once, but for the tail; only those that the next window begins with come twice."""
    seen = Counter(token for sample in samples for token in sample[: len(sample) - overlap])
    assert not seen or max(seen.values()) == 1
    stride = len(samples[0]) - overlap if samples else 0
    assert len(seen) == len(samples) * stride
    assert set(seen) <= {(document, token) for document, n in enumerate(lengths) for token in range(n)}


@settings(max_examples=some(25, of=3))
@given(LENGTHS, st.integers(1, 50), st.integers(0, 1), st.integers(0, 2**64 - 1), st.integers(0, 5))
def test_samples_are_those_of_lists(
    lengths: list[int], stride: int, overlap: int, seed: int, epoch: int
) -> None:
    check(lengths, stride, overlap, seed, epoch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(some(10)))
def test_samples_of_a_thousand_corpora_are_those_of_lists(part: int) -> None:
    for number in range(part * 100, part * 100 + 100):
        rng = np.random.default_rng(number)
        lengths = rng.integers(0, rng.integers(2, 31), size=rng.integers(1, 15)).tolist()
        stride, overlap, seed = int(rng.integers(1, 70)), int(rng.integers(2)), int(rng.integers(2**62))
        for epoch in range(3):
            check(lengths, stride, overlap, seed, epoch, every=11)


@pytest.mark.parametrize(
    ("lengths", "stride"),
    [
        pytest.param([7], 3, id="one document"),
        pytest.param([7], 7, id="one sample that is all"),
        pytest.param([0, 0, 1], 1, id="one token"),
        pytest.param([0, 0, 0], 1, id="no token"),
        pytest.param([3, 0, 0, 4, 0], 1, id="samples of one token"),
        pytest.param([2, 2, 3], 30, id="fewer tokens than a sample"),
        pytest.param([5] * 20, 7, id="one class"),
        pytest.param(list(range(20)), 7, id="classes of one"),
        pytest.param([0] * 300 + [9] + [0] * 300, 4, id="many empty documents"),
        pytest.param([1] * 700, 13, id="more documents than from one coarse offset to the next"),
    ],
)
@pytest.mark.parametrize("overlap", [0, 1])
def test_samples_at_the_edges(lengths: list[int], stride: int, overlap: int) -> None:
    check(lengths, stride, overlap, seed=3, epoch=1, every=1 + len(lengths) // 40)


def test_documents_too_long_for_the_table_of_lengths() -> None:
    """Lengths from 65,536 on are searched; the form without arrays searches all."""
    packing = exchange([65_536, 3, 65_537, 65_535, 65_536, 3, 65_537, 200_000, 65_536, 65_535], 1000, 0, 7)
    for epoch in range(3):
        found = lists.pieces_of(packing, epoch)
        assert found == [packing.pieces_of_one(row, epoch) for row in range(packing.samples)]


@pytest.mark.parametrize("make", [exchange, table])
def test_rows_of_several_epochs_at_once(make: type) -> None:
    packing = make([3, 5, 2, 3, 5, 3, 0, 8], 4, 1, 7)
    rows = np.array([3, 0, 4, 4, 1, 2, 0, 6])
    epochs = np.array([0, 10**12, 1, 0, 5000, 10**12, 2, 2])
    found = packing.pieces(rows, epochs)
    pieces = list(zip(found.documents.tolist(), found.starts.tolist(), found.counts.tolist(), strict=True))
    for number, (row, epoch) in enumerate(zip(rows.tolist(), epochs.tolist(), strict=True)):
        one = [piece[:3] for piece in packing.pieces_of_one(row, epoch)]
        assert pieces[found.bounds[number] : found.bounds[number + 1]] == one


def test_no_rows_have_no_pieces() -> None:
    none = np.empty(0, dtype=np.int64)
    for packing in (exchange([3, 4], 2, 0, 7), table([3, 4], 2, 0, 7)):
        found = packing.pieces(none, none)
        assert found.bounds.tolist() == [0]
        assert found.documents.size == 0


def test_a_pickled_packing_gives_the_same_samples() -> None:
    for packing in (exchange([3, 4, 3, 9], 2, 0, 7), table([3, 4, 3, 9], 2, 0, 7)):
        pieces = lists.pieces_of(packing, 3)
        assert lists.pieces_of(pickle.loads(pickle.dumps(packing)), 3) == pieces


def test_facts_of_concatenation() -> None:
    assert exchange([3, 5, 2, 3, 0, 0, 5, 3, 11], 4, 1, 7).facts() == {
        "documents": 9,
        "tokens": 32,
        "samples": 7,
        "tail": 3,
        "classes": 5,
        "unmoved_documents": 2,
        "unmoved_tokens": 13,
    }
    assert table([3, 5], 3, 0, 7).facts() == {"documents": 2, "tokens": 8, "samples": 2, "tail": 2}
    assert table([3, 5], 30, 1, 7).facts() == {"documents": 2, "tokens": 8, "samples": 0, "tail": 8}


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("pack", 0x332EAD571C2EB607),
        ("pack-length", 0x40202BF41AAE5AA8),
        ("pack-turn", 0xAD84CDBAD2E6F7E6),
        ("pack-table", 0xB9067812D0CA01D1),
    ],
)
def test_keys_of_packing(kind: str, key: int) -> None:
    assert kind_key(kind) == key


@pytest.mark.parametrize(
    ("epoch", "turn", "expected"),
    [
        (
            0,
            9,
            [
                [(4, 1, 4), (2, 0, 1)],
                [(1, 4, 1), (5, 0, 3), (0, 0, 1)],
                [(2, 1, 1), (3, 0, 3), (1, 0, 1)],
                [(1, 0, 5)],
                [(0, 0, 3), (4, 0, 2)],
            ],
        ),
        (
            1,
            1,
            [
                [(4, 2, 3), (2, 0, 2)],
                [(2, 1, 1), (0, 0, 3), (1, 0, 1)],
                [(3, 1, 2), (4, 0, 3)],
                [(1, 0, 5)],
                [(1, 4, 1), (5, 0, 3), (3, 0, 1)],
            ],
        ),
    ],
)
def test_golden_samples_of_six_documents(
    epoch: int, turn: int, expected: list[list[tuple[int, int, int]]]
) -> None:
    packing = exchange([3, 5, 2, 3, 5, 3], 4, 1, 7)
    assert derive(kind_key("pack-turn"), 7, epoch) * 21 >> 64 == turn
    assert [[piece[:3] for piece in pieces] for pieces in lists.pieces_of(packing, epoch)] == expected


def digest(packing: Packing, epoch: int) -> tuple[int, str]:
    """The number and the digest of all pieces of an epoch, as int64 (row, document, start, count)."""
    rows = np.arange(packing.samples)
    found = packing.pieces(rows, np.full(rows.size, epoch))
    rows = np.repeat(rows, np.diff(found.bounds))
    table = np.stack([rows, found.documents, found.starts, found.counts], axis=1).astype("<i8")
    return len(table), xxhash.xxh3_64_hexdigest(table.tobytes())


@pytest.mark.parametrize(
    ("make", "overlap", "epoch", "expected"),
    [
        (exchange, 0, 0, (1781, "48b846435217ab51")),
        (exchange, 0, 1, (1777, "2a03cffc6c80f8b0")),
        (exchange, 1, 0, (1792, "5210340f40b1c236")),
        (exchange, 1, 1, (1792, "20ad76da846bb32b")),
        (table, 0, 0, (1770, "a45f6a21453b74c5")),
        (table, 0, 1, (1775, "9a4be95ffce32c79")),
        (table, 1, 0, (1791, "12dc5ba183345f05")),
        (table, 1, 1, (1791, "3db90b510a0d06e7")),
    ],
)
def test_golden_digests(make: type, overlap: int, epoch: int, expected: tuple[int, str]) -> None:
    packing = make(GOLDEN_LENGTHS, 64, overlap, 7)
    assert sum(GOLDEN_LENGTHS) == 50_705
    assert packing.samples == 792
    assert digest(packing, epoch) == expected


def test_golden_first_rows() -> None:
    assert exchange(GOLDEN_LENGTHS, 64, 0, 7).pieces_of_one(0, 0) == [
        (297, 2, 45, False),
        (37, 0, 19, False),
    ]
    assert table(GOLDEN_LENGTHS, 64, 0, 7).pieces_of_one(0, 0) == [
        (483, 57, 20, False),
        (658, 0, 13, False),
        (770, 0, 31, False),
    ]


@pytest.mark.parametrize("how", [None, Fim(0.5, 1, 2, 3)])
@pytest.mark.parametrize(
    "lengths",
    [
        pytest.param([n % 7 for n in range(64)], id="one run"),
        pytest.param([n % 7 for n in range(65)], id="a second run of one interval"),
        pytest.param([0] * 200 + [5] + [0] * 200, id="runs of no token"),
        pytest.param([1 + n % 50 for n in range(150)], id="several runs"),
        pytest.param([9], id="one document"),
    ],
)
def test_a_coarse_table_has_the_samples_of_a_fine_one(lengths: list[int], how: Fim | None) -> None:
    offsets = offsets_of(np.array(lengths))
    fine, coarse = (
        TableOrder(offsets, fine=most, stride=5, overlap=1, seed=7, fim=how) for most in (1 << 20, 0)
    )
    for epoch in (0, 10**12):
        found = lists.pieces_of(coarse, epoch)
        assert found == lists.pieces_of(fine, epoch)
        rows = range(0, coarse.samples, 97)
        assert [coarse.pieces_of_one(row, epoch) for row in rows] == found[::97]
        for document in range(0, len(lengths), 37):
            expected = fine.samples_with(document, epoch).tolist()
            assert coarse.samples_with(document, epoch).tolist() == expected


def test_tables_of_two_epochs_are_kept_and_shared_by_threads() -> None:
    lengths = [1 + mix_one(document) % 9 for document in range(5000)]
    expected = {epoch: lists.pieces_of(table(lengths, 50, 0, 7), epoch) for epoch in range(4)}
    shared = table(lengths, 50, 0, 7)
    with ThreadPoolExecutor(4) as threads:
        epochs = [number % 4 for number in range(24)]
        found = list(threads.map(lambda epoch: lists.pieces_of(shared, epoch), epochs))
    assert [expected[epoch] for epoch in epochs] == found
    assert len(shared._kept.tables) <= 2
    assert shared._filling(2) is shared._filling(2)
