"""The replay of a step of a stream against the batches that the ranks of a run were given."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.errors import InvalidArgument, KeyNotFound
from seekable.viewer.pages.sequence import nearest_state, replay

if TYPE_CHECKING:
    from pathlib import Path

ROWS = sk.from_sequence(range(100), version="rows").shuffle(seed=3)
BATCH, STEPS = 6, 20


def is_odd(number: int) -> bool:
    return number % 2 == 1


def stream(*, epochs: int | None = 1) -> sk.Stream:
    return ROWS.stream(lanes=4, epochs=epochs).filter(is_odd)


@pytest.mark.parametrize(("epochs", "ranks"), [(1, 1), (None, 1), (None, 2)])
def test_a_replayed_step_has_the_records_of_all_ranks_in_their_order(
    tmp_path: Path, epochs: int | None, ranks: int
) -> None:
    common: Any = {"global_batch_size": BATCH, "world_size": ranks, "collate": list, "prefetch": 0}
    source = stream(epochs=epochs)
    loaders = [sk.Loader(source, rank=rank, **common) for rank in range(ranks)]
    steps: list[Any] = []
    while len(steps) < STEPS:
        # A trainer's loop: where a run ends, the next one begins.
        for batches in itertools.islice(zip(*loaders, strict=True), STEPS - len(steps)):
            steps.append(list(batches))
            if len(steps) in (7, 12):
                for loader in loaders:
                    sk.save_state(tmp_path / "states", loader, keep=9)
    for step, batches in enumerate(steps):
        began, state = nearest_state([str(tmp_path / "states")], loaders[0], step)
        assert began == (0 if step < 7 else 7 if step < 12 else 12)
        for start, document in {0: None, began: state}.items():
            *_, last = replay(loaders[0], step=step, began=start, state=document)
            assert last.done == last.of == step - start + 1
            found = last.document()["records"]
            for rank, batch in enumerate(batches):
                assert [each["record"] for each in found if each["rank"] == rank] == batch


def test_states_of_other_pipelines_and_no_folders_count_for_nothing(tmp_path: Path) -> None:
    other = sk.Loader(ROWS.stream(lanes=2), batch_size=2, prefetch=0)
    other.skip_batches(3)
    sk.save_state(tmp_path, other)
    assert nearest_state([str(tmp_path)], sk.Loader(stream(), batch_size=2), 5) == (0, None)
    assert nearest_state([], other, 5) == (0, None)
    assert nearest_state([str(tmp_path)], other, 5)[0] == 3
    assert nearest_state([str(tmp_path)], other, 2) == (0, None)


def test_a_stream_without_items_and_a_step_before_the_state() -> None:
    none = sk.from_sequence([1], version="none").take(0).stream(epochs=1)
    assert [each.records for each in replay(sk.Loader(none, batch_size=2), step=1)] == [None, ()]
    with pytest.raises(InvalidArgument, match="step"):
        next(replay(sk.Loader(stream(), batch_size=2), step=1, began=2))


def saved_run(loader: sk.Loader, folder: Path, *, upto: int, saves: tuple[int, ...]) -> list[Any]:
    """Return the batches of a loader up to a step, with states after some of them."""
    batches = []
    for batch in itertools.islice(loader, upto - loader.step):
        batches.append(batch)
        if loader.step in saves:
            sk.save_state(folder, loader, keep=99)
    return batches


def check_replayed(folder: Path, loader: sk.Loader, steps: list[Any], *, first: int = 0) -> None:
    """Compare each step from one on with its replay."""
    for step in range(first, len(steps)):
        began, state = nearest_state([str(folder)], loader, step)
        *_, last = replay(loader, step=step, began=began, state=state)
        assert list(last.records or ()) == steps[step]


def test_a_run_that_went_on_with_another_pipeline_is_replayed_as_it_was(tmp_path: Path) -> None:
    """Older orders are finished first, so that the pipeline alone does not say what was in a step."""
    first = sk.Loader(stream(epochs=None), batch_size=BATCH, collate=list, prefetch=0)
    steps = saved_run(first, tmp_path, upto=5, saves=(5,))
    others = ROWS.stream(lanes=4).filter(is_odd).filter(bool)
    second = sk.Loader(others, batch_size=BATCH, collate=list, prefetch=0)
    sk.load_state(tmp_path, second, resume="rows")
    steps += saved_run(second, tmp_path, upto=STEPS, saves=(8, 15))
    check_replayed(tmp_path, second, steps, first=5)
    with pytest.raises(KeyNotFound, match="step 4 was made by another pipeline"):
        nearest_state([str(tmp_path)], second, 4)
    with pytest.raises(KeyNotFound, match="open the folder of its states"):
        nearest_state([], second, 9)


def test_what_was_changed_in_a_run_is_changed_in_its_replay(tmp_path: Path) -> None:
    parts = {name: sk.from_sequence([f"{name}{row}" for row in range(50)], version=name) for name in "ab"}
    streams = sk.mix({name: part.stream(lanes=2) for name, part in parts.items()}, weights=[9, 1], seed=0)
    loader = sk.Loader(streams, batch_size=BATCH, collate=list, prefetch=0)
    steps = saved_run(loader, tmp_path, upto=5, saves=(4,))
    loader.steer({"a": 1, "b": 9}, at=6)
    steps += saved_run(loader, tmp_path, upto=12, saves=(9,))
    assert sum(each.startswith("b") for each in itertools.chain(*steps[6:])) > BATCH * 3
    check_replayed(tmp_path, loader, steps)
