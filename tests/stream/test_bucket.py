"""Buckets keep their limits, lose nothing, and are of one kind in all lanes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream import model
from tests.stream.common import delivered

import seekable as sk
from seekable.stream.batch import Bucket, CostLimit


def itself(number: float) -> float:
    return number


def bucketed(costs: list[float], lanes: int = 1, **given: Any) -> sk.Stream:
    source = sk.from_sequence(costs, version=1).stream(lanes=lanes, epochs=1)
    return source.bucket(itself, **{"max_cost": 20, "seed": 3, "boundaries": [3, 6], "buffer": 10, **given})


costs_of = st.lists(st.integers(0, 30), max_size=60)
limits = st.fixed_dictionaries(
    {
        "max_cost": st.sampled_from([1, 9, 40]),
        "padded": st.booleans(),
        "quadratic": st.sampled_from([None, 3, 50]),
        "max_items": st.sampled_from([None, 1, 4]),
    }
)


@given(costs_of, st.integers(1, 4), st.integers(1, 20), limits)
def test_each_item_comes_once_and_no_batch_is_over_the_limit(
    costs: list[float], lanes: int, buffer: int, limits: dict[str, Any]
) -> None:
    stream = bucketed(costs, lanes, buffer=buffer, **limits)
    limit = CostLimit(limits["max_cost"], limits["padded"], limits["quadratic"], limits["max_items"])
    seen: list[Any] = []
    for token, batch in delivered(stream):
        seen += token
        assert batch == [costs[position] for position in token]
        assert len({sum(cost >= edge for edge in (3, 6)) for cost in batch}) == 1, "of two buckets"
        assert list(token) == sorted(token), "not in the order in which they came"
        assert len(batch) == 1 or model.spent(limit, [float(cost) for cost in batch]) <= limit.cost
        assert len(batch) <= (limit.items or len(batch))
    assert sorted(seen) == list(range(len(costs)))


@given(st.lists(st.integers(0, 9), max_size=12).map(lambda costs: [float(cost) for cost in costs]), limits)
def test_a_batch_is_as_large_as_the_limit_lets_it_be(costs: list[float], limits: dict[str, Any]) -> None:
    limit = CostLimit(limits["max_cost"], limits["padded"], limits["quadratic"], limits["max_items"])
    if costs:
        assert limit.first_of(costs) == model.batch_of(limit, costs)
    assert limit.is_full(costs) == model.is_batch(limit, costs)


def test_all_lanes_take_like_batches_at_once() -> None:
    """Where each bucket holds a batch, batch k of every lane is of one bucket."""
    rng = np.random.default_rng(2)
    stream = bucketed(
        rng.uniform(0, 10, 40_000).tolist(), 4, boundaries=None, buckets=5, buffer=2000, max_cost=30, seed=1
    )
    assert isinstance(stream.stage, Bucket)
    edges = stream.stage.boundaries
    kinds = [int(np.searchsorted(edges, batch[0], side="right")) for batch in stream.take(4 * 200)]
    rounds = np.array(kinds).reshape(-1, 4)
    assert (rounds == rounds[:, :1]).all()
    assert set(rounds[:, 0]) == {0, 1, 2, 3, 4}


def test_boundaries_are_equal_in_all_lanes_and_share_the_cost() -> None:
    rng = np.random.default_rng(3)
    costs = rng.lognormal(0, 1, 20_000).tolist()
    stream = bucketed(costs, 4, boundaries=None, buckets=8, buffer=4000)
    assert isinstance(stream.stage, Bucket)
    iterator = iter(stream)
    for _ in range(8):
        next(iterator)
    lanes = iterator.state_dict()["lanes"].values()
    (edges,) = {tuple(lane[0]["boundaries"]) for lane in lanes}
    assert edges == stream.stage.boundaries
    assert len(edges) == 7
    shares = np.bincount(np.searchsorted(edges, costs[:16_000:4], side="right"), costs[:16_000:4])
    assert np.allclose(shares / shares.sum(), 1 / 8, atol=0.01)


def test_boundaries_stay_those_of_the_state() -> None:
    """They are part of it: data that is longer now would be estimated otherwise."""
    stream = bucketed([float(cost % 17) for cost in range(200)], 2, boundaries=None, buckets=4)
    iterator = iter(stream)
    next(iterator)
    state = iterator.state_dict()
    assert {len(stages[0].get("boundaries", [])) for stages in state["lanes"].values()} == {0, 3}


def test_sums_are_the_same_in_every_python() -> None:
    """Python 3.12 sums floats more exactly than 3.11: an order that hung on that would be two orders."""
    tenths = [0.1] * 10
    limit = CostLimit(1.0, padded=False, quadratic=None, items=None)
    assert not limit.is_full(tenths)  # 0.9999999999999999, where sum() says 1.0 from 3.12 on
    assert limit.is_full([*tenths, 0.1])
    assert limit.first_of([*tenths, 0.1]) == 10


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_cost": 0}, "max_cost must be a finite number above 0"),
        ({"max_cost": float("nan")}, "max_cost"),
        ({"boundaries": [3, 2]}, "boundaries must be finite numbers that ascend"),
        ({"boundaries": [2, 2]}, "boundaries must be finite numbers that ascend"),
        ({"boundaries": [float("nan")]}, "boundaries must"),
        ({"buffer": 0}, "buffer"),
        ({"quadratic": 0}, "quadratic"),
        ({"max_items": 0}, "max_items"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_that_break_a_rule_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=told):
        bucketed([1.0], **given)


def test_an_item_that_costs_more_than_a_batch_may_is_one_of_its_own_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = sk.from_sequence([500, 100, 100, 700]).stream(epochs=1)
    batches = list(stream.bucket(float, max_cost=300, seed=0, boundaries=[200], buffer=4))
    assert sorted(batches) == [[100, 100], [500], [700]]
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "the item of token 0 costs 500"
    ]
