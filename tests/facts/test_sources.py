"""Counts by source against a look at every record, which says of which source it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.packing.nodes.blend import MegatronBlend
from seekable.viewer.facts.named_sources import SEVERAL, source_counts, source_names, sources_of


def source(name: str, n: int) -> sk.Dataset:
    """Return a source whose records are its name."""
    return sk.from_sequence([name] * n, version=name)


def flat(record: Any) -> list[str]:
    return [part for each in record for part in flat(each)] if isinstance(record, list) else [record]


def check(dataset: sk.Dataset, positions: list[int]) -> None:
    """Compare with the records themselves, whose names are the names of the sources."""
    node = dataset._node
    names = source_names(node)
    asked = np.array(positions, dtype=np.int64)
    last = max(positions, default=0)
    records = [flat(record) for record in node.fetch(np.arange(last, dtype=np.int64))] if last else []
    counts = source_counts(node, asked)
    assert counts.shape == (asked.size, len(names))
    assert counts.dtype == np.int64
    for position, row in zip(positions, counts.tolist(), strict=True):
        wanted = Counter(name for record in records[:position] for name in record)
        assert dict(zip(names, row, strict=True)) == {name: wanted[name] for name in names}
    numbers = [names.index(record[0]) if len(set(record)) == 1 else SEVERAL for record in records]
    assert sources_of(node, np.arange(len(records), dtype=np.int64)).tolist() == numbers


def part(draw: st.DrawFn, name: str, depth: int) -> sk.Dataset:
    """Return a graph over sources, which have the names that the graph gives them."""
    kind = draw(st.sampled_from(["source", "mix", "concat", "change", "change"] if depth else ["source"]))
    if kind == "source":
        size = draw(st.integers(1, 9))
        made = source(name or "data", size)
        return draw(st.sampled_from([made, made.shuffle(seed=1), made.shuffle(seed=2).interleave(lanes=2)]))
    if kind == "change":
        return changed(draw, part(draw, name, depth - 1))
    count = draw(st.integers(1, 3))
    named = kind == "mix" and draw(st.booleans())
    own = [letter if named else str(number) for number, letter in zip(range(count), "xyz", strict=False)]
    parts = [part(draw, f"{name}.{each}" if name else each, depth - 1) for each in own]
    if kind == "concat":
        if any(each._node.size is None for each in parts):
            parts = [each.take(7) for each in parts]
        return sk.concat(parts)
    stop: Any = draw(st.sampled_from(["first", "all", "never"]))
    if any(each._node.size is None for each in parts):
        stop = "never"
    weights: Any = [draw(st.integers(1, 5)) for _ in parts]
    if stop == "never" and draw(st.booleans()):
        weights = [(0, weights), (draw(st.integers(1, 150)), [1] * count)]
    if named:
        weights = (
            [(start, dict(zip(own, each, strict=True))) for start, each in weights]
            if isinstance(weights[0], tuple)
            else dict(zip(own, weights, strict=True))
        )
    mixed: dict[str, sk.Dataset] | list[sk.Dataset] = dict(zip(own, parts, strict=True)) if named else parts
    result: sk.Dataset = sk.mix(mixed, weights=weights, seed=draw(st.integers(0, 3)), stop=stop)
    return result


def changed(draw: st.DrawFn, dataset: sk.Dataset) -> sk.Dataset:
    """Return a dataset with one more node at its top."""
    size, steady = dataset._node.size, dataset._node.steady
    ways = ["take", "skip", "map", "batch", "every"]
    if size is not None:
        ways += ["shuffle", "window", "interleave", "epoch", "repeat", "select"]
        ways += ["split", "sample"] if steady else []
    way = draw(st.sampled_from(ways))
    less = draw(st.integers(1, 5))
    if size is not None and way in ("take", "skip"):
        less = min(less, size - 1)
    made: dict[str, Any] = {
        "take": lambda: dataset.take(less + 6) if size is None else dataset.take(size - less),
        "skip": lambda: dataset.skip(less),
        "map": lambda: dataset.map(same),
        "batch": lambda: dataset.batch(less),
        "every": lambda: dataset[::2],
        "shuffle": lambda: dataset.shuffle(seed=less),
        "window": lambda: dataset.shuffle(seed=less, window=2, lanes=1),
        "interleave": lambda: dataset.interleave(lanes=2),
        "epoch": lambda: dataset.epoch(less),
        "repeat": lambda: dataset.repeat(2),
        "select": lambda: dataset.select([0, (size or 1) - 1, 0]),
        "split": lambda: dataset.split({"a": 0.5, "b": 0.5}, seed=1)["a"],
        "sample": lambda: dataset.split({"a": 0.5, "b": 0.5}, seed=less, stable=True)["b"],
    }
    result: sk.Dataset = made[way]()
    return result if result._node.size is None or result._node.size else dataset


def same(record: Any) -> Any:
    return record


@st.composite
def graphs(draw: st.DrawFn) -> sk.Dataset:
    return part(draw, "", draw(st.integers(0, 4)))


@given(graphs(), st.lists(st.integers(0, 300), max_size=6))
def test_counts_are_those_of_the_records(dataset: sk.Dataset, positions: list[int]) -> None:
    check(dataset, positions)


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_lanes_that_draw_at_different_speeds(lanes: int) -> None:
    below = sk.mix({"p": source("x.p", 90), "q": source("x.q", 50)}, weights=[3, 1], seed=1)
    other = source("y", 200).interleave(lanes=lanes)
    weights = [(0, [2, 1]), (100, [1, 4]), (401, [5, 1])]
    dataset = sk.mix(
        {"x": below, "y": other}, weights=[(at, dict(zip("xy", w, strict=True))) for at, w in weights], seed=2
    )
    check(dataset, list(range(0, 700, 23)))
    check(
        sk.mix({"x": below, "y": other}, weights={"x": 2, "y": 1}, seed=2).repeat(5), list(range(0, 700, 29))
    )


def test_a_blend_and_what_is_opaque() -> None:
    parts = (source("0", 60)._node, source("1", 90)._node)
    check(sk.Dataset(MegatronBlend(parts, (0.3, 0.7), 80)), [0, 1, 79, 80, 81, 200])
    mixed = sk.mix({"a": source("a", 5), "b": source("b", 5)}, seed=0)
    zipped = sk.zip([mixed, mixed])
    assert source_names(zipped._node) == ("data",)
    assert source_counts(zipped._node, np.array([0, 3])).tolist() == [[0], [3]]
    assert sources_of(zipped._node, np.array([0, 3])).tolist() == [0, 0]


def test_a_source_of_weight_0_is_counted_as_0() -> None:
    dataset = sk.mix({"a": source("a", 5), "b": source("b", 0)}, weights={"a": 1, "b": 0}, seed=0)
    check(dataset, [0, 1, 4, 5, 6, 99])


def test_nothing_asked_and_wrong_positions() -> None:
    dataset = sk.mix([source("0", 5), source("1", 5)], seed=0)
    assert source_counts(dataset._node, np.empty(0, dtype=np.int64)).shape == (0, 2)
    assert sources_of(dataset._node, np.empty(0, dtype=np.int64)).shape == (0,)
    for function in (source_counts, sources_of):
        with pytest.raises(sk.errors.InvalidArgument, match=r"at least 0 \(got -3\)"):
            function(dataset._node, np.array([4, -3]))


def test_far_positions_of_many_sources_are_counted_without_a_pass() -> None:
    parts = [sk.from_sequence(range(10**9 + n), version=str(n)).shuffle(seed=n) for n in range(20)]
    dataset = sk.mix(parts, weights=list(range(1, 21)), seed=3, stop="never").skip(5).map(same).batch(4)
    positions = np.linspace(0, 5 * 10**8, 50).astype(np.int64)
    counts = source_counts(dataset._node, positions)
    assert (counts.sum(axis=1) == 4 * positions).all()
    assert np.abs(counts - counts.sum(axis=1)[:, None] * np.arange(1, 21) / 210).max() < 80
    steps = source_counts(dataset._node, np.array([positions[7], positions[7] + 1]))
    labels = sources_of(parts_of(dataset), 5 + np.arange(4) + 4 * positions[7])
    assert (np.diff(steps, axis=0)[0] == np.bincount(labels, minlength=20)).all()


def parts_of(dataset: sk.Dataset) -> Any:
    """Return the mixture below a batch, a map and a skip."""
    node: Any = dataset._node
    return node.child.child.child
