"""Folders that only their user reads, and names that are not what they seem."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.index.corpus import write

import seekable as sk
from seekable.errors import AccessDenied
from seekable.storage import memory
from seekable.storage.files import make_private_folder, write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def test_a_made_folder_is_private_and_one_that_is_there_keeps_its_rights(
    tmp_path: Path,
) -> None:
    (there := tmp_path / "there").mkdir(mode=0o755)
    make_private_folder(str(there / "a" / "b"))
    assert [path.stat().st_mode & 0o777 for path in (there, there / "a", there / "a" / "b")] == [
        0o755,
        0o700,
        0o700,
    ]


def test_an_index_in_the_cache_of_the_user_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("seekable.index.index_location.has_access", lambda *_: False)
    write(tmp_path / "data" / "a.txt", b"one\n")
    assert list(sk.open(tmp_path / "data" / "a.txt")) == ["one"]
    assert (tmp_path / "cache" / "seekable").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["catalog.json", "lock", "files-*.bin", "offsets-*.u64"])
def test_a_folder_in_the_place_of_a_file_of_the_index(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.txt", b"one\n")
    sk.open(tmp_path / "a.txt")
    (path,) = (tmp_path / ".seekable").glob(name)
    path.unlink()
    path.mkdir()
    write(tmp_path / "a.txt", b"two\n", seconds=1)
    if not name.startswith("files"):
        with pytest.raises(AccessDenied, match="is a folder"):
            sk.open(tmp_path / "a.txt")
        path.rmdir()
    assert list(sk.open(tmp_path / "a.txt")) == ["two"]


def test_a_file_is_not_written_over_a_folder(tmp_path: Path) -> None:
    with pytest.raises(AccessDenied, match="is a folder"):
        write_atomically(str(tmp_path), b"")
    assert os.listdir(tmp_path) == []


def test_macos_takes_no_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fadvise")
    (path := tmp_path / "file").touch()
    with open(path, "rb") as file:
        memory.advise(file.fileno(), 0, 1, "WILLNEED")
