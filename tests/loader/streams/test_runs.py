"""Runs over streams: ends, cuts, skipped batches, items as they are, and what goes wrong."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.induction import check_in_a_new_process
from tests.loader.streams.pipelines import everything, first_of, is_even, numbers
from tests.thrift import ALL, sample

import seekable as sk
from seekable.stream.lane import LaneIterator

if TYPE_CHECKING:
    from seekable.loader.arguments import WorkerType
    from seekable.loader.steps import End

ENDS = ["short", "drop", "pad"]

CHEAP_TYPE: WorkerType = "process" if ALL else "thread"
"""Threads pass the same messages as processes, and start at once."""


def by_slots(stream: sk.Stream) -> list[list[Any]]:
    """Return the items of each lane."""
    return [[item for _, item in flow] for flow in lanes_of(stream)]


def lanes_of(stream: sk.Stream) -> list[Any]:
    return [LaneIterator(stream.stage, lane) for lane in range(stream.lanes)]


def model(stream: sk.Stream, batch: int, end: str) -> list[list[Any]]:
    """Cut the slots of a stream that ends into batches, as plainly as can be."""
    lanes = by_slots(stream)
    rounds = max(map(len, lanes))
    if end == "drop":
        rounds = min(map(len, lanes))
    slots: list[Any] = []
    for turn, lane in itertools.product(range(rounds), lanes):
        there = turn < len(lane) or end == "pad"
        slots.append([lane[turn % len(lane)]] if there else [])
    if end == "pad":
        more = ((turn, lane) for turn in itertools.count(rounds) for lane in lanes)
        last = max(turn * len(lanes) + i for i, lane in enumerate(lanes) for turn in range(len(lane))) + 1
        slots = slots[: -(-last // batch) * batch]
        while len(slots) % batch:
            turn, lane = next(more)
            slots.append([lane[turn % len(lane)]])
    cut = [list(itertools.chain(*slots[i : i + batch])) for i in range(0, len(slots), batch)]
    if end == "drop" and slots and len(slots) % batch:
        cut.pop()
    return [each for each in cut if each]


@pytest.mark.parametrize(
    ("end", "batch", "n"), sample(itertools.product(ENDS, [1, 3, 4, 8, 10, 1000], [12, 30, 61]), of=5)
)
def test_ends(n: int, batch: int, end: End) -> None:
    stream = numbers(0, n, lanes=4, epochs=2).filter(is_even)
    loader = sk.Loader(stream, batch_size=batch, end=end, collate=list, prefetch=0)
    wanted = model(stream, batch, end)
    assert list(loader) == wanted
    assert list(loader) == wanted, "the next run is another one from the start"
    states = [loader.state_dict(), *(loader.state_dict() for _ in loader)]
    for cut, state in enumerate(states[: len(wanted) + 1]):
        again = sk.Loader(stream, batch_size=batch, end=end, collate=list, prefetch=2)
        again.load_state_dict(json.loads(json.dumps(state)))
        assert again.state_dict() == state
        assert list(again) == wanted[cut:], cut


BY_PROCESSES = [
    pytest.param(end, 2, "process", marks=[] if end == "pad" else pytest.mark.exhaustive) for end in ENDS
]


@pytest.mark.parametrize(
    ("end", "workers", "kind"), [*BY_PROCESSES, *itertools.product(ENDS, [2, 3], ["thread"])]
)
def test_workers_end_where_one_process_does(end: End, workers: int, kind: WorkerType) -> None:
    stream = numbers(0, 61, lanes=4, epochs=2).filter(is_even)
    alone = list(sk.Loader(stream, batch_size=3, end=end, collate=list))
    with sk.Loader(
        stream, batch_size=3, end=end, collate=list, workers=sk.Workers(workers, type=kind)
    ) as loader:
        assert [list(loader), list(loader)] == [alone, alone]


def test_a_run_resumes_at_every_cut_in_a_new_process_too() -> None:
    check_in_a_new_process(
        [
            ("endless", lambda: sk.Loader(everything(lanes=3), batch_size=5, steps=7)),
            ("ending", lambda: sk.Loader(everything(lanes=2, epochs=1, n=30), batch_size=4)),
        ]
    )


def test_runs_of_an_endless_stream_follow_one_another() -> None:
    loader = sk.Loader(everything(), batch_size=10, steps=3, collate=list)
    delivered = [item for _ in range(3) for batch in loader for item in batch]
    assert delivered == first_of(everything(), 90)


def test_skipped_batches_are_run_through() -> None:
    loader = sk.Loader(everything(), batch_size=10, collate=list)
    run = iter(loader)
    first = next(run)
    loader.skip_batches(3)
    assert loader.step == 4
    assert [*first, *next(run)] == first_of(everything(), 50)[:10] + first_of(everything(), 50)[40:]
    again = sk.Loader(everything(), batch_size=10, collate=list)
    again.load_state_dict(loader.state_dict())
    assert next(iter(again)) == next(run)
    assert loader.report()["skipped"] == 3


def test_items_may_come_as_they_are() -> None:
    stream = sk.from_sequence(["a" * n for n in range(1, 40)]).shuffle(seed=1).stream(lanes=2)
    buckets = stream.bucket(len, max_cost=50, seed=0, buffer=20)
    with sk.Loader(buckets, batch_size=None, steps=10, workers=sk.Workers(2, type=CHEAP_TYPE)) as loader:
        assert list(loader) == first_of(buckets, 10)
    ranks = [
        sk.Loader(buckets, batch_size=None, rank=rank, world_size=2, steps=5, prefetch=0) for rank in range(2)
    ]
    assert [item for pair in zip(*ranks, strict=True) for item in pair] == first_of(buckets, 10)


def test_an_interrupt_loses_nothing() -> None:
    interrupts = iter([False] * 9 + [True] + [False] * 1000)

    def passed(number: int) -> int:
        if next(interrupts):
            raise KeyboardInterrupt
        return number

    stream = numbers(0, 50, lanes=1, epochs=1)
    loader = sk.Loader(stream.map(passed), batch_size=4, collate=list, prefetch=0)
    run = iter(loader)
    delivered: list[int] = []
    # How far ahead of its batch the tenth item is made depends on the time that the items before it took.
    with pytest.raises(KeyboardInterrupt):
        delivered.extend(itertools.chain.from_iterable(run))
    assert delivered + [item for batch in run for item in batch] == list(stream)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_where_its_batch_would_have(workers: int) -> None:
    def passed(number: int) -> int:
        if number == 13:
            message = "unlucky"
            raise ArithmeticError(message)
        return number

    stream = sk.from_sequence(range(40)).stream(lanes=2, epochs=1).map(passed)
    with sk.Loader(
        stream, batch_size=4, collate=list, workers=sk.Workers(workers, type=CHEAP_TYPE)
    ) as loader:
        run = iter(loader)
        assert [next(run) for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        state = loader.state_dict()
        with pytest.raises(ArithmeticError, match="unlucky") as raised:
            next(run)
        assert any("token 13" in note for note in raised.value.__notes__)
        with pytest.raises(ArithmeticError):
            next(run)
        assert loader.state_dict() == state


def test_lanes_without_a_record_are_an_error_and_not_a_hang() -> None:
    stream = sk.from_sequence(range(3)).stream(lanes=4)
    last = sk.Loader(stream, global_batch_size=4, rank=3, world_size=4, prefetch=0)
    with pytest.raises(sk.errors.NothingPassed, match="all lanes of rank 3 of 4 are empty"):
        next(iter(last))
    padded = sk.Loader(numbers(0, 3, lanes=4, epochs=1), batch_size=4, end="pad", prefetch=0)
    with pytest.raises(sk.errors.NothingPassed, match="lane 3 of 4 has no item"):
        list(padded)


def test_a_stream_that_cannot_be_resumed_says_so_when_its_state_is_taken() -> None:
    stream = sk.from_iterable(lambda: iter(range(10)))
    loader = sk.Loader(stream, batch_size=2, collate=list)
    assert next(iter(loader)) == [0, 1]
    with pytest.raises(sk.errors.NotResumable, match="replay=True"):
        loader.state_dict()


def third_is_lost(number: int) -> Any:
    return sk.HOLE if number % 3 == 0 else number


@pytest.mark.parametrize(
    ("workers", "kind"),
    [(0, "process"), (2, "thread"), pytest.param(2, "process", marks=pytest.mark.exhaustive)],
)
def test_holes_are_left_out_and_counted(workers: int, kind: WorkerType) -> None:
    stream = sk.from_sequence(range(30)).map(third_is_lost).stream(lanes=2, epochs=1)
    with sk.Loader(stream, batch_size=4, collate=list, workers=sk.Workers(workers, type=kind)) as loader:
        delivered = [item for batch in loader for item in batch]
        assert sorted(delivered) == [number for number in range(30) if number % 3]
        assert loader.report()["holes"] == 10
    with (
        sk.Loader(
            stream, batch_size=4, collate=list, workers=sk.Workers(workers, type=kind), max_holes=3
        ) as loader,
        pytest.raises(sk.errors.TooManyHoles, match="max_holes=3"),
    ):
        list(loader)


def test_holes_of_several_rounds_in_one_batch_are_all_counted() -> None:
    stream = sk.from_sequence(range(6)).map(third_is_lost).stream(epochs=1).repeat(5)
    loader = sk.Loader(stream, batch_size=18, collate=list)
    assert [len(batch) for batch in loader] == [18, 2]
    assert loader.report()["holes"] == 10
