"""The batch and the ranks that a folder of states tells are those of the loader that saved them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.loader.checkpoint_files import Generation
from seekable.loader.steps import StepCursor, Steps
from seekable.state.document import RunState
from seekable.viewer.facts.pipelines import (
    Batches,
    StateBatches,
    batch_of,
    generation_at,
    pipeline_of,
    state_batches,
)

if TYPE_CHECKING:
    from pathlib import Path


@given(
    size=st.one_of(st.none(), st.integers(1, 60)),
    epochs=st.one_of(st.none(), st.integers(1, 3)),
    batch=st.integers(1, 20),
    end=st.sampled_from(["short", "drop", "pad"]),
    steps=st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True),
)
def test_what_states_tell_is_true(
    size: int | None, epochs: int | None, batch: int, end: Any, steps: list[int]
) -> None:
    division = Steps(size=size, epochs=epochs, batch=batch, end=end, limit=None, rank=0, world_size=1)
    if division.total is not None and not division.count(StepCursor()):
        return
    states = []
    for step in sorted(steps):
        cursor = division.ahead(StepCursor(), step)
        states.append(RunState("xxh3:0", step=cursor.step, epoch=cursor.epoch, position=cursor.position))
    for at in [0, *(state.step for state in states)]:
        assert batch_of(states, size=size, at=at) in (None, batch)


def test_one_state_in_the_middle_of_the_first_epoch_is_enough() -> None:
    state = RunState("xxh3:0", step=48_000, epoch=0, position=49_152_000)
    assert batch_of([state], size=10**9, at=48_000) == 1024


def test_the_batches_behind_a_change_count_for_the_steps_behind_it() -> None:
    states = [
        RunState("xxh3:0", step=10, epoch=0, position=80),
        RunState("xxh3:0", step=20, epoch=0, position=160),
        RunState("xxh3:0", step=30, epoch=0, position=320),
    ]
    assert [batch_of(states, size=1000, at=at) for at in (10, 20, 30)] == [8, 16, 16]


def saved(folder: Path, *, step: int, batch: int, ranks: int) -> None:
    """Save the states of all ranks."""
    data = sk.from_sequence(range(1000), version=1).shuffle(seed=1)
    for rank in range(ranks):
        loader = sk.Loader(data, global_batch_size=batch, rank=rank, world_size=ranks, prefetch=0)
        loader.skip_batches(step)
        sk.save_state(folder, loader)


def test_the_ranks_are_in_the_names_of_the_files(tmp_path: Path) -> None:
    saved(tmp_path, step=12, batch=24, ranks=3)
    assert state_batches(str(tmp_path), size=1000) == StateBatches(24, 3)


def test_a_folder_without_states_tells_nothing(tmp_path: Path) -> None:
    assert state_batches(str(tmp_path), size=1000) == StateBatches(None, None)


@pytest.mark.parametrize(
    ("step", "expected"), [(None, 30), (100, 30), (30, 30), (29, 10), (10, 10), (9, 10), (0, 10)]
)
def test_the_newest_complete_state_before_a_step_is_taken(step: int | None, expected: int) -> None:
    found = [Generation(10, 1, ("a",)), Generation(20, 2, ("b",)), Generation(30, 1, ("c",))]
    generation = generation_at(found, step)
    assert generation is not None
    assert generation.step == expected


def test_steps_before_and_after_a_change_of_the_batch_are_those_delivered(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{row}\n" for row in range(300)))
    ds, delivered = sk.open(tmp_path / "a.txt").shuffle(seed=1), []
    for batch_size in (8, 12):
        loader = sk.Loader(ds, batch_size=batch_size, collate=list)
        sk.load_state(tmp_path / "states", loader)
        for batch in itertools.islice(loader, 10):
            delivered.append([int(record) for record in batch])
            if loader.step % 5 == 0:
                sk.save_state(tmp_path / "states", loader, keep=9)
    for step, batch in enumerate(delivered):
        found = pipeline_of(
            str(tmp_path / "states"), Batches({}), state=None, roots=[], index_dir=None, step=step
        )
        assert [place.row for place in found.loader.locate(step=step)] == batch
