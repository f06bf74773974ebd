"""Torn archives: what is found, what is cut off, and what their scripts keep."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kaldi.holder_cases import TABLE_CASES, Case, dumped
from tests.thrift import some

import seekable as sk
from seekable import kaldi
from seekable.kaldi import Repair, Writer, repair

if TYPE_CHECKING:
    from pathlib import Path

VALUES: dict[str, list[Any]] = {
    "matrix": [np.full((2, 3), number, "f4") for number in range(4)],
    "int32-vector": [[1, 2, 34], [], [5], [12345]],
    "token-vector": [["a", "bc"], [], ["d"], ["efg"]],
    "int32": [1, 23, 456, 7890],
    "compressed-matrix": [np.arange(6.0).reshape(3, 2) * number for number in range(4)],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is cut here, and hundreds of syncs are slow
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entry_ends(holder: str, *, binary: bool) -> list[int]:
    """The bytes behind each complete entry of `written`."""
    ends = [0]
    for value in VALUES[holder]:
        ends.append(ends[-1] + 5 + len(dumped(holder, value, binary=binary)))
    return ends


def is_complete(holder: str, size: int, end: int, options: str) -> bool:
    """A matrix in text is complete with its bracket, without the line end behind it."""
    return size >= end - (bool(options) and "matrix" in holder)


def written(holder: str, options: str = "") -> None:
    with Writer(f"ark,scp{options}:a.ark,a.scp", holder) as writer:
        for number, value in enumerate(VALUES[holder]):
            writer.write(f"utt{number}", value)


@pytest.mark.parametrize(
    ("holder", "options"),
    [
        ("matrix", ""),
        ("int32-vector", ",t"),
        *(
            pytest.param(holder, options, marks=pytest.mark.exhaustive)
            for holder in VALUES
            for options in ("", ",t")
            if (holder, options) not in {("matrix", ""), ("int32-vector", ",t")}
        ),
    ],
)
def test_an_archive_cut_at_any_byte_keeps_its_complete_entries(holder: str, options: str, here: Path) -> None:
    written(holder, options)
    whole, script = (here / "a.ark").read_bytes(), (here / "a.scp").read_bytes().splitlines(keepends=True)
    ends = entry_ends(holder, binary=not options)
    assert ends[-1] == len(whole)
    for size in range(len(whole) + 1):
        (here / "a.ark").write_bytes(whole[:size])
        (here / "a.scp").write_bytes(b"".join(script))
        entries = sum(is_complete(holder, size, end, options) for end in ends[1:])
        kept = min(size, ends[entries])
        report = repair("a.ark", holder, script="a.scp")
        assert (report.entries, report.size, report.bytes_cut) == (entries, kept, size - kept)
        assert (report.lines_dropped, report.lines_added) == (4 - entries, 0)
        assert (here / "a.ark").read_bytes() == whole[:kept]
        assert (here / "a.scp").read_bytes() == b"".join(script[:entries])
    assert sorted(os.listdir(here)) == ["a.ark", "a.scp"]


@pytest.mark.parametrize("case", [case for case in TABLE_CASES if case.binary is not None])
def test_a_torn_object_of_every_holder_is_cut_off(case: Case, here: Path) -> None:
    assert case.binary is not None
    entry = b"utt1 " + case.binary
    for size in {5, len(entry) // 2, len(entry) - 1} - {len(entry)}:
        for good in (b"", entry, entry + entry):
            (here / "a").write_bytes(good + entry[:size])
            report = repair("a", case.holder)
            assert (report.entries, report.bytes_cut) == (len(good) // len(entry), size), (size, good)
            assert (here / "a").read_bytes() == good


@pytest.mark.parametrize("count", [0, 1, 1000])
@pytest.mark.usefixtures("here")
def test_a_good_archive_is_left_as_it_is(count: int) -> None:
    with Writer("ark,scp:a.ark,a.scp", "int32-vector") as writer:
        for number in range(count):
            writer.write(f"utt{number}", range(number % 7))
    before = [(os.stat(name).st_mtime_ns, os.stat(name).st_ino) for name in ("a.ark", "a.scp")]
    report = repair("a.ark", "int32-vector", script="a.scp")
    assert report == Repair("a.ark", count, os.stat("a.ark").st_size, 0, None, None, 0, 0, dry_run=False)
    assert not report.changed
    assert before == [(os.stat(name).st_mtime_ns, os.stat(name).st_ino) for name in ("a.ark", "a.scp")]


@pytest.mark.parametrize(
    ("holder", "data", "at"), [("int32-vector", b"a 1 2 \nb 3 40", 13), ("token-vector", b"a x \nb y z", 10)]
)
def test_a_line_without_its_end_is_torn(here: Path, holder: str, data: bytes, at: int) -> None:
    (here / "a.ark").write_bytes(data)
    report = repair("a.ark", holder)
    assert (report.entries, report.torn_key) == (1, "b")
    assert f"byte {at}: expected a line end, found the end of the file" in str(report.reason)
    assert (here / "a.ark").read_bytes() == data[: data.index(b"b ")]


def test_a_dry_run_changes_nothing_and_reports_the_same(here: Path) -> None:
    written("matrix")
    data, lines = (here / "a.ark").read_bytes()[:-1], (here / "a.scp").read_bytes()
    (here / "a.ark").write_bytes(data)
    dry = repair("a.ark", "matrix", script="a.scp", dry_run=True)
    assert ((here / "a.ark").read_bytes(), (here / "a.scp").read_bytes()) == (data, lines)
    assert dry.changed
    assert dry.torn_key == "utt3"
    assert dry.reason is not None
    assert "expected 2 x 3 elements" in dry.reason
    assert repair("a.ark", "matrix", script="a.scp") == dataclasses.replace(dry, dry_run=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        dry.entries = 5  # type: ignore[misc]


def test_entries_without_lines_get_them(here: Path) -> None:
    written("matrix")
    lines = (here / "a.scp").read_bytes().splitlines(keepends=True)
    for kept in range(5):
        (here / "a.scp").write_bytes(b"".join(lines[:kept]))
        assert repair("a.ark", "matrix", script="a.scp").lines_added == 4 - kept
        assert (here / "a.scp").read_bytes() == b"".join(lines)
    os.unlink("a.scp")
    assert repair("a.ark", "matrix", script="a.scp").lines_added == 4
    assert (here / "a.scp").read_bytes() == b"".join(lines)


def test_a_script_cut_at_any_byte(here: Path) -> None:
    written("matrix")
    script = (here / "a.scp").read_bytes()
    for size in range(len(script)):
        (here / "a.scp").write_bytes(script[:size])
        report = repair("a.ark", "matrix", script="a.scp")
        whole = script[:size].count(b"\n")
        torn = size > 0 and not script[:size].endswith(b"\n") and script[size : size + 1] != b"\n"
        assert (report.lines_dropped, report.bytes_cut) == (torn, 0)
        assert report.lines_added == 4 - whole - (script[size : size + 1] == b"\n")
        assert (here / "a.scp").read_bytes() == script


def test_lines_of_other_archives_stay(here: Path) -> None:
    written("matrix")
    (here / "a.ark").rename(here / "b.ark")
    script = (here / "a.scp").read_bytes()
    written("matrix")
    (here / "a.scp").write_bytes(script.replace(b"a.ark", b"b.ark") + script + b"x wave.wav\ny cat z |\n")
    with open("a.ark", "r+b") as file:
        file.truncate(60)
    assert repair("a.ark", "matrix", script="a.scp").lines_dropped == 3
    assert (here / "a.scp").read_bytes() == (
        script.replace(b"a.ark", b"b.ark") + b"utt0 a.ark:5\nx wave.wav\ny cat z |\n"
    )


def test_a_path_may_be_written_in_another_way(here: Path) -> None:
    written("matrix")
    (here / "a.scp").write_bytes((here / "a.scp").read_bytes().replace(b"a.ark", f"{here}/a.ark".encode()))
    with open("a.ark", "ab") as file:
        file.write(b"utt4 " + dumped("matrix", [[1.0]]) + b"utt5 \0BF")
    report = repair("./a.ark", "matrix", script="a.scp")
    assert (report.lines_dropped, report.lines_added, report.torn_key) == (0, 1, "utt5")
    assert (here / "a.scp").read_text().splitlines()[-1].startswith(f"utt4 {here}/a.ark:")


@pytest.mark.parametrize(
    "tail", [bytes(100), b"\xff\xfe\x01" * 30, b"utt9 \0Bgarbage", b"utt9", b"utt9 ", b"\0"]
)
def test_any_tail_without_a_good_entry_is_cut_off(tail: bytes, here: Path) -> None:
    written("matrix")
    whole = (here / "a.ark").read_bytes()
    (here / "a.ark").write_bytes(whole + tail)
    assert repair("a.ark", "matrix").bytes_cut == len(tail)
    assert (here / "a.ark").read_bytes() == whole


def test_white_space_at_the_end_is_no_torn_entry(here: Path) -> None:
    (here / "a").write_bytes(b"utt1 5 \n\n \n")
    assert repair("a", "int32") == Repair("a", 1, 11, 0, None, None, 0, 0, dry_run=False)


@pytest.mark.parametrize(
    ("holder", "options"), [("matrix", ""), ("matrix", ",t"), ("int32-vector", ""), ("compressed-matrix", "")]
)
def test_damage_in_the_middle_is_refused(holder: str, options: str, here: Path) -> None:
    written(holder, options)
    data = bytearray((here / "a.ark").read_bytes())
    second = entry_ends(holder, binary=not options)[1]
    data[second + 5 : second + 8] = b"###"
    (here / "a.ark").write_bytes(data)
    with pytest.raises(sk.errors.CorruptTable, match="A good object stands after it"):
        repair("a.ark", holder)
    assert (here / "a.ark").read_bytes() == data


def test_a_size_that_grew_is_damage_and_no_torn_end(here: Path) -> None:
    written("matrix")
    data = bytearray((here / "a.ark").read_bytes())
    data[12:15] = b"\xff\xff\x7f"
    (here / "a.ark").write_bytes(data)
    with pytest.raises(sk.errors.CorruptTable, match="A good object stands after it"):
        repair("a.ark", "matrix")


def test_the_script_of_another_archive_is_refused(here: Path) -> None:
    written("matrix")
    (here / "a.scp").write_bytes(b"utt0 a.ark:6\n")
    with pytest.raises(
        sk.errors.CorruptTable, match=r"points into 'a\.ark', where no object of its key begins"
    ):
        repair("a.ark", "matrix", script="a.scp")
    (here / "a.scp").write_bytes(b"utt1 a.ark:5\n")
    with pytest.raises(sk.errors.CorruptTable, match="no object of its key"):
        repair("a.ark", "matrix", script="a.scp")
    (here / "a.scp").write_bytes(b"utt0\nutt1 x\n")
    with pytest.raises(sk.errors.CorruptTable, match="is not a line of a script"):
        repair("a.ark", "matrix", script="a.scp")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("none", sk.DataNotFound),
        ("-", sk.errors.InvalidArgument),
        ("cat a |", sk.errors.InvalidArgument),
        ("a:5", sk.errors.InvalidArgument),
        (".", sk.DataNotFound),
        ("/dev/null", sk.DataNotFound),
    ],
)
@pytest.mark.usefixtures("here")
def test_only_files_are_repaired(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        repair(path, "matrix")


@pytest.mark.usefixtures("here")
def test_a_compressed_archive_is_refused() -> None:
    kaldi.write("| gzip -c > a.gz", 5, "int32", pipes="allow")
    with pytest.raises(sk.errors.UnsupportedFormat, match="decompress it"):
        repair("a.gz", "int32")


def test_the_wspecifier_names_the_archive_and_its_script(here: Path) -> None:
    written("matrix")
    with open("a.ark", "r+b") as file:
        file.truncate(60)
    report = repair("ark,scp:a.ark,a.scp", "matrix")
    assert (report.path, report.entries, report.lines_dropped) == ("a.ark", 1, 3)
    assert not repair("ark,t:a.ark", "matrix").changed
    assert (here / "a.scp").read_bytes() == b"utt0 a.ark:5\n"
    with pytest.raises(sk.errors.InvalidArgument, match="names no archive"):
        repair("scp:a.scp", "matrix")
    with pytest.raises(sk.errors.InvalidArgument, match="path must be a file"):
        repair("ark:-", "matrix")


def test_a_holder_that_the_first_entry_tells_may_be_left_out(here: Path) -> None:
    for holder in ("matrix", "compressed-matrix"):
        written(holder)
        size = (here / "a.ark").stat().st_size
        with open("a.ark", "r+b") as file:
            file.truncate(size - 1)
        assert repair("a.ark", script="a.scp").entries == 3
    written("int32-vector")
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"do not tell its holder: it can be one of int32, .*holder="
    ):
        repair("a.ark")
    (here / "b").write_bytes(b"utt")
    assert repair("b").bytes_cut == 3


# ---- appending


@pytest.mark.parametrize("options", ["", ",t", ",f"])
@pytest.mark.parametrize("holder", VALUES)
def test_appending_gives_the_bytes_of_one_writer(holder: str, options: str, here: Path) -> None:
    written(holder, options)
    whole, script = (here / "a.ark").read_bytes(), (here / "a.scp").read_bytes()
    os.unlink("a.ark")
    os.unlink("a.scp")
    for number, value in enumerate(VALUES[holder]):
        with Writer(f"ark,scp{options}:a.ark,a.scp", holder, append=True) as writer:
            writer.write(f"utt{number}", value)
        with Writer(f"ark{options}:b.ark", holder, append=True) as writer:
            writer.write(f"utt{number}", value)
    assert (here / "a.ark").read_bytes() == (here / "b.ark").read_bytes() == whole
    assert (here / "a.scp").read_bytes() == script


def test_text_and_binary_may_follow_each_other(here: Path) -> None:
    for options, value in ((",t", 1), ("", 2), (",t", 3)):
        with Writer(f"ark,scp{options}:a.ark,a.scp", "int32", append=True) as writer:
            writer.write(f"utt{value}", value)
    assert (here / "a.ark").read_bytes() == b"utt1 1 \nutt2 \0B\4\2\0\0\0utt3 3 \n"
    assert [kaldi.read(entry.xfilename, "int32") for entry in kaldi.read_script("a.scp")] == [1, 2, 3]


def test_a_last_matrix_without_a_line_end_gets_one(here: Path) -> None:
    (here / "a.ark").write_bytes(b"utt1  [ 1 2 ]")
    with Writer("ark,t:a.ark", "vector", append=True) as writer:
        writer.write("utt2", [3])
    assert (here / "a.ark").read_bytes() == b"utt1  [ 1 2 ]\nutt2  [ 3 ]\n"


def test_a_script_without_a_last_line_end_gets_one(here: Path) -> None:
    written("int32")
    script = (here / "a.scp").read_bytes()
    (here / "a.scp").write_bytes(script[:-1])
    with Writer("ark,scp:a.ark,a.scp", "int32", append=True) as writer:
        writer.write("utt4", 5)
    assert (here / "a.scp").read_bytes() == script + b"utt4 a.ark:53\n"
    assert kaldi.read("a.ark:53", "int32") == 5


@pytest.mark.parametrize("script", ["", ",scp"])
def test_nothing_is_written_behind_a_torn_entry(script: str, here: Path) -> None:
    written("matrix")
    with open("a.ark", "r+b") as file:
        file.truncate(len((here / "a.ark").read_bytes()) - 1)
    before = (here / "a.ark").read_bytes(), (here / "a.scp").read_bytes()
    wspecifier = f"ark{script}:a.ark{script and ',a.scp'}"
    with pytest.raises(sk.errors.CorruptTable, match=r"cut it off with kaldi\.repair\('a\.ark', 'matrix'"):
        Writer(wspecifier, "matrix", append=True)
    assert ((here / "a.ark").read_bytes(), (here / "a.scp").read_bytes()) == before
    repair("a.ark", "matrix", script="a.scp")
    with Writer(wspecifier, "matrix", append=True) as writer:
        writer.write("utt3", VALUES["matrix"][3])
    assert len((here / "a.ark").read_bytes()) == len(before[0]) + 1


def test_a_script_that_does_not_fit_is_refused(here: Path) -> None:
    written("int32")
    lines = (here / "a.scp").read_bytes().splitlines(keepends=True)
    for script, error in (
        (b"".join(lines[:2]), r"no lines for the last 2 entries of 'a\.ark'.*script='a\.scp'\) adds them"),
        (b"", r"no lines for the last 4 entries"),
        (b"".join(lines)[:-2], r"ends with a torn line \(b'utt3 a\.ark:4'\)"),
        (b"".join(lines) + b"utt4 a.a", "ends with a torn line"),
        (b"".join(lines) + b"utt4", "ends with a torn line"),
        (b"utt3 a.ark:5\n", "no object of its key begins"),
    ):
        (here / "a.scp").write_bytes(script)
        with pytest.raises(sk.errors.CorruptTable, match=error):
            Writer("ark,scp:a.ark,a.scp", "int32", append=True)
        assert (here / "a.scp").read_bytes() == script
    (here / "a.scp").write_bytes(b"".join(lines[:2]))
    assert repair("a.ark", "int32", script="a.scp").lines_added == 2
    Writer("ark,scp:a.ark,a.scp", "int32", append=True).close()
    assert (here / "a.scp").read_bytes() == b"".join(lines)


def test_several_archives_may_share_a_script(here: Path) -> None:
    for name in ("a", "b"):
        with Writer(f"ark,scp,t:{name}.ark,all.scp", "int32", append=True) as writer:
            writer.write(name, 5)
    assert (here / "all.scp").read_bytes() == b"a a.ark:2\nb b.ark:2\n"


def test_with_a_script_only_the_entries_behind_its_last_line_are_looked_at(here: Path) -> None:
    written("matrix")
    data = bytearray((here / "a.ark").read_bytes())
    data[5:8] = b"###"
    (here / "a.ark").write_bytes(data)
    with Writer("ark,scp:a.ark,a.scp", "matrix", append=True) as writer:
        writer.write("utt4", [[1.0]])
    with pytest.raises(sk.errors.CorruptTable, match="A good object stands after it"):
        Writer("ark:a.ark", "matrix", append=True)


@pytest.mark.parametrize(
    ("wspecifier", "options", "error"),
    [
        ("ark:-", {}, "append=True is for regular files"),
        ("ark:| cat", {"pipes": "allow"}, "append=True is for regular files"),
        ("ark,scp:a.ark,-", {}, "append=True is for regular files"),
        ("ark:/dev/null", {}, "append=True is for regular files"),
        ("scp:a.scp", {}, "append=True is for archives"),
        ("ark:a.ark", {"atomic": True}, "name one"),
    ],
)
def test_what_cannot_be_appended_to(wspecifier: str, options: dict[str, Any], error: str, here: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=error):
        Writer(wspecifier, "int32", append=True, **options)
    assert os.listdir(here) == []


@pytest.mark.usefixtures("here")
def test_two_writers_do_not_append_to_one_archive() -> None:
    first = Writer("ark:a.ark", "int32", append=True)
    with pytest.raises(sk.errors.InvalidArgument, match="open in another writer"):
        Writer("ark:a.ark", "int32", append=True)
    if not (child := os.fork()):
        signal.pause()  # A child keeps the files of its parent open.
        os._exit(0)
    try:
        first.close()
        Writer("ark:a.ark", "int32", append=True).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ---- any end


@given(
    values=st.lists(st.lists(st.integers(-9, 99_999), max_size=6), max_size=5),
    options=st.sampled_from(["", ",t"]),
    cut=st.integers(0, 400),
    tail=st.sampled_from([b"", b"\0", b"\0" * 50, b"x", b"key \0B\4", b"\xff" * 9]),
)
@settings(max_examples=some(40, of=3))
def test_whatever_the_end_is_the_entries_before_it_stay(
    values: list[list[int]], options: str, cut: int, tail: bytes
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(os, "fsync", lambda _: None)
        with Writer(f"ark,scp{options}:a.ark,a.scp", "int32-vector") as writer:
            for number, value in enumerate(values):
                writer.write(f"utt{number}", value)
        ends = np.cumsum(
            [0, *(5 + len(dumped("int32-vector", value, binary=not options)) for value in values)]
        )
        with open("a.ark", "r+b") as file:
            file.truncate(min(cut, int(ends[-1])))
            file.seek(0, os.SEEK_END)
            file.write(tail)
        report = repair("a.ark", "int32-vector", script="a.scp")
        assert report.entries == int((ends[1:] <= cut).sum())
        assert report.size == os.path.getsize("a.ark") == ends[report.entries]
        again = repair("a.ark", "int32-vector", script="a.scp")
        assert (again.entries, again.changed) == (report.entries, False)
        with kaldi.RandomAccessReader("scp:a.scp", "int32-vector") as reader:
            for number, value in enumerate(values):
                assert (f"utt{number}" in reader) == (number < report.entries)
                assert number >= report.entries or reader[f"utt{number}"].tolist() == value


def test_the_holder_of_other_objects_cuts_nothing_off(here: Path) -> None:
    for holder, options, others in (
        ("matrix", "", ("vector", "int32", "int32-vector", "sphinx-matrix", "blob", "token")),
        ("int32-vector", "", ("matrix", "int32", "posterior", "bool")),
        ("matrix", ",t", ("vector", "int32", "int32-vector", "posterior")),
        ("int32", ",t", ("bool", "matrix", "int32-pair-vector")),
    ):
        with Writer(f"ark{options}:a.ark", holder) as writer:
            for number in range(30):
                writer.write(f"utt{number}", VALUES[holder][number % 4])
        data = (here / "a.ark").read_bytes()
        for other in others:
            with pytest.raises(sk.errors.CorruptTable, match="nothing is cut off"):
                repair("a.ark", other)
            with pytest.raises(sk.errors.CorruptTable, match="nothing is cut off"):
                Writer(f"ark{options}:a.ark", other, append=True)
            assert (here / "a.ark").read_bytes() == data
