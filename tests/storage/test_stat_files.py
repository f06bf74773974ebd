"""The status of many files below one folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.storage.files import stat_files

if TYPE_CHECKING:
    from pathlib import Path


def test_the_status_of_each_file_in_the_order_of_the_names(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, size in (("a", 1), ("in/b", 2), ("c", 3)):
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "link").symlink_to("in/b")
    found = list(stat_files(str(tmp_path), ["c", "in/b", "a", "link"]))
    assert [status.st_size for status in found] == [3, 2, 1, 2]
    assert found[0].st_mtime_ns == os.stat(tmp_path / "c").st_mtime_ns


@pytest.mark.parametrize(
    ("name", "message"),
    [("gone", "there is no file"), ("broken", "links to one that is gone"), ("in", "is not a regular file")],
)
def test_what_is_no_file_is_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "in").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(sk.DataNotFound, match=message) as raised:
        list(stat_files(str(tmp_path), ["a", name]))
    assert repr(str(tmp_path / name)) in str(raised.value)


def test_a_folder_that_is_gone_is_said_of_the_first_file(tmp_path: Path) -> None:
    with pytest.raises(sk.DataNotFound, match="there is no file") as raised:
        list(stat_files(str(tmp_path / "gone"), ["a"]))
    assert repr(str(tmp_path / "gone" / "a")) in str(raised.value)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    before = len(os.listdir("/proc/self/fd"))
    list(stat_files(str(tmp_path), ["a"]))
    with pytest.raises(sk.DataNotFound):
        list(stat_files(str(tmp_path), ["a", "gone"]))
    assert len(os.listdir("/proc/self/fd")) == before
