"""Bounds of shares against exact binomial arithmetic, and their words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import InvalidArgument
from seekable.viewer.facts.reading import from_sample, share_of


def coverage(share: float, draws: int) -> float:
    """Return how probable it is that the bounds of a sample hold the true share, by the binomial."""
    total = 0.0
    for count in range(draws + 1):
        found = share_of(count, draws)
        if found.low <= share <= found.high:
            total += math.comb(draws, count) * share**count * (1 - share) ** (draws - count)
    return total


@pytest.mark.parametrize("draws", [20, 100, 400])
def test_bounds_hold_the_true_share_about_95_times_in_100(draws: int) -> None:
    covered = [coverage(share / 50, draws) for share in range(1, 50)]
    assert sum(covered) / len(covered) > 0.945
    assert min(covered) > 0.90


@given(st.integers(1, 10_000), st.data())
def test_a_share_lies_within_its_bounds(of: int, data: st.DataObject) -> None:
    found = share_of(data.draw(st.integers(0, of)), of)
    assert 0 <= found.low <= found.share <= found.high <= 1
    mirrored = share_of(of - found.count, of)
    assert math.isclose(mirrored.low, 1 - found.high, abs_tol=1e-12)
    assert math.isclose(mirrored.high, 1 - found.low, abs_tol=1e-12)


def test_what_was_never_seen_is_at_most_3_in_n() -> None:
    assert share_of(0, 1000).high == 0.003
    assert share_of(0, 2).high == 1.0
    # The chance to miss a share of 3/n in n draws is below 5 %.
    assert all((1 - min(1.0, 3 / n)) ** n < 0.05 for n in range(1, 2000))


@pytest.mark.parametrize(
    ("count", "of", "exact", "words"),
    [
        (0, 0, False, "no rows"),
        (0, 10, True, "0 %"),
        (10, 10, True, "100 %"),
        (1, 3, True, "33 %"),
        (998, 1000, False, "99.8 % (99.3 to 99.95)"),
        (2, 1000, False, "0.2 % (0.05 to 0.7)"),
        (0, 1000, False, "0 % (at most 0.3)"),
        (1, 1_000_000_000, True, "0.0000001 %"),
    ],
)
def test_shares_in_words(count: int, of: int, exact: bool, words: str) -> None:  # noqa: FBT001 - a table
    assert share_of(count, of, exact=exact).in_words() == words


def test_an_exact_share_has_no_bounds_and_no_rows_have_no_bounds_at_all() -> None:
    assert share_of(1, 3, exact=True).document() == {
        "count": 1,
        "of": 3,
        "share": 1 / 3,
        "low": 1 / 3,
        "high": 1 / 3,
    }
    assert (share_of(0, 0).low, share_of(0, 0).high) == (0.0, 1.0)


@pytest.mark.parametrize(("count", "of"), [(2, 1), (-1, 4), (1, 0)])
def test_impossible_counts_are_refused(count: int, of: int) -> None:
    with pytest.raises(InvalidArgument):
        share_of(count, of)


def test_a_sample_of_everything_is_exact() -> None:
    assert from_sample(5, of=9, seed=3) == "from 5 of 9 rows, seed 3"
    assert from_sample(9, of=9, seed=3) == "exact, from all 9 rows"
