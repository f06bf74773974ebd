"""The columns of documents by length, in one piece and in chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thrift import some

from seekable.packing.order.length_order import (
    chunk_starts,
    length_classes,
    length_order,
    merged,
    sorted_chunk,
)

LENGTHS = st.lists(st.one_of(st.integers(0, 6), st.sampled_from([2**20 - 1, 2**20, 2**40])), max_size=40)


@settings(max_examples=some(40, of=3))
@given(LENGTHS)
def test_documents_are_sorted_by_length_and_number(lengths: list[int]) -> None:
    order = length_order(np.array(lengths, dtype=np.int64))
    expected = sorted(range(len(lengths)), key=lambda number: (lengths[number], number))
    assert order.by_length.tolist() == expected
    assert [order.by_length[place] for place in order.place] == list(range(len(lengths)))
    assert order.offsets.tolist() == [sum(lengths[:number]) for number in range(len(lengths) + 1)]
    classes = order.classes
    assert classes.lengths.tolist() == sorted(set(lengths))
    assert classes.counts.tolist() == [lengths.count(length) for length in sorted(set(lengths))]
    assert classes.starts.tolist() == [
        sum(other < length for other in lengths) for length in sorted(set(lengths))
    ]
    assert (classes.documents, classes.tokens) == (len(lengths), sum(lengths))


@settings(max_examples=some(40, of=3))
@given(LENGTHS, st.integers(1, 7))
def test_chunks_give_the_columns_of_the_whole(lengths: list[int], size: int) -> None:
    whole = length_order(np.array(lengths, dtype=np.int64))
    chunks = [np.array(lengths[at : at + size], dtype=np.int64) for at in range(0, len(lengths), size)]
    counted = [length_classes(chunk) for chunk in chunks]
    classes = merged(counted)
    for name in ("lengths", "counts", "starts"):
        assert getattr(classes, name).tolist() == getattr(whole.classes, name).tolist()
    by_length = np.full(len(lengths), -1)
    starts = chunk_starts(classes, counted)
    for number, (chunk, its_classes, first) in enumerate(zip(chunks, counted, starts, strict=True)):
        documents, places = sorted_chunk(chunk, its_classes, first)
        by_length[places] = documents + number * size
    assert by_length.tolist() == whole.by_length.tolist()


def test_more_classes_than_16_bits_number() -> None:
    lengths = np.arange(70_000, dtype=np.int64)[::-1].copy()
    assert length_order(lengths).by_length.tolist() == lengths.tolist()


@pytest.mark.parametrize("documents", [1, 256, 257, 1000])
def test_coarse_offsets(documents: int) -> None:
    order = length_order(np.arange(documents))
    assert order.coarse.tolist() == order.offsets[::256].tolist()
    assert order.documents == documents
    assert order.by_length.dtype == order.place.dtype == np.uint32
