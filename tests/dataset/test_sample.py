"""A sample: distinct rows, ascending, the same for ever, and each row as likely."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers
from tests.thrift import some

import seekable as sk
from seekable.nodes.select import Sample


@given(size=st.integers(0, 300), share=st.floats(0, 1), seed=st.integers(0, 2**64 - 1))
def test_rows_are_distinct_and_ascending(size: int, share: float, seed: int) -> None:
    n = int(size * share)
    ds = numbers(size).sample(n, seed=seed)
    rows = list(ds)
    assert len(ds) == n == len(set(rows))
    assert rows == sorted(rows)
    assert set(rows) <= set(range(size))
    assert [ds[i] for i in range(n)] == rows
    assert flow(ds, 2 * n) == rows * 2
    for row in range(size):
        assert ds.find("<builtins.range>", row, epoch=1) == ([n + rows.index(row)] if row in rows else [])
    assert ds._node.steady
    assert list(pickle.loads(pickle.dumps(ds))) == rows


def test_golden() -> None:
    """CHANGING ONE IS A BREAKING CHANGE: see tests/dataset/test_golden.py."""
    ds = numbers(1000, "big").sample(8, seed=7)
    assert list(ds) == [44, 195, 325, 337, 515, 550, 552, 850]
    assert list(numbers(10**12, "far").sample(3, seed=2**64 - 1)) == [
        381214571988,
        555298061299,
        903978584807,
    ]
    assert ds.fingerprint == "xxh3:c733fe482ee48d385dbe5061a7612da4"


def test_each_row_is_as_likely() -> None:
    seeds, pairs = some(2000, of=4), np.zeros((20, 20))
    for seed in range(seeds):
        rows = list(numbers(20).sample(5, seed=seed))
        pairs[np.ix_(rows, rows)] += 1
    for found, share in ((np.diag(pairs), 5 / 20), (pairs[~np.eye(20, dtype=bool)], 5 * 4 / (20 * 19))):
        deviation = (seeds * share * (1 - share)) ** 0.5
        assert abs(found - seeds * share).max() < 5 * deviation


def test_blocks_are_the_childs_with_the_rows_of_each() -> None:
    child = sk.concat([numbers(3000, "a"), numbers(700, "b")])
    ds = child.sample(500, seed=1)
    assert isinstance(ds._node, Sample)
    rows = np.array(list(ds))
    rows[len([r for r in ds._node.chosen if r < 3000]) :] += 3000
    assert ds._node.blocks.tolist() == np.unique(np.searchsorted(rows, child._node.blocks)).tolist()


def test_bad_arguments_are_named() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"there are 9 records \(got n=10\)"):
        numbers(9).sample(10, seed=1)
    with pytest.raises(sk.errors.InvalidArgument, match="n must be at least 0"):
        numbers(9).sample(-1, seed=1)
    with pytest.raises(sk.errors.InvalidArgument, match="seed must be"):
        numbers(9).sample(1, seed=2**64)
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        numbers(9).shuffle(seed=1).sample(1, seed=1)
    with pytest.raises(sk.errors.EndlessDataset):
        endless().sample(3, seed=1)


def test_a_fraction_is_a_rounded_number_of_rows() -> None:
    ds = numbers(25)
    for fraction, n in ((0, 0), (0.1, 2), (0.3, 8), (0.5, 12), (0.29, 7), (1, 25), (1.0, 25)):
        assert ds.sample(fraction=fraction, seed=3).fingerprint == ds.sample(n, seed=3).fingerprint
    assert len(numbers(0).sample(fraction=0.5, seed=1)) == 0
    assert len(numbers(10**12).sample(fraction=1e-11, seed=1)) == 10


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, r"either n or fraction= \(got n=None, fraction=None\)"),
        ({"n": 3, "fraction": 0.5}, ValueError, r"either n or fraction= \(got n=3, fraction=0.5\)"),
        ({"fraction": 1.5}, ValueError, r"fraction must be from 0 to 1 \(got 1.5\)"),
        ({"fraction": -0.1}, ValueError, "fraction must be from 0 to 1"),
        ({"fraction": float("nan")}, ValueError, "fraction must be from 0 to 1"),
        ({"fraction": "0.5"}, TypeError, "fraction must be a number from 0 to 1"),
        ({"fraction": True}, TypeError, "fraction must be a number from 0 to 1"),
    ],
    ids=str,
)
def test_bad_numbers_and_fractions_are_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        numbers(10).sample(**arguments, seed=0)
    assert isinstance(raised.value, sk.SeekableError)


def test_a_fraction_of_endless_data_is_refused() -> None:
    with pytest.raises(sk.errors.EndlessDataset, match=r"sample\(fraction=\) needs a length"):
        endless().sample(fraction=0.5, seed=1)
