from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.splitter import lines
from tests.index.corpus import age, check, fill, index_files, open_data, read, write
from tests.thrift import some

from seekable.errors import DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.table import format_named
from seekable.index.build import build_index
from seekable.index.opening import open_files
from seekable.parallel.processes import WorkerProcesses
from seekable.parallel.progress import Progress
from seekable.storage.listing import FoundFiles


@pytest.mark.parametrize("form", ["jsonl", "text"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\xef\xbb\xbf",
        b'\xef\xbb\xbf{"a": 1}\n',
        b'{"a": 1}',
        b'{"a": 1}\r\n\r\n{"a": 2}\r\n',
        b"\n\n 1\n\t\n2\n\n",
        b'"\x00"\n\x00\n',
        b"1\n" * some(100_000, of=8),
        b'"' + b"x" * 5_000_000 + b'"\n1\n',
    ],
    ids=["empty", "newline", "mark", "marked", "open-end", "crlf", "blank", "nul", "many", "long"],
)
def test_records_are_those_of_a_plain_splitter(tmp_path: Path, data: bytes, form: str) -> None:
    write(tmp_path / "a.jsonl", data)
    files = open_data(tmp_path, form=form)
    assert read(files) == lines(data, keep_blank=form == "text")
    check(files, form=form)


def test_a_line_of_a_gigabyte_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'"')
        file.truncate(1 << 30)  # Sparse: the gigabyte is no bytes on disk.
        file.seek(0, os.SEEK_END)
        file.write(b'"\n2\n')
    age(path)
    files = open_data(tmp_path, jobs=1)
    assert files.records.tolist() == [2]
    assert files.range(0, 1) == ((1 << 30) + 2, (1 << 30) + 4)


def test_the_second_opening_locks_and_writes_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    first = read(open_data(tmp_path))
    before = index_files(tmp_path)
    told: list[Progress] = []
    assert read(open_data(tmp_path, progress=told.append)) == first
    assert index_files(tmp_path) == before
    assert told == []


def test_nothing_but_the_index_is_written(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    before = sorted(tmp_path.rglob("*"))
    open_data(tmp_path / "data")
    new = {path for path in tmp_path.rglob("*") if path not in before}
    assert {path.relative_to(tmp_path).parts[:2] for path in new} == {("data", ".seekable")}
    assert {path.name.split("-")[0] for path in new} == {
        ".seekable",
        "lock",
        "catalog.json",
        "files",
        "offsets",
    }


def test_anyone_may_read_the_index_with_json_and_numpy(tmp_path: Path) -> None:
    fill(tmp_path)
    open_data(tmp_path)
    folder = tmp_path / ".seekable"
    catalog = json.loads((folder / "catalog.json").read_text())
    assert catalog["seekable_index"] == 3
    for file in catalog["files"]:
        segment = np.memmap(folder / file["segment"], "<u8", "r")
        offsets = segment[file["start"] : file["start"] + file["records"] + 1].tolist()
        data = (tmp_path / file["name"]).read_bytes()
        cut = [data[start:end].rstrip() for start, end in itertools.pairwise(offsets)]
        assert cut == lines(data, keep_blank=False)
        assert offsets[-1] == file["size"] == len(data)


def test_new_files_are_added_and_old_ones_keep_their_offsets(tmp_path: Path) -> None:
    fill(tmp_path, files=2)
    open_data(tmp_path)
    segments = set(tmp_path.glob(".seekable/offsets-*"))
    fill(tmp_path, files=3)
    told: list[Progress] = []
    files = open_data(tmp_path, progress=told.append)
    check(files)
    assert len(files) == 3
    assert told[-1].files == 1
    assert segments < set(tmp_path.glob(".seekable/offsets-*"))


def test_one_file_may_be_indexed_in_several_formats(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", b"1\n\n2\n")
    jsonl, text = open_data(tmp_path), open_data(tmp_path, form="text")
    assert [jsonl.records.tolist(), text.records.tolist()] == [[2], [3]]
    assert open_data(tmp_path).entry(0) == jsonl.entry(0)
    assert [jsonl.entry(0).format, text.entry(0).format] == ["jsonl", "text"]
    check(open_data(tmp_path))
    check(open_data(tmp_path, form="text"), form="text")


def test_files_come_in_the_order_asked_from_several_roots_and_more_than_once(tmp_path: Path) -> None:
    fill(tmp_path / "a", files=12)
    fill(tmp_path / "b", files=1)
    asked = [
        tmp_path / "a/part-11.jsonl",
        tmp_path / "b",
        tmp_path / "a/part-2.jsonl",
        tmp_path / "a/part-11.jsonl",
    ]
    files = open_data(asked)
    assert [files.path(file) for file in range(4)] == [
        *(str(tmp_path / "a/part-11.jsonl"), str(tmp_path / "b/part-0.jsonl")),
        *(str(tmp_path / "a/part-2.jsonl"), str(tmp_path / "a/part-11.jsonl")),
    ]
    check(files)


@pytest.mark.parametrize("name", [b"caf\xe9.jsonl", b"line\nbreak.jsonl", b'"quoted" \\.jsonl'])
def test_names_may_be_any_bytes(tmp_path: Path, name: bytes) -> None:
    write(tmp_path / os.fsdecode(name), b"1\n")
    check(open_data(tmp_path))
    files = open_data(tmp_path)
    check(files)
    assert os.fsencode(files.name(0)) == name


def test_an_index_folder_of_ones_own_leaves_the_data_alone(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    check(open_data(tmp_path / "data", index_dir=tmp_path / "indexes"))
    assert not (tmp_path / "data" / ".seekable").exists()
    mirrored = tmp_path / "indexes" / str(tmp_path).lstrip("/") / "data" / ".seekable"
    assert (mirrored / "catalog.json").exists()


def test_a_build_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, files=3)
    monkeypatch.setattr("seekable.parallel.progress._SECONDS", 0.0)
    told: list[Progress] = []
    files = open_data(tmp_path, progress=told.append)
    total = int(files.sizes.sum())
    assert [step.files_done for step in told] == sorted(step.files_done for step in told)
    assert [step.bytes_done for step in told] == sorted(step.bytes_done for step in told)
    assert told[-1] == Progress(3, 3, total, total, int(files.records.sum()), "")


@pytest.fixture(params=["own", "threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Executor:
    if request.param == "own":
        return WorkerProcesses(2)
    if request.param == "threads":
        return ThreadPoolExecutor(4)
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def test_any_executor_builds_the_same_index(tmp_path: Path, executor: Executor) -> None:
    fill(tmp_path, files=30)
    here = open_data(tmp_path, index_dir=tmp_path / "here")
    with executor:
        there = open_data(tmp_path, index_dir=tmp_path / "there", executor=executor)
    check(there)
    assert [there.entry(file) for file in range(30)] == [here.entry(file) for file in range(30)]


def test_much_data_is_scanned_by_our_own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, files=30)
    monkeypatch.setattr(build_index, "_PARALLEL_BYTES", 0)
    told: list[Progress] = []
    check(open_data(tmp_path, jobs=2, progress=told.append))
    assert told[-1].files_done == 30


def test_a_file_that_is_no_data_stops_the_build_but_not_what_is_done(tmp_path: Path) -> None:
    fill(tmp_path, files=3)
    write(tmp_path / "part-9.jsonl", b"\x1f\x8b\x08 gzip")
    with pytest.raises(UnsupportedFormat, match=r"part-9\.jsonl.*gunzip"):
        open_data(tmp_path)
    (tmp_path / "part-9.jsonl").unlink()
    told: list[Progress] = []
    check(open_data(tmp_path, progress=told.append))
    assert told == []


def test_a_failure_in_a_worker_is_raised_here(tmp_path: Path) -> None:
    fill(tmp_path, files=3)
    write(tmp_path / "part-9.jsonl", b"\x1f\x8b\x08 gzip")
    with WorkerProcesses(2) as workers, pytest.raises(UnsupportedFormat, match=r"part-9\.jsonl.*gunzip"):
        open_data(tmp_path, executor=workers)


def test_an_interrupt_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, files=5)
    monkeypatch.setattr("seekable.parallel.progress._SECONDS", 0.0)

    def interrupt(progress: Progress) -> None:
        if progress.files_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_data(tmp_path, progress=interrupt)
    told: list[Progress] = []
    check(open_data(tmp_path, progress=told.append))
    assert told[-1].files == 2


def test_a_missing_file_is_told_before_anything_is_scanned(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(DataNotFound, match=r"there is no file .*gone\.jsonl"):
        open_files([FoundFiles(str(tmp_path), ("part-0.jsonl", "gone.jsonl"))], format_named("jsonl").finder)
    with pytest.raises(DataNotFound, match="is not a regular file"):
        open_files([FoundFiles(str(tmp_path.parent), (tmp_path.name,))], format_named("jsonl").finder)
    assert not (tmp_path / ".seekable").exists()


def test_jobs_must_be_positive(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(InvalidArgument, match=r"jobs must be at least 1 \(got 0\)"):
        open_data(tmp_path, jobs=0)


def test_no_files_are_no_records() -> None:
    files = open_files([], format_named("jsonl").finder)
    assert len(files) == 0
    assert files.starts.tolist() == [0]


@given(st.lists(st.binary(max_size=12).map(lambda raw: raw.replace(b"\x1f", b"\n")), min_size=1, max_size=5))
def test_any_bytes_are_indexed_as_a_plain_splitter_says(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    for number, data in enumerate(contents):
        write(folder / f"{number}.txt", b"# " + data)
    files = open_data(folder, form="text")
    assert read(files) == [line for data in contents for line in lines(b"# " + data, keep_blank=True)]


NOTEBOOK = """
import sys
from seekable.index.build import build_index
build_index._PARALLEL_BYTES = 0
from tests.index.corpus import open_data, check
from pathlib import Path
check(open_data(Path(sys.argv[1]), jobs=2))
print("done")
"""


def test_a_script_without_a_main_guard_may_index_in_parallel(tmp_path: Path) -> None:
    fill(tmp_path, files=8)
    done = subprocess.run(
        [sys.executable, "-", str(tmp_path)],
        input=NOTEBOOK,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "done\n"


LOADED = """
import sys
from seekable.formats.table import format_named
from seekable.index.opening import open_files
from seekable.storage.listing import find_files
files = open_files(find_files(sys.argv[1], suffixes=[".jsonl"]), format_named("jsonl").finder)
assert len(files.bytes_of(0, 0))
print(*(name for name in sys.modules if name.startswith("seekable.")))
"""


def test_code_that_builds_or_verifies_is_not_loaded_for_files_that_are_indexed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n")
    os.utime(path, ns=(10**18, 10**18))  # Files that were written a moment ago are read again.
    command = [sys.executable, "-c", LOADED, str(path)]
    built, opened = (
        set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())
        for _ in range(2)
    )
    late = (
        "index.build",
        "index.verify",
        "index.keys.hashes",
        "index.keys.keyed",
        "parallel.processes",
        "remote",
        "storage.compressed",
    )
    assert "seekable.index.build.build_index" in built
    assert [name for name in opened if name.startswith(tuple(f"seekable.{some}" for some in late))] == []
