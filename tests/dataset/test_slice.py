"""take, skip, shard and slices are those of a list, in every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk

BOUNDS = st.none() | st.integers(-25, 25)
STEPS = st.none() | st.integers(-25, 25).filter(bool)


@given(st.integers(0, 20), BOUNDS, BOUNDS, STEPS)
def test_a_slice_is_the_slice_of_a_list(
    n: int, start: int | None, stop: int | None, step: int | None
) -> None:
    ds = numbers(n).shuffle(seed=1)
    part = ds[start:stop:step]
    for epoch in range(3):
        wanted = list(ds.epoch(epoch))[start:stop:step]
        assert list(part.epoch(epoch)) == flow(part, len(wanted), start=epoch * len(wanted)) == wanted


@given(st.integers(0, 20), st.integers(0, 25))
def test_take_and_skip_clamp(n: int, k: int) -> None:
    assert list(numbers(n).take(k)) == list(range(n))[:k]
    assert list(numbers(n).skip(k)) == list(range(n))[k:]


@given(st.integers(0, 30), st.integers(1, 12))
def test_shards_share_out_all_rows(n: int, of: int) -> None:
    shards = [list(numbers(n).shard(i, of=of)) for i in range(of)]
    assert shards == [list(range(n))[i::of] for i in range(of)]


def test_slices_of_slices() -> None:
    ds = numbers(100)[10:90:2][::-3][1:-1]
    assert list(ds) == list(range(100))[10:90:2][::-3][1:-1]


def test_epochs_pass_through() -> None:
    ds = numbers(20).shuffle(seed=1)
    assert list(ds.take(5).epoch(3)) == list(ds.epoch(3))[:5]
    assert not ds.take(5)._node.steady
    assert numbers(20).take(5)._node.steady


def test_slices_of_endless_data_count_from_its_start() -> None:
    ds = endless()
    flat = flow(ds, 200)
    assert list(ds[5:20]) == list(ds.skip(5).take(15)) == flat[5:20]
    assert list(ds[5:20:4]) == flat[5:20:4]
    assert list(ds[20:5]) == []
    assert ds[7:]._node.size is None
    assert flow(ds[7:], 30) == flat[7:37]
    assert flow(ds[7::3], 30) == flat[7:97:3]
    assert flow(ds.shard(1, of=4), 30) == flat[1:121:4]


def test_bounds_of_endless_slices_are_integers() -> None:
    assert endless()[np.int64(1) : np.int64(9)].fingerprint == endless()[1:9].fingerprint
    assert endless()[np.int64(1) :: np.int64(2)].fingerprint == endless()[1::2].fingerprint
    for rows in (slice(1.5, None), slice(1.5, None, 2), slice("a", "b"), slice(0, 9, 1.5)):
        with pytest.raises(TypeError, match="integer"):
            endless()[rows]


def test_take_cuts_epochs_from_endless_data() -> None:
    ds = endless().take(30)
    assert len(ds) == 30
    for epoch in (0, 1, 4):
        assert list(ds.epoch(epoch)) == flow(endless(), 30, start=30 * epoch)


def test_epochs_of_a_stepping_slice_of_endless_data_follow_one_another() -> None:
    ds = endless()[2:30:3]
    assert list(ds.epoch(1)) == flow(endless(), 60)[2:60:3][10:20]


@pytest.mark.parametrize("rows", [slice(-1, None), slice(None, -1), slice(None, None, -1)])
def test_slices_from_an_end_that_is_not_there_are_refused(rows: slice) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="from its start, forwards"):
        endless()[rows]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda ds: ds.take(-1), ValueError, r"n must be at least 0 \(got -1\)"),
        (lambda ds: ds.take(1.5), TypeError, r"n must be an integer \(got 1.5"),
        (lambda ds: ds.skip(-1), ValueError, r"n must be at least 0 \(got -1\)"),
        (lambda ds: ds.shard(3, of=3), ValueError, r"i must be below of=3 \(got 3\)"),
        (lambda ds: ds.shard(-1, of=3), ValueError, r"i must be at least 0 \(got -1\)"),
        (lambda ds: ds.shard(0, of=0), ValueError, r"of must be at least 1 \(got 0\)"),
        (lambda ds: ds[::0], ValueError, "the step of a slice is above or below 0"),
        (lambda _: endless()[0:5:0], ValueError, "the step of a slice is above or below 0"),
        (lambda ds: ds[1.5:], TypeError, "integers"),
    ],
    ids=range(9),
)
def test_bad_arguments_are_named(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(numbers(5))


def test_empty_slices_can_be_built_upon() -> None:
    nothing = numbers(5)[3:3]
    for ds in (nothing.shuffle(seed=1), nothing.repeat(3), nothing.batch(2), nothing[::-1], nothing.epoch(1)):
        assert (len(ds), list(ds)) == (0, [])
