"""Megatron's order: goldens of its own arrays, a model that walks as its helper does, and the way up."""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from seekable.packing.order.megatron_order import Megatron, MegatronIndexes, build_indexes, epochs_needed

if TYPE_CHECKING:
    from collections.abc import Sequence

Piece = tuple[int, int, int, bool]


def packing(
    lengths: Sequence[int],
    length: int,
    extra: int,
    seed: int,
    samples: int | None = None,
    *,
    keep_last: bool = False,
) -> Megatron:
    offsets = np.cumsum([0, *lengths])
    made = build_indexes(offsets, length=length, extra=extra, seed=seed, samples=samples, keep_last=keep_last)
    return Megatron(offsets, made, length, extra)


def pieces_of(packed: Megatron, rows: Sequence[int]) -> list[list[Piece]]:
    """Return the pieces of some rows by the array form."""
    found = packed.pieces(np.array(rows, dtype=np.int64), np.arange(len(rows)))
    columns = zip(found.documents.tolist(), found.starts.tolist(), found.counts.tolist(), strict=True)
    flat = [(*piece, False) for piece in columns]
    edges = found.bounds.tolist()
    return [flat[start:stop] for start, stop in itertools.pairwise(edges)]


def walked(lengths: Sequence[int], documents: Sequence[int], length: int, extra: int) -> list[list[int]]:
    """Return the sample index of full samples, one document after another."""
    cuts = [[0, 0]]
    place, offset = 0, 0
    axis = sum(lengths[document] for document in documents)
    for _ in range((axis - extra) // length):
        remaining = length + extra
        while remaining:
            here = lengths[documents[place]] - offset
            remaining -= here
            if remaining <= 0:
                offset += remaining + here - extra
                remaining = 0
            else:
                place, offset = place + 1, 0
        cuts.append([place, offset])
    return cuts


def test_the_arrays_of_five_documents_are_those_of_megatron() -> None:
    packed = packing([3, 5, 2, 4, 6], 4, 1, 1234)
    assert packed.indexes.documents.tolist() == [4, 0, 1, 2, 3]
    assert packed.indexes.samples.tolist() == [[0, 0], [0, 4], [1, 2], [2, 3], [4, 0]]
    assert packed.indexes.shuffle.tolist() == [2, 1, 3, 0]
    assert packed.samples == 4
    assert packed.length == 5
    assert pieces_of(packed, range(4)) == [
        [(0, 2, 1, False), (1, 0, 4, False)],
        [(4, 4, 2, False), (0, 0, 3, False)],
        [(1, 3, 2, False), (2, 0, 2, False), (3, 0, 1, False)],
        [(4, 0, 5, False)],
    ]


# Recorded from megatron-core 0.16.1, whose arrays are the same: 200 documents of 0 to 36 tokens.
RECORDED = [
    (8, 1, None, False, (200, 448), "06c8cb616ccfd595"),
    (8, 0, None, False, (200, 448), "2c015d28f89f9ed0"),
    (8, 1, 900, False, (600, 1346), "de9a160b570d1ca8"),
    (8, 1, 1600, True, (800, 1795), "255cc5b05a709f74"),
    (16, 0, 700, True, (800, 898), "31eab0739102bd25"),
    (64, 1, 2000, False, (7200, 2019), "078817c27e71a620"),
]


@pytest.mark.parametrize(("length", "extra", "samples", "keep_last", "sizes", "digest"), RECORDED)
def test_the_arrays_are_the_recorded_ones(
    *, length: int, extra: int, samples: int | None, keep_last: bool, sizes: tuple[int, int], digest: str
) -> None:
    packed = packing(MANY, length, extra, 1234, samples, keep_last=keep_last)
    made = packed.indexes
    assert (len(made.documents), len(made.shuffle)) == sizes
    assert made.documents.dtype == made.samples.dtype == np.int32
    assert made.shuffle.dtype == np.uint32
    text = made.documents.tobytes() + made.samples.tobytes() + made.shuffle.tobytes()
    assert xxhash.xxh3_64_hexdigest(text) == digest


MANY = [(7 * document * document) % 37 for document in range(200)]

CORPORA = st.lists(st.integers(0, 9), min_size=1, max_size=25).filter(any)


@given(CORPORA, st.integers(1, 12), st.integers(0, 1), st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_samples_are_cut_as_the_walk_cuts_them(
    lengths: list[int], length: int, extra: int, seed: int, samples: int
) -> None:
    packed = packing(lengths, length, extra, seed, samples)
    made = packed.indexes
    epochs = epochs_needed(sum(lengths), length, extra, samples)
    assert np.bincount(made.documents, minlength=len(lengths)).tolist() == [epochs] * len(lengths)
    assert made.samples.tolist() == walked(lengths, made.documents.tolist(), length, extra)
    assert sorted(made.shuffle.tolist()) == list(range(packed.samples))
    assert packed.samples >= samples


@given(
    lengths=CORPORA,
    length=st.integers(1, 12),
    extra=st.integers(0, 1),
    samples=st.none() | st.integers(0, 60),
    keep_last=st.booleans(),
)
def test_each_sample_is_the_tokens_of_its_place_on_the_axis(
    *, lengths: list[int], length: int, extra: int, samples: int | None, keep_last: bool
) -> None:
    packed = packing(lengths, length, extra, 5, samples, keep_last=keep_last)
    axis = [(d, t) for d in packed.indexes.documents.tolist() for t in range(lengths[d])]
    expected = [
        axis[number * length : number * length + length + extra] for number in packed.indexes.shuffle.tolist()
    ]
    rows = range(packed.samples)
    found = pieces_of(packed, rows)
    assert [[(d, t) for d, s, c, _ in row for t in range(s, s + c)] for row in found] == expected
    assert found == [packed.pieces_of_one(row, 3) for row in rows]
    assert all(count > 0 for row in found for _, _, count, _ in row)
    full = [len(tokens) == length + extra for tokens in expected]
    assert all(full) or (keep_last and full.count(False) == 1)


@given(
    lengths=CORPORA,
    length=st.integers(1, 7),
    extra=st.integers(0, 1),
    samples=st.integers(0, 40),
    keep_last=st.booleans(),
)
def test_the_samples_with_a_document_are_those_that_have_a_piece_of_it(
    *, lengths: list[int], length: int, extra: int, samples: int, keep_last: bool
) -> None:
    packed = packing(lengths, length, extra, 9, samples, keep_last=keep_last)
    found = pieces_of(packed, range(packed.samples))
    for document in range(len(lengths)):
        rows = [row for row, pieces in enumerate(found) if any(p[0] == document for p in pieces)]
        assert packed.samples_with(document, 0).tolist() == rows


def test_the_last_epoch_is_shuffled_alone_if_little_of_it_is_wanted() -> None:
    lengths = [5] * 20
    # 20 samples an epoch: 35 want three quarters of the second one, 36 want four fifths.
    alone, together = packing(lengths, 5, 0, 3, 35), packing(lengths, 5, 0, 3, 36)
    assert sorted(alone.indexes.documents[:20].tolist()) == list(range(20))
    assert sorted(alone.indexes.shuffle[:20].tolist()) == list(range(20))
    assert sorted(together.indexes.documents[:20].tolist()) != list(range(20))
    assert sorted(together.indexes.shuffle[:20].tolist()) != list(range(20))


def test_kept_samples_are_counted_in_floats_of_32_bits() -> None:
    # 2**27 + 1 tokens are 2**27 in these floats, so the last token is in no sample.
    lengths = [2**26, 2**26 + 1]
    kept = packing(lengths, 2**20, 0, 1, keep_last=True)
    assert kept.samples == 128
    assert packing([2**26, 2**26 + 9], 2**20, 0, 1, keep_last=True).samples == 129


def test_documents_are_added_up_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [packing(MANY, 8, extra, 7, 900, keep_last=True) for extra in (0, 1)]
    monkeypatch.setattr("seekable.packing.order.megatron_order._CHUNK", 13)
    for extra, expected in enumerate(whole):
        found = packing(MANY, 8, extra, 7, 900, keep_last=True)
        assert found.indexes.samples.tolist() == expected.indexes.samples.tolist()
        assert found.facts() == expected.facts()


def test_the_facts_count_the_tail_and_the_padding() -> None:
    assert packing([3, 5, 2, 4, 7], 4, 1, 1).facts() == {
        "places": 5,
        "documents": 5,
        "tail": 0,
        "padding": 0,
    }
    assert packing([3, 5, 2, 4, 6], 4, 1, 1).facts()["tail"] == 3
    assert packing([3, 5, 2, 4, 6], 4, 1, 1, keep_last=True).facts()["padding"] == 1


@pytest.mark.parametrize(
    ("lengths", "seed", "message"),
    [
        ([4], -1, "seed"),
        ([4], 2**32, "seed"),
        ([2**31], 1, "32-bit"),
    ],
)
def test_what_megatron_cannot_do_is_refused(lengths: list[int], seed: int, message: str) -> None:
    for samples in (None, 0, 3):
        with pytest.raises(ValueError, match=message):
            packing(lengths, 4, 1, seed, samples)


@pytest.mark.parametrize("lengths", [[], [0, 0]])
@pytest.mark.parametrize("keep_last", [False, True])
def test_samples_of_no_token_are_refused(lengths: list[int], keep_last: bool) -> None:  # noqa: FBT001
    with pytest.raises(ValueError, match=f"{len(lengths)} documents without any"):
        packing(lengths, 4, 1, 1, 3, keep_last=keep_last)
    for samples in (None, 0):
        packed = packing(lengths, 4, 1, 1, samples, keep_last=keep_last)
        assert packed.samples == 0
        assert packed.facts()["tail"] == 0


def test_too_few_tokens_make_no_sample() -> None:
    assert packing([3], 4, 1, 1).samples == 0
    assert packing([3], 4, 1, 1, 1).samples == 1
    assert pieces_of(packing([3], 4, 1, 1), []) == []


def test_a_copy_has_the_same_pieces() -> None:
    packed = packing([3, 5, 0, 2], 4, 1, 1, 9)
    again = pickle.loads(pickle.dumps(packed))
    assert pieces_of(again, range(9)) == pieces_of(packed, range(9))
    assert isinstance(again.indexes, MegatronIndexes)
