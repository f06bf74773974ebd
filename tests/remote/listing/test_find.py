"""Addresses mean the files that the same text means on a local disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.remote.listing.key_store import BUCKET, mounted_keys

from seekable.errors import DataNotFound, SeekableError
from seekable.remote.listing import find, key_listing, known
from seekable.storage import listing, paths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seekable.remote.stores.object_store import Stat

SUFFIXES = (".jsonl", ".txt")
NAMES = (
    "a.jsonl",
    "A.JSONL",
    "b2.jsonl",
    "b10.jsonl",
    "c.txt",
    "c.txt.idx",
    ".h.jsonl",
    "_t.jsonl",
    "x[1].jsonl",
)
FOLDERS = ("", "d", "d/e", "d2/e", ".s", "_u", "d[1]", "d/.v/w", "d10")
PATTERNS = (
    *("", "d", "d/", "d/e", "d2", "*", "*.jsonl", "*.JSONL*", "?.jsonl", "[ab]*.jsonl", "**", "**/*.jsonl"),
    *("d*/e/*", "*/e", "*/*", "d/**", "d/**/*.txt", "**/e/*", "d[1]", "d[1]/*", "x[1].jsonl", "d[[]1]/*"),
    *(
        "**/**",
        "nothing",
        "d/nothing*",
        ".*",
        ".s/*",
        "**/.v/**",
        "{a,b2}.jsonl",
        "{d,d2}/e/*.jsonl",
        "b{2..3}.jsonl",
    ),
)


def _local(root: Path, keys: set[str]) -> None:
    for key in keys:
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x\n")


def _result(finder: object, asked: str, root: str) -> object:
    try:
        found = finder(asked, suffixes=SUFFIXES)  # type: ignore[operator]
    except SeekableError as error:
        return type(error)
    return [(run.root.removeprefix(root), run.names) for run in found]


@given(
    keys=st.sets(st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES)), max_size=12),
    pattern=st.sampled_from(PATTERNS),
)
def test_a_store_is_listed_as_a_folder_is(
    tmp_path_factory: pytest.TempPathFactory, keys: set[str], pattern: str
) -> None:
    root = tmp_path_factory.mktemp("tree")
    _local(root, keys)
    with mounted_keys(keys):
        local = _result(listing.find_files, f"{root}/{pattern}", str(root))
        assert _result(find.find_files, f"{BUCKET}/{pattern}", BUCKET) == local


@settings(max_examples=8)
@given(
    earlier=st.sets(st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES)), min_size=8),
    keys=st.sets(st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES)), min_size=1),
)
def test_a_listing_in_parts_by_an_earlier_one_has_every_file_once(
    tmp_path_factory: pytest.TempPathFactory, earlier: set[str], keys: set[str]
) -> None:
    root, kept = tmp_path_factory.mktemp("tree"), str(tmp_path_factory.mktemp("kept"))
    _local(root, keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_listing, "_FEWEST_SPANS", 4)
        patch.setattr(key_listing, "_FEWEST_IN_SPAN", 1)
        patch.setattr(key_listing, "_SAMPLED_OF_SPAN", 1)
        with mounted_keys(earlier | {"d/.seekable/catalog.json", "a.jsonl"}) as store:
            store.lists_in_order = True
            with known.listing_once(kept=kept):
                find.find_files(BUCKET, suffixes=SUFFIXES)
            store.keys = dict.fromkeys(keys | {"d/.seekable/catalog.json"}, b"x\n")
            store.requests.clear()
            with known.listing_once(kept=kept):
                assert _result(find.find_files, BUCKET, BUCKET) == _result(
                    listing.find_files, str(root), str(root)
                )


def test_the_parts_of_a_large_folder_are_listed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_listing, "_FEWEST_IN_SPAN", 10)
    monkeypatch.setattr(key_listing, "_SAMPLED_OF_SPAN", 4)
    names = [f"{number:04}.jsonl" for number in range(500)]
    with mounted_keys(set(names)) as store:
        for is_ordered, parts in ((False, 1), (True, 16)):
            store.lists_in_order = is_ordered
            with known.listing_once(kept=str(tmp_path)):
                find.find_files(BUCKET, suffixes=SUFFIXES)
            store.begun.clear()
            with known.listing_once(kept=str(tmp_path)):
                assert find.find_files(BUCKET, suffixes=SUFFIXES)[0].names == tuple(names)
            assert len(store.begun) == parts
        # No part begins before the one before it ends.
        assert [after for after, _ in sorted(store.begun)][1:] == [
            before.removesuffix("\0") for _, before in sorted(store.begun)
        ][:-1]


def test_markers_of_folders_are_no_files() -> None:
    with mounted_keys({"d/a.jsonl"}, empty={"d/", "d/e/", "d/e", "d/e_$folder$"}):
        assert _result(find.find_files, f"{BUCKET}/d/*", BUCKET) == [("/d", ("a.jsonl",))]
        assert _result(find.find_files, f"{BUCKET}/d", BUCKET) == [("/d", ("a.jsonl",))]
        assert _result(find.find_files, f"{BUCKET}/**", BUCKET) == [("", ("d/a.jsonl",))]


def test_what_is_not_there_is_said_with_the_names_near_it() -> None:
    with mounted_keys({"corpus/a.jsonl"}):
        for asked, near in (
            ("corpus/b.jsonl", "a.jsonl"),
            ("corpsu", "corpus"),
            ("corpus/b*", "with 1 entries"),
        ):
            with pytest.raises(DataNotFound, match=near):
                find.find_files(f"{BUCKET}/{asked}", suffixes=SUFFIXES)
        with pytest.raises(DataNotFound, match=r"of the 3 objects .*, 2 do not exist; .*'s3://keys/corpus/b"):
            find.find_files(f"{BUCKET}/corpus/{{b,a,c}}.jsonl", suffixes=SUFFIXES)


def test_the_folder_of_a_published_index_is_not_listed() -> None:
    with mounted_keys({"d/a.jsonl", "d/.seekable/catalog.json", "d/e/b.jsonl"}) as store:
        found = find.find_files(f"{BUCKET}/d", suffixes=SUFFIXES)[0]
        assert found.names == ("a.jsonl", "e/b.jsonl")
        assert not [request for request in store.requests if ".seekable" in str(request)]


def test_a_folder_is_listed_once_in_a_block() -> None:
    with mounted_keys({f"d{number}/x.jsonl" for number in range(4)} | {"a.jsonl"}) as store:
        with known.listing_once():
            assert find.find_files(f"{BUCKET}/d*/*.jsonl", suffixes=SUFFIXES)[0].names == tuple(
                f"d{number}/x.jsonl" for number in range(4)
            )
            before = len(store.requests)
            assert find.statuses(BUCKET, ["d1/x.jsonl", "d2/x.jsonl"])[0][0] == 2
            assert paths.is_folder(f"{BUCKET}/d3")
            assert paths.exists(f"{BUCKET}/a.jsonl")
            assert paths.list_folder(f"{BUCKET}/d1") == ["x.jsonl"]
            assert len(store.requests) == before
        assert paths.is_folder(f"{BUCKET}/d3")
        assert len(store.requests) == before + 1


def test_a_kept_listing_sends_no_request(tmp_path: Path) -> None:
    asked = [f"{BUCKET}/d/*.jsonl", f"{BUCKET}/e"]
    with mounted_keys({"d/a.jsonl", "d/b.jsonl", "e/f/ü\n.txt"}) as store:
        with known.listing_once(kept=str(tmp_path)):
            found = find.find_files(asked, suffixes=SUFFIXES)
        store.requests.clear()
        store.keys["d/new.jsonl"] = b"x\n"
        with known.listing_once(kept=str(tmp_path), refresh=False):
            assert find.find_files(asked, suffixes=SUFFIXES) == found
            sizes = find.statuses(f"{BUCKET}/d", ["a.jsonl", "b.jsonl"])
        assert store.requests == []
        assert sizes == find.statuses(f"{BUCKET}/d", ["a.jsonl", "b.jsonl"])
        for kept in tmp_path.iterdir():
            kept.write_bytes(kept.read_bytes()[:-1])
        with known.listing_once(kept=str(tmp_path), refresh=False):
            assert "new.jsonl" in find.find_files(asked, suffixes=SUFFIXES)[0].names
        assert store.requests != []


def test_many_files_of_one_folder_are_listed_and_few_are_asked_for() -> None:
    names = [f"{number}.jsonl" for number in range(500)]
    with mounted_keys(set(names)) as store:
        assert len(find.statuses(BUCKET, names)) == len(names)
        assert store.requests == ["list_folder "]
        store.requests.clear()
        assert len(find.statuses(BUCKET, names[:5])) == 5
        assert sorted(store.requests) == [f"stat {name}" for name in names[:5]]
        with pytest.raises(DataNotFound, match=r"there is no 's3://keys/501.jsonl'; in 's3://keys' there is"):
            find.statuses(BUCKET, [*names, "501.jsonl"])


def test_a_list_of_many_objects_is_asked_for_together() -> None:
    names = [f"{number}.jsonl" for number in range(500)]
    with mounted_keys(set(names)) as store:
        with known.listing_once():
            found = find.find_files([f"{BUCKET}/{name}" for name in names], suffixes=SUFFIXES)
        assert found[0].names == tuple(names)
        assert store.requests == ["list_folder "]


def test_objects_of_many_folders_are_asked_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}/x.jsonl" for number in range(50)]
    asked: list[int] = []
    stat_each = key_listing.stat_each

    def counted(paths: Sequence[str]) -> dict[str, Stat | None]:
        asked.append(len(paths))
        return stat_each(paths)

    monkeypatch.setattr(key_listing, "stat_each", counted)
    with mounted_keys(set(names)) as store, known.listing_once():
        found = find.find_files([f"{BUCKET}/{name}" for name in names], suffixes=SUFFIXES)
        assert [run.names for run in found] == [("x.jsonl",)] * 50
        assert len(store.requests) == 50
    assert max(asked) == 50
