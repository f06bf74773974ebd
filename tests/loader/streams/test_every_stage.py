"""Each stage there is, in lanes shared out to ranks and workers: the closed world of tests/stream, again."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.stream.matrix import BUILDERS
from tests.thrift import one_of_each, sample, turns

import seekable as sk
from seekable.formats.lines.line_stream import FromLines
from seekable.loader.lane_batches import LaneReader, LaneStates
from seekable.nodes.rows_to_exclude import rows_left_out
from seekable.state.journal import Exclude
from seekable.stream.batch import Bucket
from seekable.stream.from_dataset import FromDataset, stages_of
from seekable.stream.mix import MixBounded
from seekable.testing.resume import same

if TYPE_CHECKING:
    from tests.stream.matrix import Builder

    from seekable.loader.arguments import WorkerType
    from seekable.state.journal import Journal

LANES, BATCH, SOME = 12, 24, 29
CASES = [
    pytest.param(builder, id=f"{kind.__name__}-{number}")
    for kind, builders in BUILDERS.items()
    for number, builder in enumerate(builders)
]

each_stage = pytest.mark.parametrize("builder", CASES)

one_of_each_class = pytest.mark.parametrize(
    "builder",
    [
        pytest.param(BUILDERS[kind][number], id=f"{kind.__name__}-{number}")
        for kind, number in one_of_each(BUILDERS)
    ],
)

IN_PROCESSES = {(Bucket, 0), (FromLines, 1), (MixBounded, 1)}
"""Processes start for the classes with the most state; threads pass the same messages for all of them.

That each class is resumed in a new process is shown in tests/stream/test_closed_world.py.
"""

IN_WORKERS = [
    pytest.param(
        builder,
        worker_type,
        id=f"{kind.__name__}-{number}-{worker_type}",
        marks=[] if worker_type == "thread" or (kind, number) in IN_PROCESSES else [pytest.mark.exhaustive],
    )
    for kind, builders in BUILDERS.items()
    for number, builder in enumerate(builders)
    for worker_type in ("process", "thread")
    if worker_type == "process" or (kind, number) in one_of_each(BUILDERS)
]


def pulled(stream: sk.Stream, lanes: range, journal: Journal = ()) -> list[Any]:
    """Return what some lanes have for each batch, to their end."""
    reader = LaneReader(stream, LaneStates.fresh(stream, lanes), pad=False, journal=journal)
    parts = []
    for begin in itertools.count(0, BATCH):
        parts.append(reader.read(begin, begin + BATCH))
        if parts[-1].over:
            return parts
    raise AssertionError


def batches_of(parts: list[list[Any]]) -> list[list[tuple[int, Any]]]:
    """Put together what each rank had, batch by batch, in slot order."""
    batches = [
        sorted((pair for part in step if part is not None for pair in part.items), key=lambda pair: pair[0])
        for step in itertools.zip_longest(*parts)
    ]
    while batches and not batches[-1]:
        batches.pop()
    return batches


@pytest.mark.parametrize(
    ("builder", "world_sizes"),
    [
        pytest.param(*case.values, sizes, id=f"{case.id}-{sizes}")
        for case, sizes in zip(CASES, turns([4, 2, 6, 3, 12], len(CASES)), strict=True)
    ],
)
def test_ranks_have_the_global_batches_of_one(builder: Builder, world_sizes: list[int]) -> None:
    stream = builder(SOME, LANES)
    alone = batches_of([pulled(stream, range(LANES))])
    for world_size in world_sizes:
        ranks = [pulled(stream, range(rank, LANES, world_size)) for rank in range(world_size)]
        assert same(batches_of(ranks), alone), world_size


@one_of_each_class
def test_what_became_of_lanes_adds_up_on_other_ranks(builder: Builder) -> None:
    stream = builder(SOME, LANES)
    if not stream.checkpointable:
        pytest.skip("it has no state")
    check_lanes_add_up(stream)


@pytest.mark.parametrize("builder", sample(CASES, of=5))
def test_lanes_that_leave_rows_out_add_up_on_other_ranks(builder: Builder) -> None:
    stream = builder(SOME, LANES)
    sources = [stage.dataset for stage in stages_of(stream.stage) if isinstance(stage, FromDataset)]
    if not sources or not stream.checkpointable:
        pytest.skip("it has no rows that can be left out, or no state")
    rows = rows_left_out(sources[0], np.arange(0, sources[0].size or 0, 3))
    journal = (Exclude(1, rows, position=BATCH),)
    check_lanes_add_up(stream, journal)
    plain, alone = (batches_of([pulled(stream, range(LANES), each)]) for each in ((), journal))
    assert same(plain[:1], alone[:1])


def check_lanes_add_up(stream: sk.Stream, journal: Journal = ()) -> None:
    """Check that lanes deliver the same on other ranks in each step, from states that went through JSON."""
    alone = batches_of([pulled(stream, range(LANES), journal)])
    lanes = LaneStates.fresh(stream, range(LANES))
    for step, world_size in enumerate([4, 6, 1, 3, 2] * 3):
        if step >= len(alone):
            break
        ranks = [range(rank, LANES, world_size) for rank in range(world_size)]
        shares = [lanes.copy_of(rank) for rank in ranks]
        parts = [
            LaneReader(stream, share, pad=False, journal=journal).read(step * BATCH, (step + 1) * BATCH)
            for share in shares
        ]
        items = sorted((pair for part in parts for pair in part.items), key=lambda pair: pair[0])
        assert same(items, alone[step]), (step, world_size)
        for part in parts:
            lanes.apply(part.deltas)
        document = json.loads(json.dumps({str(lane): stages for lane, stages in lanes.document().items()}))
        lanes = LaneStates.parse({int(lane): stages for lane, stages in document.items()}, ())


@pytest.mark.parametrize(("builder", "worker_type"), IN_WORKERS)
def test_workers_deliver_what_one_process_does(builder: Builder, worker_type: WorkerType) -> None:
    stream = builder(SOME, 4)
    alone = sk.Loader(stream, batch_size=8, collate=list, prefetch=0)
    with sk.Loader(stream, batch_size=8, collate=list, workers=sk.Workers(2, type=worker_type)) as loader:
        for one, other in itertools.zip_longest(alone, loader):
            assert same(one, other)
            if stream.checkpointable:
                assert alone.state_dict() == loader.state_dict()


@pytest.mark.frameworks(name="torch")
@pytest.mark.exhaustive
@each_stage
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_torchdata_resumes_its_workers(builder: Builder) -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader

    from seekable.integrations.torch import IterableDataset

    stream = builder(SOME, 4)
    if not stream.checkpointable:
        pytest.skip("it has no state")

    def loader() -> StatefulDataLoader[Any]:
        return StatefulDataLoader(IterableDataset(stream), batch_size=3, num_workers=2, collate_fn=list)

    first = loader()
    batches, states = [], []
    for batch in first:
        batches.append(batch)
        states.append(json.loads(json.dumps(first.state_dict())))
    cuts = sorted({len(batches) // 2, len(batches) - 1} - {0, -1})
    for cut in turns(cuts, 1)[0] if cuts else []:
        again = loader()
        again.load_state_dict(states[cut - 1])
        assert same(list(again), batches[cut:]), cut
