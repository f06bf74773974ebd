from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from tests.index.corpus import LONG_AGO_NS, age, check, fill, index_files, open_data, write

from seekable.errors import DataNotFound, IndexStale
from seekable.index.catalog import CATALOG, read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seekable.parallel.progress import Progress


@pytest.fixture
def told_of_each_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.parallel.progress._SECONDS", -1.0)


def append(path: Path) -> None:
    write(path, path.read_bytes() + b'{"new": 1}\n', seconds=1)


def truncate(path: Path) -> None:
    write(path, path.read_bytes()[:-30], seconds=1)


def rewrite(path: Path) -> None:
    write(path, path.read_bytes().replace(b'{"file', b"\n\n\n\n\n"), seconds=1)


def replace(path: Path) -> None:
    write(path.with_name("other"), b"1\n2\n", seconds=-5)
    path.with_name("other").replace(path)


def empty(path: Path) -> None:
    write(path, b"")


@pytest.mark.parametrize("change", [append, truncate, rewrite, replace, empty])
def test_changed_files_are_indexed_again_and_only_they(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    fill(tmp_path)
    old = open_data(tmp_path)
    old.mapped(1)
    change(tmp_path / "part-1.jsonl")
    with pytest.raises(IndexStale):
        old.mapped(1).check()
    told: list[Progress] = []
    new = open_data(tmp_path, progress=told.append)
    check(new)
    assert told[-1].files == 1
    assert new.entry(0) == old.entry(0)
    assert new.entry(1) != old.entry(1)


def test_a_removed_file_is_missed(tmp_path: Path) -> None:
    fill(tmp_path)
    asked = [tmp_path / f"part-{number}.jsonl" for number in range(3)]
    old = open_data(asked)
    asked[1].unlink()
    with pytest.raises(IndexStale, match="is not there"):
        old.mapped(1)
    with pytest.raises(DataNotFound):
        open_data(asked)
    check(open_data(tmp_path))


def test_a_renamed_file_is_another_one(tmp_path: Path) -> None:
    fill(tmp_path)
    old = open_data(tmp_path)
    (tmp_path / "part-1.jsonl").rename(tmp_path / "part-7.jsonl")
    with pytest.raises(IndexStale):
        old.mapped(1)
    new = open_data(tmp_path)
    check(new)
    assert [new.name(file) for file in range(3)] == ["part-0.jsonl", "part-2.jsonl", "part-7.jsonl"]


def test_files_that_are_gone_are_dropped_from_the_index_by_the_next_build(tmp_path: Path) -> None:
    fill(tmp_path)
    open_data(tmp_path)
    (tmp_path / "part-1.jsonl").unlink()
    append(tmp_path / "part-0.jsonl")
    check(open_data(tmp_path / "part-0.jsonl"))
    catalog = (tmp_path / ".seekable" / "catalog.json").read_text()
    assert "part-1" not in catalog
    assert "part-2" in catalog


def test_a_rewrite_of_the_same_size_and_time_right_after_indexing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n")
    now = path.stat().st_mtime_ns
    assert open_data(path).records.tolist() == [2]
    path.write_bytes(b"123\n")
    os.utime(path, ns=(now, now))
    files = open_data(path)
    assert files.records.tolist() == [1]
    check(files)


def test_a_file_in_doubt_is_read_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n")
    entry = open_data(path).entry(0)
    segments = set(tmp_path.glob(".seekable/offsets-*"))
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 10 * 10**9)
    told: list[Progress] = []
    assert open_data(path, progress=told.append).entry(0) == entry
    assert told[-1].files == 1
    assert set(tmp_path.glob(".seekable/offsets-*")) == segments
    before = index_files(tmp_path)
    assert open_data(path).entry(0) == entry
    assert index_files(tmp_path) == before


def test_a_file_with_a_time_in_the_future_is_not_read_each_time(tmp_path: Path) -> None:
    fill(tmp_path, files=1)
    age(tmp_path / "part-0.jsonl", seconds=10**9)
    open_data(tmp_path)
    before = index_files(tmp_path)
    check(open_data(tmp_path))
    assert index_files(tmp_path) == before


@pytest.mark.usefixtures("told_of_each_chunk")
def test_a_file_that_is_changed_while_it_is_scanned_is_scanned_again(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "part-1.jsonl"
    changes = iter([b"1\n", b"1\n2\n"])

    def change(_: Progress) -> None:
        if data := next(changes, b""):
            write(path, data, seconds=len(data))

    check(open_data(tmp_path, progress=change))


def test_files_that_are_changed_between_two_builds_are_built_once_more(tmp_path: Path) -> None:
    fill(tmp_path, files=1)
    path = tmp_path / "part-0.jsonl"
    changes = iter([b"1\n", b"1\n2\n"])

    def change(_: Progress) -> None:
        if data := next(changes, b""):
            write(path, data, seconds=len(data))

    files = open_data(tmp_path, progress=change)
    check(files)
    assert files.records.tolist() == [2]


@pytest.mark.usefixtures("told_of_each_chunk")
def test_a_file_that_is_changed_all_the_time_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, files=1)
    path = tmp_path / "part-0.jsonl"
    seconds = iter(range(1, 1000))

    def change(_: Progress) -> None:
        os.utime(path, ns=(0, LONG_AGO_NS + next(seconds) * 10**9))

    with pytest.raises(IndexStale, match="when nothing writes to"):
        open_data(tmp_path, progress=change)


def test_the_catalog_gets_its_name_behind_the_table_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, files=2)
    rename = os.replace
    tables: list[object] = []

    def noted(made: str, path: str) -> None:
        rename(made, path)
        if os.path.basename(path) == CATALOG:
            tables.append(read_table(os.path.dirname(path)))

    monkeypatch.setattr(os, "replace", noted)
    for _ in range(2):
        check(open_data(tmp_path))
        append(min(tmp_path.glob("*.jsonl")))
    assert len(tables) == 2
    assert None not in tables
