"""Megatron's blends: recorded draws, the loop that it runs, splits and numbers of samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.packing.order import megatron_order
from seekable.packing.order.megatron_order import (
    blend_exhaustively,
    blend_weighted,
    normalized,
    split_bounds,
    wanted_samples,
)


def looped(weights: list[float], size: int, limits: list[int] | None = None) -> list[tuple[int, int]]:
    counts = [0] * len(weights)
    drawn = []
    for draw in range(size):
        errors = [
            weight * max(float(draw), 1.0) - float(count)
            if limits is None or count < limits[source]
            else -np.inf
            for source, (weight, count) in enumerate(zip(weights, counts, strict=True))
        ]
        source = errors.index(max(errors))
        drawn.append((source, counts[source]))
        counts[source] += 1
    return drawn


def pairs(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    sources, samples = found
    assert sources.dtype == np.int16
    assert samples.dtype == np.int64
    return list(zip(sources.tolist(), samples.tolist(), strict=True))


def test_the_first_draws_are_the_recorded_ones() -> None:
    assert blend_weighted([0.7, 0.3], 12)[0].tolist() == [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    # Equal weights are ties everywhere.
    assert blend_weighted([1 / 3] * 3, 9)[0].tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2]


@given(st.lists(st.integers(1, 9) | st.floats(0.001, 5), min_size=1, max_size=8), st.integers(0, 3000))
def test_a_blend_is_that_of_the_loop(weights: list[float], size: int) -> None:
    shares = normalized(weights)
    assert pairs(blend_weighted(shares, size)) == looped(shares, size)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_an_exhaustive_blend_is_that_of_the_loop(sizes: list[int]) -> None:
    shares = [size / float(sum(sizes)) for size in sizes]
    found = blend_exhaustively(sizes)
    assert pairs(found) == looped(shares, sum(sizes), sizes)
    assert np.bincount(found[0]).tolist() == sizes


@pytest.mark.parametrize("shortest", [1, 3])
def test_stretches_that_began_wrong_are_walked_again(shortest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(megatron_order, "_SHORTEST", shortest)
    rng = np.random.default_rng(4)
    for _ in range(10):
        shares = normalized((rng.random(6) ** 3).tolist())
        assert pairs(blend_weighted(shares, 500)) == looped(shares, 500)
    # Shares that do not add up to 1 make every guess wrong.
    assert pairs(blend_weighted([0.5, 0.1], 300)) == looped([0.5, 0.1], 300)


def test_splits_round_to_even() -> None:
    assert split_bounds([969, 30, 1], 1000) == [(0, 969), (969, 999), (999, 1000)]
    assert split_bounds([1, 1, 0], 5) == [(0, 2), (2, 5), (0, 0)]  # 2.5 is rounded to 2
    assert split_bounds([1, 1, 0], 7) == [(0, 4), (4, 7), (0, 0)]  # 3.5 is rounded to 4
    assert split_bounds([100, 0, 0], 7) == [(0, 7), (0, 0), (0, 0)]


def test_samples_are_rounded_up_twice() -> None:
    assert [wanted_samples(share, 10) for share in (0.25, 0.75)] == [3, 8]
    assert [wanted_samples(share, 10, 0.005) for share in (0.25, 0.75)] == [4, 9]
    assert wanted_samples(0.5, 0, 0.005) == 0
