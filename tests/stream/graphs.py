"""Streams drawn at random: up to six stages over one to five sources, in one to four lanes."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tests.stream import functions, model
from tests.stream.matrix import noise

import seekable as sk

DEPTH = 6

seeds = st.integers(0, 2**64 - 1) | st.integers(0, 3)

Stage = Callable[[st.DrawFn, sk.Stream, int], sk.Stream]


@st.composite
def streams(draw: st.DrawFn, depth: int = DEPTH) -> sk.Stream:
    """Draw a pipeline."""
    lanes = draw(st.sampled_from([1, 1, 2, 3, 4]))
    return draw(graphs(lanes, draw(st.integers(1, depth))))


@st.composite
def graphs(draw: st.DrawFn, lanes: int, depth: int) -> sk.Stream:
    if depth == 0:
        return draw(sources(lanes))
    below = draw(graphs(lanes, depth - 1))
    return draw(st.sampled_from(STAGES))(draw, below, depth)


@functools.cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="seekable-numbers-")


@functools.cache
def in_file(n: int) -> sk.Dataset:
    """Return the numbers from 0 on as lines of a file."""
    path = Path(folder().name) / f"{n}.jsonl"
    path.write_text("".join(f"{number}\n" for number in range(n)), encoding="utf-8")
    return sk.open(path)


@st.composite
def files(draw: st.DrawFn, lanes: int) -> sk.Stream:
    """Files of numbers, some of which are left out; a mixture reads such streams together."""
    n = draw(st.integers(1, 30))
    ds = in_file(n)
    if draw(st.booleans()):
        ds = ds.shuffle(draw(seeds))
    gone = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    ds = ds.without(ds.locate(sorted(gone)), fill=draw(st.sampled_from(["hole", "hole", "replace"])))
    return ds.stream(lanes=lanes, epochs=draw(st.sampled_from([1, 2, None] if n >= lanes else [1, 2])))


@st.composite
def sources(draw: st.DrawFn, lanes: int) -> sk.Stream:
    """Datasets with an end or without, mixtures of files, and what a function returns."""
    n = draw(st.one_of(st.integers(0, 3), st.integers(4, 30), st.integers(4, 30)))
    ds = sk.from_sequence(range(n), version=draw(st.sampled_from("ab")))
    if draw(st.booleans()):
        ds = ds.shuffle(draw(seeds))
    kinds = ["ends", "ends", "endless", "start", "endless dataset", "iterable", "holes", "files"]
    kind = draw(st.sampled_from(kinds))
    if kind == "endless" and n >= lanes:
        return ds.stream(lanes=lanes)
    if kind == "start":
        return ds.stream(lanes=lanes, epochs=draw(st.integers(0, 3)), start=draw(st.integers(0, 70)))
    if kind == "endless dataset" and n:
        return sk.mix([ds, noise()], weights=[3, 1], seed=draw(seeds), stop="never").stream(lanes=lanes)
    if kind == "files":
        parts = draw(st.lists(files(lanes), min_size=1, max_size=3))
        stop: Any = draw(st.sampled_from(["first", "all"]))
        return sk.mix(parts, weights=[1, 2, 1][: len(parts)], seed=draw(seeds), stop=stop)
    if kind == "iterable":
        return sk.from_iterable(functools.partial(functions.counted, n), lanes=lanes, replay=True)
    if kind == "holes":
        ds = ds.map(functions.full_of_holes)
    return ds.stream(lanes=lanes, epochs=draw(st.integers(1, 3)))


def _shuffle(draw: st.DrawFn, below: sk.Stream, _: int) -> sk.Stream:
    return below.shuffle(buffer=draw(st.integers(1, 9)), seed=draw(seeds))


def _overlay(draw: st.DrawFn, below: sk.Stream, _: int) -> sk.Stream:
    prob = draw(st.sampled_from([0, 0.3, 1]))
    others = draw(
        st.sampled_from([noise().shuffle(1), sk.from_sequence(range(8)).map(functions.full_of_holes)])
    )
    partners: Any = draw(st.sampled_from([None, 2, (1, 3), "endless"]))
    fn = functions.joined_three if partners == "endless" else functions.joined
    return below.overlay(others, fn, prob=prob, seed=draw(seeds), partners=partners)


def _repeat(draw: st.DrawFn, below: sk.Stream, _: int) -> sk.Stream:
    return below.repeat(draw(st.sampled_from([0, 1, 2, 2, 3, None, None])))


def _bucket(draw: st.DrawFn, below: sk.Stream, _: int) -> sk.Stream:
    size = draw(st.integers(1, 9))
    boundaries: dict[str, Any] = {"boundaries": sorted(draw(st.sets(st.integers(1, 9), max_size=4)))}
    first = model.lane_of(below.stage, 0)
    if draw(st.booleans()) and first.pairs and (first.ended or len(first.pairs) >= size):
        boundaries = {"buckets": draw(st.integers(1, 4))}
    return below.bucket(
        functions.cost,
        max_cost=draw(st.sampled_from([0.5, 7, 20])),
        seed=draw(seeds),
        buffer=size,
        padded=draw(st.booleans()),
        quadratic=draw(st.sampled_from([None, 4])),
        max_items=draw(st.sampled_from([None, 1, 3])),
        **boundaries,
    )


def _pack(draw: st.DrawFn, below: sk.Stream, _: int) -> sk.Stream:
    given: dict[str, Any] = {
        "separator": draw(st.sampled_from([None, 7])),
        "pad": draw(st.sampled_from([0, -1])),
        "long": draw(st.sampled_from(["split", "truncate", "drop"])),
        "end": draw(st.sampled_from(["pad", "drop"])),
    }
    if draw(st.booleans()):
        given |= {"method": "best_fit", "bins": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        given["align"] = draw(st.sampled_from([["mask"], {"mask": 3}]))
        return below.map(functions.masked).pack(draw(st.integers(1, 12)), key="ids", **given)
    return below.map(functions.document).pack(draw(st.integers(1, 12)), **given)


def _several(draw: st.DrawFn, below: sk.Stream, depth: int) -> list[sk.Stream]:
    """Return the stream among others, or with itself."""
    others = [
        draw(graphs(below.lanes, min(depth - 1, draw(st.integers(0, 2)))))
        for _ in range(draw(st.integers(0, 2)))
    ]
    parts = [below, *others, *draw(st.sampled_from([[], [], [below]]))]
    return draw(st.permutations(parts))


def _mix(draw: st.DrawFn, below: sk.Stream, depth: int) -> sk.Stream:
    parts = _several(draw, below, depth)
    columns = st.lists(st.sampled_from([0, 1, 1, 3]), min_size=len(parts), max_size=len(parts)).filter(any)
    weights: Any = draw(columns)
    if draw(st.booleans()):
        starts = sorted(draw(st.sets(st.integers(1, 90), max_size=3)))
        weights = [(start, draw(columns)) for start in [0, *starts]]
    return sk.mix(parts, weights=weights, seed=draw(seeds), stop=draw(st.sampled_from(["first", "all"])))


STAGES: list[Stage] = [
    _shuffle,
    _overlay,
    _repeat,
    _bucket,
    _pack,
    _mix,
    lambda _, below, __: below.map(functions.wrapped),
    lambda draw, below, _: below.map(functions.drawn, rng=True, seed=draw(seeds)),
    lambda _, below, __: below.filter(functions.likes),
    lambda _, below, __: below.flatten(functions.parts),
    lambda _, below, __: below.map(functions.lazy_parts).flatten(),
    lambda draw, below, _: below.take(draw(st.integers(0, 60))),
    lambda draw, below, _: below.skip(draw(st.integers(0, 30))),
    lambda draw, below, _: below.batch(draw(st.integers(1, 5))),
    lambda draw, below, depth: sk.concat(_several(draw, below, depth)),
    lambda draw, below, depth: sk.zip(_several(draw, below, depth)),
]
