from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.index.corpus import write

import seekable as sk
from seekable.errors import AccessDenied
from seekable.index.index_location import find_index

if TYPE_CHECKING:
    from pathlib import Path


def test_an_index_folder_that_is_a_link_is_refused_and_nothing_behind_it_is_removed(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.txt", b"one\n")
    (tmp_path / "work").mkdir()
    (work := tmp_path / "work" / "result.tmp").touch()
    os.utime(work, (0, 0))
    (tmp_path / "data" / ".seekable").symlink_to(tmp_path / "work")
    for _ in range(2):
        with pytest.raises(AccessDenied, match=r"\.seekable' is a link.*Index\(folder="):
            sk.open(tmp_path / "data" / "a.txt")
    assert os.listdir(tmp_path / "work") == ["result.tmp"]
    assert list(sk.open(tmp_path / "data" / "a.txt", index=sk.Index(folder=tmp_path / "own"))) == ["one"]


def test_a_lock_that_is_a_link_is_refused_and_its_file_keeps_its_bytes(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.txt", b"one\n")
    (victim := tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "data" / ".seekable").mkdir()
    (tmp_path / "data" / ".seekable" / "lock").symlink_to(victim)
    with pytest.raises(AccessDenied, match=r"lock.* is a link"):
        sk.open(tmp_path / "data" / "a.txt")
    assert victim.read_bytes() == b"precious"


def test_a_build_removes_files_with_names_of_the_library_alone(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"one\n")
    sk.open(tmp_path / "a.txt")
    old = {name: tmp_path / ".seekable" / name for name in ("notes.tmp", "offsets.0123456789abcdef.tmp")}
    for path in old.values():
        path.touch()
        os.utime(path, (0, 0))
    write(tmp_path / "b.txt", b"two\n")
    sk.open(tmp_path / "b.txt")
    assert [path.exists() for path in old.values()] == [True, False]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(
    ("folder_owner", "index_owner", "taken"), [(0, 1, False), (1, 1, True), (1, 2, False), (1, 0, True)]
)
def test_an_index_is_taken_from_root_this_user_and_the_owner_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder_owner: int, index_owner: int, *, taken: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = tmp_path / "data"
    (data / ".seekable").mkdir(parents=True)
    os.chown(data, folder_owner, -1)
    os.chown(data / ".seekable", index_owner, -1)
    place = find_index(str(data), index_dir=None)
    assert (place.folder == str(data / ".seekable")) is taken
    assert ("belongs to uid" in place.notice) is not taken


@pytest.mark.parametrize("name", ["catalog.json", "files-*.bin", "offsets-*.u64", "schema-*.bin"])
def test_nobody_waits_for_a_named_pipe_in_place_of_a_file_of_an_index(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
    sk.open(tmp_path / "a.parquet")
    (path := next((tmp_path / ".seekable").glob(name))).unlink()
    os.mkfifo(path)
    assert list(sk.open(tmp_path / "a.parquet")) == [{"n": 1}, {"n": 2}]
