"""Facts of a run whose batch size follows the step: each counts with the sizes that hold at its steps."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.index.corpus import fill

import seekable as sk
from seekable.loader.positioned import size_at, sizes_of, step_of
from seekable.viewer.facts.padding import padding
from seekable.viewer.facts.pipelines import Batches, pipeline_of
from seekable.viewer.facts.run_mixture import mixture, schedule, usual_stop
from seekable.viewer.facts.token_counts import record_measure

if TYPE_CHECKING:
    from pathlib import Path

RAMP = [(0, 4), (3, 8), (6, 2)]


def loader_of(dataset: sk.Dataset, **given: Any) -> sk.Loader:
    arguments = {"global_batch_size": RAMP, "rank": 0, "world_size": 2, "collate": list, "prefetch": 0}
    return sk.Loader(dataset, **{**arguments, **given})


def test_the_step_of_a_position_is_that_of_its_plan() -> None:
    loader = loader_of(sk.from_sequence(range(50)))
    wanted = {record.position: step for step in range(30) for record in loader.plan(step=step).records}
    assert {position: step_of(loader, position) for position in wanted} == wanted
    assert [size_at(loader, step) for step in (2, 3, 6)] == [4, 8, 2]
    assert sizes_of(loader) == RAMP
    assert usual_stop(loader, start=0) == len(loader) == 13


def test_a_mixture_and_its_schedule_are_counted_by_step() -> None:
    a, b = (sk.from_sequence(range(1000), version=name) for name in "ab")
    weights = [(0, {"a": 3, "b": 1}), (40, {"a": 1, "b": 1})]
    loader = loader_of(sk.mix({"a": a, "b": b}, weights=weights, seed=1))
    # Steps 0 to 5 have 36 records, and the others 2 each.
    assert schedule(loader).steps == (0, 8)
    found = mixture(loader, start=0, stop=20, places=2)
    for (start, stop), delivered in zip([(0, 10), (10, 20)], found.delivered.tolist(), strict=True):
        places = [place for step in range(start, stop) for place in loader.locate(step=step)]
        counts = Counter(place.path for place in places)
        assert sorted(delivered) == sorted(counts.values())
    assert found.delivered.sum() == 36 + 14 * 2


def test_padding_is_that_of_each_ranks_part_of_each_step() -> None:
    dataset = sk.from_sequence(["a" * (number % 7 + 1) for number in range(51)])
    loader = loader_of(dataset, end="pad")
    *_, found = padding(loader, start=0, stop=12, measure=record_measure(dataset[0]))
    wanted = []
    for step in range(12):
        by_rank: list[list[int]] = [[], []]
        for record in loader.plan(step=step).records:
            by_rank[record.rank].append(len(dataset[record.position % 51]))
        wanted.append(sum(max(lengths) * len(lengths) for lengths in by_rank))
    assert found.padded.tolist() == wanted
    assert found.document()["batch"] == RAMP


@pytest.mark.parametrize("saved_at", [2, 4, 9])
def test_later_steps_are_planned_from_a_folder_of_states_alone(saved_at: int, tmp_path: Path) -> None:
    fill(tmp_path / "data", files=3, rows=20)
    loader = loader_of(sk.open(tmp_path / "data").shuffle(seed=1), end="short", world_size=1)
    loader.skip_batches(saved_at)
    sk.save_state(tmp_path / "states", loader)
    found = pipeline_of(str(tmp_path / "states"), Batches({}), state=None, roots=[], index_dir=None).loader
    assert sizes_of(found) == RAMP
    for step in (0, 3, 9, 30):
        assert found.locate(step=step) == loader.locate(step=step)
