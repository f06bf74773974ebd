"""Files beside an index of Lhotse: its offsets are taken where they are those of a scan, and else not."""

from __future__ import annotations

import logging
import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.formats.lhotse_indexes import OLD, index_of_lines, numbers, write_indexed
from tests.thrift import some

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.formats.shar import lhotse_index
from seekable.index.build import build_index

if TYPE_CHECKING:
    from pathlib import Path

LINES = b'{"id": 0}\n{"id": 1}\n{"id": 2}'
FILES = {
    "a.jsonl": LINES,
    "b9.JSONL": b'{"id": 3}\r\n{"id": 4}\r\n',
    "sub/c.json": b'{"id": 5}\n',
    "d.jsonl": b"",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "corpus"
    for name, content in FILES.items():
        write_indexed(path / name, content)
    return path


@pytest.fixture
def no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(*_: object) -> None:
        message = "a file is scanned"
        raise AssertionError(message)

    monkeypatch.setattr(JsonlScanner, "scan", scan)


def plain(folder: Path) -> sk.Dataset:
    """The same files without the indexes of Lhotse."""
    copy = folder.parent / "plain"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.idx", ".seekable"))
    return sk.open(copy, format="jsonl")


@pytest.mark.usefixtures("no_scan")
@pytest.mark.parametrize("asked", ["", "*.jsonl", "*.jsonl*", "*", "**"])
def test_files_are_not_scanned_and_indexes_are_no_data(
    folder: Path, asked: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "seekable"):
        ds = sk.open(f"{folder}/{asked}" if asked else folder)
    count = 3 if asked.startswith(("*.", "*")) and asked != "**" else 4
    assert f"the records of {count} of {count} files are found by Lhotse's indexes (.idx)" in caplog.text
    assert [record["id"] for record in ds][:5] == list(range(5))


def test_the_dataset_is_the_one_that_a_scan_gives(folder: Path) -> None:
    ds, scanned = sk.open(folder), plain(folder)
    assert list(ds) == list(scanned)
    assert ds.fingerprint == scanned.fingerprint
    assert verify(folder).problems == verify(folder, deep=True).problems == ()
    assert verify(folder, deep=True).unread == len(FILES)


def test_without_an_index_nothing_is_said_of_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    with caplog.at_level(logging.INFO, "seekable"):
        sk.open(tmp_path)
    assert "Lhotse" not in caplog.text


@pytest.mark.usefixtures("no_scan")
def test_forager_comes_first_and_lhotse_has_the_rest(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "index").mkdir()
    (folder / "index/file_location.txt").write_text("a.jsonl\n")
    (folder / "index/sample_locations.bin").write_bytes(numbers([0, 0, 10, 0, 10, 10, 0, 20, 9]))
    with caplog.at_level(logging.INFO, "seekable"):
        assert len(sk.open(folder)) == 6
    assert "of 1 of 4 files are found by Forager's" in caplog.text
    assert "of 3 of 4 files are found by Lhotse's" in caplog.text


BAD = {
    "a blank line": (b'{"id": 0}\n\n{"id": 2}\n', None),
    "a line of spaces": (b'{"id": 0}\n' + b" \t" * 400 + b'\r\n{"id": 2}\n', None),
    "a byte order mark": (b'\xef\xbb\xbf{"id": 0}\n', None),
    "a line more in the data": (LINES + b"\n[9]\n", index_of_lines(LINES)),
    "lines of other lengths": (b'{"id": 10}\n{"id":1}\n{"id": 2}', index_of_lines(LINES)),
    "a gap": (LINES, numbers([0, 20, 29])),
    "half a line": (LINES, numbers([0, 5, 10, 20, 29])),
    "not from the start": (LINES, numbers([10, 20, 29])),
    "not to the end": (LINES, numbers([0, 10, 20])),
    "beyond the end": (LINES, numbers([0, 10, 20, 29, 40])),
    "a line of no byte": (LINES, numbers([0, 10, 10, 20, 29])),
    "descending": (LINES, numbers([0, 20, 10, 29])),
    "far too large": (LINES, numbers([0, 2**64 - 1, 29])),
    "Energon's or another last number": (LINES, numbers([0, 10, 20, 28])),
    "one number": (LINES, numbers([29])),
    "empty": (LINES, b""),
    "cut off": (LINES, index_of_lines(LINES)[:-3]),
    "text of StatelessSampler": (LINES, b"0\n10\n20\n"),
    "text of eight bytes": (LINES, b"0\n10\n20\n0\n10\n20\n"),
    "a folder": (LINES, None),
    "a pipe": (LINES, None),
    "newer data": (LINES, None),
}


@pytest.mark.parametrize("kind", BAD)
def test_an_index_that_does_not_fit_is_not_used(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "corpus"
    content, index = BAD[kind]
    write_indexed(folder / "a.jsonl", content, index)
    beside = folder / "a.jsonl.idx"
    if kind == "a folder":
        beside.unlink()
        beside.mkdir()
    if kind == "a pipe":
        beside.unlink()
        os.mkfifo(beside)
    if kind == "newer data":
        os.utime(beside, (OLD - 1, OLD - 1))
    copy = tmp_path / "plain"
    copy.mkdir()
    (copy / "a.jsonl").write_bytes(content)
    ds, scanned = sk.open(folder), sk.open(copy)
    assert list(ds) == list(scanned)
    assert ds.fingerprint == scanned.fingerprint
    found = verify(folder, deep=True)
    assert (found.problems, found.unread) == ((), 0)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_index_that_may_not_be_read_is_not_used(folder: Path) -> None:
    (folder / "a.jsonl.idx").chmod(0)
    assert list(sk.open(folder)) == list(plain(folder))


def test_an_index_of_a_compressed_file_is_not_used(tmp_path: Path) -> None:
    import gzip

    data = gzip.compress(LINES, mtime=0)
    write_indexed(tmp_path / "a.jsonl.gz", data, numbers([0, len(data)]))
    assert [record["id"] for record in sk.open(tmp_path)] == [0, 1, 2]


lines = st.lists(st.sampled_from([b'{"a": 1}', b"", b" ", b"[2]\r", b'"' + b"x" * 90 + b'"', b"\t\r", b" 3"]))


def opened_equal(folder: Path, *, whole: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # So that the file counts as a large one, of which pieces are checked.
        patch.setattr(build_index, "_WHOLE_BYTES", whole)
        patch.setattr(build_index, "_PIECES", 2)
        patch.setattr(build_index, "_PIECE_BYTES", 8)
        patch.setattr(build_index, "_END_PIECE_BYTES", min(whole, 16))
        patch.setattr(lhotse_index, "_LINES_AT_ONCE", 3)
        ds = sk.open(folder)
    assert ds.fingerprint == plain(folder).fingerprint


@settings(max_examples=some(25, of=3))
@given(lines, st.sampled_from([b"", b"\n"]), st.integers(0, 40))
def test_of_any_lines_the_offsets_are_those_of_a_scan(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], end: bytes, whole: int
) -> None:
    folder = tmp_path_factory.mktemp("any") / "corpus"
    write_indexed(folder / "a.jsonl", b"\n".join(parts) + (end if parts else b""))
    opened_equal(folder, whole=whole)


@settings(max_examples=some(25, of=3))
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
    st.sampled_from(["data", "index"]),
)
@example([3, 4], random.Random(1), "data")
def test_after_any_byte_changed_the_records_are_those_of_a_scan(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], drawn: random.Random, of: str
) -> None:
    """A file of up to 1 MiB is compared as a whole, so no change of data or of an index can hide."""
    folder = tmp_path_factory.mktemp("any") / "corpus"
    of_data = of == "data"
    content = b"".join(b'"' + b"x" * length + b'"\n' for length in lengths)
    index = index_of_lines(content)
    changed = bytearray(content if of_data else index)
    for _ in range(drawn.randint(1, 3)):
        changed[drawn.randrange(len(changed))] = (
            drawn.choice(b"\n x\x00\x01\x08\xff") if of_data else drawn.randrange(256)
        )
    write_indexed(
        folder / "a.jsonl", bytes(changed) if of_data else content, index if of_data else bytes(changed)
    )
    opened_equal(folder, whole=1 << 20)


@pytest.mark.usefixtures("no_scan")
def test_of_a_large_file_pieces_are_compared(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    text = b"".join(b'{"id": %d, "text": "%s"}\n' % (row, b"x" * (row % 91)) for row in range(40_000))
    write_indexed(folder / "a.jsonl", text)
    ds = sk.open(folder)
    assert [ds[row]["id"] for row in (0, 17, 23_456, 39_999)] == [0, 17, 23_456, 39_999]


@pytest.mark.frameworks(name="lhotse")
def test_the_indexes_are_those_of_lhotse(tmp_path: Path) -> None:
    from lhotse.indexing import create_jsonl_index

    for number, content in enumerate((b"", LINES, b'{"a": 1}\r\n\n \n"\xc3\xa9"\n', b"\xef\xbb\xbf[1]\n")):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(content)
        create_jsonl_index(path)
        assert path.with_name(f"{path.name}.idx").read_bytes() == index_of_lines(content)
