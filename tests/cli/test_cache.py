"""``seekable cache``: what is shown of the cache on disk, and what is removed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import documents, output, run

from seekable.remote.cache.disk_cache import UNIT_BYTES, DiskCache, object_key

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 2 * UNIT_BYTES + 1000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a whole object, a part of another, and one elsewhere."""
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", str(64 << 20))
    cache = DiskCache(str(tmp_path / "kept"), most_bytes=64 << 20)
    for address, units in {
        "s3://b/web/a.jsonl": (0, 1, 2),
        "s3://b/web/b.jsonl": (2,),
        "gs://c/d.tar": (0,),
    }.items():
        key = object_key(address, size=SIZE, identity=1)
        for unit in units:
            cache.save(key, unit, bytes(1000 if unit == 2 else UNIT_BYTES), etag="e1")
    return tmp_path / "kept"


def test_the_objects_are_shown_with_what_is_kept_of_them(folder: Path) -> None:
    (shown,) = documents("cache", "ls", "--json")
    assert (shown["folder"], shown["limit_bytes"]) == (str(folder), 64 << 20)
    found = [(each["address"], each["etag"], each["size"], each["kept_bytes"]) for each in shown["objects"]]
    assert found == [
        ("gs://c/d.tar", "e1", SIZE, UNIT_BYTES),
        ("s3://b/web/a.jsonl", "e1", SIZE, SIZE),
        ("s3://b/web/b.jsonl", "e1", SIZE, 1000),
    ]
    on_disk = sum(path.stat().st_blocks * 512 for path in (folder / "objects").glob("*/*/**/*"))
    folders = sum(path.stat().st_blocks * 512 for path in (folder / "objects").glob("*/*"))
    assert on_disk <= shown["used_bytes"] <= on_disk + folders


def test_caches_of_datasets_are_shown_and_removed_too(folder: Path) -> None:
    own = DiskCache(str(folder / "own" / f"{1 << 20}-0123456789abcdef"), most_bytes=1 << 20)
    own.save(object_key("s3://b/z.txt", size=1000, identity=1), 0, bytes(1000))
    (shown,) = documents("cache", "ls", "s3://b/z.txt", "--json")
    assert [(each["folder"], each["limit_bytes"]) for each in shown["own"]] == [(own.folder, 1 << 20)]
    assert [each["kept_bytes"] for each in shown["objects"]] == [1000]
    documents("cache", "rm", "s3://b/z.txt", "--json")
    assert own.contents() == []


def test_people_read_a_table(folder: Path) -> None:
    lines = output("cache", "ls", "s3://b").decode().splitlines()
    assert lines[0] == f"folder  {folder}"
    assert lines[1].endswith(" of 67.1 MB")
    assert [line.split() for line in lines[3:]] == [
        ["object", "size", "kept", "%", "used"],
        ["s3://b/web/a.jsonl", "525.3", "kB", "525.3", "kB", "100", "now"],
        ["s3://b/web/b.jsonl", "525.3", "kB", "1.0", "kB", "0", "now"],
    ]


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (["s3://b/web/a.jsonl"], ["gs://c/d.tar", "s3://b/web/b.jsonl"]),
        (["s3://b/web/"], ["gs://c/d.tar"]),
        (["*.jsonl"], ["gs://c/d.tar"]),
        (["gs://c", "*/b.jsonl"], ["s3://b/web/a.jsonl"]),
        (["--all"], []),
    ],
    ids=["one", "folder", "pattern", "two", "all"],
)
def test_what_is_named_is_removed(folder: Path, chosen: list[str], left: list[str]) -> None:
    (removed,) = documents("cache", "rm", *chosen, "--json")
    (shown,) = documents("cache", "ls", "--json")
    assert [each["address"] for each in shown["objects"]] == left
    assert len(removed["objects"]) == 3 - len(left)
    assert removed["removed_bytes"] > 0
    assert DiskCache(str(folder)).used_bytes() < 64 << 20


def test_what_is_not_there_is_not_found(folder: Path) -> None:
    for command in ("ls", "rm"):
        done = run("cache", command, "s3://b/we", "--json")
        assert done.returncode == 4
        error = json.loads(done.stderr)["error"]
        assert error["type"] == "DataNotFound"
        assert error["message"].startswith(f"nothing of s3://b/we is in {str(folder)!r}")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", [[], ["--all", "s3://b"]], ids=["none", "both"])
def test_a_removal_names_objects_or_all(arguments: list[str]) -> None:
    done = run("cache", "rm", *arguments)
    assert done.returncode == 2
    assert b"name the objects to remove, or give --all, but not both" in done.stderr


def test_an_empty_cache_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("SEEKABLE_REMOTE_BYTES", raising=False)
    (shown,) = documents("cache", "ls", "--json")
    assert (shown["used_bytes"], shown["objects"]) == (0, [])
    assert b"0 bytes of half of the free disk" in output("cache", "ls")
    assert output("cache", "rm", "--all") == b"removed 0 objects, 0 bytes\n"
    assert not (tmp_path / "none").exists()
