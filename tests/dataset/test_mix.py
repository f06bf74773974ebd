"""Several datasets in given proportions."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers

import seekable as sk


def source(name: str, n: int) -> sk.Dataset:
    return sk.from_sequence([(name, row) for row in range(n)], version=name)


def counts(records: list[Any]) -> dict[str, int]:
    return dict(Counter(name for name, _ in records))


def test_an_epoch_ends_where_the_first_source_does() -> None:
    ds = sk.mix({"a": source("a", 70), "b": source("b", 90)}, weights={"a": 0.7, "b": 0.3}, seed=0)
    assert len(ds) == 100
    for epoch in range(4):
        records = list(ds.epoch(epoch))
        assert counts(records) == {"a": 70, "b": 30}
        assert [row for name, row in records if name == "a"] == list(range(70))
        assert [row for name, row in records if name == "b"] == [(30 * epoch + i) % 90 for i in range(30)]


def test_or_where_every_source_has_given_each_record() -> None:
    ds = sk.mix([source("a", 70), source("b", 90)], weights=[7, 3], seed=0, stop="all")
    # At the last record of b, when some seven of a have come to three of b.
    assert len(ds) == 299
    records = list(ds)
    assert counts(records) == {"a": 209, "b": 90}
    assert {row for name, row in records if name == "b"} == set(range(90))


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["first", "all"]),
)
def test_each_source_runs_on_in_its_own_order(parts: list[tuple[int, int]], seed: int, stop: Any) -> None:
    """Every epoch of a source is whole, whatever the epochs of the mixture are."""
    datasets = [source(str(i), n).shuffle(seed=i) for i, (n, _) in enumerate(parts)]
    ds = sk.mix(datasets, weights=[weight for _, weight in parts], seed=seed, stop=stop)
    records = flow(ds, 3 * len(ds))
    for i, part in enumerate(datasets):
        own = [record for record in records if record[0] == str(i)]
        assert own == flow(part, len(own))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(0, 2**64 - 1))
def test_the_limiting_source_gives_each_record_once_an_epoch_for_ever(sizes: list[int], seed: int) -> None:
    weights = [1 + i for i in range(len(sizes))]
    datasets = [source(str(i), n).shuffle(seed=i) for i, n in enumerate(sizes)]
    first = sk.mix(datasets, weights=weights, seed=seed)
    for epoch in (0, 1, 10**9):
        given_out = counts(list(first.epoch(epoch)))
        limiting = [i for i, n in enumerate(sizes) if given_out.get(str(i)) == n]
        assert limiting
        rows = [row for name, row in first.epoch(epoch) if name == str(limiting[0])]
        assert sorted(rows) == list(range(sizes[limiting[0]]))


def test_without_weights_shares_are_proportional_to_lengths() -> None:
    parts = [source("a", 30), source("b", 60)]
    # The first source ends with the last record but one.
    assert counts(list(sk.mix(parts, seed=0))) == {"a": 30, "b": 59}
    assert counts(list(sk.mix(parts, seed=0, stop="all"))) == {"a": 30, "b": 60}
    assert sk.mix(parts, seed=0).fingerprint == sk.mix(parts, weights=[1, 2], seed=0).fingerprint


def test_a_source_of_no_weight_is_never_drawn_and_never_limits() -> None:
    parts = [source("a", 30), source("b", 0), source("c", 1)]
    for stop in ("first", "all"):
        ds = sk.mix(parts, weights=[1, 0, 0], seed=0, stop=stop)
        assert sorted(ds) == sorted(parts[0])


def test_an_endless_source_of_no_weight_does_not_matter() -> None:
    assert len(sk.mix([source("a", 30), endless()], weights=[1, 0.0], seed=0)) == 30


def test_never_stops() -> None:
    ds = sk.mix([source("a", 3), endless()], weights=[1, 1], seed=0, stop="never")
    assert ds._node.size is None
    records = flow(ds, 128)
    assert counts([record for record in records if isinstance(record, tuple)]) == {"a": 64}


def test_a_schedule_changes_the_shares_at_its_positions() -> None:
    names = {"a": source("a", 10), "b": source("b", 10)}
    schedule = [(0, {"a": 1, "b": 3}), (128, {"a": 1, "b": 0}), (192, {"b": 1, "a": 1})]
    ds = sk.mix(names, weights=schedule, seed=0)
    assert ds._node.size is None
    records = flow(ds, 320)
    assert counts(records[:128]) == {"a": 32, "b": 96}
    assert counts(records[128:192]) == {"a": 64}
    assert counts(records[192:]) == {"a": 64, "b": 64}
    for name, part in names.items():
        own = [record for record in records if record[0] == name]
        assert own == flow(part, len(own))
    assert flow(ds.take(100), 100) == records[:100]


def test_the_order_of_names_in_the_weights_does_not_matter() -> None:
    parts = {"a": source("a", 30), "b": source("b", 60)}
    one = sk.mix(parts, weights={"a": 1, "b": 3}, seed=0)
    other = sk.mix(parts, weights={"b": 3, "a": 1}, seed=0)
    assert one.fingerprint == other.fingerprint
    assert list(one) == list(other)


def test_equal_ratios_are_the_same_mixture() -> None:
    parts = [source("a", 30), source("b", 60)]
    ratios: list[Any] = [[0.7, 0.3], [7, 3], (70.0, 30), np.array([0.7, 0.3]), np.array([7, 3])]
    prints = {sk.mix(parts, weights=weights, seed=0).fingerprint for weights in ratios}
    assert len(prints) == 1


def test_a_mixture_is_not_steady() -> None:
    assert not sk.mix([source("a", 3)], weights=[1], seed=0)._node.steady


def test_five_hundred_sources() -> None:
    parts = [source(str(i), 20).shuffle(seed=i) for i in range(500)]
    ds = sk.mix(parts, weights=[1 + i % 7 for i in range(500)], seed=0)
    records = flow(ds, 3000, start=10**6)
    assert records[5:20] == [ds._node.record(10**6 + i) for i in range(5, 20)]
    assert len(counts(records)) > 490


def test_mixtures_of_mixtures() -> None:
    inner = sk.mix([source("a", 8), source("b", 8)], weights=[1, 1], seed=1, stop="all")
    ds = sk.mix([inner, source("c", 16)], weights=[1, 1], seed=1, stop="all")
    assert counts(list(ds)) == {"a": 8, "b": 8, "c": 16}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"weights": [1]}, ValueError, r"weights must be as many as what is mixed, 2 \(got 1\)"),
        ({"weights": {"a": 1, "b": 1}}, ValueError, r"weights must name what is mixed.*\(got \['a', 'b'\]\)"),
        ({"weights": [1, -1]}, ValueError, r"at least 0 \(got -1\)"),
        ({"weights": [1, math.nan]}, ValueError, r"finite.*\(got nan\)"),
        ({"weights": [0, 0]}, ValueError, r"positive sum \(got \[0, 0\]\)"),
        ({"weights": [1, 1e-12]}, ValueError, r"2\*\*-31.*\(got 1e-12"),
        ({"weights": [1, 1], "seed": -1}, ValueError, r"seed must be at least 0 \(got -1\)"),
        ({"weights": [1, 1], "stop": "last"}, ValueError, r"stop must be one of .*\(got 'last'\)"),
        ({"weights": [(0, [1, 1])], "stop": "all"}, ValueError, r"schedule.*\(got 'all'\)"),
        ({"weights": [(5, [1, 1])]}, ValueError, r"positions must start at 0 and ascend \(got \[5\]\)"),
        (
            {"weights": [(0, [1, 1]), (9, [1, 1]), (9, [1, 2])]},
            ValueError,
            r"start at 0 and ascend \(got \[0, 9, 9\]\)",
        ),
        ({"weights": [(0, [1, 1]), (-3, [1, 1])]}, ValueError, r"position must be at least 0 \(got -3\)"),
        ({"weights": [(0, [1, 1]), (9, [1])]}, ValueError, r"as many as what is mixed, 2 \(got 1\)"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        sk.mix([numbers(3), numbers(4)], **{"seed": 0, **arguments})
    assert isinstance(raised.value, sk.SeekableError)


@pytest.mark.parametrize(
    ("parts", "weights", "error", "message"),
    [
        ([], [], ValueError, r"mix\(\) needs at least one dataset"),
        ([range(3)], [1], TypeError, r"mix\(\) takes Datasets \(got a range at 0\)"),
        ([numbers(3), numbers(0)], [1, 1], ValueError, r"must have records \(got none in 1\)"),
        ({"a": numbers(3), "b": numbers(0)}, [1, 1], ValueError, r"must have records \(got none in 'b'\)"),
        ({"a": numbers(3)}, {"b": 1}, ValueError, r"must name what is mixed, \['a'\] \(got \['b'\]\)"),
        ([endless()], [1], TypeError, r"mix\(stop='first'\) needs a length"),
        ([endless()], None, TypeError, r"mix\(\) without weights needs a length"),
        ([numbers(0)], None, ValueError, "positive sum"),
    ],
    ids=["none", "range", "empty", "empty name", "names", "endless", "endless without weights", "all empty"],
)
def test_bad_parts_are_named(parts: Any, weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sk.mix(parts, weights=weights, seed=0)


@pytest.mark.parametrize("weights", [3, {1, 2}, "12", [1, None], [1, "x"]], ids=repr)
def test_what_are_no_weights_is_refused(weights: Any) -> None:
    """A set has no order, and a text no numbers."""
    with pytest.raises(sk.SeekableError, match="weight"):
        sk.mix([numbers(3), numbers(4)], weights=weights, seed=0)
