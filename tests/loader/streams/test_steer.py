"""A run over a mixture of streams is steered: each lane changes after its last item before the step."""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.order import models

import seekable as sk
from seekable.order.keys import derive, kind_key
from seekable.state.journal import Steer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LANES, BATCH, COUNT = 6, 12, 14
WEIGHTS = {"a": 3, "b": 1}
STEERS = {4: (0, 1), 9: (2, 1)}


@functools.cache
def part(name: str) -> sk.Dataset:
    return sk.from_sequence([f"{name}{row}" for row in range(60)], version=name)


def mixed(**options: Any) -> sk.Stream:
    parts = {name: part(name).stream(lanes=LANES) for name in WEIGHTS}
    return sk.mix(parts, weights=WEIGHTS, seed=1, **options)


def make(stream: sk.Stream | None = None, **options: Any) -> sk.Loader:
    options = {"global_batch_size": BATCH, "prefetch": 0, "rank": 0, "world_size": 1, **options}
    return sk.Loader(mixed() if stream is None else stream, collate=list, **options)


@functools.cache
def modelled() -> list[list[str]]:
    """Label the draws of each lane, and count what its parts give, with lists alone."""
    lanes = []
    for lane in range(LANES):
        labels: list[int] = []
        changes = [(0, tuple(WEIGHTS.values())), *STEERS.items(), (COUNT, ())]
        for number, ((first, weights), (stop, _)) in enumerate(itertools.pairwise(changes)):
            key = derive(kind_key("mix"), 1, 0, *([number] if number else []))
            draws = (stop - first) * BATCH // LANES
            whole = models.lane_labels(
                ((0, weights),), key=key, epoch=0, lane=lane, lanes=LANES, draws=-(-draws // 64) * 64
            )
            labels += whole[:draws]
        given, items = dict.fromkeys(range(2), 0), []
        for label in labels:
            row = (given[label] * LANES + lane) % 60
            items.append(f"{'ab'[label]}{row}")
            given[label] += 1
        lanes.append(items)
    slots = [lanes[slot % LANES][slot // LANES] for slot in range(COUNT * BATCH)]
    return [slots[first : first + BATCH] for first in range(0, len(slots), BATCH)]


@pytest.mark.parametrize(
    "ahead", [{}, {"prefetch": 4}, {"prefetch": 3, "workers": sk.Workers(2, type="thread")}], ids=str
)
def test_batches_are_those_of_the_model(ahead: dict[str, Any]) -> None:
    with make(**ahead) as loader:
        batches = iter(loader)
        for step, batch in enumerate(modelled()):
            if step in STEERS:
                loader.steer(STEERS[step])
            assert next(batches) == batch
        assert loader.journal == tuple(Steer(at, each, 0, at * BATCH) for at, each in STEERS.items())
        again = iter(make(journal=loader.journal))
        assert [next(again) for _ in range(COUNT)] == modelled()


def test_processes_change_too() -> None:
    with make(prefetch=4, workers=2) as loader:
        batches = iter(loader)
        delivered = [next(batches) for _ in range(4)]
        loader.steer(STEERS[4])
        loader.steer(STEERS[9], at=9)
        assert delivered + [next(batches) for _ in range(COUNT - 4)] == modelled()


@pytest.mark.parametrize("world_size", [1, 2, 3, 6])
def test_states_resume_at_every_cut_on_any_ranks(world_size: int, tmp_path: Path) -> None:
    def steered(rank: int, ranks: int) -> sk.Loader:
        loader = make(rank=rank, world_size=ranks)
        for at, weights in STEERS.items():
            loader.steer(weights, at=at)
        return loader

    first = [steered(rank, world_size) for rank in range(world_size)]
    runs = [iter(loader) for loader in first]
    for step in range(COUNT):
        if step in (0, 3, 4, 5, 8, 9, 12):
            for loader in first:
                sk.save_state(tmp_path / str(step), loader)
            ranks = 6 // world_size
            others = [make(rank=rank, world_size=ranks) for rank in range(ranks)]
            for other in others:
                assert sk.load_state(tmp_path / str(step), other)
            shares = [next(iter(other)) for other in others]
            assert interleaved(shares) == modelled()[step]
        assert interleaved([next(run) for run in runs]) == modelled()[step]


def interleaved(shares: list[Any]) -> list[Any]:
    return [item for row in zip(*shares, strict=True) for item in row]


def items_of(loader: sk.Loader, count: int) -> list[Any]:
    batches = iter(loader)
    return [next(batches) for _ in range(count)]


def in_short_turns() -> sk.Stream:
    stage: Any = mixed(open=2).stage
    return sk.Stream(replace(stage, items_per_turn=2))


PIPELINES: dict[str, Callable[[], sk.Stream]] = {
    "buffer": lambda: mixed().shuffle(buffer=20, seed=3),
    "open": in_short_turns,
    "nested": lambda: sk.mix(
        {"x": mixed(), "y": part("c").stream(lanes=LANES)}, weights=[2, 1], seed=7
    ).filter(str.isalnum),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_what_waits_stays_and_every_cut_resumes(name: str) -> None:
    stream = PIPELINES[name]()
    mixture = "x" if name == "nested" else None
    before = items_of(make(stream), COUNT)
    loader = make(stream)
    loader.steer({"a": 0, "b": 1}, at=4, mixture=mixture)
    loader.steer({"a": 1, "b": 0}, at=8, mixture=mixture)
    batches, states, delivered = iter(loader), [], []
    for _ in range(COUNT):
        states.append(json.loads(json.dumps(loader.state_dict())))
        delivered.append(next(batches))
    assert delivered[:4] == before[:4]
    assert delivered != before
    if name != "nested":
        assert {item[0] for item in delivered[7]} == {"b"} or name == "buffer"
        assert "a" in {item[0] for item in delivered[-1]}
    for cut, state in enumerate(states):
        again = make(stream)
        again.load_state_dict(state)
        assert items_of(again, min(2, COUNT - cut)) == delivered[cut : cut + 2]
    skipped = make(stream, journal=loader.journal)
    skipped.skip_batches(6)
    assert items_of(skipped, 3) == delivered[6:9]


def test_what_cannot_be_steered_is_refused() -> None:
    datasets = sk.mix([sk.from_sequence("ab"), sk.from_sequence("cd")], seed=1, stop="never")
    for stream, text in [
        (datasets.stream(lanes=2), r"datasets were mixed before stream\(\).*a.stream\(lanes=2\)"),
        (part("a").stream(), "steer changes the weights of a mixture of streams"),
        (mixed().take(50), "a run over a stream with an end is not steered"),
    ]:
        with pytest.raises(sk.errors.InvalidArgument, match=text):
            make(stream).steer([1, 1])
    ends = sk.mix(
        {"a": part("a").stream(lanes=LANES), "e": part("b").stream(lanes=LANES, epochs=1)},
        weights=[1, 0],
        seed=1,
    )
    with pytest.raises(sk.errors.InvalidArgument, match="'e' ends, and a part of positive weight"):
        make(ends).steer([1, 1])
    with pytest.raises(sk.errors.InvalidArgument, match=r"there are 2 mixtures to steer: say mixture=0"):
        make(PIPELINES["nested"]()).steer([1, 1])
