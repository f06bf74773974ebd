"""Every stage there is delivers what its model says, and resumes exactly wherever it is cut.

The world is closed: a new class of stage fails here until builders of it stand in tests/stream/matrix.py,
and a model in tests/stream/model.py.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys

import cloudpickle
import pytest
from tests.cli import warm
from tests.concrete import concrete_classes
from tests.stream import model
from tests.stream.common import check_cuts, check_same, delivered, run_of, through_json
from tests.stream.matrix import BUILDERS, ESTIMATED, flow
from tests.thrift import ALL, one_of_each, sample

import seekable as sk
import seekable.stream
from seekable.stream.stage import Stage
from seekable.stream.take import ShuffleItems

LANES = [1, 2, 4, 12]
SOME = 29 if ALL else 17
"""No number of lanes divides it, and four lanes of three epochs fill each buffer."""

MANY, LANES_OF_MANY = (300, 4) if ALL else (100, 1)
"""Each lane has more than the 64 items that are taken of it at a time."""

EACH = [(kind, number) for kind, builders in BUILDERS.items() for number in range(len(builders))]


def in_lanes(numbers: list[int]) -> pytest.MarkDecorator:
    """Run a test for each stage, with each number of lanes or one of them in turn."""
    cases = sample(itertools.product(EACH, numbers), of=len(numbers))
    return pytest.mark.parametrize(
        ("kind", "number", "lanes"),
        [
            pytest.param(kind, number, lanes, id=f"{kind.__name__}-{number}-{lanes}")
            for (kind, number), lanes in cases
        ],
    )


each = pytest.mark.parametrize(
    ("kind", "number"),
    [pytest.param(kind, number, id=f"{kind.__name__}-{number}") for kind, number in EACH],
)


one_of_each_class = pytest.mark.parametrize(
    ("kind", "number"),
    [pytest.param(kind, number, id=f"{kind.__name__}-{number}") for kind, number in one_of_each(BUILDERS)],
)


def test_every_class_of_stage_has_builders() -> None:
    missing = {kind.__name__ for kind in concrete_classes(Stage) - BUILDERS.keys()}
    assert not missing, f"put builders of {missing} into tests/stream/matrix.py"
    assert concrete_classes(Stage) == BUILDERS.keys()


def test_the_walk_finds_a_new_class() -> None:
    class Another(ShuffleItems):  # type: ignore[misc]  # stages are final, and this one is made to be found
        __module__ = "seekable.stream.another"

    assert Another in concrete_classes(Stage)
    del Another
    gc.collect()  # classes are parts of cycles
    assert concrete_classes(Stage) == BUILDERS.keys()


# In four lanes: test_global_order_is_that_of_the_lanes_dealt_out.
@in_lanes([1, 2, 12])
def test_a_stage_is_its_model(kind: type, number: int, lanes: int) -> None:
    for n in sorted({0, 1, lanes - 1, lanes, SOME}):
        stream = BUILDERS[kind][number](n, lanes)
        assert type(stream.stage) is kind
        pairs, ended = model.slots(stream)
        assert ended
        check_same(delivered(stream), pairs)


# In four lanes: test_a_new_process_resumes_exactly_at_every_cut_twice.
@in_lanes([1, 2, 12])
def test_a_stage_resumes_exactly_at_every_cut_twice(kind: type, number: int, lanes: int) -> None:
    # Of 12 lanes, each has about as many records of 11 as of 17.
    for n in sorted({0, 1, lanes - 1, *([SOME] if ALL or lanes < 12 else [])}):
        check_cuts(BUILDERS[kind][number](n, lanes))


def test_a_new_process_resumes_exactly_at_every_cut_twice() -> None:
    """One process for all stages in four lanes, and for all cuts."""
    cases = []
    for kind, number in EACH:
        for n in (0, 1, 3, SOME) if ALL else (number % 4, SOME):
            stream = BUILDERS[kind][number](n, 4)
            pairs, states = run_of(stream)
            cases.append((f"{kind.__name__}-{number} of {n}", stream, pairs, json.dumps(states)))
    child = warm.run(
        [], program=CHILD, data=cloudpickle.dumps(sys.path) + cloudpickle.dumps(cases), timeout=600
    )
    assert child.returncode == 0, child.stderr.decode()
    assert int(child.stdout) == len(cases)


CHILD = """
import json, pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
cases = pickle.load(sys.stdin.buffer)
from tests.stream.common import check_every_cut
for name, stream, pairs, states in cases:
    try:
        check_every_cut(stream, pairs, json.loads(states))
    except AssertionError as error:
        raise AssertionError(name) from error
print(len(cases))
"""


@one_of_each_class
def test_hundreds_of_records_resume_exactly(kind: type, number: int) -> None:
    stream = BUILDERS[kind][number](MANY, LANES_OF_MANY)
    count = len(delivered(stream))
    assert count > 64
    check_cuts(stream, cuts=[0, 1, 63, 64, count // 2, count - 1, count])


@one_of_each_class
def test_tokens_rebuild_their_items(kind: type, number: int) -> None:
    for lanes in sample((4, 1), of=2):
        stream = BUILDERS[kind][number](SOME, lanes)
        for token, item in delivered(stream):
            if not stream.indexed:
                with pytest.raises(sk.errors.BadToken):
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
        with pytest.raises(sk.errors.NothingPassed, match="nothing comes out of"):
            next(iter(ESTIMATED(0, lanes)))


@each
def test_global_order_is_that_of_the_lanes_dealt_out(kind: type, number: int) -> None:
    """Slot s is the next item of lane s % lanes, also where lanes end early."""
    for n in (0, 1, 3, 4, SOME):
        stream = BUILDERS[kind][number](n, 4)
        assert type(stream.stage) is kind
        lanes = [model.lane_of(stream.stage, lane) for lane in range(4)]
        assert all(lane.ended for lane in lanes)
        wanted = [
            lane.pairs[turn]
            for turn in range(max(len(lane.pairs) for lane in lanes))
            for lane in lanes
            if turn < len(lane.pairs)
        ]
        check_same(delivered(stream), wanted)


def test_states_are_small() -> None:
    iterator = iter(flow(1000, 4).filter(bool).map(str).batch(2))
    next(iterator)
    assert len(json.dumps(iterator.state_dict())) < 4 * 1024
