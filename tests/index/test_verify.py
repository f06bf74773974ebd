"""Files and indexes that were damaged in each way are told, with the place; those that were not are good."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.formats.splitter import split
from tests.index.corpus import LONG_AGO_NS, age, fill, index_files, open_data, write

from seekable.errors import DataNotFound
from seekable.formats.table import SUFFIXES, format_named
from seekable.index.digest import END_BYTES
from seekable.index.file_table import OffsetSegment
from seekable.index.integrity import Indexed, check_offsets
from seekable.index.verification import _compare_part, _PartJob, verify_files
from seekable.storage.listing import find_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.index.integrity import VerificationProblem
    from seekable.index.verification import Verification
    from seekable.parallel.progress import Progress


def verified(
    folder: Path, *, deep: bool, form: str = "jsonl", jobs: int | None = None, index_dir: Path | None = None
) -> Verification:
    return verify_files(
        find_files(folder, suffixes=SUFFIXES),
        format_named(form).finder,
        deep=deep,
        folders={str(folder)},
        jobs=jobs,
        index_dir=index_dir,
    )


def the_problem(folder: Path, *, deep: bool) -> VerificationProblem:
    (problem,) = verified(folder, deep=deep).problems
    return problem


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three indexed files; the middle one is larger than its two ends."""
    fill(tmp_path / "data", rows=7)
    lines = b"".join(b'{"row": %6d, "text": "%s"}\n' % (row, b"x" * 50) for row in range(5000))
    write(tmp_path / "data" / "part-1.jsonl", lines)
    open_data(tmp_path / "data")
    return tmp_path / "data"


def rewrite(path: Path, offset: int, new: bytes) -> None:
    """Change bytes of a file, and neither its size nor its time."""
    status = path.stat()
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(new)
    assert path.stat().st_size == status.st_size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("deep", [False, True])
def test_what_is_good_is_good_and_nothing_is_written(folder: Path, *, deep: bool) -> None:
    before = everything_in(folder)
    found = verified(folder, deep=deep)
    assert (found.problems, found.files, found.records) == ((), 3, 7 + 5000 + 9)
    assert found.bytes == sum(path.stat().st_size for path in folder.glob("*.jsonl"))
    assert found.good.records.tolist() == [7, 5000, 9]
    assert everything_in(folder) == before


@pytest.mark.parametrize("deep", [False, True])
def test_without_an_index_none_is_made(tmp_path: Path, *, deep: bool) -> None:
    fill(tmp_path)
    problem = the_problem(tmp_path, deep=deep)
    assert (problem.kind, problem.path) == ("index", str(tmp_path / ".seekable" / "catalog.json"))
    assert "there is no index" in problem.message
    assert not (tmp_path / ".seekable").exists()


@pytest.mark.parametrize("deep", [False, True])
def test_a_file_that_is_not_indexed(folder: Path, *, deep: bool) -> None:
    write(folder / "part-9.jsonl", b"{}\n")
    problem = the_problem(folder, deep=deep)
    assert (problem.kind, problem.path) == ("not indexed", str(folder / "part-9.jsonl"))


def test_a_file_that_is_gone(folder: Path) -> None:
    (folder / "part-0.jsonl").unlink()
    problem = the_problem(folder, deep=False)
    assert (problem.kind, problem.path) == ("gone", str(folder / "part-0.jsonl"))
    with pytest.raises(DataNotFound):
        verified(folder / "part-0.jsonl", deep=False)


def test_a_file_that_grew(folder: Path) -> None:
    path = folder / "part-1.jsonl"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"{}\n")
    look = the_problem(folder, deep=False)
    assert (look.kind, look.path, look.offset) == ("changed", str(path), None)
    assert f"{size + 3:,} bytes" in look.message
    deep = the_problem(folder, deep=True)
    assert (deep.kind, deep.row, deep.offset) == ("changed", 5000, size)


def test_a_file_that_was_cut(folder: Path) -> None:
    path = folder / "part-1.jsonl"
    os.truncate(path, 100)
    deep = the_problem(folder, deep=True)
    line = len(path.read_bytes().splitlines()[0]) + 1
    assert (deep.kind, deep.row, deep.offset) == ("changed", -(-100 // line), -(-100 // line) * line)
    os.truncate(path, 0)
    assert (the_problem(folder, deep=True).row, the_problem(folder, deep=True).offset) == (0, 0)


def test_a_file_that_was_only_touched(folder: Path) -> None:
    age(folder / "part-1.jsonl", seconds=5)
    assert the_problem(folder, deep=False).kind == "changed"
    assert the_problem(folder, deep=True).kind == "touched"


def test_a_rewrite_that_keeps_size_and_time_is_found_by_a_deep_look_only(folder: Path) -> None:
    path = folder / "part-1.jsonl"
    rewrite(path, END_BYTES + 100, b"y")
    assert verified(folder, deep=False).problems == ()
    problem = the_problem(folder, deep=True)
    assert (problem.kind, problem.path, problem.row, problem.offset) == (
        "content",
        str(path),
        None,
        END_BYTES,
    )
    assert f"between byte {END_BYTES:,} and byte {path.stat().st_size - END_BYTES:,}" in problem.message


def test_a_rewrite_that_moves_a_record_is_found_with_its_place(folder: Path) -> None:
    path = folder / "part-1.jsonl"
    line = len(path.read_bytes().splitlines()[0]) + 1
    rewrite(path, 2000 * line + 7, b"\n")
    problem = the_problem(folder, deep=True)
    assert (problem.kind, problem.row, problem.offset) == ("content", 2001, 2000 * line + 8)
    rewrite(path, 2000 * line + 7, b" ")
    rewrite(path, 2001 * line - 1, b" ")
    problem = the_problem(folder, deep=True)
    assert (problem.row, problem.offset) == (2001, 2001 * line)


def test_a_rewrite_of_an_end_is_found_at_once(folder: Path) -> None:
    rewrite(folder / "part-0.jsonl", 3, b"y")
    problem = the_problem(folder, deep=False)
    assert (problem.kind, problem.path) == ("content", str(folder / "part-0.jsonl"))


def test_a_file_that_is_no_text_any_more(folder: Path) -> None:
    rewrite(folder / "part-0.jsonl", 0, b"\x1f\x8b\x08")
    problem = the_problem(folder, deep=True)
    assert (problem.kind, problem.offset) == ("content", 0)
    assert "gunzip" in problem.message


def test_problems_come_in_the_order_of_the_files(folder: Path) -> None:
    for name in ("part-2.jsonl", "part-0.jsonl"):
        rewrite(folder / name, 3, b"y")
    (folder / "part-1.jsonl").write_bytes(b"")
    for deep in (False, True):
        found = verified(folder, deep=deep)
        assert [Path(problem.path).name for problem in found.problems] == [
            f"part-{n}.jsonl" for n in range(3)
        ]
        assert len(found.good) == 0


def the(folder: Path, pattern: str) -> Path:
    (path,) = (folder / ".seekable").glob(pattern)
    return path


DAMAGES: dict[str, tuple[Callable[[Path], object], str, int | None]] = {
    "removed": (Path.unlink, "it is not there", None),
    "cut": (lambda path: os.truncate(path, 80), "it has 80 bytes instead of", 80),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"12345678"), "bytes instead of", 5019 * 8),
    "one bit": (lambda path: rewrite(path, 16, b"\x05"), "not those that were written", None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_segment_that_is_damaged(folder: Path, damage: str) -> None:
    do, message, offset = DAMAGES[damage]
    path = the(folder, "offsets-*.u64")
    do(path)
    for deep in (False, True):
        problem = the_problem(folder, deep=deep)
        assert (problem.kind, problem.path, problem.offset) == ("index", str(path), offset)
        assert message in problem.message
        assert "3 of the files" in problem.message


def test_a_catalog_that_is_damaged(folder: Path) -> None:
    path = folder / ".seekable" / "catalog.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    problem = the_problem(folder, deep=False)
    assert (problem.kind, problem.path) == ("index", str(path))
    assert "damaged" in problem.message
    path.write_bytes(whole.replace(b'"records": 5000', b'"records": 5001'))
    problem = the_problem(folder, deep=False)
    assert (problem.kind, problem.path) == ("index", str(path))
    assert "its list of files is not that of the table" in problem.message


def test_a_table_that_is_damaged(folder: Path) -> None:
    rewrite(the(folder, "files-*.bin"), 60, b"\x01")
    assert the_problem(folder, deep=True).kind == "index"


def test_other_peoples_index_dir(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / ".seekable")
    open_data(folder, index_dir=tmp_path / "indexes")
    assert verified(folder, deep=True, index_dir=tmp_path / "indexes").problems == ()
    assert the_problem(folder, deep=True).kind == "index"


@pytest.mark.parametrize(
    ("offsets", "row"),
    [([0, 5, 5, 9], 2), ([0, 7, 5, 9], 2), ([0, 5, 12, 9], 2), ([0, 5, 7, 8], 2), ([3, 0, 5, 9], 1)],
)
def test_offsets_that_are_digested_and_wrong(tmp_path: Path, offsets: list[int], row: int) -> None:
    write(tmp_path / "a.txt", b"123456789")
    open_data(tmp_path / "a.txt", form="text")
    (file,) = verified(tmp_path, deep=False, form="text").indexed
    numbers = np.array(offsets, "<u8")
    digest = xxhash.xxh3_64_intdigest(numbers.tobytes())
    segment = OffsetSegment(digest, 4)
    (tmp_path / ".seekable" / segment.file_name).write_bytes(numbers.tobytes())
    entry = replace(file.entry, records=3, start=0, segment=segment, offsets=digest)
    problem = check_offsets(Indexed(file.root, file.folder, 0, entry, 9, LONG_AGO_NS))
    assert problem
    assert (problem.kind, problem.row) == ("offsets", row)


TEXT = st.text("ab \r", max_size=6).map(str.encode)
LINES = st.lists(TEXT, max_size=12)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for many examples."""
    return tmp_path_factory.mktemp("changed")


@given(before=LINES, after=LINES)
def test_the_first_record_that_moved_is_that_of_a_plain_splitter(
    scratch: Path, before: list[bytes], after: list[bytes]
) -> None:
    shutil.rmtree(scratch)
    old, new = b"".join(line + b"\n" for line in before), b"\n".join(after)
    path = scratch / "a.txt"
    write(path, old)
    (entry,) = (file.entry for file in verified_after_indexing(scratch))
    path.write_bytes(new)
    job = _PartJob(
        str(path),
        str(scratch / ".seekable"),
        entry,
        start=0,
        stop=len(new),
        size=len(new),
        version=(len(new), 0),
    )
    compared = _compare_part(job, format_named("text").finder, on_bytes=None)
    assert compared.refused is None
    was, now = split(old, keep_blank=True), split(new, keep_blank=True)
    wanted = next((row for row in range(99) if was[row : row + 1] != now[row : row + 1]), None)
    assert (compared.boundary.row if compared.boundary else None) == wanted


def verified_after_indexing(folder: Path) -> tuple[Indexed, ...]:
    open_data(folder, form="text")
    return verified(folder, deep=False, form="text").indexed


def write_large(path: Path, *, size: int, ends: list[int]) -> None:
    """Write lines that end at some bytes; between the ends the file is a hole."""
    with open(path, "wb") as file:
        for end in ends:
            file.seek(end)
            file.write(b"\n")
        file.truncate(size)
    age(path)


def test_a_large_file_is_read_in_parts_and_in_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seekable.index.verification._PARALLEL_BYTES", 0)
    size, ends = 600 << 20, [10, 100 << 20, (256 << 20) - 1, 256 << 20, 400 << 20, (512 << 20) + 5]
    path = tmp_path / "a.txt"
    write_large(path, size=size, ends=ends)
    open_data(path, form="text")
    seen: list[Progress] = []
    found = find_files(path, suffixes=SUFFIXES)
    scanner = format_named("text").finder
    assert verify_files(found, scanner, deep=True, jobs=2, progress=seen.append).problems == ()
    assert (seen[-1].bytes_done, seen[-1].is_done, seen[-1].task) == (size, True, "verifying")
    rewrite(path, 400 << 20, b"\0")
    rewrite(path, (512 << 20) + 5, b"\0")
    (problem,) = verify_files(found, scanner, deep=True, jobs=2).problems
    assert (problem.kind, problem.row, problem.offset) == ("content", 5, (400 << 20) + 1)
    assert index_files(tmp_path)
