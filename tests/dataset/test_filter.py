"""Rows chosen by their records: the right ones, however they are found, kept in files and not in memory."""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import broken, endless, flow, numbers
from tests.thrift import ALL

import seekable as sk
from seekable.nodes.filter import Filter
from seekable.nodes.saved_rows import keep_unnamed

if TYPE_CHECKING:
    from seekable.parallel.progress import Progress


def is_even(number: int) -> bool:
    return number % 2 == 0


def drawn(number: int, rng: np.random.Generator) -> float:
    return number + rng.random()


def kept_files() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("seekable-kept-*"))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the temporary files of each test by themselves."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@given(kept=st.lists(st.booleans(), max_size=300))
def test_the_rows_are_those_that_pass_in_their_order(kept: list[bool]) -> None:
    child = sk.from_sequence([{"row": row, "keep": keep} for row, keep in enumerate(kept)])
    ds = child.filter(lambda record: record["keep"], jobs=1)
    model = [row for row, keep in enumerate(kept) if keep]
    assert [record["row"] for record in ds] == model
    assert len(ds) == len(model)
    assert bool(ds) == bool(model)
    assert ds._node.steady
    if model:
        assert [record["row"] for record in flow(ds, 3 * len(model))] == model * 3
        assert [ds[i]["row"] for i in range(-len(model), len(model))] == model * 2
    for row in range(len(kept)):
        found = ds.find("<builtins.list>", row, epoch=2)
        assert found == ([2 * len(model) + model.index(row)] if row in model else [])


@given(
    lengths=st.lists(st.integers(0, 3000), min_size=1, max_size=4),
    modulus=st.integers(1, 2000),
    rest=st.integers(0, 5),
)
def test_blocks_are_the_childs_with_the_kept_rows_of_each(
    lengths: list[int], modulus: int, rest: int
) -> None:
    child = sk.concat([numbers(length, str(i)) for i, length in enumerate(lengths)])
    ds = Filter(child._node, keep_unnamed([np.arange(rest, len(child), modulus)]), "fn")
    edges = child._node.blocks
    block_of = np.searchsorted(edges, ds.rows.array, side="right")
    model = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), *([ds.size] if ds.size else [])]
    assert ds.blocks.tolist() == model


def test_any_truth_value_counts() -> None:
    assert list(sk.from_sequence(["", "a", "b"]).filter(len)) == ["a", "b"]
    assert list(numbers(4).filter(lambda number: np.bool_(number > 1))) == [2, 3]


def test_nothing_kept_is_an_empty_dataset(tmp_path: Path) -> None:
    for save in (None, tmp_path / "none.u64"):
        ds = numbers(10).filter(lambda _: False, save=save)
        assert (len(ds), list(ds), ds._node.blocks.tolist()) == (0, [], [0])
        assert ds.find("<builtins.range>", 3) == []
        assert list(ds.filter(is_even)) == []
        assert list(pickle.loads(pickle.dumps(ds))) == []
    assert list(numbers(0).filter(is_even, save=tmp_path / "of-none.u64")) == []


def test_holes_pass_without_a_call() -> None:
    ds = (
        numbers(6)
        .map(lambda number: sk.HOLE if number % 3 == 1 else number)
        .filter(lambda number: number > 2)
    )
    assert list(ds) == [sk.HOLE, 3, sk.HOLE, 5]


def test_rows_must_be_the_same_in_every_epoch() -> None:
    for child in (numbers(9).shuffle(seed=1), numbers(9).map(drawn, rng=True, seed=1)):
        with pytest.raises(
            sk.errors.InvalidArgument, match=r"filter\(\) needs rows that .* put it before shuffle"
        ):
            child.filter(is_even)
    with pytest.raises(sk.errors.EndlessDataset, match=r"filter\(\) needs a length.*take\(k\)"):
        endless().filter(is_even)
    assert sorted(numbers(9).shuffle(seed=1, fixed=True).filter(is_even)) == [0, 2, 4, 6, 8]
    assert sorted(numbers(9).shuffle(seed=1).epoch(3).filter(is_even)) == [0, 2, 4, 6, 8]


def test_arguments_are_checked_before_anything_is_read() -> None:
    child = numbers(9).map(lambda _: pytest.fail("it was read"))
    with pytest.raises(sk.errors.WrongType, match=r"filter\(\) needs a function"):
        child.filter("text > 3")  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match="jobs must be at least 1"):
        child.filter(is_even, jobs=0)
    with pytest.raises(sk.errors.InvalidArgument, match="give version="):
        child.filter(Threshold(3), save="kept.u64")


class Threshold:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, number: int) -> bool:
        return number > self.limit


def test_an_object_needs_a_version_only_where_rows_are_saved(tmp_path: Path) -> None:
    assert list(numbers(5).filter(Threshold(2))) == [3, 4]
    assert list(numbers(5).filter(Threshold(2), save=tmp_path / "kept.u64", version=1)) == [3, 4]


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_rows_do_not_depend_on_who_finds_them(jobs: int) -> None:
    limit = 7
    told: list[Progress] = []
    ds = numbers(30_000).filter(lambda number: number % limit == 3, jobs=jobs, progress=told.append)
    assert list(ds) == list(range(3, 30_000, 7))
    assert ds.fingerprint == numbers(30_000).filter(lambda number: number % 7 == 3, jobs=1).fingerprint
    again = ds.filter(is_even, jobs=jobs if ALL else 1)
    assert list(again) == list(range(10, 30_000, 14))
    assert told[-1].is_done
    assert {progress.task for progress in told} == {"filtering"}
    assert {progress.rows for progress in told} == {30_000}
    done = [progress.records for progress in told]
    assert done == sorted(done)
    assert done.count(30_000) == 1


def test_an_executor_is_used_and_stays_open() -> None:
    with ThreadPoolExecutor(2) as executor:
        assert list(numbers(1000).filter(is_even, executor=executor)) == list(range(0, 1000, 2))
        assert executor.submit(int, 3).result() == 3


def test_only_kept_rows_enter_the_fingerprint() -> None:
    child = numbers(100)
    ds = child.filter(is_even)
    assert ds.fingerprint == child.filter(lambda number: not number % 2).fingerprint
    assert ds.fingerprint != child.filter(lambda number: number % 2).fingerprint
    assert ds.fingerprint != numbers(101).filter(lambda number: number % 2 == 0 and number < 100).fingerprint


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_tells_of_its_record(jobs: int, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no such word") as caught:
        numbers(9000).filter(broken, jobs=jobs, save=tmp_path / "kept.u64")
    notes = "\n".join(caught.value.__notes__)
    assert "in filter(broken) of <Dataset, 9,000 records" in notes
    assert "row=4321" in notes
    assert ("in a worker process" in notes) == (jobs == 2)
    if jobs == 2:
        assert "in broken\n    raise KeyError(message)" in notes
    assert {file.name for file in tmp_path.iterdir()} <= {"kept.u64.lock", "kept.u64.part", "temporary"}
    assert not kept_files()


def test_the_file_of_a_filter_that_failed_is_removed_while_it_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file without a lock may be removed by any process, and then there is nothing left to remove."""
    unlink, held = os.unlink, []

    def look_and_unlink(path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(path)
        os.close(descriptor)
        unlink(path)

    monkeypatch.setattr(os, "unlink", look_and_unlink)
    with pytest.raises(KeyError):
        numbers(9000).filter(broken, jobs=1)
    assert len(held) == 1


def in_process(script: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done


SCRIPT = """
import sys
import seekable as sk
limit = int(sys.argv[1])
class Unhappy(ValueError): pass
def passes(number):
    if number == 6000: raise Unhappy("sixty")
    return number % limit == 0
print(len(sk.from_sequence(range(5000)).filter(passes, jobs=int(sys.argv[2]))))
try:
    sk.from_sequence(range(9000)).filter(lambda number: passes(number), jobs=2)
except Exception as error:
    print(error, "row=6000" in "".join(error.__notes__))
"""


def test_functions_of_a_script_reach_the_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, "5", "2" if ALL else "1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "1000\nUnhappy: sixty True\n", done.stderr


MEMORY = """
import seekable as sk
def in_memory():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Anonymous")) << 10
sk.from_sequence(range(50_000)).filter(lambda number: True, jobs=1)
before = in_memory()
ds = sk.from_sequence(range(1_000_000)).filter(lambda number: True, jobs=1)
ds[::3]._node.fetch(__import__("numpy").arange(0, 300_000, 100)), ds[999_999]
print(in_memory() - before)
"""


def test_kept_rows_are_not_in_memory() -> None:
    assert int(in_process(MEMORY).stdout) < 4 << 20, "8 MB of rows are kept"


def test_an_unnamed_file_goes_with_its_last_user() -> None:
    ds = numbers(100).filter(is_even)
    (file,) = kept_files()
    part = ds[10:].shuffle(seed=1)
    del ds
    gc.collect()
    assert kept_files() == {file}
    assert min(part) == 20
    del part
    gc.collect()
    assert not kept_files()


def test_an_unnamed_file_goes_with_its_process() -> None:
    in_process(
        """
        import seekable as sk
        ds = sk.from_sequence(range(100)).filter(lambda number: number > 3)
        """
    )
    assert not kept_files()


@pytest.mark.usefixtures("forked_programs")
def test_a_pickle_finds_the_rows_as_long_as_they_are_there() -> None:
    ds = numbers(100_000).filter(is_even)
    pickled = pickle.dumps(ds)
    assert len(pickled) < 1000
    reading = "import pickle, sys; print(sum(pickle.load(sys.stdin.buffer)[:3]))"
    command = [sys.executable, "-c", reading]
    there = subprocess.run(command, input=pickled, capture_output=True, check=True)
    assert there.stdout == b"6\n"
    opened = pickle.loads(pickled)
    assert opened[1] == 2
    del ds
    gc.collect()
    assert opened[-1] == 99_998, "what is open stays open"
    with pytest.raises(sk.IndexStale, match=r"kept rows in .* are gone: .* save="):
        list(pickle.loads(pickled))


def test_a_forked_child_reads_and_does_not_remove() -> None:
    ds = numbers(1000).filter(is_even)
    pid = os.fork()
    if not pid:
        read = list(ds) == list(range(0, 1000, 2))
        del ds
        gc.collect()
        os._exit(0 if read else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(kept_files()) == 1
    assert ds[3] == 6


def test_spawned_workers_read_it() -> None:
    ds = numbers(1000).filter(is_even)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(ds.__getitem__, [0, 7]) == [0, 14]


LEAVE_BEHIND = """
import os, signal
import seekable as sk
ds = sk.from_sequence(range(100)).filter(lambda number: number > 3)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("forked_programs")
def test_what_a_killed_process_leaves_is_removed_by_the_next() -> None:
    mine = numbers(10).filter(is_even)
    (mine_file,) = kept_files()
    killed = subprocess.run([sys.executable, "-c", LEAVE_BEHIND], check=False)
    assert killed.returncode == -9
    (left,) = kept_files() - {mine_file}
    other = numbers(10).filter(is_even)
    assert left not in kept_files()
    assert mine_file in kept_files(), "what is in use stays"
    assert (list(mine), list(other)) == ([0, 2, 4, 6, 8], [0, 2, 4, 6, 8])


def test_an_unnamed_file_that_was_cut_is_told_of() -> None:
    ds = numbers(100).filter(is_even)
    (file,) = kept_files()
    copy = pickle.loads(pickle.dumps(ds))
    os.truncate(file, 80)
    with pytest.raises(sk.errors.CorruptState, match=r"has 80 bytes, and 50 kept rows have 400"):
        list(copy)


def test_a_filter_after_a_shuffle_names_the_ways_out() -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"put it before shuffle.* or shuffle with fixed=True"
    ):
        numbers(9).shuffle(seed=1).filter(is_even)
    fixed = numbers(9).shuffle(seed=1, fixed=True)
    assert list(fixed.filter(is_even)) == [record for record in fixed if is_even(record)]


FULL_DISK = """
import resource, signal
import seekable as sk
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (80, 80))
try:
    sk.from_sequence(range(100), version=1).filter(lambda number: True)
except OSError as error:
    print(error)
"""


def test_a_disk_without_room_is_told_with_the_file() -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, check=True)
    assert "seekable-kept-" in done.stdout
