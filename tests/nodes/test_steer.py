"""Pipelines with other weights from a position on: nothing before it changes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from tests.order import models
from tests.thrift import sample

import seekable as sk
from seekable.nodes.bases import positions_of_row
from seekable.nodes.mix import Mix
from seekable.nodes.node import node_of
from seekable.nodes.steer import mixture_number, steered, weights_for
from seekable.order.keys import derive, kind_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.nodes.node import Node


def part(name: str, n: int) -> sk.Dataset:
    return sk.from_sequence([f"{name}{row}" for row in range(n)], version=name)


def mixed(*, seed: int = 1, names: tuple[str, str] = ("a", "b"), n: int = 40) -> sk.Dataset:
    parts = {name: part(name, n + 7 * number).shuffle(seed) for number, name in enumerate(names)}
    return sk.mix(parts, weights=dict(zip(names, (3, 1), strict=True)), seed=seed, stop="never")


def nested() -> sk.Dataset:
    return sk.mix(
        {"x": mixed(), "y": mixed(seed=2, names=("c", "d")).map(str.upper)},
        weights=[1, 1],
        seed=5,
        stop="never",
    )


def by_lanes() -> sk.Dataset:
    return sk.mix(
        [part("a", 100).shuffle(3, window=1, lanes=4), part("b", 60)], weights=[1, 2], seed=4, stop="never"
    )


PIPELINES: dict[str, tuple[Callable[[], sk.Dataset], int]] = {
    "plain": (mixed, 0),
    "map": (lambda: mixed().map(str.upper), 0),
    "batch": (lambda: mixed().batch(3), 0),
    "take": (lambda: mixed().take(90), 0),
    "shuffled": (lambda: mixed().take(90).shuffle(3), 0),
    "zip": (lambda: sk.zip([mixed().take(80), part("z", 80)]), 0),
    "twice": (lambda: sk.concat([(ends := mixed()).take(30), ends.take(50)]), 0),
    "lanes": (by_lanes, 0),
    "outer": (nested, 0),
    "inner": (nested, 1),
    "repeated": (lambda: mixed().take(40).repeat(2), 0),
}

LENGTH = 320


def steered_at(dataset: sk.Dataset, number: int, *cuts: tuple[int, tuple[int, ...]]) -> Node:
    node = node_of(dataset)
    for position, weights in cuts:
        node = steered(node, number, weights, position)
    return node


@pytest.mark.parametrize(
    ("name", "position"), sample(itertools.product(PIPELINES, [0, 1, 63, 100, 197]), of=2)
)
def test_nothing_before_the_position_changes(name: str, position: int) -> None:
    make, number = PIPELINES[name]
    dataset = make()
    plain, cut = node_of(dataset), steered_at(dataset, number, (position, (0, 1)))
    assert cut.size == plain.size
    positions = np.arange(LENGTH)
    before = plain.fetch(positions[:position])
    assert cut.fetch(positions)[:position] == before
    assert [cut.record(each) for each in range(0, LENGTH, 17)] == cut.fetch(positions[::17])


@pytest.mark.parametrize("name", ["plain", "map", "take", "lanes"])
def test_all_records_from_the_position_on_have_the_new_weights(name: str) -> None:
    make, number = PIPELINES[name]
    after = steered_at(make(), number, (77, (0, 1))).fetch(np.arange(77, LENGTH))
    assert {record[0].lower() for record in after} == {"b"}


def test_a_mixture_below_another_one_changes_where_nothing_was_drawn_of_it() -> None:
    records = steered_at(nested(), 1, (101, (0, 1))).fetch(np.arange(LENGTH))
    old = [record for record in records[101:] if record[0] == "a"]
    # The draws of the blocks in which the position falls: one lane draws less than 64 more than its share.
    assert len(old) <= 1
    assert {record[0] for record in records[101 + 128 :]} == {"b", "C", "D"}


def test_a_pipeline_steered_twice_is_that_of_the_model() -> None:
    node = steered_at(mixed(), 0, (100, (1, 1)), (203, (0, 5)))
    assert isinstance(node, Mix)
    routed = models.steered(
        ((0, (3, 1)),), ((100, (1, 1)), (203, (0, 5))), key=derive(kind_key("mix"), 1), length=LENGTH
    )
    assert [node.route_one(position) for position in range(LENGTH)] == routed


def test_a_later_cut_at_an_earlier_position_replaces_the_ones_after_it() -> None:
    twice = steered_at(mixed(), 0, (203, (1, 1)), (100, (0, 1)))
    assert twice.fetch(np.arange(LENGTH)) == steered_at(mixed(), 0, (100, (0, 1))).fetch(np.arange(LENGTH))


@pytest.mark.parametrize("name", PIPELINES)
def test_rows_are_found_where_they_come(name: str) -> None:
    make, number = PIPELINES[name]
    cut = steered_at(make(), number, (50, (1, 4)), (131, (4, 1)))
    for position in (0, 60, 129):
        place = cut.plan(np.array([position])).locate()[0]
        while isinstance(place, list | tuple):
            place = place[0]
        assert position in positions_of_row(cut, place.path, place.row, range(12))


def test_the_mixture_to_steer_is_the_only_one_or_named() -> None:
    node = node_of(nested())
    assert [mixture_number(node, which) for which in (0, 1, 2, "x", "y")] == [0, 1, 2, 1, 2]
    with pytest.raises(
        sk.errors.InvalidArgument,
        match=r"there are 3 mixtures to steer: say mixture=0 \(of 'x', 'y'\) or mixture='x' \(of 'a'",
    ):
        mixture_number(node, None)
    with pytest.raises(sk.errors.InvalidArgument, match=r"mixture='z' names no mixture: say mixture=0"):
        mixture_number(node, "z")
    with pytest.raises(sk.errors.InvalidArgument, match=r"mixture=3 names no mixture"):
        mixture_number(node, 3)
    with pytest.raises(sk.errors.WrongType, match="the name or the number"):
        mixture_number(node, 1.5)  # type: ignore[arg-type]  # what is refused
    assert mixture_number(node_of(mixed().take(9)), None) == 0


@pytest.mark.parametrize("stop", ["first", "all"])
def test_a_mixture_with_an_end_is_refused(stop: Literal["first", "all"]) -> None:
    ends = sk.mix([part("a", 5), part("b", 7)], seed=1, stop=stop)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"mix with stop='never', and bound the run by steps="
    ):
        mixture_number(node_of(ends), None)


def test_a_pipeline_without_a_mixture_that_passes_its_order_on_is_refused() -> None:
    for dataset in (part("a", 5), mixed().take(9).epoch(1), mixed().take(9).epoch(0).filter(bool)):
        with pytest.raises(sk.errors.InvalidArgument, match="changes the weights of a mixture"):
            mixture_number(node_of(dataset), None)


def test_weights_are_checked_as_those_of_mix() -> None:
    node = node_of(mixed())
    assert weights_for(node, 0, {"b": 0.25, "a": 0.75}) == weights_for(node, 0, [3, 1]) == (3, 1)
    with pytest.raises(sk.errors.InvalidArgument, match="weights must name what is mixed"):
        weights_for(node, 0, {"a": 1})
    with pytest.raises(sk.errors.WrongType, match="steer takes the weights from one step on"):
        weights_for(node, 0, [(0, [1, 1]), (5, [1, 0])])
    empty = sk.mix([part("a", 5), part("e", 0)], weights=[1, 0], seed=1, stop="never")
    with pytest.raises(sk.errors.InvalidArgument, match="got none in 1"):
        weights_for(node_of(empty), 0, [1, 1])


def test_a_steered_pipeline_is_described_by_its_cuts_and_made_again_of_them() -> None:
    plain, cut = node_of(mixed()), steered_at(mixed(), 0, (100, (1, 1)))
    assert cut.fingerprint != plain.fingerprint
    assert cut.fingerprint_at(100) == plain.fingerprint_at(100)
    again = Mix.from_arguments(cut.arguments(None), cut.children)
    assert again.fingerprint == cut.fingerprint
    assert "weights=<[3, 1], steered 1 time>" in cut.expression()
