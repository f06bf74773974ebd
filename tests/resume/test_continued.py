"""The node that resume="rows" goes on with, held to a list."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.order.positions import StridedRange
from seekable.order.remaining import Remaining
from seekable.resume.continued import Continued, OldSegment

SOME = 120


def source(name: str, size: int) -> sk.Dataset:
    return sk.from_sequence([f"{name}{row}" for row in range(size)], version=name)


def drawn(random: Random) -> Continued:
    """Return segments of two orders of one source, then another source, at positions that lanes have left."""
    size, new_size = random.randint(1, 20), random.randint(1, 20)
    old, new = source("a", size), source("b", new_size).shuffle(seed=1)
    segments = []
    for _ in range(random.randint(0, 4)):
        step = random.randint(1, 5)
        offsets = tuple(sorted(random.sample(range(step), random.randint(1, step))))
        positions = StridedRange(random.randint(0, 2 * size), random.randint(1, 6), step, offsets)
        segments.append(OldSegment(random.randint(0, 1), positions))
    taken = [random.randint(0, 5) for _ in range(random.randint(1, 4))]
    axis = Remaining.after(random.randint(0, 9), taken)
    olds = old._node, old.shuffle(seed=3)._node
    return Continued(olds, new._node, tuple(segments), axis, random.randint(0, 30))


@given(st.integers(0, 2**32))
def test_segments_come_first_and_then_the_new_order(seed: int) -> None:
    random = Random(seed)
    node = drawn(random)
    slots, below = node.route(np.arange(SOME))
    routes = list(zip(slots.tolist(), below.tolist(), strict=True))
    assert routes == [node.route_one(position) for position in range(SOME)]
    axis = [*node.axis.stragglers.tolist(), *range(node.axis.frontier, SOME)]
    segments = [(segment.slot, position) for segment in node.segments for position in segment.positions]
    for ordinal, position in enumerate(axis):
        beyond = ordinal - len(segments)
        assert routes[position] == (segments[ordinal] if beyond < 0 else (2, node.first + beyond))
    for position in set(range(SOME)) - set(axis):
        assert routes[position] == (2, position)


@given(st.integers(0, 2**32))
def test_rows_are_found_in_segments_and_behind_them(seed: int) -> None:
    random = Random(seed)
    node = drawn(random)
    records, size, epoch = node.fetch(np.arange(SOME)), node.size, random.randint(0, 3)
    for name, below in (("a", node.olds[0].size), ("b", size)):
        row = random.randrange(below or 1)
        found = sk.Dataset(node).find(f"<builtins.list {name}>", row, epoch=epoch)
        wanted = [
            position
            for position in range(epoch * size, min(SOME, (epoch + 1) * size))
            if records[position] == f"{name}{row}"
        ]
        assert [position for position in found if position < SOME] == wanted


def test_golden() -> None:
    """Someone's half-finished run depends on these."""
    segments = (
        OldSegment(0, StridedRange(1, 1)),
        OldSegment(1, StridedRange(2, count=2, step=3, offsets=(0, 2))),
        OldSegment(0, StridedRange(6, 2)),
    )
    olds = source("a", 8)._node, source("a", 8).shuffle(seed=5)._node
    node = Continued(olds, source("b", 4).shuffle(seed=2)._node, segments, Remaining.after(3, [0, 2]), 8)
    slots, below = node.route(np.arange(18))
    assert slots.tolist() == [2, 2, 2, 0, 2, 1, 2, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2, 2]
    assert below.tolist() == [0, 1, 2, 1, 4, 2, 6, 4, 5, 7, 6, 7, 8, 9, 10, 11, 12, 13]
    assert node.describe(None)["kind"] == "continued"
    assert node.arguments(None) == {
        "pieces": [[0, [1, 1]], [1, [2, 2, 3, [0, 2]]], [0, [6, 2]]],
        "lagging": [[3, 1, 2, [0]], [5, 1, 2, [0]]],
        "tail": 7,
        "first": 8,
    }
