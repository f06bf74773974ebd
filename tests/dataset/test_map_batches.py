"""A function of many records at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import flow, numbers

import seekable as sk


def squared(records: list[int]) -> list[int]:
    return [record * record for record in records]


@given(st.integers(0, 40), st.integers(1, 9))
def test_records_are_those_of_the_function(n: int, size: int) -> None:
    ds = numbers(n).shuffle(seed=1)
    assert flow(ds.map_batches(squared, size=size), 2 * n) == [record**2 for record in flow(ds, 2 * n)]


def test_it_is_given_at_most_as_many_records_as_asked_for() -> None:
    sizes: list[int] = []

    def measured(records: list[int]) -> list[int]:
        sizes.append(len(records))
        return records

    ds = numbers(100).map_batches(measured, size=8)
    assert flow(ds, 20) == list(range(20))
    assert max(sizes) == 8
    assert sum(sizes) == 20
    assert ds[7] == 7
    assert sizes[-1] == 1


def test_any_sequence_of_as_many_will_do() -> None:
    assert flow(numbers(4).map_batches(np.square, version=1), 4) == [0, 1, 4, 9]
    assert flow(numbers(4).map_batches(tuple), 4) == [0, 1, 2, 3]


def test_two_of_them_in_one_mixture_do_not_mix_their_records() -> None:
    a = numbers(10).map_batches(squared)
    b = numbers(10).map_batches(lambda records: [-record for record in records])
    mixed = sk.mix([a, b], weights=[1, 1], seed=1, stop="all")
    assert set(mixed) == {*squared(list(range(10))), *range(0, -10, -1)}


def test_the_size_of_a_call_changes_nothing() -> None:
    assert (
        numbers(4).map_batches(squared, size=2).fingerprint
        == numbers(4).map_batches(squared, size=3).fingerprint
    )


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (lambda records: records[:1], ValueError, "as many records as it is given, 3"),
        (lambda records: [*records, 1], ValueError, "as many records as it is given, 3"),
        (lambda _: None, TypeError, r"must return a list of records \(got NoneType\)"),
        (iter, TypeError, "must return a list of records"),
        (dict.fromkeys, ValueError, "dict"),
    ],
    ids=["fewer", "more", "none", "iterator", "dict"],
)
def test_a_function_that_returns_something_else_is_an_error(
    fn: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        numbers(9).map_batches(fn)[[1, 2, 3]]
    assert isinstance(raised.value, sk.SeekableError)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fn": squared, "size": 0}, ValueError, r"size must be at least 1 \(got 0\)"),
        ({"fn": 3}, TypeError, r"function.*\(got 3"),
        ({"fn": [].append}, ValueError, "version="),
    ],
    ids=["size", "no function", "no name"],
)
def test_bad_arguments_are_named(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numbers(3).map_batches(**arguments)
