"""Excluded rows as one value: canonical, through bytes and JSON, and refused where something changed it."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import CorruptState
from seekable.state.excluded_rows import (
    MOST_INLINE,
    ExcludedFile,
    ExcludedRows,
    described_rows,
    rows_as_text,
    rows_of_text,
)

FILES = st.builds(
    ExcludedFile,
    st.sampled_from(["a.jsonl", "b/c.jsonl", "caf\udce9", "<seq 1>"]),
    st.sampled_from(["", "xxh3:1"]),
)
ROWS = st.lists(st.integers(0, 2**62) | st.integers(0, 300), max_size=12)
PARTS = st.lists(st.tuples(FILES, ROWS), max_size=6)


def of(parts: list[tuple[ExcludedFile, list[int]]]) -> ExcludedRows:
    return ExcludedRows.of((file, np.array(rows, dtype=np.int64)) for file, rows in parts)


@given(ROWS)
def test_text_and_back(rows: list[int]) -> None:
    array = np.unique(np.array(rows, dtype=np.int64))
    assert rows_of_text(rows_as_text(array)).tolist() == array.tolist()


@given(PARTS, PARTS)
def test_it_is_a_set(
    one: list[tuple[ExcludedFile, list[int]]], other: list[tuple[ExcludedFile, list[int]]]
) -> None:
    made = of(one)
    assert {(file, row) for file, rows in made for row in rows.tolist()} == {
        (f, row) for f, rows in one for row in rows
    }
    assert of(one[::-1] + one) == made
    assert hash(of(one[::-1])) == hash(made)
    assert made | of(other) == of(one + other) == of(other) | made
    assert (
        (made.to_bytes() == of(other).to_bytes()) == (made == of(other)) == (made.digest == of(other).digest)
    )


@given(PARTS)
def test_bytes_and_json_and_back(parts: list[tuple[ExcludedFile, list[int]]]) -> None:
    made = of(parts)
    assert ExcludedRows.from_bytes(made.to_bytes()) == made
    assert ExcludedRows.from_document(json.loads(json.dumps(made.document()))) == made


def test_golden_values() -> None:
    """States and descriptions have these texts: a change of one is a breaking change."""
    assert rows_as_text(np.array([0, 1, 127, 128, 16_383, 2**62])) == "AAB9AP5+gID///////8/"
    made = of([(ExcludedFile("b.jsonl", "xxh3:2"), [5, 3]), (ExcludedFile("a.jsonl", "xxh3:1"), [300])])
    assert made.to_bytes() == (
        b'{"files":[{"gaps":"rAI=","head_tail":"xxh3:1","name":"a.jsonl"},'
        b'{"gaps":"AwE=","head_tail":"xxh3:2","name":"b.jsonl"}],"rows":3}'
    )


def test_few_rows_stand_in_descriptions() -> None:
    few, many = np.arange(MOST_INLINE), np.arange(MOST_INLINE + 1)
    assert rows_of_text(described_rows(few)["list"]).tolist() == few.tolist()
    assert described_rows(many).keys() == {"excluded", "rows"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"rows":1,"files":[]}',
        b'{"rows":0,"files":[{"name":"a","head_tail":"","gaps":""}]}',
        b'{"rows":1,"files":[{"name":"a","head_tail":"","gaps":"A"}]}',
        b'{"rows":1,"files":[{"name":"a","head_tail":"","gaps":"gA=="}]}',
        b'{"rows":1,"files":[{"name":"a","head_tail":1,"gaps":"AA=="}]}',
        b'{"rows":1,"files":[{"name":"a","head_tail":"","gaps":"AA=="}',
    ],
)
def test_what_is_no_list_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptState):
        ExcludedRows.from_bytes(data)


@pytest.mark.parametrize("data", [[0x80] * 9 + [1], [0xFF] * 8 + [0x7F] * 2, [0xFF] * 8 + [0x7F, 0xFF] * 1])
def test_numbers_that_are_too_large_are_refused(data: list[int]) -> None:
    with pytest.raises(CorruptState):
        rows_of_text(base64.b64encode(bytes(data)).decode())
