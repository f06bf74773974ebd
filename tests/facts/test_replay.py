"""The replay of a step of a stream against the batches that the ranks of a run were given."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.errors import InvalidArgument
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
        began, state = nearest_state([str(tmp_path / "states")], source.fingerprint, step)
        assert began == (0 if step < 7 else 7 if step < 12 else 12)
        for start, document in {0: None, began: state}.items():
            *_, last = replay(source, batch=BATCH, world_size=ranks, step=step, began=start, state=document)
            assert last.done == last.of == step - start + 1
            found = last.document()["records"]
            for rank, batch in enumerate(batches):
                assert [each["record"] for each in found if each["rank"] == rank] == batch


def test_states_of_other_pipelines_and_no_folders_count_for_nothing(tmp_path: Path) -> None:
    other = sk.Loader(ROWS.stream(lanes=2), batch_size=2, prefetch=0)
    other.skip_batches(3)
    sk.save_state(tmp_path, other)
    assert nearest_state([str(tmp_path)], stream().fingerprint, 5) == (0, None)
    assert nearest_state([], other.dataset.fingerprint, 5) == (0, None)
    assert nearest_state([str(tmp_path)], other.dataset.fingerprint, 5)[0] == 3
    assert nearest_state([str(tmp_path)], other.dataset.fingerprint, 2) == (0, None)


def test_a_stream_without_items_and_a_step_before_the_state() -> None:
    none = sk.from_sequence([1], version="none").take(0).stream(epochs=1)
    assert [each.records for each in replay(none, batch=2, world_size=1, step=1)] == [None, ()]
    with pytest.raises(InvalidArgument, match="step"):
        next(replay(stream(), batch=2, world_size=1, step=1, began=2))
