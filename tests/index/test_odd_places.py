"""Names and links that a file system allows: each is indexed, told and found as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.corpus import check, fill, index_files, open_data, read, write
from tests.thrift import sample

from seekable.errors import DataNotFound

HERE = Path(__file__).parents[2]

NAMES = {
    "spaces": b"  two  spaces .jsonl",
    "newline": b"line\nbreak\r\n.jsonl",
    "quotes": b"\"double\" 'single' `back` \\slash.jsonl",
    "glob": b"[a]*?.jsonl",
    "dash": b"-rf.jsonl",
    "option": b"--json.jsonl",
    "latin-1": b"caf\xe9.jsonl",
    "no-utf8": b"\xff\xfe\x80.jsonl",
    "surrogate": b"\xed\xa0\x80.jsonl",
    "longest": b"x" * 249 + b".jsonl",
    "escape": b"\x1b[31mred\x07\x7f.jsonl",
    "nfc": "\u00e9.jsonl".encode(),
    "nfd": "e\u0301.jsonl".encode(),
    "emoji": "\U0001f600.jsonl".encode(),
    "bidi": "\u202egpj.jsonl".encode(),
    "percent": b"%s%d{name}.jsonl",
    "dollar": b"$HOME;ls.jsonl",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_file_of_any_name_is_indexed_and_found_by_it(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    write(path, b"1\n2\n")
    for asked in (path, tmp_path, tmp_path / "*.jsonl"):
        files = open_data(asked)
        check(files)
        assert os.fsencode(files.name(0)) == name
        assert files.numbers(str(path)) == [0]
    before = index_files(tmp_path)
    check(open_data(path))
    assert index_files(tmp_path) == before


def test_files_of_all_names_lie_in_one_index_that_is_plain_json(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES.values()):
        write(tmp_path / os.fsdecode(name), b"%d\n" % number * (number + 1))
    files = open_data(tmp_path)
    check(files)
    assert {os.fsencode(name) for name in files.names()} == set(NAMES.values()), "NFC and NFD are two files"
    text = (tmp_path / ".seekable" / "catalog.json").read_bytes().decode("ascii")
    assert len(text.splitlines()) == len(NAMES) + 2, "one line a file, whatever is in its name"
    assert [file["name"] for file in json.loads(text)["files"]] == files.names()


@given(st.lists(st.binary(min_size=1, max_size=9), unique=True, min_size=1, max_size=6))
def test_files_of_any_bytes_are_indexed(tmp_path_factory: pytest.TempPathFactory, names: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("data")
    clean = {b"a" + name.translate(None, b"/\0") + b".jsonl" for name in names}
    for number, name in enumerate(sorted(clean)):
        write(folder / os.fsdecode(name), b"%d\n" % number * number)
    files = open_data(folder)
    check(files)
    assert {os.fsencode(name) for name in files.names()} == clean
    json.loads((folder / ".seekable" / "catalog.json").read_bytes().decode("ascii"))


COMMANDS = [["index"], ["info"], ["info", "--json"], ["index", "--json"]]

# Runs one command after the other, in the locale of the process and with arguments that Python decoded in it.
# What each prints goes into a file of its own.
ONE_BY_ONE = """
import itertools, os, runpy, sys
out, *words = sys.argv[1:]
calls = [[*call] for then, call in itertools.groupby(words, "then".__eq__) if not then]
for number, call in enumerate(calls):
    file = os.open(f"{out}/{number}", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    sys.argv = ["seekable", *call]
    try:
        runpy.run_module("seekable", run_name="__main__")
    except SystemExit as end:
        assert not end.code, call
    sys.stdout.flush()
"""


@pytest.mark.parametrize("locale", sample(["C", "C.UTF-8"], of=2))
def test_the_command_line_prints_any_name(tmp_path: Path, locale: str) -> None:
    calls = []
    for number, command in enumerate(COMMANDS):
        folder = tmp_path / f"data-{number}"
        for name in NAMES.values():
            write(folder / os.fsdecode(name), b"1\n")
        calls += [[*command, str(asked)] for asked in (folder, folder / os.fsdecode(NAMES["no-utf8"]))]
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            ONE_BY_ONE,
            tmp_path / "out",
            *(word for call in calls for word in ("then", *call)),
        ],
        cwd=HERE,
        env={**os.environ, "LC_ALL": locale, "PYTHONWARNINGS": "error,ignore::DeprecationWarning"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for number, call in enumerate(calls):
        printed = (tmp_path / "out" / str(number)).read_bytes()
        if "--json" in call:
            json.loads(printed)


def test_a_folder_whose_name_looks_like_a_pattern_is_taken_as_it_is(tmp_path: Path) -> None:
    fill(tmp_path / "run[1]" / "*")
    fill(tmp_path / "run1", files=1)
    files = open_data(tmp_path / "run[1]" / "*" / "*.jsonl")
    check(files)
    assert len(files) == 3
    assert files.path(0) == str(tmp_path / "run[1]" / "*" / "part-0.jsonl")
    assert len(open_data(tmp_path / "run[0-9]" / "*.jsonl")) == 1


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder of links: one to a file, a chain of them, one to a folder, and what they lead to."""
    fill(tmp_path / "real")
    links = tmp_path / "links"
    links.mkdir()
    (links / "file.jsonl").symlink_to("../real/part-0.jsonl")
    (links / "chain.jsonl").symlink_to("file.jsonl")
    (links / "folder").symlink_to("../real")
    return links


def test_links_to_files_and_folders_are_what_they_lead_to(linked: Path) -> None:
    files = open_data(linked)
    check(files)
    assert files.names() == [
        *("chain.jsonl", "file.jsonl"),
        *(f"folder/part-{number}.jsonl" for number in range(3)),
    ]
    assert files.path(0) == str(linked / "chain.jsonl"), "links are kept as they are"
    assert (linked / ".seekable").is_dir()
    assert not (linked.parent / "real" / ".seekable").exists()


def test_a_link_to_a_folder_has_the_index_of_that_folder(linked: Path) -> None:
    check(open_data(linked / "folder"))
    before = index_files(linked.parent / "real")
    check(open_data(linked.parent / "real"))
    assert index_files(linked.parent / "real") == before


def test_a_link_and_its_target_may_both_be_asked_for(linked: Path) -> None:
    target = linked.parent / "real" / "part-0.jsonl"
    files = open_data([linked / "file.jsonl", target, linked / "file.jsonl"])
    check(files)
    assert read(files) == read(open_data(target)) * 3
    assert files.numbers(str(linked / "file.jsonl")) == [0, 2]


def test_a_link_that_leads_elsewhere_now_is_another_file(linked: Path) -> None:
    old = open_data(linked / "file.jsonl")
    (linked / "file.jsonl").unlink()
    (linked / "file.jsonl").symlink_to("../real/part-2.jsonl")
    files = open_data(linked / "file.jsonl")
    check(files)
    assert files.records.tolist() == [7]
    assert files.entry(0) != old.entry(0)


def test_links_that_lead_nowhere_or_in_circles_are_told_of(linked: Path) -> None:
    (linked / "dangling.jsonl").symlink_to("gone.jsonl")
    (linked / "loop.jsonl").symlink_to("back.jsonl")
    (linked / "back.jsonl").symlink_to("loop.jsonl")
    with pytest.raises(
        DataNotFound, match=r"dangling\.jsonl' is a link to 'gone\.jsonl', which is not there"
    ):
        open_data(linked / "dangling.jsonl")
    with pytest.raises(DataNotFound, match=r"'back\.jsonl', which leads back to itself"):
        open_data(linked / "loop.jsonl")
    with pytest.raises(
        DataNotFound, match=r"there is no file .*/(back|dangling|loop)\.jsonl', or it links to"
    ):
        open_data(linked)
    assert not (linked / ".seekable").exists()


def test_a_folder_that_links_to_itself_is_walked_once(linked: Path) -> None:
    (linked / "circle").symlink_to(linked)
    (linked.parent / "real" / "up").symlink_to(linked.parent)
    names = open_data(linked).names()
    assert len(names) == len(set(names))
    assert "circle/file.jsonl" not in names


def test_the_working_folder_may_change_after_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    files = open_data(Path("part-1.jsonl"))
    monkeypatch.chdir("/")
    check(files)


def test_a_file_below_a_file_is_not_there(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(DataNotFound, match=r"there is no .*part-0\.jsonl/x\.jsonl"):
        open_data(tmp_path / "part-0.jsonl" / "x.jsonl")
