from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

from seekable.storage.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_a_file_is_written_in_one_piece_or_in_many(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "one"), b"good day")
    write_atomically(str(tmp_path / "many"), [b"good", memoryview(b" day")])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes() == b"good day"


def test_a_file_that_was_there_is_replaced_by_another_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as old:
        write_atomically(str(path), b"new")
        assert old.read() == b"old"
    assert path.read_bytes() == b"new"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("power")

    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="power"):
        write_atomically(str(path), failing())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_of_what_gives_the_data_stays_as_it_is(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the source changed")

    with pytest.raises(OSError, match=r"^the source changed$"):
        write_atomically(str(tmp_path / "file"), failing())


def test_where_nothing_more_can_be_written_the_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_atomically(str(path), bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(str(tmp_path / "file"), b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_name_without_a_folder_is_written_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically("file", b"x")
    assert (tmp_path / "file").read_bytes() == b"x"


def test_the_content_is_on_disk_before_its_name_and_the_name_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    sync, rename = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        sync(descriptor)
        done.append(("synced", os.fstat(descriptor).st_ino))

    def noted_rename(source: str, target: str) -> None:
        rename(source, target)
        done.append(("renamed", os.stat(target).st_ino))

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_rename)
    write_atomically(str(tmp_path / "file"), b"x")
    file, folder = (tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino
    assert done == [("synced", file), ("renamed", file), ("synced", folder)]
