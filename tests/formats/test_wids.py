"""Lists of shards of wids, and the index files of other tools, which are never data."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.cli.test_index_for_others import archive, samples

import seekable as sk
from seekable.errors import DataNotFound, IndexStale, InvalidArgument, SeekableError, UnsupportedFormat

if TYPE_CHECKING:
    from pathlib import Path

KIND = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "name": "it"}


def write_list(path: Path, *shards: tuple[str, int], **more: object) -> Path:
    shardlist = [{"url": url, "nsamples": count, "md5sum": "", "filesize": 0} for url, count in shards]
    path.write_text(json.dumps({**KIND, "shardlist": shardlist, **more}))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shards, with an index of each other tool beside them."""
    for number in range(2):
        members = [(f"{number}/{name}", content) for name, content in samples(3 - number)]
        archive(tmp_path / f"s{number}.tar", members)
        (tmp_path / f"s{number}.idx").write_text("v1.2 1\njpg 512 0 d/0000.jpg\n")
        (tmp_path / f"s{number}.tar.idx").write_bytes(bytes(8))
        (tmp_path / f"s{number}.tar.index").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    write_list(tmp_path / "index.json", ("s1.tar", 2), ("s0.tar", 3))
    return tmp_path


@pytest.mark.parametrize("asked", ["", "*", "**", "*.tar*", "s*", "s?.*", "s1*"])
def test_indexes_are_no_data(folder: Path, asked: str) -> None:
    ds = sk.open(folder / asked)
    assert {os.path.basename(ds.locate(row).path) for row in range(len(ds))} <= {"s0.tar", "s1.tar"}
    assert len(ds) == (2 if asked == "s1*" else 5)


def test_a_list_is_its_shards_in_its_order(folder: Path) -> None:
    ds = sk.open(f"wids:{folder}/index.json")
    assert [os.path.basename(ds.locate(row).path) for row in range(5)] == ["s1.tar"] * 2 + ["s0.tar"] * 3
    write_list(folder / "sub.json", ("s0.tar", 3), base="sub")
    (folder / "sub").mkdir()
    (folder / "s0.tar").rename(folder / "sub/s0.tar")
    assert len(sk.open(f"wids:{folder}/sub.json")) == 3


def test_options_in_the_name_of_the_format_hold(tmp_path: Path) -> None:
    archive(tmp_path / "s.tar", [("sp0.9_a.txt", b"a"), ("sp0.9_b.txt", b"b")])
    spec = f"wids:{write_list(tmp_path / 'index.json', ('s.tar', 2))}"
    assert [sample["__key__"] for sample in sk.open(spec, format="tar-last")] == ["sp0.9_a", "sp0.9_b"]
    with pytest.raises(InvalidArgument, match="is tar; leave format='jsonl' out"):
        sk.open(spec, format="jsonl")


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("{}/index.json", UnsupportedFormat, "open them as 'wids:"),
        ("wids:", InvalidArgument, "not complete"),
        ("wids:{}/none.json", DataNotFound, r"none\.json"),
        ("wids:{}/count.json", IndexStale, r"s0\.tar' has 3 samples, and .*count\.json' says 4"),
        ("wids:{}/remote.json", UnsupportedFormat, "file:///host/s0"),
        ("wids:{}/above.json", UnsupportedFormat, r"names '\.\./s0\.tar', which is not below"),
        ("wids:{}/elsewhere.json", UnsupportedFormat, r"names 'https://host/s0\.tar', which is not below"),
        ("wids:{}/missing.json", DataNotFound, r"s9\.tar"),
        ("wids:{}/other.json", UnsupportedFormat, "no list of shards of wids"),
        ("wids:{}/s0.tar", UnsupportedFormat, "no list of shards of wids"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, asked: str, error: type[SeekableError], message: str) -> None:
    write_list(folder / "count.json", ("s0.tar", 4))
    write_list(folder / "remote.json", ("s0.tar", 3), base="file:///host/")
    write_list(folder / "above.json", ("../s0.tar", 3))
    write_list(folder / "elsewhere.json", ("https://host/s0.tar", 3))
    write_list(folder / "missing.json", ("s9.tar", 3))
    (folder / "other.json").write_text('{"shards": []}')
    with pytest.raises(error, match=message):
        sk.open(asked.format(folder))


@pytest.mark.parametrize("url", ["*.tar", "{s,../other/s}.tar", "[s].tar"])
def test_a_list_names_files_and_no_patterns(tmp_path: Path, url: str) -> None:
    write_list(tmp_path / "index.json", (url, 1))
    with pytest.raises(UnsupportedFormat, match=r"index\.json' is no list .* names files and no patterns"):
        sk.open(f"wids:{tmp_path}/index.json")
