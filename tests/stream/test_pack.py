"""Packing loses no token, wastes little, and never mixes what belongs apart."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream.common import delivered
from tests.thrift import sample

import seekable as sk

documents_of = st.lists(st.lists(st.integers(0, 10**6), max_size=25), max_size=40)


def packed(documents: list[list[int]], lanes: int, length: int, **given: Any) -> sk.Stream:
    return sk.from_sequence(documents, version=1).stream(lanes=lanes, epochs=1).pack(length, **given)


@given(
    documents_of,
    st.integers(1, 4),
    st.integers(1, 12),
    st.sampled_from([None, 7]),
    st.sampled_from(["split", "truncate", "drop"]),
    st.sampled_from(
        [{"method": "concat"}, {"method": "best_fit", "bins": 1}, {"method": "best_fit", "bins": 5}]
    ),
)
def test_each_token_of_each_document_comes_once_and_in_order(
    documents: list[list[int]],
    lanes: int,
    length: int,
    separator: int | None,
    long: str,
    method: dict[str, Any],
) -> None:
    stream = packed(documents, lanes, length, separator=separator, long=long, pad=-1, **method)
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for token, item in delivered(stream):
        tokens, segments, positions = (item[name].tolist() for name in ("tokens", "segment_ids", "positions"))
        assert len(tokens) == len(segments) == len(positions) == length
        at = 0
        for segment, (document, start, stop) in enumerate(token, start=1):
            for place in range(start, stop):
                assert (segments[at], positions[at]) == (segment, place - start)
                assert place not in found[document], "twice"
                found[document][place] = tokens[at]
                at += 1
        assert tokens[at:] == [-1] * (length - at)
        assert segments[at:] == [0] * (length - at)
    for number, document in enumerate(documents):
        whole = document if separator is None else [*document, separator]
        if len(whole) > length:
            whole = {"split": whole, "truncate": whole[:length], "drop": []}[long]
        assert found[number] == dict(enumerate(whole))


@given(documents_of, st.integers(1, 4), st.integers(1, 12))
def test_concat_wastes_nothing_but_the_end_of_a_lane(
    documents: list[list[int]], lanes: int, length: int
) -> None:
    sizes = [sum(map(len, documents[lane::lanes])) for lane in range(lanes)]
    assert len(delivered(packed(documents, lanes, length))) == sum(-(-size // length) for size in sizes)


@given(documents_of, st.integers(1, 12), st.integers(1, 5))
def test_best_fit_cuts_no_document_that_is_not_longer_than_a_sequence(
    documents: list[list[int]], length: int, bins: int
) -> None:
    pieces: dict[int, list[int]] = defaultdict(list)
    for token, _ in delivered(packed(documents, 1, length, method="best_fit", bins=bins)):
        for document, start, stop in token:
            pieces[document].append(stop - start)
    for number, document in enumerate(documents):
        whole, rest = divmod(len(document), length)
        assert sorted(pieces[number]) == sorted([length] * whole + [rest] * bool(rest))


@pytest.mark.parametrize(("mean", "length"), sample([(600, 2048), (300, 2048), (600, 4096)], of=3))
def test_best_fit_with_64_bins_wastes_little_of_log_normal_lengths(mean: int, length: int) -> None:
    rng = np.random.default_rng(1)
    sizes = rng.lognormal(np.log(mean) - 0.5, 1.0, 30_000).astype(int) + 1
    data = np.ones(int(sizes.max()), dtype=np.uint16)
    stream = (
        sk.from_sequence(sizes.tolist(), version=1)
        .stream(epochs=1)
        .map(lambda size: data[:size])
        .pack(length, method="best_fit", bins=64)
    )
    sequences = sum(1 for _ in stream)
    # The bins that are open at the end are no waste of the method: a run without end has none.
    filled = int(sizes.sum())
    waste = 1 - filled / ((sequences - 64) * length)
    assert waste < 0.006, waste


def test_a_long_document_goes_on_in_the_next_sequence() -> None:
    found = [item["tokens"].tolist() for _, item in delivered(packed([list(range(10)), [77]], 1, 4))]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 77, 0]]


def test_aligned_arrays_go_where_their_tokens_go() -> None:
    documents = [{"ids": [n, n + 1], "mask": [0, 1], "weight": [n, n]} for n in range(0, 20, 2)]
    for method in ("concat", "best_fit"):
        stream = sk.from_sequence(documents, version=1).stream(epochs=1)
        for item in stream.pack(3, key="ids", align=["mask", "weight"], separator=0, method=method, pad=9):
            for number, mask, weight in zip(item["tokens"], item["mask"], item["weight"], strict=True):
                real = number not in (0, 9) or weight
                assert not real or (mask == number % 2 and weight == number - mask)


def test_a_separator_is_in_the_loss_if_align_says_so() -> None:
    documents = [
        {"ids": [1, 2], "loss_mask": [0, 1], "weight": [5, 6]},
        {"ids": [3], "loss_mask": [1], "weight": [7]},
    ]
    for method in ("concat", "best_fit"):
        stream = sk.from_sequence(documents, version=1).stream(epochs=1)
        (item,) = stream.pack(6, key="ids", align={"loss_mask": 1, "weight": -1}, separator=9, method=method)
        assert item["tokens"].tolist() == [1, 2, 9, 3, 9, 0]
        assert item["loss_mask"].tolist() == [0, 1, 1, 1, 1, 0]
        assert item["weight"].tolist() == [5, 6, -1, 7, -1, 0]
        assert item["segment_ids"].tolist() == [1, 1, 1, 2, 2, 0]


def test_values_of_zero_at_separators_are_those_of_a_list() -> None:
    plain, zeros, ones = (
        packed([[1]], 1, 4, align=align, separator=9) for align in (["a"], {"a": 0}, {"a": 1})
    )
    assert plain.fingerprint == zeros.fingerprint != ones.fingerprint
    assert packed([[1]], 1, 4).fingerprint == packed([[1]], 1, 4, end="pad").fingerprint
    assert packed([[1]], 1, 4).fingerprint != packed([[1]], 1, 4, end="drop").fingerprint


@pytest.mark.parametrize("align", ["mask", 3, {"mask": 0.5}, {"mask": True}, [3], {3: 1}])
def test_an_align_that_is_neither_keys_nor_values_is_refused(align: Any) -> None:
    with pytest.raises(sk.errors.WrongType, match="align"):
        packed([[1]], 1, 4, align=align)


def test_an_end_that_is_neither_drop_nor_pad_is_refused() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="end must be 'pad' or 'drop'"):
        packed([[1]], 1, 4, end="short")


@given(documents_of, st.integers(1, 4), st.integers(1, 12))
def test_with_its_end_dropped_a_lane_is_cut_into_full_sequences(
    documents: list[list[int]], lanes: int, length: int
) -> None:
    sizes = [sum(map(len, documents[lane::lanes])) for lane in range(lanes)]
    found = delivered(packed(documents, lanes, length, end="drop"))
    assert len(found) == sum(size // length for size in sizes)
    assert all(item["segment_ids"].all() for _, item in found)
    padded = delivered(packed(documents, lanes, length))
    assert [token for token, _ in found] == [token for token, item in padded if item["segment_ids"].all()]


@pytest.mark.parametrize("method", ["concat", "best_fit"])
@pytest.mark.parametrize("documents", [[], [[]], [[1, 2, 3]], [[1] * 7] * 3])
def test_documents_without_a_full_sequence_give_none(documents: list[list[int]], method: str) -> None:
    assert delivered(packed(documents, 1, 100, method=method, end="drop")) == []
