"""Dictionaries of streams: given once, added to, replaced."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc
from tests.formats.arrow.tables import opened, written

from seekable.formats.tables.arrow.arrow_layout import find_layout


def coded(*pairs: tuple[list[int], list[str]]) -> list[pa.RecordBatch]:
    """Return a record batch for each pair of indices and words."""
    return [
        pa.record_batch({"w": pa.DictionaryArray.from_arrays(pa.array(some, pa.int8()), pa.array(words))})
        for some, words in pairs
    ]


def words_of(data: bytes) -> list[list[str]]:
    table = opened(data)
    return [
        table.run(group, 0, place.rows, ["w"])["w"].to_pylist()
        for group, place in enumerate(table._layout.groups)
    ]


def test_a_dictionary_that_is_replaced_holds_from_there_on() -> None:
    batches = coded(([0, 1], ["a", "b"]), ([1, 0], ["a", "b"]), ([0, 1], ["c", "d"]), ([0, 0], ["a", "b"]))
    data = written(batches, "stream")
    table = opened(data)
    assert len(table._layout.segments) == 3
    # In any order, since each segment has a reader of its own.
    for group in (3, 0, 2, 1, 3):
        assert table.run(group, 0, 2, ["w"]).to_pylist() == batches[group].to_pylist()


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_dictionary_that_grows(kind: str) -> None:
    batches = coded(([0, 1], ["a", "b"]), ([2, 0], ["a", "b", "c"]), ([3, 1], ["a", "b", "c", "d"]))
    data = written(batches, kind, emit_dictionary_deltas=True)  # type: ignore[arg-type]
    assert words_of(data) == [["a", "b"], ["c", "a"], ["d", "b"]]


WORDS = st.lists(st.text("abc", max_size=3), min_size=1, max_size=4, unique=True)


@given(st.lists(WORDS, min_size=1, max_size=8), st.booleans())
def test_any_sequence_of_dictionaries(sets: list[list[str]], deltas: bool) -> None:  # noqa: FBT001 - drawn
    rng = np.random.default_rng(len(sets))
    pairs = [(rng.integers(0, len(words), 5).tolist(), words) for words in sets]
    data = written(coded(*pairs), "stream", emit_dictionary_deltas=deltas)
    truth = [each["w"].to_pylist() for each in ipc.open_stream(data)]
    assert words_of(data) == truth
    assert truth == [[words[index] for index in indices] for indices, words in pairs]


def test_many_replaced_dictionaries_take_little_to_keep() -> None:
    batches = coded(*[([0], [str(number)]) for number in range(500)])
    data = written(batches, "stream")
    assert words_of(data) == [[str(number)] for number in range(500)]
    assert len(opened(data)._readers) <= 8


def test_several_columns_and_nested_dictionaries() -> None:
    def one(number: int) -> pa.RecordBatch:
        inner = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([f"x{number}", "y"]))
        listed = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), inner)
        outer = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), listed)
        return pa.record_batch({"a": outer, "b": pa.array(["p", "q", f"r{number // 2}"]).dictionary_encode()})

    batches = [one(number) for number in range(5)]
    table = opened(written(batches, "stream"))
    for group in (4, 1, 0, 3, 2):
        assert table.run(group, 0, 3, ["a", "b"]).to_pylist() == batches[group].to_pylist()
    assert len(find_layout(table._source).segments) > 1


def test_streams_behind_each_other_are_one_with_the_dictionaries_of_each() -> None:
    first, second = (coded(([0, 1], words), ([1, 1], words)) for words in (["a", "b"], ["c", "d"]))
    whole = written(first, "stream") + written(second, "stream")
    assert words_of(whole) == [["a", "b"], ["b", "b"], ["c", "d"], ["d", "d"]]
    # The mark of the end, of 8 bytes, may be missing.
    assert words_of(written(first, "stream")[:-8] + written(second, "stream")) == words_of(whole)
