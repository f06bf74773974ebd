"""The order of mixtures, against a model that draws one record after another."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.order import models

from seekable.order.apportionment import whole_weights
from seekable.order.mixture import BLOCK, Mixture, epoch_length

LANES = st.one_of(st.just(1), st.integers(1, 8))
WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any)
KEYS = st.integers(0, 2**64 - 1)
LENGTHS = st.sampled_from([None, 250, 700])


@st.composite
def lengths_and_weights(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    weights = draw(WEIGHTS)
    lengths = draw(st.lists(st.integers(1, 60), min_size=len(weights), max_size=len(weights)))
    return weights, lengths


@st.composite
def schedules(draw: st.DrawFn) -> tuple[tuple[int, tuple[int, ...]], ...]:
    sources = draw(st.integers(1, 4))
    starts = sorted(draw(st.sets(st.integers(1, 500), max_size=3)))
    one = st.lists(st.integers(0, 5), min_size=sources, max_size=sources).filter(any)
    return tuple((start, tuple(draw(one))) for start in [0, *starts])


def route(mixture: Mixture, start: int, stop: int) -> list[tuple[int, int]]:
    labels, rows = mixture.route(np.arange(start, stop))
    return list(zip(labels.tolist(), rows.tolist(), strict=True))


@given(lengths_and_weights(), LANES, st.sampled_from(["first", "all"]))
def test_an_epoch_ends_with_the_limiting_source(
    case: tuple[list[int], list[int]], lanes: int, stop: str
) -> None:
    weights, lengths = case
    longest = stop == "all"
    length = epoch_length(weights, lengths, lanes=lanes, longest=longest)
    assert length == models.length_of(weights, lengths, lanes=lanes, longest=longest)
    drawn = [Mixture(((0, tuple(weights)),), 1, length, lanes).drawn_an_epoch(i) for i in range(len(weights))]
    assert sum(drawn) == length
    limits = [drawn[i] / lengths[i] for i, weight in enumerate(weights) if weight]
    assert (min(limits) if longest else max(limits)) == 1


@given(WEIGHTS, st.integers(1, 400), LANES, KEYS)
def test_every_position_is_routed_as_the_model_routes_it(
    weights: list[int], length: int, lanes: int, key: int
) -> None:
    schedule = ((0, tuple(weights)),)
    mixture = Mixture(schedule=schedule, key=key, length=length, lanes=lanes)
    assert route(mixture, 0, 3 * length) == models.routed(
        schedule, key=key, length=length, lanes=lanes, epochs=3
    )


@given(schedules(), LANES, KEYS)
def test_a_schedule_is_routed_as_the_model_routes_it(
    schedule: tuple[tuple[int, tuple[int, ...]], ...], lanes: int, key: int
) -> None:
    mixture = Mixture(schedule=schedule, key=key, length=None, lanes=lanes)
    # As many draws as leave every block of the last segment whole.
    last = -(-schedule[-1][0] // lanes)
    length = (last + 3 * BLOCK) * lanes
    assert route(mixture, 0, length) == models.routed(schedule, key=key, length=length, lanes=lanes)


@given(schedules(), LANES, KEYS, st.lists(st.integers(0, 2000), min_size=1, max_size=20), LENGTHS)
def test_positions_are_routed_alike_in_any_order_and_alone(
    schedule: tuple[tuple[int, tuple[int, ...]], ...],
    lanes: int,
    key: int,
    positions: list[int],
    length: int | None,
) -> None:
    if length:
        schedule = schedule[:1]
    mixture = Mixture(schedule=schedule, key=key, length=length, lanes=lanes)
    everything = route(mixture, 0, 2001 + 150 * lanes)
    labels, rows = mixture.route(np.array(positions))
    assert list(zip(labels.tolist(), rows.tolist(), strict=True)) == [everything[p] for p in positions]
    assert [mixture.route_one(p) for p in positions] == [everything[p] for p in positions]
    for position in positions if length is None else ():
        draw, lane = divmod(position, lanes)
        labels, numbers = mixture.drawn(lane, draw, 1 + position % 150)
        found = list(zip(labels.tolist(), (numbers * lanes + lane).tolist(), strict=True))
        assert found == everything[position::lanes][: len(found)] == found[: 1 + position % 150]


@given(schedules(), LANES, KEYS, LENGTHS)
def test_what_is_routed_is_found_again(
    schedule: tuple[tuple[int, tuple[int, ...]], ...], lanes: int, key: int, length: int | None
) -> None:
    if length:
        schedule = schedule[:1]
    mixture = Mixture(schedule=schedule, key=key, length=length, lanes=lanes)
    labels, rows = mixture.route(np.arange(900))
    for source in range(len(schedule[0][1])):
        places = np.flatnonzero(labels == source)
        assert (mixture.unroute(source, rows[places]) == places).all()
        assert np.unique(rows[places]).size == places.size


@given(WEIGHTS, st.integers(1, 300), LANES, KEYS)
def test_rows_that_no_epoch_draws_are_not_found(
    weights: list[int], length: int, lanes: int, key: int
) -> None:
    mixture = Mixture(schedule=((0, tuple(weights)),), key=key, length=length, lanes=lanes)
    labels, rows = mixture.route(np.arange(2 * length))
    for source in range(len(weights)):
        own = rows[labels == source]
        asked = np.arange(2 * mixture.drawn_an_epoch(source))
        found = mixture.unroute(source, asked)
        assert sorted(own.tolist()) == asked.tolist()
        assert np.sort(found).tolist() == np.flatnonzero(labels == source).tolist()
        if not mixture.drawn_an_epoch(source):
            assert mixture.unroute(source, np.arange(5)).size == 0


@given(schedules(), LANES, KEYS, st.integers(0, 900), st.integers(0, 300), LENGTHS)
def test_a_span_holds_all_that_is_drawn(
    schedule: tuple[tuple[int, tuple[int, ...]], ...],
    lanes: int,
    key: int,
    start: int,
    more: int,
    length: int | None,
) -> None:
    if length:
        schedule = schedule[:1]
    mixture = Mixture(schedule=schedule, key=key, length=length, lanes=lanes)
    labels, rows = mixture.route(np.arange(start, start + more))
    for source in range(len(schedule[0][1])):
        first, last = mixture.span(source, start, start + more)
        own = rows[labels == source]
        assert last is not None
        assert ((own >= first) & (own < last)).all()
        # With one lane it holds nothing else, so that what comes later does not count.
        if lanes == 1:
            assert last - first == own.size


@given(WEIGHTS, st.integers(65, 600), LANES, KEYS)
def test_each_lane_takes_a_source_strictly_in_its_order(
    weights: list[int], length: int, lanes: int, key: int
) -> None:
    mixture = Mixture(schedule=((0, tuple(weights)),), key=key, length=length, lanes=lanes)
    positions = np.arange(2 * length)
    labels, rows = mixture.route(positions)
    for lane in range(lanes):
        for source in range(len(weights)):
            own = rows[(positions % length % lanes == lane) & (labels == source)]
            assert (np.diff(own) > 0).all()


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize(
    "weights",
    [[7, 3], [1, 1, 1], whole_weights([1, 1e-6, 0.5]), [*range(1, 30)]],
    ids=["two", "three", "small", "many"],
)
def test_delivered_shares_are_even_at_block_ends_and_within_a_block_between(
    weights: list[int], lanes: int
) -> None:
    mixture = Mixture(schedule=((0, tuple(weights)),), key=9, length=None, lanes=lanes)
    draws = 40 * BLOCK
    labels, _ = mixture.route(np.arange(draws * lanes))
    total = sum(weights)
    after = np.arange(1, draws + 1)
    for lane in range(lanes):
        for source, weight in enumerate(weights):
            delivered = np.cumsum(labels[lane::lanes] == source)
            off = np.abs(delivered * total - weight * after)
            assert (off[BLOCK - 1 :: BLOCK] < 2 * total).all()
            assert (off < (2 + BLOCK) * total).all()


def test_blocks_are_mixed_and_each_in_its_own_way() -> None:
    mixture = Mixture(schedule=((0, (1, 1)),), key=5, length=100 * BLOCK, lanes=2)
    labels, _ = mixture.route(np.arange(200 * BLOCK))
    seen = Counter(
        tuple(labels[first + lane : first + 2 * BLOCK : 2].tolist())
        for first in range(0, labels.size, 2 * BLOCK)
        for lane in (0, 1)
    )
    # 200 blocks of two lanes and two epochs, none like another.
    assert len(seen) == 200


def test_the_limiting_source_stays_aligned_for_ever() -> None:
    weights, lengths = [7, 2, 1], [700, 900, 5000]
    length = epoch_length(weights, lengths, lanes=1, longest=False)
    mixture = Mixture(schedule=((0, tuple(weights)),), key=3, length=length)
    for epoch in (0, 1, 1000, 10**9):
        labels, rows = mixture.route(np.arange(epoch * length, (epoch + 1) * length))
        assert rows[labels == 0].tolist() == list(range(epoch * 700, (epoch + 1) * 700))
