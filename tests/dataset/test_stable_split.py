"""Stable parts: they share out all rows, and no appended record moves a row across."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import numbers, rows_of
from tests.dataset.common import split_of as any_split_of
from tests.dataset.shares import TENTHS

import seekable as sk


def split_of(n: int, shares: list[float], seed: int = 0) -> list[sk.Dataset]:
    return any_split_of(n, shares, seed, stable=True)


@given(st.integers(0, 3000), st.integers(0, 1500), TENTHS)
def test_appended_rows_never_move_an_old_one(n: int, more: int, shares: list[float]) -> None:
    for parts in zip(split_of(n, shares), split_of(n + more, shares), strict=True):
        before, after = map(rows_of, parts)
        assert np.array_equal(before, after[after < n])
        assert np.array_equal(before, after[: len(before)])


@given(st.integers(0, 5), TENTHS)
def test_whole_blocks_hold_each_share_to_the_row(blocks: int, shares: list[float]) -> None:
    parts = split_of(1000 * blocks, shares)
    for part, share in zip(parts, shares, strict=True):
        assert abs(len(part) - 1000 * blocks * share) <= blocks
    if blocks:
        for part in parts:
            inside = np.bincount(rows_of(part) // 1000, minlength=blocks)
            assert len({*inside.tolist()}) == 1


def test_shares_are_dealt_by_largest_remainder() -> None:
    assert [len(part) for part in split_of(1000, [1 / 3, 1 / 3, 1 / 3])] == [334, 333, 333]
    assert [len(part) for part in split_of(1000, [0.9985, 0.0015])] == [999, 1]
    assert [len(part) for part in split_of(1000, [1.0, 0.0])] == [1000, 0]


def test_the_name_of_a_part_changes_nothing() -> None:
    one, other = (numbers(10).split({name: 1.0}, seed=0, stable=True)[name] for name in "ab")
    assert one.fingerprint == other.fingerprint


def test_sizes_are_near_the_shares_at_any_length() -> None:
    """The tolerance that the documentation names: five standard deviations of a short block."""
    for n in (10, 999, 1001, 12_345):
        for part, share in zip(split_of(n, [0.9, 0.1]), (0.9, 0.1), strict=True):
            assert abs(len(part) - n * share) <= 48


@pytest.mark.parametrize("shares", [{"a": 500}, {"a": 5, "b": None}, {"a": 0, "b": 0}], ids=str)
def test_numbers_of_rows_are_refused(shares: dict[str, Any]) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"split\(stable=True\) takes shares that sum to 1"):
        numbers(1000).split(shares, seed=0, stable=True)


def test_what_shows_it_says_that_it_is_stable() -> None:
    assert ".split(..., seed=0, stable=True)['0']" in repr(split_of(10, [1.0])[0])
