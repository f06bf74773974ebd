"""Lists of records, several epochs as one, and one epoch as a dataset."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk


@given(st.integers(0, 20), st.integers(1, 7))
def test_batches_never_cross_epochs(n: int, k: int) -> None:
    ds = numbers(n).shuffle(seed=1)
    batches = ds.batch(k)
    assert len(batches) == -(-n // k)
    for epoch in range(3):
        items = list(ds.epoch(epoch))
        wanted = [items[at : at + k] for at in range(0, n, k)]
        assert flow(batches, len(batches), start=epoch * len(batches)) == wanted
        assert list(batches.epoch(epoch)) == wanted


def test_batches_of_endless_data_are_all_whole() -> None:
    flat = flow(endless(), 300)
    assert flow(endless().batch(3), 100) == [flat[at : at + 3] for at in range(0, 300, 3)]


def test_a_batch_is_a_new_list_each_time() -> None:
    ds = numbers(6).batch(3)
    ds[0].append(99)
    assert ds[0] == [0, 1, 2]


def test_batches_of_batches() -> None:
    assert list(numbers(7).batch(2).batch(2)) == [[[0, 1], [2, 3]], [[4, 5], [6]]]


@given(st.integers(0, 9), st.integers(1, 4))
def test_repeat_is_epochs_one_after_another(n: int, times: int) -> None:
    ds = numbers(n).shuffle(seed=1)
    many = ds.repeat(times)
    assert len(many) == n * times
    assert flow(many, 2 * n * times) == flow(ds, 2 * n * times)
    assert list(many.epoch(1)) == [record for e in range(times) for record in ds.epoch(times + e)]


def test_every_epoch_of_a_view_is_the_same() -> None:
    ds = numbers(9).shuffle(seed=1)
    view = ds.epoch(3)
    assert view._node.steady
    assert flow(view, 27) == flow(ds, 9, start=27) * 3
    assert list(view.epoch(5)) == list(view)


def test_a_view_of_an_epoch_can_be_shuffled_and_split() -> None:
    view = numbers(2000).shuffle(seed=1).epoch(3)
    parts = view.split({"a": 0.5, "b": 0.5}, seed=0)
    assert sorted([*parts["a"], *parts["b"]]) == list(range(2000))
    assert sorted(view.shuffle(seed=2)) == list(range(2000))


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda ds: ds.batch(0), ValueError, r"k must be at least 1 \(got 0\)"),
        (lambda ds: ds.batch("2"), TypeError, r"k must be an integer \(got '2'"),
        (lambda ds: ds.repeat(0), ValueError, r"n must be at least 1 \(got 0\)"),
        (lambda ds: ds.repeat(1.5), TypeError, r"n must be an integer"),
        (lambda ds: ds.epoch(-1), ValueError, r"epoch must be at least 0 \(got -1\)"),
        (lambda _: endless().repeat(2), TypeError, r"repeat\(\) needs a length"),
        (lambda _: endless().epoch(0), TypeError, r"epoch\(\) needs a length"),
    ],
    ids=range(7),
)
def test_bad_arguments_are_named(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        build(numbers(5))
    assert isinstance(raised.value, sk.SeekableError)


def test_positions_stay_below_64_bits() -> None:
    ds = sk.from_sequence(range(100)).shuffle(seed=1)
    with pytest.raises(sk.errors.InvalidArgument, match=r"repeat\(n\) must leave positions below 2\*\*63"):
        ds.repeat(2**60)
    with pytest.raises(sk.errors.InvalidArgument, match="epoch must lie below"):
        ds.epoch(2**60)
    with pytest.raises(sk.errors.InvalidArgument, match="epoch must lie below"):
        ds.find("<builtins.range>", 0, epoch=2**60)
    last = 2**63 // 100 - 1
    assert ds.epoch(last)[0] == ds.epoch(last)[[0]][0]


def test_a_version_is_a_string_or_an_integer() -> None:
    with pytest.raises(sk.errors.WrongType, match="version must be a string or an integer"):
        sk.from_sequence("abc", version=1.5)  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match="version must be a string or an integer"):
        sk.from_sequence("abc").map(str.upper, version=1.5)  # type: ignore[arg-type]
