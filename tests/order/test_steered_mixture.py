"""The order of mixtures that were cut, against a model that counts draw by draw."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.order import models

from seekable.order.keys import derive, kind_key
from seekable.order.mixture import BLOCK, Mixture
from seekable.order.steered_mixture import SteeredMixture

LANES = st.one_of(st.just(1), st.integers(1, 8))
KEYS = st.integers(0, 2**64 - 1)
LENGTH = 900

Schedule = tuple[tuple[int, tuple[int, ...]], ...]


@st.composite
def steered_mixtures(draw: st.DrawFn) -> SteeredMixture:
    sources = draw(st.integers(1, 4))
    one = st.lists(st.integers(0, 5), min_size=sources, max_size=sources).filter(any).map(tuple)
    starts = sorted(draw(st.sets(st.integers(1, 500), max_size=2)))
    cuts = sorted(draw(st.sets(st.integers(0, 600), min_size=1, max_size=3)))
    base = Mixture(
        schedule=tuple((start, draw(one)) for start in [0, *starts]),
        key=draw(KEYS),
        length=None,
        lanes=draw(LANES),
    )
    return SteeredMixture(base, tuple((cut, draw(one)) for cut in cuts))


def routed(mixture: Mixture | SteeredMixture, positions: np.ndarray) -> list[tuple[int, int]]:
    labels, rows = mixture.route(positions)
    return list(zip(labels.tolist(), rows.tolist(), strict=True))


def modelled(mixture: SteeredMixture, length: int) -> list[tuple[int, int]]:
    base = mixture.base
    return models.steered(base.schedule, mixture.cuts, key=base.key, length=length, lanes=base.lanes)


@given(steered_mixtures(), st.lists(st.integers(0, LENGTH - 1), min_size=1, max_size=20))
def test_positions_are_routed_as_the_model_routes_them(mixture: SteeredMixture, some: list[int]) -> None:
    expected = modelled(mixture, LENGTH)
    assert routed(mixture, np.arange(LENGTH)) == expected
    assert routed(mixture, np.array(some)) == [expected[position] for position in some]
    assert [mixture.route_one(position) for position in some] == [expected[position] for position in some]


@given(steered_mixtures())
def test_nothing_changes_before_a_cut(mixture: SteeredMixture) -> None:
    cuts = mixture.cuts
    before = np.arange(cuts[0][0])
    assert routed(mixture, before) == routed(mixture.base, before)
    for count in range(1, len(cuts)):
        before = np.arange(cuts[count][0])
        assert routed(mixture, before) == routed(SteeredMixture(mixture.base, cuts[:count]), before)


@given(steered_mixtures(), st.integers(0, 300))
def test_the_old_schedule_says_nothing_of_what_follows_a_cut(mixture: SteeredMixture, later: int) -> None:
    base, (cut, _) = mixture.base, mixture.cuts[0]
    # Another entry cuts its own block short: it begins where no draw before the cut is touched.
    start = cut + 2 * BLOCK * base.lanes + later
    schedule = tuple(entry for entry in base.schedule if entry[0] < cut) or base.schedule[:1]
    kept = Mixture(schedule=schedule, key=base.key, length=None, lanes=base.lanes)
    more = Mixture(schedule=(*schedule, (start, schedule[0][1])), key=base.key, length=None, lanes=base.lanes)
    after = np.arange(cut, LENGTH)
    assert routed(SteeredMixture(kept, mixture.cuts), after) == routed(
        SteeredMixture(more, mixture.cuts), after
    )


@given(steered_mixtures())
def test_each_lane_takes_a_source_in_its_order_without_a_gap(mixture: SteeredMixture) -> None:
    positions = np.arange(LENGTH)
    labels, rows = mixture.route(positions)
    for lane in range(mixture.lanes):
        for source in range(len(mixture.cuts[0][1])):
            own = rows[(positions % mixture.lanes == lane) & (labels == source)]
            assert own.tolist() == [count * mixture.lanes + lane for count in range(own.size)]


@given(steered_mixtures())
def test_what_is_routed_is_found_again_and_nothing_else(mixture: SteeredMixture) -> None:
    labels, rows = mixture.route(np.arange(LENGTH))
    for source in range(len(mixture.cuts[0][1])):
        places = np.flatnonzero(labels == source)
        assert mixture.unroute(source, rows[places]).tolist() == places.tolist()
        found = mixture.unroute(source, np.arange(LENGTH))
        assert np.sort(found[found < LENGTH]).tolist() == places.tolist()
        if not mixture.cuts[-1][1][source]:
            assert (found < max(cut for cut, _ in mixture.cuts)).all()


@given(steered_mixtures(), st.integers(0, LENGTH - 1), st.integers(0, 300))
def test_counts_and_spans_are_those_of_what_is_routed(mixture: SteeredMixture, start: int, more: int) -> None:
    stop = min(start + more, LENGTH)
    labels, rows = mixture.route(np.arange(LENGTH))
    for source in range(len(mixture.cuts[0][1])):
        begun, drawn = mixture.drawn_by_lanes(source, start)
        lanes = np.flatnonzero(labels[:start] == source) % mixture.lanes
        assert (begun, drawn) == (0, np.bincount(lanes, minlength=mixture.lanes).tolist())
        first, last = mixture.span(source, start, stop)
        own = rows[start:stop][labels[start:stop] == source]
        assert last is not None
        assert ((own >= first) & (own < last)).all()
        assert mixture.span(source, start, None) == (0, None)


def test_the_shares_after_a_cut_are_those_of_the_new_weights() -> None:
    base = Mixture(schedule=((0, (1, 1)),), key=9, length=None, lanes=3)
    mixture = SteeredMixture(base, ((500, (7, 3)),))
    labels, _ = mixture.route(np.arange(500, 500 + 3 * 4000))
    for lane in range(3):
        delivered = np.cumsum(labels[lane::3] == 0)
        after = np.arange(1, delivered.size + 1)
        assert (np.abs(delivered * 10 - 7 * after) < (2 + BLOCK // 2) * 10).all()


def test_the_order_of_cut_mixtures_is_golden() -> None:
    one = Mixture(schedule=((0, (1, 1)),), key=derive(kind_key("mix"), 3), length=None)
    mixture = SteeredMixture(one, ((100, (9, 1)),))
    assert routed(mixture, np.arange(96, 108)) == [
        *((1, row) for row in (47, 48, 49, 50)),
        *((0, row) for row in range(49, 57)),
    ]
    four = Mixture(schedule=((0, (7, 3)),), key=derive(kind_key("mix"), 0), length=None, lanes=4)
    mixture = SteeredMixture(four, ((203, (1, 1)), (500, (0, 1))))
    before = [
        [tuple(mixture.drawn_by_lanes(source, cut)[1][lane] for source in (0, 1)) for lane in range(4)]
        for cut in (203, 500)
    ]
    assert before == [[(37, 14), (36, 15), (37, 14), (34, 16)], [(75, 50), (72, 53), (76, 49), (73, 52)]]
    assert routed(mixture, np.arange(200, 208)) == [
        *((0, 144), (0, 141), (0, 146)),
        *((0, 139), (1, 56), (0, 145), (0, 150), (1, 67)),
    ]
    assert routed(mixture, np.arange(499, 502)) == [(0, 291), (1, 200), (1, 213)]
    assert mixture.unroute(1, np.array([101])).tolist() == [301]
    assert mixture.unroute(0, np.array([600])).size == 0


def test_a_cut_in_a_declared_schedule_is_golden() -> None:
    base = Mixture(
        schedule=((0, (1, 1)), (100, (3, 1)), (150, (1, 0))),
        key=derive(kind_key("mix"), 5),
        length=None,
        lanes=2,
    )
    mixture = SteeredMixture(base, ((131, (1, 2)),))
    assert routed(mixture, np.arange(126, 140)) == [
        (0, 70),
        (0, 67),
        (1, 56),
        (0, 69),
        (0, 72),
        (1, 61),
        (1, 58),
        (1, 63),
        (0, 74),
        (1, 65),
        (1, 60),
        (1, 67),
        (1, 62),
        (0, 71),
    ]
