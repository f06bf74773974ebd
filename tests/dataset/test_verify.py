"""Data that is verified as a user names it, records decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.index.corpus import fill, write

import seekable as sk
from seekable.dataset.verify_data import verify

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.parallel.progress import Progress


def test_each_record_is_decoded_and_the_first_bad_one_of_a_file_is_named(tmp_path: Path) -> None:
    fill(tmp_path, rows=50)
    write(tmp_path / "part-1.jsonl", b'{"a": 1}\n{"a": \n{"a": 3}\nnonsense\n{"a": NaN}\n')
    sk.open(tmp_path)
    assert verify(tmp_path, deep=True).problems == ()
    seen: list[Progress] = []
    found = verify(tmp_path, decode=True, progress=seen.append)
    (problem,) = found.problems
    assert (problem.kind, problem.row, problem.offset) == ("record", 1, 9)
    assert problem.path == str(tmp_path / "part-1.jsonl")
    assert "of this file 2 records cannot be decoded" in problem.message
    assert (seen[-1].task, seen[-1].is_done, seen[-1].records) == ("decoding", True, 50 + 5 + 52)


def test_files_that_are_bad_already_are_not_decoded(tmp_path: Path) -> None:
    fill(tmp_path)
    sk.open(tmp_path)
    (tmp_path / "part-0.jsonl").write_bytes(b"nonsense")
    (tmp_path / "part-9.jsonl").write_bytes(b"nonsense")
    found = verify(tmp_path, decode=True)
    assert [problem.kind for problem in found.problems] == ["changed", "not indexed"]


def test_a_glob_does_not_miss_what_is_gone_and_a_folder_does(tmp_path: Path) -> None:
    fill(tmp_path)
    sk.open(tmp_path)
    (tmp_path / "part-1.jsonl").unlink()
    assert verify(tmp_path / "*.jsonl").problems == ()
    assert [problem.kind for problem in verify(tmp_path).problems] == ["gone"]


def test_a_list_and_a_format(tmp_path: Path) -> None:
    fill(tmp_path)
    paths = [tmp_path / "part-2.jsonl", tmp_path / "part-0.jsonl"]
    sk.open(paths, format="text")
    assert verify(paths, format="text", deep=True, decode=True).records == 12
    assert [problem.kind for problem in verify(paths).problems] == ["not indexed"] * 2
    with pytest.raises(sk.errors.InvalidArgument):
        verify(paths, format="xml")


def test_nothing_at_all(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"")
    sk.open(tmp_path)
    found = verify(tmp_path, deep=True, decode=True)
    assert (found.problems, found.records, found.bytes) == ((), 0, 0)
