"""Every stage there is delivers what its model says, and resumes exactly wherever it is cut.

The world is closed: a new class of stage fails here until builders of it stand in tests/stream/matrix.py,
and a model in tests/stream/model.py.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys

import cloudpickle
import pytest
from tests.concrete import concrete_classes
from tests.stream import model
from tests.stream.common import check_cuts, check_same, delivered, run_of, through_json
from tests.stream.matrix import BUILDERS, ESTIMATED, flow

import seekable as sk
import seekable.stream
from seekable.stream.shuffle import ShuffleItems
from seekable.stream.stage import Stage

LANES = [1, 2, 4, 12]
SOME = 29
"""No number of lanes divides it."""

EACH = [
    pytest.param(kind, number, id=f"{kind.__name__}-{number}")
    for kind, builders in BUILDERS.items()
    for number in range(len(builders))
]

in_lanes = pytest.mark.parametrize("lanes", LANES)
each = pytest.mark.parametrize(("kind", "number"), EACH)


def test_every_class_of_stage_has_builders() -> None:
    missing = {kind.__name__ for kind in concrete_classes(seekable.stream, Stage) - BUILDERS.keys()}
    assert not missing, f"put builders of {missing} into tests/stream/matrix.py"
    assert concrete_classes(seekable.stream, Stage) == BUILDERS.keys()


def test_the_walk_finds_a_new_class() -> None:
    class Another(ShuffleItems):  # type: ignore[misc]  # stages are final, and this one is made to be found
        __module__ = "seekable.stream.another"

    assert Another in concrete_classes(seekable.stream, Stage)
    del Another
    gc.collect()  # classes are parts of cycles
    assert concrete_classes(seekable.stream, Stage) == BUILDERS.keys()


@in_lanes
@each
def test_a_stage_is_its_model(kind: type, number: int, lanes: int) -> None:
    for n in sorted({0, 1, lanes - 1, lanes, SOME}):
        stream = BUILDERS[kind][number](n, lanes)
        assert type(stream.stage) is kind
        pairs, ended = model.slots(stream)
        assert ended
        check_same(delivered(stream), pairs)


@in_lanes
@each
def test_a_stage_resumes_exactly_at_every_cut_twice(kind: type, number: int, lanes: int) -> None:
    for n in sorted({0, 1, lanes - 1, SOME}):
        check_cuts(BUILDERS[kind][number](n, lanes))


def test_a_new_process_resumes_exactly_at_every_cut() -> None:
    """One process for all stages, lanes and cuts; it reads to the end from every fourth of them."""
    cases = []
    for builders in BUILDERS.values():
        for build in builders:
            stream = build(SOME, 4)
            pairs, states = run_of(stream)
            cases.append((stream, pairs, json.dumps(states)))
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=cloudpickle.dumps(sys.path) + cloudpickle.dumps(cases),
        capture_output=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr.decode()


CHILD = """
import json, pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
cases = pickle.load(sys.stdin.buffer)
from tests.stream.common import check_same, following, resumed
for stream, pairs, states in cases:
    for at, state in enumerate(json.loads(states)):
        count = 2 if at % 4 else len(pairs)
        check_same(following(resumed(stream, state), count), pairs[at : at + count])
"""


@each
def test_hundreds_of_records_resume_exactly(kind: type, number: int) -> None:
    """Each of four lanes has more than the 64 items that are taken of it at a time."""
    stream = BUILDERS[kind][number](300, 4)
    count = len(delivered(stream))
    check_cuts(stream, cuts=[0, 1, 63, 64, count // 2, count - 1, count])


@each
def test_tokens_rebuild_their_items(kind: type, number: int) -> None:
    for lanes in (1, 4):
        stream = BUILDERS[kind][number](SOME, lanes)
        for token, item in delivered(stream):
            if not stream.indexed:
                with pytest.raises(sk.BadToken):
                    stream[token]
                continue
            check_same([(token, stream[token])], [(token, item)])
            check_same([(token, stream[through_json(token)])], [(token, item)])
            assert stream.locate(token)


def test_estimated_boundaries_are_those_of_the_model() -> None:
    for lanes in LANES:
        stream = ESTIMATED(SOME, lanes)
        check_same(delivered(stream), model.slots(stream)[0])
        check_cuts(stream)
        with pytest.raises(sk.NothingPassed, match="lane 0"):
            next(iter(ESTIMATED(0, lanes)))


@each
def test_global_order_is_that_of_the_lanes_dealt_out(kind: type, number: int) -> None:
    """Slot s is the next item of lane s % lanes, also where lanes end early."""
    stream = BUILDERS[kind][number](SOME, 4)
    lanes = [model.lane_of(stream.stage, lane).pairs for lane in range(4)]
    wanted = [
        lanes[lane][turn]
        for turn in range(max(map(len, lanes), default=0))
        for lane in range(4)
        if turn < len(lanes[lane])
    ]
    check_same(delivered(stream), wanted)


def test_states_are_small() -> None:
    iterator = iter(flow(1000, 4).filter(bool).map(str).batch(2))
    next(iterator)
    assert len(json.dumps(iterator.state_dict())) < 4 * 1024
