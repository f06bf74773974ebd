"""Chosen rows, in the order given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, numbers

import seekable as sk

ROWS = st.lists(st.integers(-9, 8), max_size=30)


@given(ROWS)
def test_rows_come_as_given_in_every_epoch(rows: list[int]) -> None:
    ds = numbers(9).shuffle(seed=1)
    for epoch in range(2):
        items = list(ds.epoch(epoch))
        assert list(ds.select(rows).epoch(epoch)) == [items[row] for row in rows]


@given(ROWS)
def test_every_repetition_is_found(rows: list[int]) -> None:
    ds = numbers(9).select(rows)
    for row in range(9):
        wanted = [len(rows) + i for i, chosen in enumerate(rows) if chosen % 9 == row]
        assert ds.find("<builtins.range>", row, epoch=1) == wanted


def test_the_rows_are_a_copy() -> None:
    rows = np.array([1, 2, 3])
    ds = numbers(9).select(rows)
    fingerprint = ds.fingerprint
    rows[:] = 0
    assert list(ds) == [1, 2, 3]
    assert ds.fingerprint == fingerprint == numbers(9).select([1, 2, 3]).fingerprint


def test_other_rows_are_another_pipeline() -> None:
    fingerprints = {numbers(9).select(rows).fingerprint for rows in ([1, 2], [2, 1], [1], [1, 2, 2], [])}
    assert len(fingerprints) == 5
    assert numbers(9).select([-1]).fingerprint == numbers(9).select([8]).fingerprint


def test_nothing_may_be_chosen() -> None:
    assert list(numbers(9).select([])) == list(numbers(0).select([])) == []


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([9], IndexError, "row 9 is out of range: there are 9 records"),
        ([0, -10], IndexError, "row -10 is out of range"),
        (np.array([2**63], dtype=np.uint64), IndexError, "row 9223372036854775808 is out of range"),
        ([1.0], TypeError, r"flat list of integers.*\(got \[1\.0\]\)"),
        ([True], TypeError, r"\(got \[True\]\); of a flag for each row, np\.flatnonzero"),
        ([[1]], TypeError, r"flat list of integers.*\(got \[\[1\]\]\)"),
        ([[1], [2, 3]], TypeError, r"flat list of integers.*\(got \[\[1\], \[2, 3\]\]\)"),
        (["question"], TypeError, r"\(got \['question'\]\); .* select_columns\(\['question'\]\)"),
        ("ab", TypeError, "flat list of integers"),
        (3, TypeError, "flat list of integers"),
    ],
    ids=str,
)
def test_bad_rows_are_named(rows: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numbers(9).select(rows)


def test_endless_data_must_be_cut_first() -> None:
    with pytest.raises(sk.errors.EndlessDataset, match=r"select\(\) needs a length.*take\(k\)"):
        endless().select([1])
    assert list(endless().take(5).select([4, 0])) == [endless()[4], endless()[0]]
