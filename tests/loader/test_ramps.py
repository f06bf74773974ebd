"""Batch sizes that follow the step: every question about steps has one answer, that of a cut step by step."""

from __future__ import annotations

import itertools
import json
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loader.flat import Sizes, batches_of, shuffled
from tests.loader.streams.pipelines import everything, first_of, put_together
from tests.loader.test_machine import RAMPS
from tests.thrift import ALL, sample

import seekable as sk
from seekable.loader.ramp import Ramp
from seekable.loader.step_plan import comings
from seekable.loader.steps import StepCursor, Steps

if TYPE_CHECKING:
    from seekable.loader.steps import End

ENDS: st.SearchStrategy[End] = st.sampled_from(["short", "drop", "pad"])
FEW: Sizes = [(0, 2), (3, 7), (5, 1)]
RAMP: Sizes = [(0, 12), (2, 24), (5, 12), (6, 60)]
IN_WORDS = "12, from step 2 on 24, from step 5 on 12, from step 6 on 60"
ALL_STEPS = 40
CUTS = 20 if ALL else 3


def ramp_of(sizes: Sizes) -> int | Ramp:
    if isinstance(sizes, int):
        return sizes
    starts, each = zip(*sizes, strict=True)
    return Ramp(starts, each)


@dataclass(frozen=True)
class Cut:
    """One batch of the model."""

    before: StepCursor
    after: StepCursor
    places: list[int]
    """The places of all ranks; those after the end of the run are padding."""
    positions: list[int]


def cuts(steps: Steps, sizes: Sizes, cursor: StepCursor, *, runs: int) -> list[list[Cut]]:
    """Return the batches of a cursor's run and of the runs after it, cut step by step."""
    found: list[list[Cut]] = []
    assert steps.total is not None
    for number in range(runs):
        found.append([])
        start = cursor.epoch * (steps.size or 0)
        stop = start + steps.total
        while cursor.position < stop:
            size = next(s for at, s in reversed(pairs(sizes)) if at <= cursor.step)
            places = list(range(cursor.position, cursor.position + size))
            if steps.limit is not None and cursor.step >= cursor.began + steps.limit:
                break
            if places[-1] >= stop and steps.end == "drop":
                break
            if steps.end == "short":
                places = [place for place in places if place < stop]
            after = StepCursor(cursor.step + 1, cursor.epoch, min(cursor.position + size, stop), cursor.began)
            positions = [start + (place - start) % steps.total for place in places]
            found[number].append(Cut(cursor, after, places, positions))
            cursor = after
        epoch = cursor.epoch + (steps.epochs or 0)
        cursor = StepCursor(cursor.step, epoch, epoch * (steps.size or 0), cursor.step)
    return found


def pairs(sizes: Sizes) -> list[tuple[int, int]]:
    return [(0, sizes)] if isinstance(sizes, int) else sizes


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Steps, Sizes, StepCursor]:
    """Draw a division, its sizes, and a cursor that lies anywhere in it."""
    world_size = draw(st.sampled_from([1, 2, 3, 4]))
    sizes = [(at, size * world_size) for at, size in pairs(draw(RAMPS))]
    steps = Steps(
        size=draw(st.integers(0, 40)),
        epochs=draw(st.integers(1, 3)),
        batch=ramp_of(sizes),
        end=draw(ENDS),
        limit=draw(st.none() | st.integers(1, 9)),
        rank=draw(st.integers(0, world_size - 1)),
        world_size=world_size,
    )
    if draw(st.booleans()):
        return steps, sizes, StepCursor()
    epoch, step = draw(st.integers(0, 3)), draw(st.integers(0, 20))
    position = steps.start_of(epoch) + draw(st.integers(0, steps.total or 0))
    return steps, sizes, StepCursor(step, epoch, position, draw(st.integers(0, step)))


@given(given=drawn())
def test_the_arithmetic_is_that_of_a_cut_step_by_step(given: tuple[Steps, Sizes, StepCursor]) -> None:
    steps, sizes, cursor = given
    run, *later = cuts(steps, sizes, cursor, runs=8)
    assert steps.left(cursor) == len(run)
    assert steps.count(cursor) == cursor.step - cursor.began + len(run)
    for batches in range(len(run) + 2):
        wanted = [cursor, *(cut.after for cut in run)][min(batches, len(run))]
        assert steps.after(cursor, batches) == wanted
        check_positions(steps, cursor, run[:batches])
    at = steps.next_run(run[-1].after if run else cursor)
    for cuts_of_run in later:
        assert steps.left(at) == steps.count(at) == len(cuts_of_run)
        assert at == (cuts_of_run[0].before if cuts_of_run else at)
        at = steps.next_run(cuts_of_run[-1].after if cuts_of_run else at)


def check_positions(steps: Steps, cursor: StepCursor, wanted: list[Cut]) -> None:
    """Compare the positions of some next batches, of all ranks and of one."""
    for all_ranks in (True, False):
        positions, bounds = steps.positions(cursor, len(wanted), all_ranks=all_ranks)
        parts = [positions[first:stop].tolist() for first, stop in itertools.pairwise(bounds.tolist())]
        assert parts == [
            [
                position
                for place, position in zip(cut.places, cut.positions, strict=True)
                if all_ranks or place % steps.world_size == steps.rank
            ]
            for cut in wanted
        ]
        for part, cut in zip(parts, wanted, strict=True):
            is_whole = len(cut.places) == steps.size_at(cut.before.step)
            assert not is_whole or len(part) == len(cut.places) // (1 if all_ranks else steps.world_size)


@given(given=drawn())
def test_steps_ahead_and_their_inverse_are_those_of_the_cut(given: tuple[Steps, Sizes, StepCursor]) -> None:
    steps, sizes, cursor = given
    runs = cuts(steps, sizes, cursor, runs=60)
    flat = [cut for run in runs for cut in run]
    for cut in flat[:ALL_STEPS]:
        assert steps.ahead(cursor, cut.before.step) == cut.before
    if not any(runs[1:]):
        beyond = cursor.step + len(runs[0])
        with pytest.raises(sk.errors.InvalidArgument, match=f"step {beyond} never comes"):
            steps.ahead(cursor, beyond)
    positions = np.arange(
        steps.start_of(cursor.epoch), steps.start_of(cursor.epoch + 6 * (steps.epochs or 1))
    )
    shuffled_positions = np.random.default_rng(0).permutation(positions)
    told = [(at.step, at.position, at.epoch, at.rank) for at in comings(steps, cursor, shuffled_positions)]
    assert told == [
        (cut.before.step, position, position // (steps.size or 1), place % steps.world_size)
        for run in runs[:6]
        for cut in run
        for place, position in zip(cut.places, cut.positions, strict=True)
    ]


@given(given=drawn())
def test_a_rank_without_a_record_is_found_in_any_run(given: tuple[Steps, Sizes, StepCursor]) -> None:
    steps, sizes, cursor = given
    # As many runs as it takes until no size changes any more.
    runs = cuts(steps, sizes, cursor, runs=60)
    lacks = [cut for run in runs for cut in run if len(cut.places) < steps.world_size]
    if lacks and steps.end == "short":
        with pytest.raises(sk.errors.InvalidArgument, match=r"end='drop' or end='pad'"):
            steps.check_short(cursor)
    else:
        steps.check_short(cursor)


@given(sizes=RAMPS, step=st.integers(0, 60), records=st.integers(0, 400), limit=st.none() | st.integers(1, 9))
def test_data_without_an_end_is_cut_alike(sizes: Sizes, step: int, records: int, limit: int | None) -> None:
    each = [next(size for at, size in reversed(pairs(sizes)) if at <= number) for number in range(500)]
    steps = Steps(None, None, batch=ramp_of(sizes), end="short", limit=limit, rank=0, world_size=1)
    for gone in range(20):
        at = StepCursor(step + gone, 0, 7 + sum(each[step : step + gone]))
        assert steps.ahead(StepCursor(step, 0, 7), step + gone) == at
    assert steps.whole_batches(step, records) == max(
        k for k in range(410) if sum(each[step : step + k]) <= records
    )
    assert steps.batches(step, records) == min(k for k in range(410) if sum(each[step : step + k]) >= records)
    back = [start for start in range(step + 1) if sum(each[start:step]) >= records]
    assert steps.began(step, records) == max(back, default=0)
    spans = list(itertools.islice(steps.spans(StepCursor(step, 0, 7)), 20))
    assert [stop - first for first, stop in spans] == each[step : step + 20]
    assert [first for first, _ in spans] == [7 + sum(each[step : step + k]) for k in range(20)]


def test_no_count_of_steps_costs_time_or_overflows() -> None:
    last = 1 << 60
    ramp = Ramp((0, 1000, last), (256, 512, 1 << 30))
    steps = Steps(10**9, 1, batch=ramp, end="pad", limit=None, rank=0, world_size=1)
    runs = list(steps.runs(StepCursor()))
    assert len(runs) == 4
    assert runs[-1].step >= last
    far = steps.ahead(StepCursor(), last + 12345)
    assert steps.ahead(far, last + 12346).position == far.position + 10**9
    (found,) = comings(steps, StepCursor(), np.array([1_500_000_000]))
    assert steps.ahead(StepCursor(), found.step).position <= 1_500_000_000
    endless = Steps(None, None, batch=ramp, end="short", limit=None, rank=0, world_size=1)
    (found,) = comings(endless, StepCursor(), np.array([2**62]))
    assert endless.ahead(StepCursor(), found.step).position <= 2**62


def test_golden_values() -> None:
    steps = Steps(
        1000, 1, batch=Ramp((0, 3, 10), (64, 128, 32)), end="short", limit=None, rank=0, world_size=1
    )
    counts, at = [], StepCursor()
    for _ in range(4):
        counts.append(steps.count(at))
        at = steps.next_run(steps.after(at, 10**6))
    assert counts == [10, 32, 32, 32]
    reached = [steps.ahead(StepCursor(), step) for step in (2, 3, 9, 10, 41, 42)]
    assert [(each.position, each.began) for each in reached] == [
        (128, 0),
        (192, 0),
        (960, 0),
        (1000, 10),
        (1992, 10),
        (2000, 42),
    ]


def loader_of(dataset: sk.Dataset | sk.Stream, sizes: Sizes = RAMP, **given: Any) -> sk.Loader:
    arguments = {"global_batch_size": sizes, "collate": list, "prefetch": 0, **given}
    return sk.Loader(dataset, **arguments)


@pytest.mark.parametrize(
    ("end", "world_size"), sample(itertools.product(["short", "drop", "pad"], [1, 2, 3, 4]), of=2)
)
def test_a_run_resumes_at_every_cut_on_any_ranks(end: End, world_size: int) -> None:
    dataset = shuffled(204)
    wanted = batches_of(dataset, RAMP, end=end, runs=3)
    alone, loader = loader_of(dataset, end=end), loader_of(dataset, end=end)
    lengths = []
    run = iter(loader)
    for step in range(len(wanted) + 1):
        state = json.loads(json.dumps(loader.state_dict()))
        parts = []
        for rank in range(world_size):
            again = loader_of(dataset, end=end, rank=rank, world_size=world_size)
            again.load_state_dict(state)
            assert again.state_dict() == state
            assert (len(again), again.steps_left) == (len(loader), loader.steps_left)
            assert again.batch_size == loader.global_batch_size // world_size
            if step < len(wanted):
                rows = [record.place.row for record in again.plan(step=step, rank=rank).records]
                parts.append(next(iter(again), None) or next(iter(again)))
                assert parts[-1] == rows
                assert [place.row for place in again.locate(step=0)] == wanted[0]
        if step < len(wanted):
            assert put_together(parts, position_at(alone, step)) == wanted[step]
            lengths.append(len(loader))
            if (batch := next(run, None)) is None:
                run = iter(loader)
                batch = next(run)
            assert batch == wanted[step]
    ends = [len(batches_of(dataset, RAMP, end=end, runs=runs)) for runs in (0, 1, 2, 3)]
    assert set(lengths) == {new - old for old, new in itertools.pairwise(ends)}


def position_at(loader: sk.Loader, step: int) -> int:
    return loader.plan(step=step).records[0].position


@pytest.mark.parametrize("how", [{"workers": sk.Workers(3, type="thread")}, {"workers": 2}, {"prefetch": 3}])
def test_whoever_makes_the_batches_they_are_the_same(how: dict[str, Any]) -> None:
    wanted = batches_of(shuffled(204), RAMP, end="pad", runs=2)
    with loader_of(shuffled(204), end="pad", **how) as loader:
        run = iter(loader)
        assert [next(run) for _ in range(3)] == wanted[:3]
        loader.skip_batches(2)
        assert [*run, *loader] == wanted[5:]


def test_a_change_that_was_not_planned_counts_from_the_position() -> None:
    """As with another number: the next batch begins where the last one ended, with the size of its step."""
    flat, later = list(shuffled(204)), list(shuffled(204).epoch(1))
    loader = loader_of(shuffled(204), 8)
    run = iter(loader)
    for _ in range(5):
        next(run)
    other = loader_of(shuffled(204), [(0, 4), (6, 20), (8, 30)])
    other.load_state_dict(loader.state_dict())
    assert list(itertools.islice(iter(other), 4)) == [flat[40:44], flat[44:64], flat[64:84], flat[84:114]]
    assert [place.row for place in other.locate(step=8)] == flat[84:114]
    assert [place.row for place in other.locate(step=12)] == later[:30]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"step must be at least 5, where the batches changed"
    ):
        other.locate(step=4)
    # A state of a ramp loads into a loader of one size, and of the same sizes said in another way.
    third = loader_of(shuffled(204), 10)
    third.load_state_dict(other.state_dict())
    assert next(iter(third)) == flat[114:124]
    same = loader_of(shuffled(204), [(0, 4), (3, 4), (6, 20), (8, 30)])
    assert list(same) == list(loader_of(shuffled(204), [(0, 4), (6, 20), (8, 30)]))


def test_a_regular_state_knows_the_steps_before_it() -> None:
    loader = loader_of(shuffled(204))
    wanted = batches_of(shuffled(204), RAMP, runs=3)
    list(loader)
    run = iter(loader)
    next(run)
    again = loader_of(shuffled(204))
    again.load_state_dict(loader.state_dict())
    assert [[place.row for place in again.locate(step=step)] for step in range(len(wanted))] == wanted
    place = again.locate(step=3)[5]
    assert [coming.step for coming in again.when(place.path, place.row)] == [3]


@pytest.mark.parametrize(
    ("end", "sizes"),
    sample(itertools.product(["short", "drop", "pad"], [FEW, [(0, 12), (1, 6), (3, 24)]]), of=2),
)
def test_a_stream_that_ends_resumes_at_every_cut(end: End, sizes: Sizes) -> None:
    """The lanes end one after another: a batch of few slots may have no item, and counts as a step."""

    def loader(**given: Any) -> sk.Loader:
        return loader_of(everything(epochs=1, n=70), sizes, end=end, steps=100, **given)

    steps, states, wanted = [], [], []
    alone = loader()
    for batch in alone:
        wanted.append(batch)
        steps.append(alone.step)
        states.append(json.loads(json.dumps(alone.state_dict())))
    assert (steps[-1] > len(steps)) == (end == "short" and sizes == FEW)
    if end != "pad":
        delivered = list(itertools.chain(*wanted))
        assert delivered == first_of(everything(epochs=1, n=70), len(delivered))
    following = list(alone)
    with loader(workers=sk.Workers(3, type="thread")) as by_threads:
        assert [*by_threads, *by_threads] == wanted + following
    for at, state in list(enumerate(states))[:: max(1, len(states) // CUTS)]:
        again = loader()
        again.load_state_dict(state)
        found = []
        for batch in again:
            found.append(batch)
            assert again.step == steps[at + len(found)]
        assert found == wanted[at + 1 :]
    assert list(again) == following


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_the_lanes_of_a_stream_are_cut_alike_on_any_ranks(world_size: int) -> None:
    loaders = [
        loader_of(everything(), rank=rank, world_size=world_size, steps=9) for rank in range(world_size)
    ]
    delivered: list[Any] = []
    for step, parts in enumerate(zip(*loaders, strict=True)):
        size = next(size for at, size in reversed(pairs(RAMP)) if at <= step)
        assert {len(part) for part in parts} == {size // world_size}
        delivered += put_together(list(parts), len(delivered))
    assert delivered == first_of(everything(), len(delivered))
    assert len(delivered) == 2 * 12 + 3 * 24 + 12 + 3 * 60


def test_what_a_loader_says_of_its_sizes() -> None:
    loader = loader_of(shuffled(204), rank=0, world_size=2)
    assert repr(loader).startswith(f"<Loader at step 0: batches of {IN_WORDS}, rank 0 of 2, 8 in a run, of ")
    assert loader.explain().splitlines()[:2] == [
        f"batches: of {IN_WORDS} records on 2 ranks, of which this is 0",
        "a run: 8 batches, 1 epoch of 204 records; the last batch has 36",
    ]
    found = []
    for step in (0, 2, 4, 5, 6):
        loader.skip_batches(step - loader.step)
        found.append((loader.batch_size, loader.global_batch_size, loader.plan(step=step).batch))
    assert found == [(6, 12, 12), (12, 24, 24), (12, 24, 24), (6, 12, 12), (30, 60, 60)]
    with pytest.raises(sk.errors.InvalidArgument, match=r"got loader.batch_size = 7"):
        loader.batch_size = 7  # type: ignore[misc]  # that is the test


@pytest.mark.parametrize(
    ("sizes", "error", "text"),
    [
        ([], "InvalidArgument", "at least one pair"),
        ([(1, 4)], "InvalidArgument", r"holds from step 0 on \(got step 1\): begin with \(0, 4\)"),
        ([(0, 4), (0, 8)], "InvalidArgument", r"must ascend \(got 0 after 0\)"),
        ([(0, 4), (9, 8), (3, 4)], "InvalidArgument", r"must ascend \(got 3 after 9\)"),
        (
            [(0, 4), (9, 5)],
            "InvalidArgument",
            r"the size of global_batch_size\[1\] .* of world_size=2 \(got 5\)",
        ),
        ([(0, 4), (9, 0)], "InvalidArgument", r"the size of global_batch_size\[1\] must be at least 1"),
        ([(0, 4), (-1, 4)], "InvalidArgument", r"the step of global_batch_size\[1\] must be at least 0"),
        ([(0, 4), (9, 1 << 31)], "InvalidArgument", r"must be below 2\*\*31"),
        ([(0, 4), (9.5, 8)], "WrongType", r"the step of global_batch_size\[1\] must be an integer"),
        ([(0, "4")], "WrongType", r"the size of global_batch_size\[0\] must be an integer"),
        ([4, 8], "WrongType", r"global_batch_size\[0\] must be a pair"),
        ([(0, 4, 1)], "WrongType", r"global_batch_size\[0\] must be a pair"),
        ({0: 4}, "WrongType", "global_batch_size must be an integer"),
    ],
)
def test_wrong_sizes_are_named(sizes: Any, error: str, text: str) -> None:
    with pytest.raises(getattr(sk.errors, error), match=text):
        loader_of(shuffled(9), sizes, rank=0, world_size=2, end="pad")
    with pytest.raises(
        sk.errors.WrongType, match=r"pass global_batch_size=\[\(0, 4\)\] instead of batch_size"
    ):
        sk.Loader(shuffled(9), batch_size=[(0, 4)])  # type: ignore[arg-type]  # that is the test


def test_a_rank_that_a_later_run_leaves_without_a_record_is_named_when_it_is_built() -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"1 of 2 ranks .* that begins at step 2, which has 1"
    ):
        loader_of(shuffled(13), [(0, 10), (2, 12)], rank=0, world_size=2)


def test_one_size_is_no_ramp() -> None:
    """The state of a loader with one size is the same, byte for byte, in whichever way the size is said."""
    states = []
    for sizes in (8, [(0, 8)], [(0, 8), (5, 8)]):
        loader = loader_of(shuffled(40), sizes)
        next(iter(loader))
        states.append(json.dumps(loader.state_dict()))
    assert states[0] == states[1] == states[2]
    assert "began" not in states[0]
    assert "ramp" not in states[0]
    steps = Steps(40, 1, batch=8, end="short", limit=None, rank=0, world_size=1)
    assert pickle.loads(pickle.dumps(steps)) == steps
    assert len(pickle.dumps(steps)) < 250
