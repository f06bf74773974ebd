from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import DataNotFound, WrongType
from seekable.storage import listing
from seekable.storage.file_names import natural_key, natural_sorted
from seekable.storage.listing import FoundFiles, Listing, find_files, missing

if TYPE_CHECKING:
    from seekable.storage.listing import Asked

SUFFIXES = (".jsonl", ".txt")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in (
        "a10.jsonl",
        "a9.jsonl",
        "b/c.jsonl",
        "b/d/e.jsonl",
        "b/d/UPPER.JSONL",
        "notes.md",
        ".hidden.jsonl",
        "_temporary.jsonl",
        ".seekable/x.jsonl",
        "_old/y.jsonl",
        "b/.git/z.jsonl",
        "odd [1].jsonl",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def find(asked: Asked) -> tuple[FoundFiles, ...]:
    return find_files(asked, suffixes=SUFFIXES)


def test_a_folder_means_its_data_files_in_natural_order(data: Path) -> None:
    names = ("a9.jsonl", "a10.jsonl", "b/c.jsonl", "b/d/UPPER.JSONL", "b/d/e.jsonl", "odd [1].jsonl")
    assert find(data) == (FoundFiles(str(data), names),)


def test_a_file_is_found_below_its_folder(data: Path) -> None:
    assert find(str(data / "b/c.jsonl")) == (FoundFiles(str(data / "b"), ("c.jsonl",)),)


def test_a_file_may_have_any_suffix_and_be_hidden(data: Path) -> None:
    assert find(data / "notes.md") == (FoundFiles(str(data), ("notes.md",)),)
    assert find(data / ".hidden.jsonl") == (FoundFiles(str(data), (".hidden.jsonl",)),)


def test_a_path_that_exists_is_no_glob(data: Path) -> None:
    assert find(data / "odd [1].jsonl") == (FoundFiles(str(data), ("odd [1].jsonl",)),)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.jsonl", ("_temporary.jsonl", "a9.jsonl", "a10.jsonl", "odd [1].jsonl")),
        ("a?.jsonl", ("a9.jsonl",)),
        ("a[0-9]*", ("a9.jsonl", "a10.jsonl")),
        ("*/*.jsonl", ("_old/y.jsonl", "b/c.jsonl")),
        ("**/e.jsonl", ("b/d/e.jsonl",)),
        ("**/d/*", ("b/d/UPPER.JSONL", "b/d/e.jsonl")),
        ("**/**/c.jsonl", ("b/c.jsonl",)),
        (".[h]*.jsonl", (".hidden.jsonl",)),
        ("*.md", ("notes.md",)),
        ("*.MD", ()),
        ("b/d/*.jsonl", ("UPPER.JSONL", "e.jsonl")),
        ("b/d/*.JSONL", ("UPPER.JSONL", "e.jsonl")),
        ("b/d/*.Jsonl", ("UPPER.JSONL", "e.jsonl")),
        ("b/d/upper*.jsonl", ()),
        ("b/D/*.jsonl", ()),
        ("**/d/UPPER.jsonl", ("b/d/UPPER.JSONL",)),
        ("*/*/[Ue]*.jsonl", ("b/d/UPPER.JSONL", "b/d/e.jsonl")),
    ],
)
def test_a_glob_means_what_it_matches(data: Path, pattern: str, names: tuple[str, ...]) -> None:
    root = data / "b" / "d" if pattern.startswith("b/d/") else data
    if names:
        assert find(data / pattern) == (FoundFiles(str(root), names),)
    else:
        with pytest.raises(DataNotFound, match=r"no file matches|there is no folder"):
            find(data / pattern)


def test_the_root_of_a_glob_is_its_fixed_part(data: Path) -> None:
    assert find(data / "b" / "**") == (
        FoundFiles(str(data / "b"), ("c.jsonl", "d/UPPER.JSONL", "d/e.jsonl")),
    )


def test_a_list_keeps_its_order_and_joins_runs_of_one_root(data: Path) -> None:
    asked: list[str | os.PathLike[str]] = [
        data / "a10.jsonl",
        str(data / "a9.jsonl"),
        data / "b/c.jsonl",
        data / "a?.jsonl",
    ]
    assert find(asked) == (
        FoundFiles(str(data), ("a10.jsonl", "a9.jsonl")),
        FoundFiles(str(data / "b"), ("c.jsonl",)),
        FoundFiles(str(data), ("a9.jsonl",)),
    )


def test_a_relative_path_counts_from_the_working_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    assert find("b/../a9.jsonl") == (FoundFiles(str(data), ("a9.jsonl",)),)
    assert find("b/*.jsonl") == (FoundFiles(str(data / "b"), ("c.jsonl",)),)


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.jsonl").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "circle").symlink_to(root)
    (tmp_path / "elsewhere" / "back").symlink_to(root)
    assert find(root) == (FoundFiles(str(root), ("linked/x.jsonl",)),)
    assert find(root / "**" / "*.jsonl") == (FoundFiles(str(root), ("linked/x.jsonl",)),)


def test_a_broken_link_in_a_folder_is_listed_so_that_it_is_missed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("gone.jsonl")
    assert find(tmp_path) == (FoundFiles(str(tmp_path), ("a.jsonl",)),)


@pytest.mark.parametrize(
    "name", [b"caf\xe9.jsonl", b"line\nbreak.jsonl", b" space .jsonl", "ä.jsonl".encode()]
)
def test_names_may_be_any_bytes(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).touch()
    assert find(tmp_path) == (FoundFiles(str(tmp_path), (os.fsdecode(name),)),)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("a8.jsonl", r"there is no .*a9\.jsonl.*was that meant"),
        ("a{1..9}.jsonl", r"of the 9 paths that .* stands for, \d do not exist; the first of these is .*a1"),
        ("{q,b}/*.jsonl", r"there is no folder .*q'; "),
        ("a.tar::b.tar", r"WebDataset separates lists of files by '::'; write them as one list"),
        ("q/r/s/t.jsonl", r"the nearest folder that exists is"),
        ("*.parquet", r"no file matches"),
        ("bb/*.jsonl", r"there is no folder .*'b'.*was that meant"),
        ("empty", r"has no data file: none below it ends in \.jsonl, \.txt"),
    ],
)
def test_what_is_not_there_is_told_with_what_is_near(data: Path, asked: str, message: str) -> None:
    (data / "empty").mkdir()
    with pytest.raises(DataNotFound, match=message):
        find(data / asked)


def test_a_broken_link_is_told_with_its_target(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("gone.jsonl")
    with pytest.raises(DataNotFound, match=r"is a link to 'gone\.jsonl'"):
        find(tmp_path / "a.jsonl")


@pytest.mark.parametrize("asked", [[], "", [""]])
def test_nothing_is_no_data(asked: Asked) -> None:
    with pytest.raises(DataNotFound):
        find(asked)


@pytest.mark.parametrize("asked", [3, None, b"bytes", [b"bytes"], [3], {"a"}, {"a": 1}])
def test_what_is_no_path_is_refused(asked: Asked) -> None:
    with pytest.raises(WrongType):
        find(asked)


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["x-00000-of-00003.jsonl", "x-00002-of-00003.jsonl"], "x-00001-of-00003.jsonl"),
        (["x-00001-of-00003-ab.jsonl", "x-00002-of-00003-cd.jsonl"], "x-00000-of-00003-ab.jsonl"),
        (["y_1_of_3.jsonl", "y_3_of_3.jsonl"], "y_2_of_3.jsonl"),
        (["x-00000-of-00002.jsonl", "x-00001-of-00002.jsonl", "y-00000-of-00002.jsonl"],
         "y-00001-of-00002.jsonl"),
    ],
)  # fmt: skip
def test_a_missing_one_of_files_that_belong_together_is_named(
    tmp_path: Path, names: list[str], missing: str
) -> None:
    folder = touched(tmp_path / "of" / "data", *names)
    for asked in (
        tmp_path,
        folder,
        str(folder / "*.jsonl"),
        str(tmp_path / "**" / "*of?[0-9]*"),
        folder / "*",
    ):
        with pytest.raises(DataNotFound, match=f"has no '(of/data/|data/)?{missing}'"):
            find(asked)
    assert find([str(folder / name) for name in names])[0].names == tuple(names)


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["x-00001-of-00002.jsonl", "x-00002-of-00002.jsonl"], "*"),
        (["x-00010-of-00100.jsonl", "x-00011-of-00100.jsonl"], "x-0001[01]-of*"),
        (["day-3-of-2.jsonl"], "*"),
        (["x-00000-of-00001.jsonl", "x-00000-of-00002.jsonl", "x-00001-of-00002.txt"], "*"),
    ],
)
def test_all_that_a_glob_means_is_enough(tmp_path: Path, names: list[str], pattern: str) -> None:
    assert find(str(touched(tmp_path, *names) / pattern))[0].names == tuple(names)


def test_a_pipe_is_no_data(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataNotFound, match="neither a regular file nor a folder"):
        find(tmp_path / "pipe.jsonl")


@given(st.lists(st.text("a01289/_.", max_size=8), unique=True))
def test_the_natural_order_is_one_order_whatever_comes_first(names: list[str]) -> None:
    expected = sorted(names, key=natural_key)
    random.Random(0).shuffle(names)
    assert sorted(names, key=natural_key) == expected


def test_the_natural_order_is_pinned() -> None:
    names = ["b", "a10", "a9", "a09", "a/2", "a/10", "a", "10", "9", "09", "A1", "é1", "z"]
    assert sorted(names, key=natural_key) == [
        *("09", "9", "10"),
        *("A1", "a", "a09", "a9", "a10", "a/2", "a/10", "b", "z", "é1"),
    ]


@given(st.lists(st.text("a01289/_.é", max_size=8)))
def test_names_are_sorted_as_by_the_natural_key(names: list[str]) -> None:
    assert natural_sorted(names) == sorted(names, key=natural_key)


@given(st.lists(st.integers(0, 10**6)), st.sampled_from(["part-{:07}.jsonl", "a{:03}b{:08}", "{:09}"]))
def test_names_that_differ_in_digits_alone_are_sorted_as_by_the_natural_key(
    numbers: list[int], pattern: str
) -> None:
    names = [pattern.format(number % 1000, number) for number in numbers]
    assert natural_sorted(names) == sorted(names, key=natural_key)


@given(
    st.lists(st.sampled_from(["a", "b/a", "b/c", "link", "b/link", "gone", "b/gone", "no/a", "a/a"])),
    st.sampled_from([0, 100]),
)
def test_what_is_missing_is_missed_whichever_way_it_is_looked_for(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], worth_listing: int
) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "b").mkdir()
    for name in ("a", "b/a", "b/c"):
        (root / name).touch()
    for name in ("link", "b/link"):
        (root / name).symlink_to("nowhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "_WORTH_LISTING", worth_listing)
        assert missing(str(root), names) == {"gone", "b/gone", "no/a", "a/a"} & set(names)


@pytest.mark.parametrize(
    "pattern", ["*.jsonl.gz", "*.JSONL.GZ", "*.gz", "a.*.Gz", "*.jsonl*", "*.JSONL.*", "?.jsonl??*"]
)
def test_a_suffix_of_a_compressed_file_matches_in_any_case_too(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.Jsonl.GZ").touch()
    (tmp_path / "A.tar").touch()
    found = find_files(tmp_path / pattern, suffixes=(*SUFFIXES, ".jsonl.gz"))
    assert found == (FoundFiles(str(tmp_path), ("a.Jsonl.GZ",)),)


def test_all_names_below_a_folder_are_inspected_and_none_twice(data: Path) -> None:
    seen: list[Listing] = []

    def inspect(listing: Listing) -> set[str]:
        seen.append(listing)
        return {"b/c.jsonl"}

    for asked in (data, data / "**", data / "*"):
        find_files(asked, suffixes=SUFFIXES, inspect=inspect)
    assert "b/c.jsonl" not in find_files(data, suffixes=SUFFIXES, inspect=inspect)[0].names
    folder, everything, top, _ = seen
    assert set(folder.data) < set(folder.names)
    assert {"_old", ".seekable", ".hidden.jsonl", "b/.git"} <= set(folder.passed)
    assert set(folder.names) | {"_old/y.jsonl", "_temporary.jsonl"} == set(everything.names)
    assert {"b", ".seekable"} <= set(top.passed)
    assert folder.whole
    assert not top.whole
    find_files(data / "*.jsonl", suffixes=SUFFIXES, inspect=inspect)
    find_files(data / "a9.jsonl", suffixes=SUFFIXES, inspect=inspect)
    assert len(seen) == 4
