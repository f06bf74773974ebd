"""What a list may name besides the files below its folder: only what ``sk.Index(allow=)`` names."""

from __future__ import annotations

import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import output
from tests.cli.test_index_for_others import archive, samples
from tests.remote.index.counting_store import CountingStore

import seekable as sk
from seekable.errors import InvalidArgument, SeekableError, UnsupportedFormat, WrongType
from seekable.remote import mounts
from seekable.storage.trust import check_below, checked_allow

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose lists, of Energon and of wids, name a shard of the folder beside it, and one of it."""
    (tmp_path / "set/.nv-meta").mkdir(parents=True)
    (tmp_path / "shards").mkdir()
    for number, path in enumerate((tmp_path / "shards/a.tar", tmp_path / "set/b.tar")):
        archive(path, [(f"{number}/{name}", content) for name, content in samples(3 - number)])
    names = ["../shards/a.tar", "b.tar"]
    meta = {"shard_counts": dict(zip(names, (3, 2), strict=True))}
    (tmp_path / "set/.nv-meta/.info.json").write_text(json.dumps(meta))
    (tmp_path / "set/.nv-meta/split.yaml").write_text(f"split_parts: {{train: {json.dumps(names)}}}")
    shards = [
        {"url": url, "nsamples": count, "md5sum": "", "filesize": 0}
        for url, count in meta["shard_counts"].items()
    ]
    wids = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "name": "it", "shardlist": shards}
    (tmp_path / "set/index.json").write_text(json.dumps(wids))
    return tmp_path


@pytest.mark.parametrize("spec", ["energon:{}/set:train", "wids:{}/set/index.json"])
def test_a_list_names_files_below_a_folder_that_the_call_allows(folder: Path, spec: str) -> None:
    asked = spec.format(folder)
    for allow in (None, folder / "set", folder / "shards/a", folder / "sha"):
        with pytest.raises(UnsupportedFormat, match=r"index=sk\.Index\(allow=FOLDER\) permits"):
            sk.open(asked, index=sk.Index(allow=allow))
    for given in (folder / "shards", [f"{folder}/other", f"{folder}/shards/"], folder / "shards/a.tar"):
        ds = sk.open(asked, index=sk.Index(allow=given))
        places = [os.path.relpath(ds.locate(row).path, folder) for row in range(5)]
        assert places == ["shards/a.tar"] * 3 + ["set/b.tar"] * 2


def test_commands_allow_it_too(folder: Path) -> None:
    asked, allow = f"energon:{folder}/set:train", ("--index", f"allow={folder}/shards")
    assert not output("index", "--quiet", *allow, asked)
    assert b"good: 5 records" in output("verify", "--deep", *allow, asked)


EVERYTHING = ["", "/", "/data/..", "s3://", "s3:///", "file:///", "/data/*", "s3://bucket/*.tar"]


@pytest.mark.parametrize("allow", EVERYTHING)
def test_nothing_allows_all_files(allow: str) -> None:
    with pytest.raises(InvalidArgument, match="neither all files"):
        sk.Index(allow=["/shards", allow])


@pytest.mark.parametrize("allow", [3, b"/data", {"/data": 1}, [None]])
def test_what_is_no_folder_is_refused(allow: Any) -> None:
    with pytest.raises(WrongType, match="allow must be a folder"):
        sk.Index(allow=allow)


@pytest.mark.parametrize(
    ("name", "allow", "is_allowed"),
    [
        ("s3://b/x/a.tar", "s3://b/x", True),
        ("s3://b/xy/a.tar", "s3://b/x", False),
        ("s3://b/x/../y/a.tar", "s3://b/x", False),
        ("S3://b/x/a.tar", "s3://b/x/", True),
        ("https://host/x/%2e%2e/a.tar", "https://host/x", False),
        ("../a/b.tar", "s3://mine/a", True),
        ("../../a/b.tar", "s3://mine/a", False),
        ("/etc/passwd", "s3://mine", False),
        ("/shards/a.tar", "/shards", True),
        ("/shards/../etc/a.tar", "/shards", False),
        # It is the folder of the list that a relative name begins at, and not the one that is allowed.
        ("../x/a.tar", "s3://other/x", False),
    ],
)
def test_a_name_is_below_what_is_allowed(name: str, allow: str, *, is_allowed: bool) -> None:
    def check() -> None:
        check_below(name, ["s3://mine/set"], by="a list", way_out="", allow=checked_allow(allow))

    if is_allowed:
        check()
    else:
        with pytest.raises(UnsupportedFormat):
            check()


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CountingStore, CountingStore]:
    """A store with a script, and one with the archive that its lines name."""
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", "0")
    monkeypatch.setenv("SEEKABLE_INDEX_DIR", str(tmp_path / "indexes"))
    name = tmp_path.name.lower().replace("_", "-")
    lists, data = CountingStore(f"s3://lists-{name}"), CountingStore(f"s3://data-{name}")
    for store in (lists, data):
        monkeypatch.setitem(mounts._stores, (store.mount, os.getpid()), store)
    data.objects = {"a/x.ark": b"u \0BFM \4\1\0\0\0\4\1\0\0\0\0\0\0\0"}
    lists.objects = {
        "set/feats.scp": f"u {data.mount}/a/x.ark:2\n".encode(),
        "a/x.ark": data.objects["a/x.ark"],
    }
    return lists, data


def test_a_script_in_a_store_names_what_is_allowed(
    stores: tuple[CountingStore, CountingStore], tmp_path: Path
) -> None:
    lists, data = stores
    script, allow = f"scp:{lists.mount}/set/feats.scp", f"{data.mount}/a"
    form = sk.formats.Kaldi(holder="matrix")
    with pytest.raises(SeekableError, match=r"allow=FOLDER"):
        sk.open(script, format=form)[0]
    ds = sk.open(script, format=form, index=sk.Index(allow=allow))
    assert pickle.loads(pickle.dumps(ds))[0][0] == "u"
    ds.save(tmp_path / "p.json")
    with pytest.raises(sk.DataNotFound, match=r"allow='s3://lists"):
        sk.load_pipeline(tmp_path / "p.json")
    with pytest.raises(SeekableError, match="allow=FOLDER"):
        sk.load_pipeline(tmp_path / "p.json", allow=lists.mount)[0]
    assert sk.load_pipeline(tmp_path / "p.json", allow=[lists.mount, allow])[0][0] == "u"
    lists.objects["set/feats.scp"] = b"u ../a/x.ark:2\n"
    assert sk.open(script, format=form, index=sk.Index(allow=f"{lists.mount}/a"))[0][0] == "u"
