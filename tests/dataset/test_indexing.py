"""Records by row: what a list allows, and errors that say what was wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.dataset.common import endless, numbers

import seekable as sk


def test_rows_count_from_both_ends() -> None:
    ds = numbers(5)
    assert [ds[row] for row in range(-5, 5)] == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda rows: np.array(rows, dtype=np.int8)])
def test_several_rows_come_in_the_order_asked(kind: Any) -> None:
    assert numbers(5)[kind([3, -1, 2, 3])] == [3, 4, 2, 3]
    assert numbers(5).__getitems__(kind([3, -1])) == numbers(5)._getitems(kind([3, -1])) == [3, 4]


def test_no_rows_are_an_empty_list() -> None:
    assert numbers(5)[[]] == numbers(0)[[]] == []


def test_numpy_integers_are_rows() -> None:
    assert numbers(5)[np.int64(3)] == numbers(5)[np.uint8(3)] == 3


@pytest.mark.parametrize("row", [5, -6, 10**30])
def test_a_row_outside_is_an_index_error(row: int) -> None:
    with pytest.raises(sk.errors.OutOfRange, match=rf"row {row} is out of range: there are 5 records"):
        numbers(5)[row]
    with pytest.raises(IndexError):
        numbers(5).locate(row)


@pytest.mark.parametrize("rows", [[0, 5], [-6, 1], np.array([2**63], dtype=np.uint64)])
def test_several_rows_with_one_outside_are_an_index_error(rows: Any) -> None:
    with pytest.raises(sk.errors.OutOfRange, match="out of range: there are 5 records"):
        numbers(5)[rows]


@pytest.mark.parametrize("rows", [1.0, "1", None, [1.5], ["a"], [True, False], [[1]], np.zeros((1, 1), int)])
def test_what_is_no_row_is_a_type_error(rows: Any) -> None:
    with pytest.raises(sk.errors.WrongType, match=r"rows? .*\(got"):
        numbers(5)[rows]


def test_an_empty_dataset_is_false_and_has_no_row() -> None:
    ds = numbers(0)
    assert not ds
    assert (len(ds), list(ds)) == (0, [])
    with pytest.raises(IndexError, match="there are 0 records"):
        ds[0]


def test_an_endless_dataset_has_rows_but_no_length() -> None:
    ds = endless()
    assert ds
    assert ds[10**9] == ds[[10**9]][0]
    with pytest.raises(sk.errors.EndlessDataset, match=r"len\(\) needs a length.*take\(k\)"):
        len(ds)
    with pytest.raises(TypeError):
        len(ds)
    for row in (-1, [0, -1]):
        with pytest.raises(IndexError, match="row -1 is out of range: an endless dataset"):
            ds[row]


def test_iteration_is_one_epoch_and_may_be_started_many_times() -> None:
    ds = numbers(10_000).shuffle(seed=1)
    one, other = iter(ds), iter(ds)
    pairs = [(next(one), next(other)) for _ in range(5000)]
    assert all(a == b for a, b in pairs)
    assert sorted(ds) == list(range(10_000))
    assert list(ds) == list(ds)


def test_membership_and_reversal_are_those_of_a_sequence() -> None:
    ds = numbers(5)
    assert 3 in ds
    assert 7 not in ds
    assert list(reversed(ds)) == [4, 3, 2, 1, 0]


def test_a_dataset_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        numbers(5).shuffle(seed=1).seed = 2  # type: ignore[attr-defined]


def test_records_may_be_anything() -> None:
    records = [None, float("nan"), HOLE, [1], {"a": 1}, StopIteration, b"", 0]
    ds = sk.from_sequence(records).shuffle(seed=3)
    assert {id(record) for record in ds} == {id(record) for record in records}


HOLE = object()
