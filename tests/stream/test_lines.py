"""Files, commands and standard input from their start to their end."""

from __future__ import annotations

import gc
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.splitter import lines, split
from tests.index.corpus import write
from tests.storage.compressing import compressed, zst_frame
from tests.stream.common import check_cuts, delivered, resumed

import seekable as sk
from seekable.formats.lines.line_source import line_span
from seekable.formats.lines.line_stream import _lines, open_stream

ROWS = [b'{"id": %d, "text": "%s"}\n' % (number, b"x" * (number % 50)) for number in range(3000)]
RECORDS = [json.loads(row) for row in ROWS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five files of all kinds."""
    write(tmp_path / "0.jsonl", b"".join(ROWS[:700]))
    write(tmp_path / "1.jsonl.gz", compressed([b"".join(ROWS[700:900]), b"".join(ROWS[900:1500])], "gz"))
    write(tmp_path / "2.jsonl.zst", compressed([b"".join(ROWS[1500:2000]), b"".join(ROWS[2000:2500])], "zst"))
    write(tmp_path / "3.jsonl", b"")
    write(tmp_path / "4.jsonl.gz", gzip.compress(b"".join(ROWS[2500:])[:-1]))
    return tmp_path


def test_files_come_in_their_order(folder: Path) -> None:
    stream = sk.open_stream(folder)
    assert list(stream) == RECORDS
    assert stream.fingerprint == sk.open_stream(folder / "*").fingerprint
    assert (
        list(sk.open_stream([folder / "1.jsonl.gz", folder / "0.jsonl"])) == RECORDS[700:1500] + RECORDS[:700]
    )


@pytest.mark.parametrize("lanes", [1, 2, 3, 7])
def test_whole_files_are_dealt_to_lanes(lanes: int, folder: Path) -> None:
    stream = sk.open_stream(folder, lanes=lanes, replay=True)
    pairs = delivered(stream)
    assert sorted(record["id"] for _, record in pairs) == list(range(3000))
    by_file = {number: [record for (file, _), record in pairs if file == number] for number in range(5)}
    assert list(itertools.chain.from_iterable(by_file.values())) == RECORDS
    turns = [token[0] % lanes for token, _ in pairs[: lanes if lanes < 3 else 2]]
    assert turns == list(range(len(turns)))
    check_cuts(stream, cuts=[0, 1, 699, 700, 701, 1500, 2499, 2999, 3000])


def test_tokens_are_files_and_records(folder: Path) -> None:
    stream = sk.open_stream(folder, replay=True)
    assert (stream.indexed, stream.checkpointable, stream.constant_time) == (True, True, False)
    for token, record in delivered(stream)[::199]:
        assert stream[token] == record
        (place,) = stream.locate(token)
        path, row = folder / sorted(os.listdir(folder))[token[0]], record["id"]
        assert (place.path, place.row) == (str(path), token[1])
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else b"".join(ROWS[:700])
        if path.suffix != ".zst":
            assert content[place.offset : place.offset + place.length] == ROWS[row].rstrip(b"\n")
    for token in ((5, 0), (3, 0), (0, 700), (-1, 0), "0", (0,)):
        with pytest.raises(sk.errors.BadToken):
            stream[token]


def test_plain_files_resume_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [b"%d\n" % number for number in range(100_000)]
    write(folder / "long.txt", b"".join(rows))
    stream = sk.open_stream(folder / "long.txt")
    assert (stream.indexed, stream.checkpointable, stream.constant_time) == (False, True, False)
    iterator = iter(stream)
    for _ in range(80_000):
        next(iterator)
    state = iterator.state_dict()
    read: list[int] = []
    pread = os.pread

    def counting(descriptor: int, count: int, at: int) -> bytes:
        data = pread(descriptor, count, at)
        read.append(len(data))
        return data

    again = resumed(stream, state)
    monkeypatch.setattr(os, "pread", counting)
    assert next(again) == "80000"
    assert sum(read) <= 256 << 10


def test_compressed_files_need_replay(folder: Path) -> None:
    stream = sk.open_stream(folder)
    assert (stream.indexed, stream.checkpointable, stream.constant_time) == (False, False, False)
    iterator = iter(stream)
    next(iterator)
    with pytest.raises(sk.errors.NotResumable, match=r"sk\.open\(\).*seekable recompress.*replay=True"):
        iterator.state_dict()
    with pytest.raises(sk.errors.BadToken, match="replay=True"):
        stream[0, 0]


texts = st.lists(
    st.sampled_from([b"", b"a", b"\n", b" \n", b"\r\n", b"\xef\xbb\xbf", b"bc"]), max_size=12
).map(b"".join)


@given(texts, st.integers(1, 5))
def test_lines_are_those_of_the_index(data: bytes, size: int) -> None:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = list(_lines(pieces, 0))
    assert [at for at, _ in found] == split(data, keep_blank=True)
    assert [bytes(view[: line_span(view)]) for _, view in found] == lines(data, keep_blank=True)


@given(texts)
def test_records_are_those_of_open(data: bytes) -> None:
    for form in ("text", "jsonl"):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "a.txt")
            path.write_bytes(data)
            wanted = list(sk.open(path, format=form, decode="bytes"))
            assert list(sk.open_stream(path, format=form, decode="bytes")) == wanted


def test_other_data_is_noticed_when_it_resumes(folder: Path) -> None:
    path = folder / "1.jsonl.gz"
    stream = sk.open_stream(path, replay=True)
    iterator = iter(stream)
    for _ in range(500):
        next(iterator)
    state = iterator.state_dict()
    write(path, gzip.compress(b"".join(ROWS[:800])), seconds=9)
    with pytest.raises(sk.IndexStale, match="was changed since the stream was opened"):
        next(resumed(stream, state))
    with pytest.raises(sk.StateMismatch):
        resumed(sk.open_stream(path, replay=True), state)


def test_other_data_in_the_middle_is_noticed_too(tmp_path: Path) -> None:
    """What both ends do not show, the record that was read last does."""
    rows = [b"%08d\n" % number for number in range(100_000)]
    path = tmp_path / "a.txt"
    write(path, b"".join(rows))
    iterator = iter(sk.open_stream(path))
    for _ in range(50_000):
        next(iterator)
    state = iterator.state_dict()
    rows[49_999] = b"another!\n"
    write(path, b"".join(rows))
    with pytest.raises(sk.StateMismatch, match=r"record 49999 of .*a\.txt', at byte 449,991"):
        next(resumed(sk.open_stream(path), state))


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_damage_comes_after_what_is_before_it(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / f"a.jsonl.{kind}"
    write(path, compressed([b"".join(ROWS[:1000]), b"".join(ROWS[1000:])], kind)[:-9])
    iterator = iter(sk.open_stream(path))
    assert [next(iterator) for _ in range(1000)] == RECORDS[:1000]
    with pytest.raises(
        sk.errors.UnsupportedFormat,
        match=rf"a\.jsonl\.{kind}' cannot be decompressed .*it ends in the middle",
    ):
        list(iterator)


def test_a_corrupt_record_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    write(path, gzip.compress(b"{}\n\n{}\nno\n{}\n"))
    iterator = iter(sk.open_stream(path))
    assert [next(iterator), next(iterator)] == [{}, {}]
    with pytest.raises(sk.CorruptRecord) as caught:
        next(iterator)
    assert (caught.value.path, caught.value.row, caught.value.offset) == (str(path), 2, 7)
    assert list(sk.open_stream(path, decode="bytes"))[2] == b"no"


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "twice.jsonl.gz", gzip.compress(gzip.compress(b"{}")))
    with pytest.raises(sk.errors.UnsupportedFormat, match="compressed"):
        list(sk.open_stream(tmp_path / "twice.jsonl.gz"))
    write(tmp_path / "array.jsonl.zst", zst_frame(b'[\n{"a": 1},\n{"a": 2}\n]\n'))
    with pytest.raises(sk.errors.UnsupportedFormat, match="JSON array"):
        list(sk.open_stream(tmp_path / "array.jsonl.zst"))


def test_arguments_are_checked(folder: Path) -> None:
    with pytest.raises(sk.DataNotFound):
        open_stream(folder / "no.jsonl")
    with pytest.raises(sk.errors.InvalidArgument, match=r"allow_pipes=True"):
        open_stream("zcat x |", format="text")
    with pytest.raises(sk.errors.InvalidArgument, match="no name tells"):
        open_stream("-")
    with pytest.raises(sk.errors.InvalidArgument, match="more than once"):
        open_stream(["-", "-"], format="text")
    with pytest.raises(sk.errors.InvalidArgument, match="cannot be read again"):
        open_stream("-", format="text", replay=True)
    with pytest.raises(sk.errors.WrongType, match="at least one"):
        open_stream([])
    write(folder / "b.txt", b"")
    with pytest.raises(sk.errors.InvalidArgument, match="one format"):
        open_stream(folder)


def test_commands_run_only_when_allowed_and_resume_with_replay(folder: Path) -> None:
    command = f"gzip -dc {folder / '1.jsonl.gz'} |"
    stream = sk.open_stream(command, format="jsonl", allow_pipes=True)
    assert list(stream) == RECORDS[700:1500]
    with pytest.raises(sk.errors.NotResumable, match="runs it again"):
        iter(stream).state_dict()
    again = sk.open_stream([command, folder / "0.jsonl"], format="jsonl", allow_pipes=True, replay=True)
    check_cuts(again, cuts=[0, 1, 799, 800, 801, 1500])
    assert again.fingerprint != stream.fingerprint


def test_a_file_whose_name_ends_like_a_command_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "odd |"
    write(path, b"one\ntwo\n")
    assert list(sk.open_stream(path, format="text")) == ["one", "two"]


def test_commands_that_fail_or_print_less_are_errors(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.WorkerDied, match=r"'echo 1; exit 3' failed with exit code 3"):
        list(sk.open_stream("echo 1; exit 3 |", format="text", allow_pipes=True))
    data = tmp_path / "data"
    data.write_bytes(b"1\n2\n3\n")
    stream = sk.open_stream(f"cat {data} |", format="text", allow_pipes=True, replay=True)
    iterator = iter(stream)
    assert [next(iterator) for _ in range(3)] == ["1", "2", "3"]
    state = iterator.state_dict()
    data.write_bytes(b"1\n")
    with pytest.raises(sk.StateMismatch, match="other data"):
        next(resumed(stream, state))
    data.write_bytes(b"1\n2\n4\n")
    with pytest.raises(sk.StateMismatch, match="record 2"):
        next(resumed(stream, state))


def test_a_command_that_is_left_alone_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    command = f"echo $$ > {mark}; yes |"
    iterator = iter(sk.open_stream(command, format="text", allow_pipes=True))
    assert next(iterator) == "y"
    pid = int(mark.read_text())
    del iterator
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


READER = """
import json, sys
import seekable as sk
stream = sk.open_stream("-", format="jsonl")
iterator = iter(stream)
print(json.dumps(next(iterator)))
try:
    iterator.state_dict()
except sk.errors.NotResumable as error:
    print(error)
print(len(list(iterator)))
try:
    list(stream)
except sk.errors.NotResumable as error:
    print(error)
"""


def test_standard_input_is_read_once_and_never_resumed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", READER], input=b"".join(ROWS), capture_output=True, check=True
    )
    first, refused, rest, again = done.stdout.decode().splitlines()
    assert json.loads(first) == RECORDS[0]
    assert "write it to a file first" in refused
    assert int(rest) == 2999
    assert "was read already" in again


def test_a_command_does_not_outlive_the_interpreter(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = (
        "import sys, seekable as sk\n"
        f"command = 'echo $$ > {mark}; echo y; sleep 1000 |'\n"
        "iterator = iter(sk.open_stream(command, format='text', allow_pipes=True))\n"
        "print(next(iterator))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"y\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_what_a_pipe_has_is_given_before_there_is_more() -> None:
    code = "import seekable as sk\nfor line in sk.open_stream('-', format='text'): print(line, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"one\n", b"two\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
        assert process.wait() == 0
