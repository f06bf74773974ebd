"""Placeholders: the small files that stand for files of the Hub."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.remote.placeholder import (
    HubFile,
    display_path,
    is_placeholder,
    path_of_display,
    read_placeholder,
    write_placeholders,
)

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def remote(folder: Path, path: str = "data/a.parquet", repo: str = "me/web") -> HubFile:
    return HubFile(str(folder / "hub"), repo, COMMIT, path, size=1234, etag="abc")


@pytest.mark.parametrize(
    "path", ["a.parquet", "data/ä \U0001f600 'x' \"y\".parquet", "a\nb.parquet", "x" * 200]
)
@pytest.mark.parametrize("repo", ["web", "me/web", "me/we.b-2_x"])
def test_a_placeholder_stands_for_a_file(tmp_path: Path, path: str, repo: str) -> None:
    file = remote(tmp_path, path, repo)
    write_placeholders([file])
    with open(file.placeholder, "rb") as written:
        text = written.read()
    assert is_placeholder(text, len(text))
    assert read_placeholder(file.placeholder, text) == file
    assert display_path(file.placeholder) == file.uri
    root = file.placeholder.removesuffix(path).rstrip("/")
    assert path_of_display(["/elsewhere", root], file.uri) == file.placeholder


def test_placeholders_that_are_there_stay_and_a_torn_one_is_replaced(tmp_path: Path) -> None:
    files = [remote(tmp_path, f"{number}.parquet") for number in range(3)]
    write_placeholders(files)
    before = [os.stat(file.placeholder) for file in files]
    with open(files[1].placeholder, "wb"):
        pass
    write_placeholders(files)
    after = [os.stat(file.placeholder) for file in files]
    assert [status.st_ino for status in before][::2] == [status.st_ino for status in after][::2]
    assert {status.st_mtime_ns for status in after} == {before[0].st_mtime_ns}
    assert {status.st_size for status in after} == {before[0].st_size}


def test_the_same_content_at_another_commit_has_the_same_placeholder(tmp_path: Path) -> None:
    one = remote(tmp_path)
    other = HubFile(one.hub, one.repo, COMMIT[::-1], one.path, size=one.size, etag=one.etag)
    write_placeholders([one])
    write_placeholders([other])
    with open(one.placeholder, "rb") as first, open(other.placeholder, "rb") as second:
        assert first.read() == second.read()


@pytest.mark.parametrize(
    "text", [b'{"seekable_hub":1,', b'{"seekable_hub":1,"path":"b","size":1,"etag":""}', b"{}"]
)
def test_a_damaged_placeholder_is_told(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(sk.errors.UnsupportedFormat, match="was moved or damaged: remove it"):
        read_placeholder(remote(tmp_path).placeholder, text)


def test_a_placeholder_that_was_moved_is_told(tmp_path: Path) -> None:
    file = remote(tmp_path)
    write_placeholders([file])
    lines = tmp_path / "a.jsonl"
    shutil.copy(file.placeholder, lines)
    with pytest.raises(sk.errors.UnsupportedFormat, match="was moved or damaged"):
        sk.open(lines)
    moved = tmp_path / "a.parquet"
    os.rename(file.placeholder, moved)
    assert json.loads(moved.read_bytes())["path"] == "data/a.parquet"
    with pytest.raises(sk.errors.UnsupportedFormat, match="was moved or damaged"):
        sk.open(moved)
