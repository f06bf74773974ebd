"""Validation of data directories: each rule of validate_data_dir.sh, and the file and line of a breach."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thrift import some

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.directory.text_tables import blocks_of

GOOD = {
    "segments": "a-1 r1 0.5 2.5\na-2 r1 3 -1\nb-1 r2 0 1e1 1\n",
    "wav.scp": "r1 audio/r1.wav\nr2 sox r2.flac -t wav - |\n",
    "feats.scp": "a-1 feats.ark:4\na-2 feats.ark:90[0:51]\nb-1 cat x |\n",
    "text": "a-1 good day\na-2 #0x is no symbol\nb-1 caf\u00e9\n",
    "utt2spk": "a-1 a\na-2 a\nb-1 b\n",
    "spk2utt": "a a-1 a-2\nb b-1\n",
    "utt2dur": "a-1 2\na-2 .5\nb-1 1e1\n",
    "utt2num_frames": "a-1 200\na-2 50\nb-1 01000\n",
    "utt2lang": "a-1 en\na-2 en\nb-1 fr\n",
    "utt2uniq": "a-1 a-1\na-2 a-1\nb-1 b-1\n",
    "utt2warp": "a-1 0.9\na-2 1\nb-1 1.1\n",
    "vad.scp": "a-1 vad.ark:4\na-2 vad.ark:90\nb-1 vad.ark:120\n",
    "spk2gender": "a f\nb m\n",
    "spk2warp": "a 0.51\nb 1.49\n",
    "cmvn.scp": "a cmvn.ark:2\nb cmvn.ark:99\n",
    "reco2dur": "r1 60\nr2 10.01\n",
    "reco2file_and_channel": "r1 r1 A\nr2 r2 1\n",
}
"""A directory that has each known table."""

SMALL = {"wav.scp": "a-1 1.wav\nb-1 2.wav\n", "text": "a-1 good\nb-1 day\n", "utt2spk": "a-1 a\nb-1 b\n"}
"""A directory without segments."""


def problems_of(folder: Path, tables: dict[str, str]) -> list[tuple[str, str, int | None]]:
    """Return the level, the name and the line of each problem, those of missing files left out."""
    for name, text in tables.items():
        (folder / name).write_bytes(text.encode())
    found = kaldi.validate_directory(folder)
    return [(each.level, Path(each.path).name, each.line) for each in found if each.path != str(folder)]


def test_a_directory_with_each_table_is_valid(tmp_path: Path) -> None:
    assert problems_of(tmp_path, GOOD) == []
    assert kaldi.validate_directory(tmp_path) == ()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("text", "b-1 day\na-1 good\n", ("error", 2), id="unsorted"),
        pytest.param("text", "a-1 good\na-1 more\nb-1 day\n", ("error", 2), id="repeated"),
        pytest.param("text", "b-1 day\na-1 good\nb-1 day\n", ("error", 3), id="repeated-apart"),
        pytest.param("text", "a-1 good\n\nb-1 day\n", ("error", 2), id="blank-line"),
        pytest.param("text", "a-1 good\nb-1 day\n\n", ("error", 3), id="blank-line-at-the-end"),
        pytest.param("text", "a-1 good\n b-1 day\n", ("error", 2), id="white-space-first"),
        pytest.param("text", "a-1 good\nb-1 </s> day\n", ("error", 2), id="symbol"),
        pytest.param("text", "a-1 #0\nb-1 day\n", ("error", 1), id="disambiguation-symbol"),
        pytest.param("text", "a-1 good\nb-1 day\u00a0night\n", ("error", 2), id="no-break-space"),
        pytest.param("text", "a-1 good\nb-1 day\rnight\n", ("error", 2), id="carriage-return"),
        pytest.param("text", "a-1 good\x0b\nb-1 day\n", ("error", 1), id="vertical-tab"),
        pytest.param("text", "a-1 go\0od\nb-1 day\n", ("error", 1), id="nul"),
        pytest.param("text", "a-1 good\nb-1\n", ("warning", 2), id="no-words"),
        pytest.param("text", "a-1 good\nb-1  \t\n", ("warning", 2), id="white-space-alone"),
        pytest.param("text", "a-1 good\nb-1 day", ("warning", None), id="no-line-end"),
        pytest.param("text", "a-1 good\r\nb-1 day\r\n", ("warning", None), id="windows"),
        pytest.param("text", "", ("error", None), id="empty"),
        pytest.param("text", "a-1 good\nb-1 day\nc-1 more\n", ("error", 3), id="unknown-utterance"),
        pytest.param("utt2spk", "a-1 a\nb-1 b b\n", ("error", 2), id="three-words"),
        pytest.param("utt2spk", "a-1 a\nb-1\n", ("error", 2), id="no-speaker"),
        pytest.param("utt2spk", "a-1 a\nb-1 c\n", ("warning", 2), id="speaker-is-no-prefix"),
        pytest.param("utt2dur", "a-1 1\nb-1 0\n", ("error", 2), id="no-duration"),
        pytest.param("utt2dur", "a-1 1\nb-1 long\n", ("error", 2), id="duration-is-no-number"),
        pytest.param("utt2dur", "a-1 1\nb-1 1e999\n", ("error", 2), id="endless"),
        pytest.param("utt2num_frames", "a-1 1\nb-1 1.5\n", ("error", 2), id="half-frames"),
        pytest.param("utt2num_frames", "a-1 0\nb-1 1\n", ("error", 1), id="no-frames"),
        pytest.param("utt2warp", "a-1 0.5\nb-1 1.0\n", ("error", 1), id="warp"),
        pytest.param("spk2gender", "a f\nb x\n", ("error", 2), id="gender"),
        pytest.param("spk2gender", "a f\nb m\nc m\n", ("error", 3), id="unknown-speaker"),
        pytest.param("wav.scp", "a-1 ~/1.wav\nb-1 2.wav\n", ("error", 1), id="tilde"),
        pytest.param("wav.scp", "a-1 1.wav\nb-1 sox | x\n", ("error", 2), id="pipe-in-the-middle"),
        pytest.param("wav.scp", "a-1 1.wav\nb-1 -\n", ("error", 2), id="standard-input"),
        pytest.param("wav.scp", "a-1 1.wav\nb-1\n", ("error", 2), id="no-file"),
        pytest.param("feats.scp", "a-1 1.ark:3\nb-1 ark:x\n", ("error", 2), id="specifier"),
        pytest.param("reco2file_and_channel", "a-1 a-1 A\nb-1 b-1 C\n", ("error", 2), id="channel"),
    ],
)
def test_a_breach_is_found_where_it_is(
    name: str, text: str, expected: tuple[str, int | None], tmp_path: Path
) -> None:
    level, line = expected
    assert (level, name, line) in problems_of(tmp_path, {**SMALL, name: text})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"text": "a-1 good\n"}, ("error", "utt2spk", 2), id="text-lacks-an-utterance"),
        pytest.param({"feats.scp": "b-1 b.ark:4\n"}, ("error", "utt2spk", 1), id="feats-lack-an-utterance"),
        pytest.param({"wav.scp": "a-1 1.wav\n"}, ("error", "utt2spk", 2), id="wav-lacks-an-utterance"),
        pytest.param({"spk2utt": "a a-1\n"}, ("error", "utt2spk", 2), id="spk2utt-lacks-an-utterance"),
        pytest.param({"spk2utt": "a a-1 b-1\nb x-1\n"}, ("error", "spk2utt", 1), id="other-speaker"),
        pytest.param({"spk2utt": "a a-1 a-1\nb b-1\n"}, ("error", "spk2utt", 1), id="utterance-twice"),
        pytest.param({"spk2gender": "a f\n"}, ("error", "utt2spk", 2), id="speaker-without-gender"),
        pytest.param({"cmvn.scp": "b x\n"}, ("error", "utt2spk", 1), id="speaker-without-cmvn"),
        pytest.param({"reco2dur": "a-1 3\n"}, ("error", "utt2spk", 2), id="recording-without-duration"),
        pytest.param({"utt2spk": "a-1 s\nb-1 s\n"}, ("warning", "utt2spk", None), id="one-speaker"),
    ],
)
def test_tables_are_compared(
    changes: dict[str, str], expected: tuple[str, str, int | None], tmp_path: Path
) -> None:
    assert expected in problems_of(tmp_path, {**SMALL, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"segments": "a-1 r1 1 1\n"}, ("error", "segments", 1), id="empty-segment"),
        pytest.param({"segments": "a-1 r1 2 1\n"}, ("error", "segments", 1), id="backwards"),
        pytest.param({"segments": "a-1 r1 -1 1\n"}, ("error", "segments", 1), id="negative-start"),
        pytest.param({"segments": "a-1 r1 0 -2\n"}, ("error", "segments", 1), id="negative-end"),
        pytest.param({"segments": "a-1 r1 0 x\n"}, ("error", "segments", 1), id="no-number"),
        pytest.param({"segments": "a-1 r1 0\n"}, ("error", "segments", 1), id="three-fields"),
        pytest.param({"segments": "a-1 r1 0 1 A\n"}, ("error", "segments", 1), id="channel-is-no-number"),
        pytest.param({"segments": "a-1 r1 0 1 0 0\n"}, ("error", "segments", 1), id="six-fields"),
        pytest.param({"segments": "a-1 r2 0 1\n"}, ("error", "segments", 1), id="no-recording"),
        pytest.param({"wav.scp": "r0 0.wav\nr1 1.wav\n"}, ("warning", "wav.scp", 1), id="unused-recording"),
        pytest.param({"reco2dur": "r2 5\n"}, ("error", "segments", 1), id="no-duration"),
        pytest.param({"utt2spk": "a-2 a\n"}, ("error", "segments", 1), id="unknown-utterance"),
    ],
)
def test_segments_go_with_recordings(
    changes: dict[str, str], expected: tuple[str, str, int | None], tmp_path: Path
) -> None:
    tables = {"segments": "a-1 r1 0 1\n", "wav.scp": "r1 1.wav\n", "utt2spk": "a-1 a\n", "spk2utt": "a a-1\n"}
    assert problems_of(tmp_path, tables) == []
    assert expected in problems_of(tmp_path, {**tables, **changes})


def test_missing_tables_are_warnings_and_segments_need_recordings(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a-1 good\n")
    (found,) = kaldi.validate_directory(tmp_path)
    assert (found.level, found.path, found.line) == ("warning", str(tmp_path), None)
    assert "utt2spk is missing" in found.message
    (tmp_path / "segments").write_text("a-1 r1 0 1\n")
    assert [each.level for each in kaldi.validate_directory(tmp_path)] == ["error", "warning"]


def test_many_lines_with_a_problem_are_counted(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"u{number:03d} <s>\n" for number in range(100)))
    found = [each for each in kaldi.validate_directory(tmp_path) if each.level == "error"]
    assert [each.line for each in found] == [1, 2, 3, 4, 5, None]
    assert found[-1].message.startswith("95 more lines")


def test_windows_line_ends_are_read_in_each_table(tmp_path: Path) -> None:
    found = problems_of(tmp_path, {name: text.replace("\n", "\r\n") for name, text in GOOD.items()})
    assert sorted(found) == sorted(("warning", name, None) for name in GOOD)


def test_text_that_is_no_utf8_names_the_byte(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a-1 good\nb-1 caf\xe9\n")
    found = next(each for each in kaldi.validate_directory(tmp_path) if each.level == "error")
    assert (found.line, "byte 8 of the line" in found.message) == (2, True)


def test_keys_may_have_any_bytes_but_white_space(tmp_path: Path) -> None:
    (tmp_path / "wav.scp").write_bytes(b"a\xe9 1.wav\n\xe4\xb8\xad\xe3\x80\x80 2.wav\n")
    assert [each.level for each in kaldi.validate_directory(tmp_path)] == ["warning"]
    (tmp_path / "wav.scp").write_bytes(b"a\x7f 1.wav\n")
    assert kaldi.validate_directory(tmp_path)[0].level == "error"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert problems_of(tmp_path, {**SMALL, "text": "\ufeff" + SMALL["text"]}) == []


def test_problems_show_their_place_and_are_values(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a-1 good\n\n")
    found = kaldi.validate_directory(tmp_path)[0]
    assert str(found) == f"error: {str(tmp_path / 'text')!r}, line 2: the line is blank: remove it"
    assert found == kaldi.Problem("error", str(tmp_path / "text"), 2, "the line is blank: remove it")
    with pytest.raises(AttributeError):
        found.line = 3  # type: ignore[misc]


def test_what_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.DataNotFound, match="does not exist"):
        kaldi.validate_directory(tmp_path / "none")
    (tmp_path / "notes").write_text("x")
    with pytest.raises(sk.errors.DataNotFound, match=r"has none of the files segments, wav\.scp"):
        kaldi.validate_directory(tmp_path)
    with pytest.raises(sk.errors.DataNotFound, match="is a file"):
        kaldi.validate_directory(tmp_path / "notes")


@pytest.mark.parametrize("size", [1, 7, 10, 11, 64])
def test_blocks_of_any_size_have_the_lines_of_the_file(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seekable.formats.kaldi.directory.text_tables._READ_BYTES", size)
    data = b"a 1\r\nlonger line of words\n\nb\r\nlast"
    (tmp_path / "text").write_bytes(data)
    ends: dict[str, int] = {}
    found = [
        pair
        for block in blocks_of(str(tmp_path / "text"), ends)
        for pair in zip(block.numbers, block.lines, strict=True)
    ]
    assert found == list(enumerate([b"a 1", b"longer line of words", b"", b"b", b"last"], 1))
    assert ends == {"returns": 2, "open": 1}
    assert {each.line for each in kaldi.validate_directory(tmp_path) if each.level == "error"} >= {3, 4}


LINES = st.lists(
    st.one_of(
        st.sampled_from([line for text in GOOD.values() for line in text.encode().splitlines()]),
        st.binary(max_size=12),
        st.text(" \tab1.-|~\u00e9\u3000<s>#0", max_size=12).map(str.encode),
    ),
    max_size=6,
)


@settings(max_examples=some(40, of=3))
@given(
    tables=st.dictionaries(st.sampled_from([*GOOD]), LINES, min_size=1), end=st.sampled_from([b"\n", b"\r\n"])
)
def test_any_bytes_have_problems_and_no_other_error(
    tables: dict[str, list[bytes]], end: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    for name, lines in {"utt2spk": [b"a-1 a"], **tables}.items():
        (folder / name).write_bytes(end.join(lines))
    for problem in kaldi.validate_directory(folder):
        lines = (folder / Path(problem.path).name).read_bytes().split(b"\n") if problem.line else []
        assert problem.line is None or 1 <= problem.line <= len(lines)
        assert str(problem).startswith(f"{problem.level}: ")
