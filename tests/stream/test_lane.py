"""The states of a lane's stages: as a whole, and as what changes from batch to batch."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.stream.common import check_cuts, check_same, delivered
from tests.stream.matrix import BUILDERS, flow
from tests.thrift import sample

import seekable as sk
from seekable.stream import SameItems
from seekable.stream.lane import LaneIterator, StageState, apply_deltas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream import Lane, Token

EACH = [
    pytest.param(build, id=f"{kind.__name__}-{number}")
    for kind, builders in BUILDERS.items()
    for number, build in enumerate(builders)
]


def documents(states: Sequence[StageState]) -> list[Any]:
    return [each.document() for each in states]


@pytest.mark.parametrize(
    ("build", "batch"),
    [
        pytest.param(*each.values, batch, id=f"{each.id}-{batch}")
        for each, batch in sample(itertools.product(EACH, [1, 3, 7]), of=3)
    ],
)
def test_deltas_add_up_to_the_state(build: Any, batch: int) -> None:
    """Also over a buffer that is emptied and begun anew."""
    root = LaneIterator(build(29, 2).repeat(2).stage, 1)
    states = root.states()
    count = 0
    for count, _ in enumerate(root, start=1):
        if not count % batch:
            before = documents(states)
            deltas = root.deltas()
            assert documents(states) == before
            apply_deltas(states, deltas)
            assert documents(states) == documents(root.states())
    assert count


@pytest.mark.parametrize("build", sample(EACH, of=2))
def test_deltas_add_up_from_a_restored_state_on(build: Any) -> None:
    stream = build(29, 2)
    first = LaneIterator(stream.stage, 0)
    for _, _ in zip(range(5), first, strict=False):
        pass
    root, states = LaneIterator(stream.stage, 0), first.states()
    root.load(states)
    for _ in root:
        apply_deltas(states, root.deltas())
        assert documents(states) == documents(root.states())


@dataclass(frozen=True, eq=False, repr=False)
class InPlace(SameItems):
    """A stage that changes a list in its state."""

    kind: ClassVar[str] = "in-place"

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"{inputs[0]}.then(InPlace())"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        seen = lane.state.setdefault("seen", [])
        for token, item in lane.inputs[0]:
            seen.append(len(seen))
            yield token, (item, list(seen))


def test_a_state_that_is_changed_in_place_is_kept_as_it_was() -> None:
    check_cuts(flow(5, 2).then(InPlace()))
    stage = flow(5, 1).then(InPlace()).stage
    root = LaneIterator(stage, 0)
    states = root.states()
    next(iter(root))
    deltas = root.deltas()
    again = LaneIterator(stage, 0)
    loaded = root.states()
    again.load(loaded)
    next(iter(root))
    next(iter(again))
    apply_deltas(states, deltas)
    assert states[0].values == loaded[0].values == {"seen": [0]}


def test_threads_may_each_iterate_over_one_stream() -> None:
    parts = [flow(900, 2), flow(700, 2).map(lambda n: -n)]
    stream = sk.mix(parts, weights=[2, 1], seed=1, stop="all").shuffle(buffer=20, seed=1)
    wanted = delivered(sk.mix(parts, weights=[2, 1], seed=1, stop="all").shuffle(buffer=20, seed=1))
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda number=number: found.update({number: delivered(stream)}))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        check_same(found[number], wanted)
