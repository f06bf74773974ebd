"""States in folders: whole or not at all, the newest complete one, and what changed when it is another's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loader.flat import batches_of, shuffled

import seekable as sk
from seekable.errors import AccessDenied
from seekable.loader.checkpoint_files import each_at_once


def loader_of(dataset: sk.Dataset | None = None, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, "prefetch": 0, **arguments}
    return sk.Loader(shuffled(37) if dataset is None else dataset, **given)


def ranks_of(world_size: int, step: int = 0) -> list[sk.Loader]:
    batch = 6 if world_size == 3 else 4
    loaders = [
        loader_of(batch_size=None, global_batch_size=batch, rank=rank, world_size=world_size, end="pad")
        for rank in range(world_size)
    ]
    for loader in loaders:
        loader.skip_batches(step)
    return loaders


def states_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("state-*"))


def saved_after(folder: Path, *steps: int, **arguments: Any) -> sk.Loader:
    """Save a state at each of some steps of one loader."""
    loader = loader_of(**arguments)
    for _ in loader:
        if loader.step in steps:
            sk.save_state(folder, loader)
        if loader.step == max(steps):
            break
    return loader


def test_a_saved_state_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    loader = loader_of()
    run = iter(loader)
    for _ in range(3):
        next(run)
    path = sk.save_state(folder, loader)
    assert json.loads(Path(path).read_bytes()) == loader.state_dict(rows=False)
    again = loader_of()
    assert sk.load_state(folder, again)
    assert list(again) == list(run) == batches_of(shuffled(37), 4)[3:]


def test_a_folder_without_a_state_changes_nothing(tmp_path: Path) -> None:
    loader = loader_of()
    assert sk.load_state(tmp_path / "nowhere", loader) is False
    assert sk.load_state(tmp_path, loader) is False
    (tmp_path / "state-1.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    assert sk.load_state(tmp_path, loader) is False
    assert list(loader) == batches_of(shuffled(37), 4)
    assert not (tmp_path / "nowhere").exists()


def test_the_newest_state_counts_and_old_ones_go(tmp_path: Path) -> None:
    saved_after(tmp_path, 1, 2, 3, 4, 5)
    assert [int(name[6:18]) for name in states_in(tmp_path)] == [3, 4, 5]
    again = loader_of()
    sk.load_state(tmp_path, again)
    assert again.step == 5


def test_as_many_states_stay_as_are_to_be_kept(tmp_path: Path) -> None:
    loader = loader_of()
    for _ in loader:
        sk.save_state(tmp_path, loader, keep=1)
        assert len(states_in(tmp_path)) == 1
    with pytest.raises(sk.errors.InvalidArgument, match=r"keep must be at least 1 \(got 0\)"):
        sk.save_state(tmp_path, loader, keep=0)


def test_states_of_later_steps_go_when_a_run_is_taken_up_from_an_earlier_one(tmp_path: Path) -> None:
    saved_after(tmp_path, 2, 4, 6)
    os.remove(tmp_path / "state-000000000006-00000-of-00001.json")
    loader = loader_of()
    sk.load_state(tmp_path, loader)
    assert loader.step == 4
    loader = loader_of()
    loader.skip_batches(3)
    sk.save_state(tmp_path, loader)
    assert [int(name[6:18]) for name in states_in(tmp_path)] == [2, 3]


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    loader = saved_after(tmp_path, 2)
    sk.save_state(tmp_path, loader)
    assert len(states_in(tmp_path)) == 1


def test_a_generation_without_all_ranks_does_not_count(tmp_path: Path) -> None:
    for loader in ranks_of(2, step=3):
        sk.save_state(tmp_path, loader)
    sk.save_state(tmp_path, ranks_of(2, step=5)[0])
    again = ranks_of(2)
    for loader in again:
        assert sk.load_state(tmp_path, loader)
        assert loader.step == 3
    sk.save_state(tmp_path, ranks_of(2, step=5)[1])
    assert sk.load_state(tmp_path, again[0])
    assert again[0].step == 5


@settings(max_examples=12)
@given(data=st.data())
def test_ranks_that_are_not_in_step_remove_nothing_of_each_other(data: st.DataObject) -> None:
    world_size = data.draw(st.integers(2, 3))
    left = data.draw(st.integers(0, 4))
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, left + 1):
            for loader in ranks_of(world_size, step):
                sk.save_state(folder, loader, keep=9)
        # A run that was left at a step goes on from an earlier one, or from this one.
        last = [left] * world_size
        step_of = [data.draw(st.integers(0, left))] * world_size
        keep = data.draw(st.integers(1, 2))
        for rank in data.draw(st.lists(st.integers(0, world_size - 1), max_size=9)):
            step_of[rank] += 1
            last[rank] = step_of[rank]
            sk.save_state(folder, ranks_of(world_size, step_of[rank])[rank], keep=keep)
            again = ranks_of(world_size)[data.draw(st.integers(0, world_size - 1))]
            # Without a complete state those ranks count that have saved.
            assert sk.load_state(folder, again)
            lowest = min(filter(None, last))
            assert left or sum(f"-{rank:05}-of-" in name for name in os.listdir(folder)) <= keep or all(last)
            assert again.step == lowest or lowest < again.step <= left


def test_a_rank_removes_later_states_of_another_pipeline_and_of_other_worlds(tmp_path: Path) -> None:
    """Otherwise a generation had files of two runs, and would count as complete."""
    for loader in (*ranks_of(2, step=4), *ranks_of(4, step=7), *ranks_of(2, step=8)):
        sk.save_state(tmp_path, loader, keep=9)
    assert len(states_in(tmp_path)) == 8
    ahead, behind = (
        loader_of(shuffled(41), batch_size=None, global_batch_size=4, rank=rank, world_size=2, end="pad")
        for rank in (0, 1)
    )
    ahead.skip_batches(6)
    sk.save_state(tmp_path, ahead)
    behind.skip_batches(5)
    sk.save_state(tmp_path, behind)
    assert states_in(tmp_path) == [
        "state-000000000004-00000-of-00002.json",
        "state-000000000004-00001-of-00002.json",
        "state-000000000005-00001-of-00002.json",
        "state-000000000006-00000-of-00002.json",
    ]


def test_where_one_rank_alone_saved_all_ranks_load_its_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (3, 5):
        sk.save_state(tmp_path, ranks_of(4, step=step)[0])
    for loader in (*ranks_of(4), loader_of()):
        assert sk.load_state(tmp_path, loader)
        assert (loader.step, loader.state_dict()["position"]) == (5, 20)
    assert "of its 4 ranks 0 is there, 1, 2 and 3 are missing; step 5 was loaded" in caplog.text


def test_where_one_rank_alone_saves_as_many_states_stay_as_are_to_be_kept(tmp_path: Path) -> None:
    for step in (9, 2, 3, 4):  # 9 is of a run that was left
        sk.save_state(tmp_path, ranks_of(4, step=step)[1], keep=2)
    sk.save_state(tmp_path, ranks_of(4, step=2)[0], keep=2)  # this rank is late
    assert [(int(name[6:18]), int(name[19:24])) for name in states_in(tmp_path)] == [(2, 0), (3, 1), (4, 1)]
    loader = loader_of()
    assert sk.load_state(tmp_path, loader)
    assert loader.step == 2
    sk.save_state(tmp_path, ranks_of(4, step=3)[0], keep=2)
    assert sk.load_state(tmp_path, loader)
    assert loader.step == 3


@pytest.mark.parametrize("world_size", [1, 2])
def test_states_of_four_ranks_load_on_fewer(tmp_path: Path, world_size: int) -> None:
    for loader in ranks_of(4, step=3):
        sk.save_state(tmp_path, loader)
    for loader in ranks_of(world_size):
        assert sk.load_state(tmp_path, loader)
        assert (loader.step, loader.state_dict()["position"]) == (3, 12)


def test_ranks_that_differ_are_found(tmp_path: Path) -> None:
    one, other = ranks_of(2)
    one.skip_batches(3)
    other.set_epoch(1)
    other.skip_batches(3)
    sk.save_state(tmp_path, one)
    sk.save_state(tmp_path, other)
    with pytest.raises(sk.errors.CorruptState, match=r"step 3 .* differ"):
        sk.load_state(tmp_path, ranks_of(2)[0])


@pytest.mark.parametrize("world_sizes", [(2, 1), (1, 2)])
def test_a_state_of_another_number_of_ranks_at_the_same_step_goes(
    tmp_path: Path, world_sizes: tuple[int, int]
) -> None:
    """A run is begun anew in the same folder, on another number of ranks and with a larger batch."""
    old, new = world_sizes
    for loader in ranks_of(old, step=3):
        sk.save_state(tmp_path, loader)
    for rank in range(new):
        loader = loader_of(batch_size=None, global_batch_size=8, rank=rank, world_size=new, end="pad")
        loader.skip_batches(3)
        sk.save_state(tmp_path, loader)
    again = loader_of()
    assert sk.load_state(tmp_path, again)
    assert again.state_dict()["position"] == 24


@pytest.mark.parametrize("content", [b"", b'{"seekable": 1, "finger', b"[1, 2]", b"\xff\xfe", b"{}"])
def test_a_torn_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    saved_after(tmp_path, 2, 4)
    name = states_in(tmp_path)[-1]
    (tmp_path / name).write_bytes(content)
    loader = loader_of()
    with pytest.raises(sk.errors.CorruptState) as raised:
        sk.load_state(tmp_path, loader)
    assert name in str(raised.value)
    assert loader.step == 0
    # The way out that the message names.
    (tmp_path / name).unlink()
    assert sk.load_state(tmp_path, loader)
    assert loader.step == 2


def test_nothing_is_left_of_a_save_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step of a save is a rename; a machine that dies before it leaves the states as they were."""
    loader = saved_after(tmp_path, 2)
    before = states_in(tmp_path)
    loader.skip_batches(1)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("replace", "fsync"):
        with monkeypatch.context() as patched:
            patched.setattr(os, step, refuse)
            with pytest.raises(OSError, match="No space"):
                sk.save_state(tmp_path, loader)
        assert states_in(tmp_path) == before
    again = loader_of()
    assert sk.load_state(tmp_path, again)
    assert again.step == 2


def test_the_description_is_written_once(tmp_path: Path) -> None:
    loader = saved_after(tmp_path, 1)
    (description,) = tmp_path.glob("pipeline-*.json")
    assert description.name == f"pipeline-{loader.dataset.fingerprint.removeprefix('xxh3:')}.json"
    assert json.loads(description.read_bytes()) == json.loads(json.dumps(loader.dataset._node.describe(None)))
    written = description.stat()
    sk.save_state(tmp_path, loader)
    assert description.stat().st_mtime_ns == written.st_mtime_ns
    assert description.stat().st_ino == written.st_ino


def test_the_description_is_read_only_to_say_what_differs(tmp_path: Path) -> None:
    saved_after(tmp_path, 1)
    (description,) = tmp_path.glob("pipeline-*.json")
    description.write_bytes(b"{")
    loader = loader_of()
    assert sk.load_state(tmp_path, loader)
    assert loader.step == 1
    with pytest.raises(sk.errors.CorruptState, match=description.name):
        sk.load_state(tmp_path, loader_of(shuffled(38)))


def test_loading_a_state_of_a_dataset_loads_no_code_of_streams_and_other_sources(tmp_path: Path) -> None:
    """A run that resumes waits for each module that it imports."""
    path, folder = tmp_path / "a.jsonl", tmp_path / "run"
    path.write_text('{"id": 1}\n{"id": 2}\n')
    saved_after(folder, 1, dataset=sk.open(str(path)), batch_size=1)
    code = (
        "import sys, seekable as sk\n"
        f"loader = sk.Loader(sk.open({str(path)!r}), batch_size=1)\n"
        f"assert sk.load_state({str(folder)!r}, loader)\n"
        "print([name for name in sys.modules if name.startswith(('seekable.stream', 'seekable.resume'))\n"
        "       or name.endswith(('tables', 'token_source', 'shar_source', 'evaluated'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def mixed(weights: list[float], *, seed: int = 1) -> sk.Dataset:
    return sk.mix({"web": shuffled(37), "code": shuffled(50)}, weights=weights, seed=seed)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (shuffled(37), shuffled(37, seed=9), ["shuffle", "seed", "was 3", "is 9"]),
        (shuffled(37), shuffled(38), ["sequence", "length", "was 37", "is 38"]),
        (shuffled(37), shuffled(37).take(5), ["was shuffle", "is slice"]),
        (mixed([1, 1]), mixed([2, 1]), ["mix", "weights", "was [1, 1]", "is [2, 1]"]),
        (shuffled(37).map(abs), shuffled(37).map(str), ["map", "fn", "builtins.abs", "builtins.str"]),
        (
            shuffled(37).map(abs, version=1),
            shuffled(37).map(abs, version=2),
            ["map", "'version': 1", "'version': 2"],
        ),
        (sk.concat([shuffled(3)]), sk.concat([shuffled(3)] * 2), ["concat", "had 1", "has 2"]),
    ],
    ids=["seed", "length", "kind", "weights", "function", "version", "sources"],
)
def test_a_mismatch_says_what_changed(
    tmp_path: Path, old: sk.Dataset, new: sk.Dataset, parts: list[str]
) -> None:
    saved_after(tmp_path, 1, dataset=old)
    loader = loader_of(new)
    with pytest.raises(sk.StateMismatch) as raised:
        sk.load_state(tmp_path, loader)
    for part in parts:
        assert part in str(raised.value)
    assert loader.step == 0


def test_a_mismatch_names_the_file_that_changed(tmp_path: Path) -> None:
    """The index sees that a file changed; the state, that it is not the one it was taken of."""
    data, folder = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    for name in "ab":
        (data / f"{name}.jsonl").write_text("".join(f'{{"id": {i}}}\n' for i in range(9)))
    saved_after(folder, 1, dataset=sk.open(str(data)))
    again = loader_of(sk.open(str(data)))
    assert sk.load_state(folder, again)
    with (data / "b.jsonl").open("a") as file:
        file.write('{"id": 9}\n')
    with pytest.raises(sk.StateMismatch) as raised:
        sk.load_state(folder, loader_of(sk.open(str(data))))
    assert "'b.jsonl'" in str(raised.value)
    assert "records was 9, is 10" in str(raised.value)
    assert "'a.jsonl'" not in str(raised.value)
    (data / "c.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(sk.StateMismatch, match=r"file 'c\.jsonl' is new"):
        sk.load_state(folder, loader_of(sk.open(str(data))))


def test_there_are_two_ways_to_resume(tmp_path: Path) -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"resume must be 'exact' or 'rows' \(got 'records'\)"
    ):
        sk.load_state(tmp_path, loader_of(), resume="records")  # type: ignore[arg-type]


def test_what_killed_saves_left_is_removed_after_an_hour_and_no_file_of_a_live_peer(tmp_path: Path) -> None:
    """Where ranks share records, several processes save as one rank."""
    torn, written = (f"state-000000000004-00000-of-00001.json.{n:016x}.tmp" for n in range(2))
    for name in (torn, written, "notes.json.tmp"):
        (tmp_path / name).write_text("{")
    os.utime(tmp_path / torn, (0, 0))
    os.utime(tmp_path / "notes.json.tmp", (0, 0))
    saved_after(tmp_path, 1)
    assert sorted(path.name for path in tmp_path.glob("*.tmp")) == ["notes.json.tmp", written]


def test_files_of_a_store_are_read_at_once_and_local_ones_in_this_thread() -> None:
    together = threading.Barrier(8)  # breaks unless eight calls wait at once

    def waited(path: str) -> str:
        together.wait(timeout=10)
        return path.upper()

    addresses = [f"s3://bucket/run/{number}" for number in range(8)]
    assert each_at_once(waited, addresses) == [address.upper() for address in addresses]
    here = threading.current_thread()
    assert each_at_once(lambda _: threading.current_thread(), ["/run/0", "/run/1"]) == [here, here]
    assert each_at_once(waited, []) == []


@pytest.mark.usefixtures("uncollected")
def test_a_state_that_is_a_folder_or_nested_too_deeply_is_told(tmp_path: Path) -> None:
    path = Path(sk.save_state(tmp_path, loader_of()))
    path.write_text("[" * 3000 + "]" * 3000)
    with pytest.raises(sk.errors.CorruptState, match=f"{path.name} is not JSON"):
        sk.load_state(tmp_path, loader_of())
    path.unlink()
    path.mkdir()
    with pytest.raises(sk.errors.CorruptState, match=f"{path.name} is a folder"):
        sk.load_state(tmp_path, loader_of())
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(AccessDenied, match=rf"{path.name}' is not a regular file"):
        sk.load_state(tmp_path, loader_of())
    (paths := next(tmp_path.glob("sources-*"))).unlink()
    paths.mkdir()
    with pytest.raises(AccessDenied, match=f"{paths.name}' is a folder"):
        sk.save_state(tmp_path, loader_of())


def test_nothing_is_said_of_a_state_that_could_not_be_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stream needs the files of all ranks; that some are missing is said by the error alone."""

    def loader() -> sk.Loader:
        stream = sk.from_sequence(range(8), version=1).stream(lanes=2)
        return sk.Loader(stream, global_batch_size=2, steps=3, rank=0, world_size=2)

    saved = loader()
    next(iter(saved))
    sk.save_state(tmp_path, saved)
    with pytest.raises(sk.errors.CorruptState, match="is not whole"):
        sk.load_state(tmp_path, loader())
    assert not caplog.text
