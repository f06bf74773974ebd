"""A large file is scanned in parts, in any order and in any executor, and is indexed as if it were not."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.test_lines import DATA
from tests.index.corpus import LONG_AGO_NS, check, fill, open_data, write
from tests.parallel.executors import Backwards, Cancelling, Inline, Interfering

from seekable.errors import IndexStale, UnsupportedFormat, WorkerDied
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.index import digest
from seekable.index.build import build_index, commit, scan
from seekable.index.build import file_parts as parts
from seekable.index.build.scan import PartScan
from seekable.index.opening import open_files
from seekable.parallel.processes import WorkerProcesses
from seekable.storage.files import write_atomically
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.index.fileset import FileEntry, FileSet
    from seekable.index.finder import ByteSource
    from seekable.parallel.progress import Progress

ROWS = b"".join(b'{"row": %d}\r\n%s' % (row, b"\n \t\n" * (row % 3)) for row in range(400))


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are cut every hundred bytes, each part is a request, and eight offsets are many."""
    cut(monkeypatch, 100)
    monkeypatch.setattr(parts, "_BATCH_BYTES", 100)
    monkeypatch.setattr(scan, "_SPILL_BYTES", 64)


def cut(patch: pytest.MonkeyPatch, part_bytes: int) -> None:
    patch.setattr(build_index, "_PART_BYTES", part_bytes)
    patch.setattr(digest, "PIECE_BYTES", part_bytes)


def indexed(files: FileSet) -> list[tuple[FileEntry, list[int]]]:
    """Return all that does not depend on how a set of files was scanned."""
    return [
        (
            files.entry(file),
            [files.range(file, row)[0] for row in range(int(files.records[file]))],
        )
        for file in range(len(files))
    ]


@given(
    contents=st.lists(DATA, min_size=1, max_size=3),
    part_bytes=st.integers(1, 40),
    spill_bytes=st.sampled_from([8, 1 << 20]),
    form=st.sampled_from(["jsonl", "text"]),
)
def test_files_in_parts_are_indexed_as_whole_files(
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[bytes],
    part_bytes: int,
    spill_bytes: int,
    form: str,
) -> None:
    folder = tmp_path_factory.mktemp("data")
    for number, data in enumerate(contents):
        write(folder / f"{number}.txt", b"# " + data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "PIECE_BYTES", part_bytes)
        patch.setattr(build_index, "_PART_BYTES", 1 << 20)
        whole = open_data(folder, form=form, index_dir=folder / "whole")
        cut(patch, part_bytes)
        patch.setattr(scan, "_SPILL_BYTES", spill_bytes)
        parts = open_data(folder, form=form, index_dir=folder / "parts")
        assert indexed(parts) == indexed(whole)
        check(parts, form=form)


def executors(name: str, requests: int) -> Executor:
    made: dict[str, Callable[[], Executor]] = {
        "own": lambda: WorkerProcesses(2),
        "threads": lambda: ThreadPoolExecutor(3),
        "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
        "inline": Inline,
        "backwards": lambda: Backwards(requests),
    }
    return made[name]()


@pytest.mark.usefixtures("tiny_parts")
@pytest.mark.parametrize("name", ["own", "threads", "processes", "inline", "backwards"])
def test_any_executor_builds_the_same_index(tmp_path: Path, name: str) -> None:
    write(tmp_path / "large.jsonl", ROWS)
    write(tmp_path / "larger.jsonl", ROWS * 2)
    fill(tmp_path, files=5)
    here = open_data(tmp_path, index_dir=tmp_path / "here")
    batches = len(list(parts.plan_batches(here.sizes.tolist(), part_bytes=100)))
    assert batches > 50
    with executors(name, batches) as executor:
        there = open_data(tmp_path, index_dir=tmp_path / "there", executor=executor)
    check(there)
    assert indexed(there) == indexed(here)
    assert not list((tmp_path / "there").rglob("*.tmp"))


@pytest.mark.usefixtures("tiny_parts")
def test_one_file_is_shared_out_to_our_own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.jsonl", ROWS)
    monkeypatch.setattr(build_index, "_PARALLEL_BYTES", 0)
    monkeypatch.setattr("seekable.parallel.progress._SECONDS", -1.0)
    told: list[Progress] = []
    check(open_data(tmp_path, jobs=3, progress=told.append))
    steps = [step.bytes_done for step in told]
    assert steps == sorted(steps)
    assert len(set(steps)) > len(ROWS) // 100, "one file's progress shows while it is scanned"
    assert (told[-1].bytes_done, told[-1].records) == (len(ROWS), 400)


@pytest.mark.usefixtures("tiny_parts")
def test_a_file_that_grows_between_two_parts_is_scanned_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, ROWS)

    def append_once(done: int) -> None:
        if done == 5:
            write(path, ROWS + b'{"new": 1}\n', seconds=1)

    told: list[Progress] = []
    files = open_data(path, executor=Interfering(append_once), progress=told.append)
    check(files)
    assert (told[-1].files_done, told[-1].records) == (1, 401)
    assert not list((tmp_path / ".seekable").glob("*.tmp"))


@pytest.mark.usefixtures("tiny_parts")
def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time_is_scanned_again(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "other"
    write(path, ROWS)
    write(other, ROWS.replace(b"row", b"col"))

    def replace_once(done: int) -> None:
        if done == 5:
            other.replace(path)

    files = open_data(path, executor=Interfering(replace_once))
    check(files)
    clean = open_data(path, index_dir=tmp_path / "clean")
    assert files.entry(0) == clean.entry(0)


@pytest.mark.usefixtures("tiny_parts")
def test_a_file_that_changes_between_parts_each_time_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, ROWS)

    def touch(done: int) -> None:
        os.utime(path, ns=(0, LONG_AGO_NS + done * 10**9))

    with pytest.raises(IndexStale, match=r"a\.jsonl.*when nothing writes to it"):
        open_data(path, executor=Interfering(touch))
    assert not list((tmp_path / ".seekable").glob("*.tmp"))


@pytest.mark.usefixtures("tiny_parts")
def test_what_is_no_data_is_told_and_leaves_nothing_unfinished(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROWS)
    write(tmp_path / "b.jsonl", b"\x1f\x8b\x08" + ROWS[:-50])
    for executor in (None, Inline()):
        with pytest.raises(UnsupportedFormat, match=r"b\.jsonl.*gunzip"):
            open_data(tmp_path, executor=executor)
        assert not list((tmp_path / ".seekable").glob("*.tmp"))


@pytest.mark.usefixtures("tiny_parts")
def test_a_commit_that_fails_half_way_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.jsonl", ROWS)
    failures = iter([OSError(errno.ENOSPC, "No space left on device")])

    def write_or_fail(path: str, data: bytes) -> None:
        for failure in failures:
            raise failure
        write_atomically(path, data)

    monkeypatch.setattr("seekable.index.build.commit.write_atomically", write_or_fail)
    monkeypatch.setattr(commit, "_COMMIT_SECONDS", -1.0)
    with pytest.raises(OSError, match="No space left"):
        open_data(tmp_path)
    told: list[Progress] = []
    check(open_data(tmp_path, progress=told.append))
    assert told == [], "what was finished was kept as soon as there was room"


def test_an_executor_that_cancels_is_told_of(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(WorkerDied, match=r"Cancelling\(\) cancelled .*part-2.* and 2 more.*jobs=1"):
        open_data(tmp_path, executor=Cancelling())


@dataclass(frozen=True, slots=True)
class Odd(JsonlScanner):
    """A scanner that does not do what it should."""

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        if self.name == "dies":
            os._exit(3)
        raise ZeroDivisionError("a bug")


def test_an_executor_that_breaks_is_told_of(tmp_path: Path) -> None:
    fill(tmp_path)
    found = [FoundFiles(str(tmp_path), ("part-0.jsonl",))]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        with pytest.raises(WorkerDied, match=r"broke while it worked on .*part-0\.jsonl.*jobs=1") as raised:
            open_files(found, Odd("dies"), executor=executor)
        assert isinstance(raised.value.__cause__, BrokenProcessPool)


def test_a_bug_in_a_scanner_keeps_its_error_and_names_the_file(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(ZeroDivisionError, match="a bug") as raised:
        open_files([FoundFiles(str(tmp_path), ("part-0.jsonl",))], Odd("fails"), executor=Inline())
    assert "part-0.jsonl' from byte 0" in raised.value.__notes__[0]


class Whole(JsonlScanner):
    """A scanner of a format that only makes sense from its start."""

    seen: tuple[tuple[int, int], ...] = ()

    def __init__(self) -> None:
        super().__init__("whole", splittable=False)

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        Whole.seen += ((source.start, source.stop),)
        return super().scan(source)


@pytest.mark.usefixtures("tiny_parts")
def test_a_format_without_a_middle_is_scanned_whole(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROWS)
    files = open_files([FoundFiles(str(tmp_path), ("a.jsonl",))], Whole())
    check(files)
    assert Whole.seen == ((0, len(ROWS)),)


MEMORY = """
import sys
from pathlib import Path
from seekable.index import digest
from seekable.index.build import build_index
from seekable.index.build import scan
from tests.index.corpus import open_data
from tests.processes import peak_kilobytes
build_index._PART_BYTES = digest.PIECE_BYTES = scan._SPILL_BYTES = 1 << 20
open_data(Path(sys.argv[1]), form="text")
before = peak_kilobytes()
files = open_data(Path(sys.argv[2]), form="text")
print(int(files.records[0]), peak_kilobytes() - before)
"""


def test_the_memory_of_a_build_does_not_grow_with_the_file(tmp_path: Path) -> None:
    write(tmp_path / "small" / "a.txt", b"a\n" * (1 << 20))
    write(tmp_path / "large" / "a.txt", b"a\n" * (8 << 20))
    script = [sys.executable, "-c", MEMORY, str(tmp_path / "small"), str(tmp_path / "large")]
    done = subprocess.run(
        script, capture_output=True, text=True, check=True, timeout=120, cwd=Path(__file__).parents[2]
    )
    records, grown = map(int, done.stdout.split())
    assert records == 8 << 20
    assert grown < 40_000, "kB; the offsets alone are 64 MiB"


def test_starts_are_pickled_in_half_the_bytes() -> None:
    for starts in ([], [0], [5, 2**32 + 4], [5, 2**32 + 5], [2**40, 2**40 + 7], list(range(1000))):
        scan = PartScan((1, 2, 3), 4, b"pieces", np.array(starts, np.uint64))
        pickled: Any = pickle.dumps(scan)
        again = pickle.loads(pickled)
        assert again.starts.tolist() == starts
        assert again.starts.dtype == np.uint64
        assert (again.identity, again.begun_ns, again.pieces) == ((1, 2, 3), 4, b"pieces")
    assert len(pickled) < 4400
