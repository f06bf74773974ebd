"""Script files: the lines that Kaldi takes, the lines it refuses, and files that are no scripts."""

from __future__ import annotations

import gzip
import itertools
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.kaldi import ScriptEntry, iter_script, read_script

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("data", "entries"),
    [
        (b"", []),
        (b" a b\n", [("a", "b")]),
        (b"c d \n", [("c", "d")]),
        (b"c d e \n", [("c", "d e")]),
        (b" a b\nc d \nc d e \n", [("a", "b"), ("c", "d"), ("c", "d e")]),
        (b"a b", [("a", "b")]),
        (b"a\tb\tc\r\na \x0b\x0c b\r\n", [("a", "b\tc"), ("a", "b")]),
        (b"u1 gunzip -c a.gz |\nu2 a.ark:12[0:51]\n", [("u1", "gunzip -c a.gz |"), ("u2", "a.ark:12[0:51]")]),
        ("\u00e9\u3000 \u00fc\n".encode(), [("\u00e9\u3000", "\u00fc")]),
        (b"\xe9 \xfc\n", [("\udce9", "\udcfc")]),
        (b"a  b  c\n", [("a", "b  c")]),
    ],
)
def test_scripts_that_kaldi_reads(data: bytes, entries: list[tuple[str, str]], here: Path) -> None:
    (here / "a.scp").write_bytes(data)
    assert read_script("a.scp") == entries
    assert all(type(entry) is ScriptEntry for entry in read_script("a.scp"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b" a ", "has a key and no filename"),
        (b"a", "has a key and no filename"),
        (b"", "is empty"),
        (b" \r", "is empty"),
        (b"a\x01 b", "has a key with control characters"),
        (b"\0A b", "has a key with control characters"),
        (b"\xff b", "has a key with control characters"),
        (b"\x7f b", "has a key with control characters"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_bad_line_is_an_error_with_its_number(line: bytes, problem: str, before: int, here: Path) -> None:
    good = b"".join(b"u%d b\n" % number for number in range(before))
    (here / "a.scp").write_bytes(good + line + b"\nu9 b\n")
    entries = iter_script("a.scp")
    if before or line[:1] != b"\0":
        assert [key for key, _ in itertools.islice(entries, before)] == [f"u{n}" for n in range(before)]
        with pytest.raises(sk.errors.CorruptTable, match=rf"'a.scp': line {before + 1} {problem}"):
            next(entries)
    with pytest.raises(ValueError, match=r"a.scp"):
        read_script("a.scp")


def test_a_last_line_that_is_torn_behind_its_key_is_an_error(here: Path) -> None:
    (here / "s.scp").write_bytes(b"k1 a.ark:3\nk2")
    with pytest.raises(sk.errors.CorruptTable, match="line 2 has a key and no filename: b'k2'"):
        read_script("s.scp")


def test_a_binary_object_is_no_script(here: Path) -> None:
    (here / "a").write_bytes(b"\0BFM 123")
    with pytest.raises(sk.errors.CorruptTable, match=r"not a script file.*named by ark: and not by scp:"):
        read_script("a")


def test_an_archive_is_no_script_and_the_error_says_so(here: Path) -> None:
    (here / "a").write_bytes(b"utt1 \0BFM \x04\x01\0\0\0\n")
    with pytest.raises(sk.errors.CorruptTable, match="named by ark: and not by scp:"):
        read_script("a")


def test_a_line_without_end_takes_no_memory(here: Path) -> None:
    with (here / "a").open("wb") as file:
        file.truncate(1 << 40)  # A hole: no byte of it is on the disk.
        file.seek(0)
        file.write(b"u1 b\nx")
    entries = iter_script("a")
    assert next(entries) == ("u1", "b")
    with pytest.raises(sk.errors.CorruptTable, match="line 2 is longer than 1,048,576 bytes"):
        next(entries)


def test_a_script_may_be_compressed_or_come_from_a_command(here: Path) -> None:
    (here / "a.gz").write_bytes(gzip.compress(b"a b\nc d\n"))
    entries = [("a", "b"), ("c", "d")]
    assert read_script("a.gz") == read_script("gunzip -c a.gz |") == read_script(here / "a.gz") == entries
    assert read_script("gunzip < a.gz |", pipes="allow") == entries
    with pytest.raises(sk.errors.PipeRefused):
        read_script("gunzip < a.gz |")


def test_a_command_that_fails_is_an_error_after_its_lines() -> None:
    entries = iter_script("echo a b; exit 3 |", pipes="allow")
    assert next(entries) == ("a", "b")
    with pytest.raises(sk.errors.PipeFailed, match="exit code 3"):
        next(entries)


def test_an_iterator_that_is_dropped_closes_the_script() -> None:
    entries = iter_script("yes a |", pipes="allow")
    with pytest.raises(sk.errors.CorruptTable):
        next(entries)
    entries = iter_script("yes a b |", pipes="allow")
    assert next(entries) == ("a", "b")
    entries.close()  # type: ignore[attr-defined]
    assert list(entries) == []


def test_lines_of_a_command_come_as_they_are_printed(here: Path) -> None:
    # The command waits for a file that exists only after its first line was read.
    command = "echo a b; until [ -e seen ]; do :; done; echo c d"
    entries = iter_script(f"{command} |", pipes="allow")
    assert next(entries) == ("a", "b")
    (here / "seen").touch()
    assert list(entries) == [("c", "d")]


WORDS = st.text(alphabet="abz019é[]:|-/", min_size=1, max_size=8)


LINES = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), max_size=30)


@given(lines=LINES, end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_what_is_written_is_read(lines: list[tuple[str, list[str]]], end: str, *, last: bool) -> None:
    text = end.join(f"{key} {' '.join(words)}" for key, words in lines) + end * (last and bool(lines))
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        assert read_script(file.name) == [(key, " ".join(words)) for key, words in lines]


@pytest.mark.parametrize("length", [65_535, 65_536, 65_537, 200_000])
def test_lines_longer_than_a_read_are_whole(length: int, here: Path) -> None:
    (here / "a").write_bytes(b"k " + b"x" * length + b"\nl y\n")
    assert read_script("a") == [("k", "x" * length), ("l", "y")]


@given(st.lists(st.sampled_from([b"a b", b"a", b"", b" a b c ", b"\tq r", b" ", b"a\tb"]), max_size=4))
def test_kaldi_native_io_takes_the_same_scripts(lines: list[bytes]) -> None:
    kn = pytest.importorskip("kaldi_native_io")
    with tempfile.NamedTemporaryFile() as file:
        # Random access wants each key once.
        file.writelines(
            line.replace(b"a", b"a%d" % n, 1) + b"\n" for n, line in enumerate(lines) if b"q" not in line
        )
        file.flush()
        try:
            kn._kaldi_native_io._RandomAccessInt32Reader(f"scp:{file.name}").close()
            taken = True
        except (RuntimeError, ValueError):
            taken = False
        try:
            read_script(file.name)
            read = True
        except sk.errors.CorruptTable:
            read = False
    assert read == taken
