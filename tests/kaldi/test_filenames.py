"""Extended filenames: the table of Kaldi's own tests, rules at their edges, kaldi_native_io as an oracle."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.formats.kaldi.files.specifiers import check_rxfilename, check_wxfilename, command_of
from seekable.kaldi import classify_rxfilename, classify_wxfilename, split_offset, split_range

KALDI: list[tuple[str, str, str]] = [
    ("", "stdin", "stdout"),
    (" ", "invalid", "invalid"),
    (" a ", "invalid", "invalid"),
    ("a ", "invalid", "invalid"),
    ("a", "file", "file"),
    ("-", "stdin", "stdout"),
    ("b|", "pipe", "invalid"),
    ("|b", "invalid", "pipe"),
    ("| b ", "invalid", "pipe"),
    ("b c|", "pipe", "invalid"),
    (" b c|", "pipe", "invalid"),
    ("a b c:123", "offset", "invalid"),
    ("a b c:3", "offset", "invalid"),
    ("a b c:", "file", "file"),
    ("a b c/3", "file", "file"),
    ("ark,s,cs:a b c", "invalid", "invalid"),
    ("scp:a b c", "invalid", "invalid"),
]

MORE: list[tuple[str, str, str]] = [
    ("|", "invalid", "pipe"),
    ("||", "invalid", "pipe"),
    ("b | ", "invalid", "invalid"),
    ("a|b", "invalid", "invalid"),
    ("a|b:12", "offset", "invalid"),  # The offset is found first, as in Kaldi.
    ("a\n", "invalid", "invalid"),
    ("\ta", "invalid", "invalid"),
    ("\u00a0a", "file", "file"),  # White space is that of ASCII alone.
    ("12", "file", "file"),
    (":12", "offset", "invalid"),
    ("a:1:2", "offset", "invalid"),
    ("a:\u0663", "file", "file"),
    ("b,ark:x", "file", "file"),  # Only names that begin with "a" or "s" are looked at.
    ("s,ark:x", "invalid", "invalid"),
    ("scp,t:x", "invalid", "invalid"),
    ("ark,scp:x,y", "invalid", "invalid"),
    ("ark,t,f:x", "invalid", "invalid"),
    ("ark:x:12", "invalid", "invalid"),
    ("s3://bucket/a.ark", "file", "file"),
    ("https://host/a.ark:12", "offset", "invalid"),
    ("arkive:a", "file", "file"),
    ("foo.ark:12[0:1]", "file", "file"),
    ("a\0b", "invalid", "invalid"),
    ("a\0|", "invalid", "invalid"),
    ("--", "file", "file"),
]


@pytest.mark.parametrize(("name", "rx", "wx"), KALDI + MORE, ids=repr)
def test_kinds(name: str, rx: str, wx: str) -> None:
    assert (classify_rxfilename(name), classify_wxfilename(name)) == (rx, wx)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("| a", "A command to read from ends with '|'"),
        ("a ", "begins or ends with white space"),
        ("ark:a", "a specifier of a table"),
        ("a | b", "'|' stands in its middle"),
        ("a\0", "NUL"),
    ],
)
def test_the_reason_why_a_name_cannot_be_read(name: str, reason: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=re.escape(reason)):
        check_rxfilename(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a |", "A command to write to begins with '|'"),
        ("a:12", "an offset into a file"),
        ("scp:a", "a specifier of a table"),
        ("a | b", "'|' stands in its middle"),
    ],
)
def test_the_reason_why_a_name_cannot_be_written(name: str, reason: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=re.escape(reason)):
        check_wxfilename(name)


@pytest.mark.parametrize("classify", [classify_rxfilename, classify_wxfilename])
@pytest.mark.parametrize("value", [None, b"a", Path("a")])
def test_a_name_is_a_str(classify: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="must be a str"):
        classify(value)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a:12", ("a", 12)),
        ("a:1:2", ("a:1", 2)),
        ("a:007", ("a", 7)),
        ("a:0", ("a", 0)),
        (":5", ("", 5)),
        ("a", ("a", 0)),
        ("a:", ("a:", 0)),
        ("a\nb:3", ("a\nb", 3)),
    ],
)
def test_an_offset_is_split_off(name: str, parts: tuple[str, int]) -> None:
    assert split_offset(name) == parts


def test_an_offset_of_thousands_of_digits_is_a_number() -> None:
    assert split_offset("a:" + "9" * 10_000)[1] > 10**20


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.ark:5[0:51]", ("a.ark:5", "0:51")),
        ("a.ark:5[0:51,89:100]", ("a.ark:5", "0:51,89:100")),
        ("a.ark:5[,89:100]", ("a.ark:5", ",89:100")),
        ("cat a |[0:1]", ("cat a |", "0:1")),
        ("a[]", ("a", "")),
        ("x[1].ark:3", ("x[1].ark:3", None)),
        ("a", ("a", None)),
        ("", ("", None)),
    ],
)
def test_a_range_is_split_off(name: str, parts: tuple[str, str | None]) -> None:
    assert split_range(name) == parts


@pytest.mark.parametrize("name", ["a[1].ark[0:2]", "[0:1]", "a]", "]"])
def test_a_malformed_range_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must be NAME\[RANGE\]"):
        split_range(name)


def test_commands() -> None:
    assert [command_of(pipe) for pipe in ("cat a |", " cat a|", "| gzip ", "|a|b")] == [
        "cat a",
        "cat a",
        "gzip",
        "a|b",
    ]
    for empty in ("|", " |", "| "):
        with pytest.raises(sk.errors.InvalidArgument, match="without a command"):
            command_of(empty)


@given(st.text())
def test_any_text_has_a_kind(text: str) -> None:
    assert classify_rxfilename(text) in {"stdin", "pipe", "offset", "file", "invalid"}
    assert classify_wxfilename(text) in {"stdout", "pipe", "file", "invalid"}
    if classify_wxfilename(text) == "file":
        assert classify_rxfilename(text) == "file"  # What is written can be read under the same name.


@given(st.text(alphabet="a:[]01,", max_size=12))
def test_splitting_loses_nothing(text: str) -> None:
    with contextlib.suppress(sk.errors.InvalidArgument):
        name, part = split_range(text)
        assert text == (name if part is None else f"{name}[{part}]")
    name, offset = split_offset(text)
    is_offset = bool(re.fullmatch("(?s).*:[0-9]+", text))
    assert (name != text) == is_offset
    assert not is_offset or offset == int(text.rpartition(":")[2])


def test_kaldi_native_io_writes_the_same_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kn = pytest.importorskip("kaldi_native_io")
    monkeypatch.chdir(tmp_path)

    @given(st.text(alphabet="arkscpt,: 1-[]", min_size=1, max_size=8))
    def check(name: str) -> None:
        if classify_wxfilename(name) == "stdout" or name[-1] == " ":
            return  # The white space would belong to the specifier.
        with contextlib.suppress(RuntimeError):
            kn._kaldi_native_io._Int32Writer(f"ark:{name}").close()
        made = os.listdir(tmp_path)
        for each in made:
            os.unlink(each)
        assert made == ([name] if classify_wxfilename(name) == "file" else [])

    check()
