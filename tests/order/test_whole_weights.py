"""Weights become integers in their exact ratio, or as near as 2**31 units allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.order.apportionment import LARGEST_TOTAL, apportion, whole_weights

if TYPE_CHECKING:
    from fractions import Fraction


def largest_remainder(shares: list[Fraction], total: int) -> list[int]:
    """Hand out units one by one: floors first, then the largest remainder that is still without one."""
    exact = [share * total / sum(shares) for share in shares]
    counts = [math.floor(share) for share in exact]
    waiting = list(range(len(shares)))
    while sum(counts) < total:
        best = max(waiting, key=lambda i: (exact[i] - math.floor(exact[i]), -i))
        waiting.remove(best)
        counts[best] += 1
    return counts


SHARES = st.lists(st.fractions(0, 10, max_denominator=50), min_size=1, max_size=8).filter(any)


@given(SHARES, st.integers(0, 1000))
def test_units_go_to_the_largest_remainders(shares: list[Fraction], total: int) -> None:
    counts = apportion(shares, total)
    assert counts == largest_remainder(shares, total)
    assert sum(counts) == total


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any))
def test_integers_keep_their_ratio_without_a_common_factor(weights: list[int]) -> None:
    whole = whole_weights(weights)
    assert math.gcd(*whole) == 1
    assert all(a * sum(weights) == b * sum(whole) for a, b in zip(whole, weights, strict=True))


@given(st.lists(st.integers(0, 999), min_size=1, max_size=5).filter(any))
def test_a_float_counts_as_the_decimal_it_prints_as(thousandths: list[int]) -> None:
    assert whole_weights([t / 1000 for t in thousandths]) == whole_weights(thousandths)


@given(st.lists(st.floats(1e-4, 1e3), min_size=1, max_size=20))
def test_what_does_not_fit_is_rounded_to_the_largest_total(weights: list[float]) -> None:
    whole = whole_weights(weights)
    assert sum(whole) <= LARGEST_TOTAL
    for got, weight in zip(whole, weights, strict=True):
        assert abs(got / sum(whole) - weight / math.fsum(weights)) <= 1.01 / sum(whole) + 1e-15


@pytest.mark.parametrize(
    ("weights", "same"),
    [([0.7, 0.3], [7, 3]), ([70, 30], [7, 3]), ([0.1, 0.2], [1, 2]), ([2, 0, 4], [1, 0, 2]), ([5], [1])],
)
def test_equal_ratios_are_the_same_weights(weights: list[float], same: list[int]) -> None:
    assert whole_weights(weights) == same


def test_numpy_numbers_are_weights_too() -> None:
    assert whole_weights([np.float64(0.7), np.float64(0.3)]) == [7, 3]
    assert whole_weights(list(np.array([4, 6]))) == [2, 3]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1], r"at least 0 \(got -1\)"),
        ([1, math.nan], r"finite.*\(got nan\)"),
        ([math.inf, 1], r"finite.*\(got inf\)"),
        ([0, 0.0], r"positive sum \(got \[0, 0.0\]\)"),
        ([1, 1e-12], r"at least 2\*\*-31 .*\(got 1e-12"),
        ([10**400, 1], "finite"),
    ],
)
def test_what_is_no_weight_is_refused(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        whole_weights(weights)
