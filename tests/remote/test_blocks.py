"""Blocks of files that lie elsewhere: how they are cut, kept and bounded; and what stands for such files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.remote.block_cache import BlockCache, block_cache_bytes
from seekable.remote.block_plan import (
    BLOCK_BYTES,
    TAIL_BYTES,
    block_span,
    blocks_ahead,
    blocks_within,
    consecutive,
)
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


@given(st.integers(1, 5 * BLOCK_BYTES), st.data())
def test_blocks_cover_a_range_and_no_more(size: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(start + 1, size))
    numbers = blocks_within(start, stop, size)
    spans = [block_span(number, size) for number in numbers]
    assert spans[0][0] <= start < spans[0][1]
    assert spans[-1][0] < stop <= spans[-1][1]
    assert [end for _, end in spans[:-1]] == [begin for begin, _ in spans[1:]]


@given(st.integers(1, 5 * BLOCK_BYTES))
def test_the_end_of_a_file_is_a_block_by_itself(size: int) -> None:
    spans = [block_span(number, size) for number in blocks_within(0, size, size)]
    assert spans[0][0] == 0
    assert spans[-1] == (max(size - TAIL_BYTES, 0), size)
    assert all(0 < end - begin <= BLOCK_BYTES for begin, end in spans)


@given(st.sets(st.integers(0, 100)))
def test_runs_are_all_numbers_in_order_and_none_is_long(numbers: set[int]) -> None:
    found = list(consecutive(sorted(numbers)))
    assert [number for run in found for number in run] == sorted(numbers)
    assert all(1 <= len(run) <= 16 for run in found)


def test_nothing_is_fetched_ahead_of_reads_at_random() -> None:
    assert blocks_ahead([5 << 20, 1 << 20, 9 << 20, 3 << 20], 1 << 30) == []
    assert blocks_ahead([0, 0, 0, 0], 1 << 30) == []
    assert blocks_ahead([0, 100 << 20, 200 << 20, 300 << 20], 1 << 30) == []
    assert blocks_ahead([0, 1 << 20, 2 << 20, 3 << 20], 4 << 20) == []


def test_a_damaged_or_misplaced_block_is_not_there(tmp_path: Path) -> None:
    store = BlockCache(str(tmp_path), most_bytes=1 << 20)
    store.save("ab", 0, b"good day")
    store.save("ab", 1, b"good bye")
    first, second = tmp_path / "ab" / "ab" / "0", tmp_path / "ab" / "ab" / "1"
    whole = first.read_bytes()
    for torn in (whole[:-1], whole[:3], b"", whole + b"!", whole[:-1] + b"?", second.read_bytes()):
        first.write_bytes(torn)
        assert store.load("ab", 0) is None
    first.write_bytes(whole)
    assert store.load("ab", 0) == b"good day"


def test_the_oldest_blocks_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    store = BlockCache(str(tmp_path), most_bytes=100_000)
    for number in range(50):
        store.save("cd", number, bytes(1000))
        os.utime(tmp_path / "cd" / "cd" / str(number), ns=(number, number))
    store.sweep()
    assert store.load("cd", 0) is not None
    for number in range(50, 150):
        store.save("cd", number, bytes(1000))
        if (path := tmp_path / "cd" / "cd" / str(number)).exists():
            os.utime(path, ns=(number, number))
    store.sweep()
    there = sorted(int(path.name) for path in (tmp_path / "cd" / "cd").iterdir())
    assert there == list(range(there[0], 150))
    assert 80 <= len(there) <= 100


def test_a_store_is_bounded_without_being_told(tmp_path: Path) -> None:
    store = BlockCache(str(tmp_path), most_bytes=64_000)
    for number in range(500):
        store.save("ef", number, bytes(1000))
    size = sum(path.stat().st_size for path in (tmp_path / "ef").rglob("*") if path.is_file())
    assert size <= 64_000 * 17 // 16 + 2000


def test_what_dead_writers_left_is_removed_and_what_live_ones_write_is_not(tmp_path: Path) -> None:
    store = BlockCache(str(tmp_path), most_bytes=1 << 20)
    store.save("ab", 0, b"good day")
    old, new = tmp_path / "ab" / "ab" / "1.x.tmp", tmp_path / "ab" / "ab" / "2.x.tmp"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    hours_ago = time.time() - 7200
    os.utime(old, (hours_ago, hours_ago))
    store.sweep()
    assert sorted(os.listdir(tmp_path / "ab" / "ab")) == ["0", "2.x.tmp"]


def test_a_store_that_cannot_be_written_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = BlockCache(str(tmp_path / "file" / "below"), most_bytes=1000)
    store.save("ab", 0, b"good day")
    assert store.load("ab", 0) is None


WRITER = """
import sys
from seekable.remote.block_cache import BlockCache
store = BlockCache(sys.argv[1], most_bytes=200_000)
for round in range(3):
    for number in range(100):
        store.save("ab", number, bytes([number]) * 4000)
        found = store.load("ab", number)
        assert found in (None, bytes([number]) * 4000)
"""


def test_processes_share_a_store(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)]) for _ in range(3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]


def test_the_bound_is_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert block_cache_bytes() == 16 << 30
    monkeypatch.setenv("SEEKABLE_HUB_BYTES", "1000")
    assert block_cache_bytes() == 1000
    monkeypatch.setenv("SEEKABLE_HUB_BYTES", "1 GB")
    with pytest.raises(sk.InvalidArgument, match="SEEKABLE_HUB_BYTES must be a number of bytes"):
        block_cache_bytes()


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
    with pytest.raises(sk.UnsupportedFormat, match="was moved or damaged: remove it"):
        read_placeholder(remote(tmp_path).placeholder, text)


def test_a_placeholder_that_was_moved_is_told(tmp_path: Path) -> None:
    file = remote(tmp_path)
    write_placeholders([file])
    lines = tmp_path / "a.jsonl"
    shutil.copy(file.placeholder, lines)
    with pytest.raises(sk.UnsupportedFormat, match="was moved or damaged"):
        sk.open(lines)
    moved = tmp_path / "a.parquet"
    os.rename(file.placeholder, moved)
    assert json.loads(moved.read_bytes())["path"] == "data/a.parquet"
    with pytest.raises(sk.UnsupportedFormat, match="was moved or damaged"):
        sk.open(moved)
