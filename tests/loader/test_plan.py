"""Which records a step has, on which rank, and where they lie: of a loader, and of what was saved of one."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.index.corpus import fill
from tests.loader.flat import shuffled

import seekable as sk
from seekable.loader.checkpoint_files import read_saved, rebuild_saved
from seekable.loader.checkpoints import source_paths_of
from seekable.loader.step_plan import PlannedRecord, places_of, reads_of
from seekable.resume.placeholders import RowRef

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.loader.steps import End

SIZE = 37


def loader_of(dataset: sk.Dataset, **arguments: Any) -> sk.Loader:
    given = {"global_batch_size": 8, "rank": 0, "world_size": 1, "collate": list, "prefetch": 0, **arguments}
    return sk.Loader(dataset, **given)


def taken(dataset: sk.Dataset, steps: int, **arguments: Any) -> sk.Loader:
    """Return a loader some batches on."""
    loader = loader_of(dataset, **arguments)
    run = iter(loader)
    for _ in range(steps):
        next(run)
    return loader


@pytest.mark.parametrize("end", ["drop", "pad"])
@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
def test_a_rank_is_delivered_what_is_planned_for_it(end: End, epochs: int, world_size: int) -> None:
    planner = loader_of(shuffled(SIZE), end=end, epochs=epochs, world_size=world_size)
    for rank in range(world_size):
        loader = loader_of(shuffled(SIZE), end=end, epochs=epochs, rank=rank, world_size=world_size)
        delivered = [batch for _ in range(2) for batch in loader]
        plans = [planner.plan(step=step, rank=rank) for step in range(len(delivered))]
        assert [[record.place.row for record in plan.records] for plan in plans] == delivered
    with pytest.raises(
        sk.errors.InvalidArgument, match=rf"rank must be below world_size={world_size} \(got 8\)"
    ):
        planner.plan(step=0, rank=8)
    with pytest.raises(sk.errors.InvalidArgument, match="rank must be at least 0"):
        planner.plan(step=0, rank=-1)
    with pytest.raises(sk.errors.WrongType, match="rank must be"):
        planner.plan(step=0, rank="1")  # type: ignore[arg-type]  # that is the test


def test_positions_and_epochs_are_those_of_the_dataset() -> None:
    plan = loader_of(shuffled(SIZE), epochs=2).plan(step=4)
    assert [record.position for record in plan.records] == list(range(32, 40))
    assert [record.epoch for record in plan.records] == [0] * 5 + [1] * 3
    assert (plan.step, plan.batch, plan.world_size) == (4, 8, 1)
    assert [record.place for record in plan.records] == loader_of(shuffled(SIZE), epochs=2).locate(step=4)


def test_places_in_batches_and_tuples_are_counted_by_file(tmp_path: Path) -> None:
    fill(tmp_path)
    dataset = sk.open(tmp_path)
    plan = loader_of(sk.zip([dataset, dataset.shuffle(seed=1)]).batch(3), global_batch_size=2).plan(step=1)
    found = [place for record in plan.records for place in places_of(record.place)]
    places = [place for place in found if isinstance(place, sk.Location)]
    assert len(places) == len(found) == 12
    by_file = {reads.path: reads for reads in reads_of(plan.records)}
    for path, reads in by_file.items():
        here = [place for place in places if place.path == path]
        assert (reads.records, reads.bytes) == (len(here), sum(place.length for place in here))
        assert reads.start == min(place.offset for place in here)
        assert reads.stop == max(place.offset + place.length for place in here)
    assert set(by_file) == {place.path for place in places}


def test_bytes_that_are_not_known_are_not_made_up() -> None:
    (reads,) = reads_of([PlannedRecord(0, 0, 0, [RowRef("a", 1), RowRef("a", 2)])])
    assert (reads.records, reads.bytes, reads.start, reads.stop) == (2, None, None, None)
    (reads,) = reads_of(loader_of(shuffled(SIZE)).plan(step=0).records)
    assert (reads.records, reads.bytes) == (8, None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Some files."""
    fill(tmp_path / "data", files=4, rows=20)
    return tmp_path / "data"


def same(record: Any) -> Any:
    return record


def pipeline(data: Path) -> sk.Dataset:
    one = sk.open([data / "part-0.jsonl", data / "part-3.jsonl"]).map(same).shuffle(seed=1)
    two = sk.open([str(data / "part-[12].jsonl")]).shuffle(seed=2, window=1, lanes=2)
    return sk.mix({"one": one, "two": two}, weights={"one": 1, "two": 2}, seed=3)


def rebuilt_loader(folder: Path, **arguments: Any) -> sk.Loader:
    saved = read_saved(folder)
    assert saved.state
    loader = loader_of(sk.Dataset(rebuild_saved(saved, **arguments).dataset))
    loader.load_state_dict(saved.state.document())
    return loader


def test_a_saved_state_is_enough_to_plan_from(data: Path, tmp_path: Path) -> None:
    loader = taken(pipeline(data), 3)
    sk.save_state(tmp_path / "states", loader)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = rebuilt_loader(tmp_path / "states")
    assert [again.plan(step=step) for step in range(20)] == [loader.plan(step=step) for step in range(20)]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_data_that_moved_is_found_below_another_root(data: Path, tmp_path: Path) -> None:
    loader = taken(pipeline(data), 3)
    sk.save_state(tmp_path / "states", loader)
    wanted = [[(place.row, place.offset) for place in loader.locate(step=step)] for step in range(9)]
    shutil.move(data, tmp_path / "moved")
    lost = rebuild_saved(read_saved(tmp_path / "states"))
    assert len(lost.unlocated) == 2
    assert all("there is no index in" in why for why in lost.unlocated)
    rows = [
        [place.row for place in rebuilt_loader(tmp_path / "states").locate(step=step)] for step in range(9)
    ]
    assert rows == [[row for row, _ in step] for step in wanted]
    again = rebuilt_loader(tmp_path / "states", roots=[str(tmp_path / "moved")])
    found = [[(place.row, place.offset) for place in again.locate(step=step)] for step in range(9)]
    assert found == wanted


def test_where_files_are_is_noted_anew_when_they_move_and_by_rank_0_only(data: Path, tmp_path: Path) -> None:
    loader = taken(pipeline(data), 1)
    sk.save_state(tmp_path / "states", loader)
    (noted,) = (tmp_path / "states").glob("sources-*.json")
    first = json.loads(noted.read_bytes())
    assert [[run["files"] for run in source["runs"]] for source in first["sources"]] == [[2], [2]]
    inode = noted.stat().st_ino
    sk.save_state(tmp_path / "states", loader)
    assert noted.stat().st_ino == inode
    shutil.move(data, tmp_path / "moved")
    moved = taken(pipeline(tmp_path / "moved"), 2)
    sk.save_state(tmp_path / "states", moved)
    roots = {run["root"] for source in json.loads(noted.read_bytes())["sources"] for run in source["runs"]}
    assert roots == {str(tmp_path / "moved")}
    noted.unlink()
    sk.save_state(
        tmp_path / "states", taken(pipeline(tmp_path / "moved"), 2, rank=1, world_size=2, end="drop")
    )
    assert not noted.exists()


def scheduled(data: Path) -> sk.Dataset:
    parts = [sk.open(data / f"part-{number}.jsonl").shuffle(seed=number) for number in range(2)]
    return sk.mix(parts, weights=[(0, [1, 0]), (40, [0, 1])], seed=1)


def test_weights_that_are_still_to_come_are_noted(data: Path, tmp_path: Path) -> None:
    loader = taken(scheduled(data), 2)
    sk.save_state(tmp_path / "states", loader)
    again = rebuilt_loader(tmp_path / "states")
    assert [again.plan(step=step) for step in range(12)] == [loader.plan(step=step) for step in range(12)]
    (noted,) = (tmp_path / "states").glob("sources-*.json")
    noted.unlink()
    with pytest.raises(sk.errors.InvalidArgument, match="schedule of weights only as far as it had come"):
        rebuilt_loader(tmp_path / "states")


def test_a_state_without_its_description_says_so(data: Path, tmp_path: Path) -> None:
    path = sk.save_state(tmp_path / "states", taken(pipeline(data), 1))
    (description,) = (tmp_path / "states").glob("pipeline-*.json")
    description.unlink()
    with pytest.raises(sk.errors.InvalidArgument, match=r"no description of its pipeline.*module:function"):
        rebuild_saved(read_saved(path))


def test_a_description_of_another_pipeline_is_refused(data: Path, tmp_path: Path) -> None:
    path = sk.save_state(tmp_path / "states", taken(pipeline(data), 1))
    (description,) = (tmp_path / "states").glob("pipeline-*.json")
    description.write_bytes(description.read_bytes().replace(b'"seed":3', b'"seed":4'))
    with pytest.raises(sk.StateMismatch, match="describes a pipeline with the fingerprint"):
        rebuild_saved(read_saved(path))


def test_saved_things_are_read_by_file_folder_and_description(data: Path, tmp_path: Path) -> None:
    path = sk.save_state(tmp_path / "states", taken(pipeline(data), 1))
    sk.save_state(tmp_path / "states", taken(pipeline(data), 2))
    (description,) = (tmp_path / "states").glob("pipeline-*.json")
    newest, one, alone = (read_saved(at) for at in (tmp_path / "states", path, description))
    assert newest.state
    assert one.state
    assert (newest.state.step, one.state.step, alone.state) == (2, 1, None)
    assert newest.fingerprint == one.fingerprint == alone.fingerprint
    assert (
        newest.noted
        == one.noted
        == alone.noted
        == json.loads(json.dumps(source_paths_of(pipeline(data)._node)))
    )
    assert rebuild_saved(alone).dataset.fingerprint == alone.fingerprint


@pytest.mark.parametrize(
    ("content", "error", "why"),
    [
        (None, sk.DataNotFound, "a state is a file, or a folder"),
        ("", sk.errors.CorruptState, "is not JSON"),
        ("[]", sk.errors.CorruptState, "holds no object but a list"),
        ("{}", sk.errors.CorruptState, "a state must have 'seekable': 1"),
    ],
)
def test_what_is_no_state_is_refused(
    tmp_path: Path, content: str | None, error: type[Exception], why: str
) -> None:
    path = tmp_path / "state.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=why):
        read_saved(path)


def test_the_state_of_one_rank_is_that_of_the_dataset(tmp_path: Path) -> None:
    with pytest.raises(sk.DataNotFound, match="no saved state"):
        read_saved(tmp_path)
    loader = loader_of(shuffled(SIZE), world_size=2, end="drop")
    path = sk.save_state(tmp_path, loader)
    assert read_saved(tmp_path).state == read_saved(path).state


def test_a_root_that_is_no_utf8_is_not_noted(tmp_path: Path) -> None:
    folder = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"d\xff"))
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("a file system that has only names of UTF-8")
    with open(os.path.join(folder, "a.jsonl"), "wb") as file:
        file.write(b"{}\n" * 20)
    dataset = sk.open(os.path.join(folder, "a.jsonl"))
    assert source_paths_of(dataset._node)["sources"][0]["runs"][0]["root"] is None
    sk.save_state(tmp_path / "states", taken(dataset, 1))
    assert rebuild_saved(read_saved(tmp_path / "states")).unlocated == (
        "it is not noted in which folder the files are",
    )
    found = rebuild_saved(read_saved(tmp_path / "states"), roots=[folder])
    assert found.unlocated == ()
