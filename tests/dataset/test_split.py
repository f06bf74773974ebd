"""Parts of exact sizes that share out all rows."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers, rows_of, split_of
from tests.dataset.shares import TENTHS

import seekable as sk


@pytest.mark.parametrize("stable", [False, True])
@given(n=st.integers(0, 3500), shares=TENTHS, seed=st.integers(0, 2**64 - 1))
def test_parts_share_out_all_rows_in_ascending_order(
    n: int, shares: list[float], seed: int, *, stable: bool
) -> None:
    parts = [rows_of(part) for part in split_of(n, shares, seed, stable=stable)]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    for part in parts:
        assert np.all(np.diff(part) > 0)


@given(st.integers(0, 3500), TENTHS)
def test_sizes_are_exact_by_largest_remainder(n: int, shares: list[float]) -> None:
    sizes = [len(part) for part in split_of(n, shares)]
    exact = [Fraction(repr(share)) for share in shares]
    exact = [n * share / sum(exact) for share in exact]
    assert sum(sizes) == n
    assert all(
        math.floor(share) <= size <= math.ceil(share) for size, share in zip(sizes, exact, strict=True)
    )
    rounded_up = [share % 1 for size, share in zip(sizes, exact, strict=True) if size > share]
    rounded_down = [share % 1 for size, share in zip(sizes, exact, strict=True) if size < share]
    assert not rounded_up or not rounded_down or min(rounded_up) >= max(rounded_down)


def test_shares_are_rounded_by_largest_remainder() -> None:
    assert [len(part) for part in split_of(10, [0.9, 0.1])] == [9, 1]
    assert [len(part) for part in split_of(1000, [1 / 3, 1 / 3, 1 / 3])] == [334, 333, 333]
    assert [len(part) for part in split_of(1001, [0.9985, 0.0015])] == [999, 2]
    assert [len(part) for part in split_of(3, [0.5, 0.5])] == [2, 1]
    assert [len(part) for part in split_of(1000, [1.0, 0.0])] == [1000, 0]
    assert [len(part) for part in split_of(0, [0.5, 0.5])] == [0, 0]


@given(st.integers(1, 3500), TENTHS)
def test_each_block_has_about_each_share(n: int, shares: list[float]) -> None:
    for part, share in zip(split_of(n, shares), shares, strict=True):
        inside = np.bincount(rows_of(part) // 1000, minlength=n // 1000)[: n // 1000]
        assert np.all(np.abs(inside - 1000 * share) < 4 + 1000 / n)


@given(st.data())
def test_parts_of_given_numbers_of_rows(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 2500))
    first = data.draw(st.integers(0, n))
    second = data.draw(st.integers(0, n - first))
    if first + second == 1:
        return  # these are shares
    parts = numbers(n).split({"a": first, "b": second}, seed=3)
    rest = n - first - second
    sizes = {name: len(part) for name, part in parts.items()}
    assert sizes.pop(None, 0) == rest
    assert sizes == {"a": first, "b": second}
    assert sorted(row for part in parts.values() for row in part) == list(range(n))
    named = numbers(n).split({"a": first, "rest": None, "b": second}, seed=3)
    assert {name: len(part) for name, part in named.items()} == {"a": first, "rest": rest, "b": second}


def test_what_is_a_share_and_what_a_number_of_rows() -> None:
    ds = numbers(10)

    def sizes(**parts: Any) -> list[int]:
        return [len(part) for part in ds.split(parts, seed=0).values()]

    assert sizes(a=1) == sizes(a=1, b=0)[:1] == [10]
    assert sizes(a=1.0, b=None) == [10, 0]
    assert sizes(a=1, b=None) == [1, 9]
    assert sizes(a=0.25, b=None) == [3, 7]
    assert sizes(a=None) == sizes(a=10) == [10]
    assert sizes(a=np.int64(4), b=np.uint8(6)) == [4, 6]
    assert sizes(a=Fraction(1, 2), b=Decimal("0.5")) == [5, 5]
    assert list(ds.split({"a": 0, "b": 0}, seed=0)) == ["a", "b", None]


def test_the_last_rows_of_a_long_dataset_are_found() -> None:
    """Sizes from 2**31 on have products that no 64-bit integer holds."""
    parts = numbers(10**13).split({"a": 0.3, "b": 0.7}, seed=1)
    places = [0, 1, 10**9, 10**12]
    for part in parts.values():
        rows = part[places]
        assert rows == [part[place] for place in places]
        assert [part.find("<builtins.range>", row) for row in rows] == [[place] for place in places]
        assert part[-1] > 10**13 - 1000
    assert sum(map(len, parts.values())) == 10**13


@pytest.mark.parametrize("stable", [False, True])
def test_blocks_are_dealt_differently(*, stable: bool) -> None:
    """A part that took the same rows of every block would follow any rhythm of the data."""
    part = rows_of(split_of(50_000, [0.1, 0.9], stable=stable)[0])
    blocks = [tuple(part[part // 1000 == block] % 1000) for block in range(50)]
    assert len(set(blocks)) > 40
    # Each row of a block is taken in 50 * 0.1 blocks on average; 17 is beyond five standard deviations.
    assert np.bincount(part % 1000).max() <= 17


@pytest.mark.parametrize("stable", [False, True])
def test_seeds_deal_differently(*, stable: bool) -> None:
    parts = {
        tuple(rows_of(split_of(2000, [0.5, 0.5], seed, stable=stable)[0]))
        for seed in (0, 1, 2**32 + 1, 2**64 - 1)
    }
    assert len(parts) == 4


def test_neighbouring_blocks_and_rows_are_dealt_independently() -> None:
    """Of 100,000 pairs of neighbours a quarter is all in one half, to five standard deviations."""
    chosen = np.zeros(100_001, dtype=bool)
    chosen[rows_of(split_of(100_001, [0.5, 0.5])[0])] = True
    for distance in (1, 1000):
        pairs = np.count_nonzero(chosen[:99_000] & chosen[distance:][:99_000])
        assert abs(pairs - 99_000 / 4) < 5 * math.sqrt(99_000 * 3 / 16)


def test_the_name_of_a_part_changes_nothing() -> None:
    one, other = numbers(10).split({"a": 1.0}, seed=0)["a"], numbers(10).split({"b": 1.0}, seed=0)["b"]
    assert one.fingerprint == other.fingerprint


def test_parts_are_steady_and_have_epochs() -> None:
    part = split_of(2500, [0.3, 0.7])[0]
    assert part._node.steady
    assert flow(part, 3 * len(part)) == list(part) * 3
    assert sorted(part.shuffle(seed=1)) == list(part)


@pytest.mark.parametrize("stable", [False, True])
def test_rows_of_other_parts_are_not_found(*, stable: bool) -> None:
    one, other = split_of(2500, [0.3, 0.7], stable=stable)
    for i, row in enumerate(one):
        if i % 50 == 0:
            assert one.find("<builtins.range>", row, epoch=1) == [len(one) + i]
            assert other.find("<builtins.range>", row) == []


@pytest.mark.parametrize(
    ("shares", "error", "message"),
    [
        ({}, ValueError, r"shares must name at least one part \(got none\)"),
        ({"a": 0.5}, ValueError, r"shares must sum to 1 \(got .*sum to 0.5\)"),
        ({"a": 1.5, "b": -0.5}, ValueError, r"a share must be from 0 to 1 \(got 1.5 for 'a'\)"),
        ({"a": math.nan, "b": 1}, ValueError, r"a share must be from 0 to 1 \(got nan for 'a'\)"),
        ([0.5, 0.5], TypeError, "shares"),
        ({"a": "x"}, TypeError, "share"),
        ({"a": None, "b": None}, ValueError, r"one part at most gets the rest, by None"),
        ({"a": 0.9, "b": 0.2, "c": None}, ValueError, r"shares must sum to 1 \(got .*sum to 1.1"),
        ({"a": 500, "b": 0.5}, ValueError, r"from 0 to 1 \(got 500 for 'a'\); numbers of rows are integers"),
        ({"a": 6, "b": 5}, ValueError, r"there are 10 records, and the parts take 11"),
        ({"a": -1, "b": 11}, ValueError, r"a number of rows must be at least 0 \(got -1 for 'a'\)"),
        ({"a": 2, "b": -1}, ValueError, r"a number of rows must be at least 0 \(got -1 for 'b'\)"),
    ],
    ids=str,
)
def test_bad_shares_are_named(shares: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        numbers(10).split(shares, seed=0)
    assert isinstance(raised.value, sk.SeekableError)


@pytest.mark.parametrize(
    "dataset",
    [
        numbers(10).shuffle(seed=1),
        sk.mix([numbers(10)], weights=[1], seed=1),
        numbers(10).map(lambda record, rng: (record, rng.random()), rng=True, seed=1),
        sk.concat([numbers(10), numbers(10).shuffle(seed=1)]),
    ],
    ids=["shuffle", "mix", "map with rng", "one part of a concat"],
)
def test_rows_that_change_from_epoch_to_epoch_are_refused(dataset: sk.Dataset) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        dataset.split({"a": 1}, seed=0)


def test_endless_data_is_refused() -> None:
    with pytest.raises(sk.errors.EndlessDataset, match=r"split\(\) needs a length"):
        endless().split({"a": 1}, seed=0)
