"""Counts of a tree of rounded splits: near the shares at every draw, and invertible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.order.models import sources, tree, whose

from seekable.order.apportionment import Apportionment, whole_weights

WEIGHTS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 10**8)), min_size=1, max_size=12).filter(any)

RNG = np.random.default_rng(0)
HARD: dict[str, list[float]] = {
    "nested floors drift by 1.7": [1, 1e-6, 0.5],
    "nested floors drift by 6": [1.03**-i for i in range(500)],
    "nested floors drift by 10": RNG.dirichlet(np.full(50, 0.3)).clip(1e-6).tolist(),
    "one large": [1e6, 1, 1, 1],
    "equal": [1] * 37,
}


@given(WEIGHTS)
def test_every_draw_is_the_one_that_the_model_makes(weights: list[int]) -> None:
    shares, root = Apportionment(tuple(weights)), tree(weights)
    labels, numbers = shares.draw(np.arange(300))
    assert [part.size for part in shares.draw(np.arange(0))] == [0, 0]
    assert list(zip(labels.tolist(), numbers.tolist(), strict=True)) == [whose(root, v) for v in range(300)]


@given(WEIGHTS, st.integers(0, 2**45))
def test_counts_are_what_was_drawn(weights: list[int], start: int) -> None:
    shares = Apportionment(tuple(weights))
    draws = np.arange(start, start + 200)
    labels, numbers = shares.draw(draws)
    assert not any(weights[label] == 0 for label in labels)
    for source in range(len(weights)):
        if not weights[source]:
            continue
        counts = shares.count(source, np.append(draws, start + 200))
        own = labels == source
        assert (np.diff(counts) == own).all()
        assert (counts[:-1][own] == numbers[own]).all()
        assert shares.count(source, start) == counts[0]
        assert (shares.when(source, numbers[own]) == draws[own]).all()
        assert [shares.when(source, int(number)) for number in numbers[own][:3]] == draws[own][:3].tolist()


@given(WEIGHTS)
def test_counts_are_within_2_of_the_shares_at_every_draw(weights: list[int]) -> None:
    assert_within_2(weights, draws=1000)


@pytest.mark.parametrize("weights", HARD.values(), ids=HARD.keys())
def test_counts_are_within_2_where_nested_rounding_drifts(weights: list[float]) -> None:
    assert_within_2(whole_weights(weights), draws=20_000)


def assert_within_2(weights: list[int], *, draws: int) -> None:
    shares, total = Apportionment(tuple(weights)), sum(weights)
    v = np.arange(draws + 1)
    together = np.zeros_like(v)
    for source, weight in enumerate(weights):
        if weight:
            counts = shares.count(source, v)
            assert (np.abs(counts * total - weight * v) < 2 * total).all()
            together += counts
    assert (together == v).all()


def test_large_totals_do_not_overflow() -> None:
    weights = whole_weights([2**31 - 3, 2, 1])
    shares, root = Apportionment(tuple(weights)), tree(weights)
    far = 10**15
    assert whose(root, far) == tuple(int(a[0]) for a in shares.draw(np.array([far])))
    for source in range(3):
        count = shares.count(source, far)
        assert abs(count * sum(weights) - weights[source] * far) < 2 * sum(weights)
        when = int(shares.when(source, count))
        assert when >= far
        assert whose(root, when) == (source, count)


@given(WEIGHTS, st.integers(0, 2**40), st.integers(0, 1500))
def test_a_run_of_draws_is_shared_out_without_gaps(weights: list[int], start: int, more: int) -> None:
    shares = Apportionment(tuple(weights))
    place = 0
    for source in sources(tree(weights)):
        before, first, last = shares.run(source, start, start + more)
        assert (before, last - first) == (
            shares.count(source, start),
            shares.count(source, start + more) - before,
        )
        assert first == place
        runs = shares.run(source, np.array([start, 5]), np.array([start + more, 5]))
        assert [int(edges[0]) for edges in runs] == [before, first, last]
        place = last
    assert place == more


@given(
    st.lists(st.integers(0, 2**48), min_size=1, max_size=4).filter(any),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_arrays_are_exact_for_weights_whose_products_overflow(weights: list[int], at: list[float]) -> None:
    """Python's integers have no end, so the form without arrays is exact."""
    shares, total = Apportionment(tuple(weights)), sum(weights)
    draws = [int(place * total) for place in at] + [total]
    for source, weight in enumerate(weights):
        if weight:
            counts = [shares.count(source, draw) for draw in draws]
            assert counts[-1] == weight
            assert shares.count(source, np.array(draws)).tolist() == counts
            numbers = [int(place * (weight - 1)) for place in at]
            whens = [shares.when(source, number) for number in numbers]
            assert shares.when(source, np.array(numbers)).tolist() == whens
            assert [shares.count(source, when) for when in whens] == numbers
