"""Folders that Forager indexed: its offsets are taken where they are those of our scanner, and else not."""

from __future__ import annotations

import json
import logging
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.forager import samples_of, write_data, write_index

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.index.build import build_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = {
    "a.jsonl": b'{"id": 0}\n{"id": 1}\n{"id": 2}',
    "b9.JSONL": b'{"id": 3}\r\n{"id": 4}\r\n',
    "b10.jsonl": b'{"id": 5}\n',
    "sub/c.jsonl": b'{"id": 6}\n{"id": "\xc3\xa9"}\n[7]\n',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "corpus"
    write_data(path, FILES)
    write_index(path, FILES)
    return path


@pytest.fixture
def no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(*_: object) -> None:
        message = "a file is scanned"
        raise AssertionError(message)

    monkeypatch.setattr(JsonlScanner, "scan", scan)


def plain(folder: Path) -> sk.Dataset:
    """The same files without the index of Forager."""
    copy = folder.parent / "plain"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("index", ".seekable"))
    return sk.open(copy, format="jsonl")


@pytest.mark.usefixtures("no_scan")
@pytest.mark.parametrize("asked", ["", "*.jsonl", "**/*.jsonl", "**"])
def test_files_are_not_scanned(folder: Path, asked: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "seekable"):
        ds = sk.open(f"{folder}/{asked}" if asked else folder)
    assert ds[0] == {"id": 0}
    count = 3 if asked == "*.jsonl" else 4
    assert f"the records of {count} of {count} files are found by Forager's index" in caplog.text
    assert {os.path.dirname(ds.locate(row).path) for row in range(len(ds))} <= {str(folder), f"{folder}/sub"}


def test_the_dataset_is_the_one_that_a_scan_gives(folder: Path) -> None:
    ds, scanned = sk.open(folder), plain(folder)
    assert list(ds) == list(scanned)
    assert ds.fingerprint == scanned.fingerprint
    assert [ds.locate(row).length for row in range(len(ds))] == [
        scanned.locate(row).length for row in range(len(ds))
    ]
    assert verify(folder).problems == verify(folder, deep=True).problems == ()


@pytest.mark.usefixtures("no_scan")
def test_an_opened_folder_is_indexed(folder: Path) -> None:
    before = list(sk.open(folder))
    shutil.rmtree(folder / "index")
    assert list(sk.open(folder)) == before
    catalog = json.loads((folder / ".seekable" / "catalog.json").read_text())
    assert sum(file["records"] for file in catalog["files"]) == len(before)


def test_a_change_of_an_unread_file_is_found_by_a_deep_verification(folder: Path) -> None:
    sk.open(folder)
    path = folder / "a.jsonl"
    status = path.stat()
    path.write_bytes(b'{"id": 0} \n{"i": 1}\n{"id": 2}')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    (problem,) = verify(folder, deep=True).problems
    assert problem.path == str(path)


SAMPLES = [(0, 0, 10), (0, 10, 10), (0, 20, 9)]
"""Those of a.jsonl."""


def bad_samples(*samples: tuple[int, int, int]) -> Callable[[Path], object]:
    return lambda folder: write_index(folder, ["a.jsonl"], samples)


def indexed_as(content: bytes) -> Callable[[Path], object]:
    """The index is of another content of a.jsonl."""

    def change(folder: Path) -> None:
        write_data(folder, {"a.jsonl": content})
        write_index(folder, FILES)

    return change


def broken_link(folder: Path) -> None:
    (folder / "index/sample_locations.bin").unlink()
    (folder / "index/sample_locations.bin").symlink_to("nowhere")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a line was appended": lambda folder: (folder / "a.jsonl").write_bytes(
        FILES["a.jsonl"] + b'\n{"id": 9}\n'
    ),
    "written again at the same size": lambda folder: (folder / "a.jsonl").write_bytes(
        b'{"id": 10}\n{"id":1}\n{"id": 2}'
    ),
    "a blank line": indexed_as(b'{"id": 0}\n\n{"id": 2}\n'),
    "a line of spaces": indexed_as(b'{"id": 0}\n' + b" \t" * 400 + b'\r\n{"id": 2}\n'),
    "a byte order mark": indexed_as(b'\xef\xbb\xbf{"id": 0}\n'),
    "other lines, an old time": lambda folder: write_data(
        folder, {"a.jsonl": b'{"id":0}\n{"id": 1}\n{"id": 22}'}
    ),
    "too short for the index": lambda folder: write_data(folder, {"a.jsonl": b'{"id": 0}\n'}),
    "a gap": bad_samples((0, 0, 10), (0, 20, 9)),
    "two lines as one": bad_samples((0, 0, 20), (0, 20, 9)),
    "half a line": bad_samples((0, 0, 5), (0, 5, 5), (0, 10, 10), (0, 20, 9)),
    "not from the start": bad_samples((0, 10, 10), (0, 20, 9)),
    "not to the end": bad_samples((0, 0, 10), (0, 10, 10)),
    "twice": bad_samples(*SAMPLES, *SAMPLES),
    "beyond the end": bad_samples(*SAMPLES, (0, 29, 10)),
    "a line of no byte": bad_samples((0, 0, 10), (0, 10, 0), (0, 10, 10), (0, 20, 9)),
    "numbers that overflow": bad_samples((0, 0, 2**64 - 1), (0, 2**64 - 1, 30)),
    "of another file": bad_samples((1, 0, 10), (1, 10, 10), (1, 20, 9)),
    "in another order": bad_samples((0, 20, 9), (0, 0, 10), (0, 10, 10)),
    "cut off": lambda folder: os.truncate(folder / "index/sample_locations.bin", 24 * 9 - 5),
    "empty": lambda folder: os.truncate(folder / "index/sample_locations.bin", 0),
    "no line end after the files": lambda folder: (folder / "index/file_location.txt").write_text("a.jsonl"),
    "other files": lambda folder: (folder / "index/file_location.txt").write_text("../a.jsonl\nx/b9.JSONL\n"),
    "no name at all": lambda folder: (folder / "index/file_location.txt").write_text(""),
    "a broken link": broken_link,
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_index_that_does_not_fit_is_not_used(folder: Path, change: str) -> None:
    CHANGES[change](folder)
    ds, scanned = sk.open(folder), plain(folder)
    assert list(ds) == list(scanned)
    assert ds.fingerprint == scanned.fingerprint
    assert verify(folder, deep=True).problems == ()


def test_kept_keys_and_rows_are_those_of_the_unread_files(folder: Path, tmp_path: Path) -> None:
    lines = b"".join(b'{"id": %d}\n' % row for row in range(100))
    write_data(folder, {"a.jsonl": lines, "b9.JSONL": b"", "b10.jsonl": b"", "sub/c.jsonl": b""})
    write_index(folder, FILES)
    for _ in range(2):
        ds = sk.open(folder, key="id")
        assert ds.key(42) == {"id": 42}
        assert len(ds.filter(lambda record: record["id"] % 2, save=tmp_path / "odd.u64")) == 50
    other = b"".join(b'{"id": %d}\n' % row for row in reversed(range(100)))
    assert len(other) == len(lines)
    write_data(folder, {"a.jsonl": other}, mtime=1_700_000_001)
    write_index(folder, FILES)
    ds = sk.open(folder, key="id")
    assert ds.key(42) == {"id": 42}
    assert ds[0] == {"id": 99}


def test_keys_are_read_again_where_a_line_between_the_ends_changed(tmp_path: Path) -> None:
    """The ends, the offsets and the size of the file stay: its modification time alone tells."""
    folder = tmp_path / "corpus"
    lines = [b'{"id": %d, "text": "%s"}\n' % (row, b"x" * 90) for row in range(10_000, 13_000)]
    for number, mtime in enumerate((1_700_000_000, 1_700_000_001)):
        lines[1500] = lines[1500].replace(b"11500", b"99999") if number else lines[1500]
        write_data(folder, {"a.jsonl": b"".join(lines)}, mtime=mtime)
        write_index(folder, ["a.jsonl"])
        ds = sk.open(folder, key="id")
        assert ds.key(99999 if number else 11500)["text"] == "x" * 90
    with pytest.raises(KeyError):
        ds.key(11500)


def test_new_files_and_changed_ones_alone_are_scanned(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_data(folder, {"new.jsonl": b'{"id": 99}\n', "empty.jsonl": b""})
    (folder / "b10.jsonl").write_bytes(b'{"id": 55}\n')
    with caplog.at_level(logging.INFO, "seekable"):
        ds = sk.open(folder)
    assert "the records of 3 of 6 files" in caplog.text
    assert "are scanned" in caplog.text
    assert list(ds) == list(plain(folder))
    assert {"id": 99} in list(ds)
    assert {"id": 55} in list(ds)


def test_files_of_a_damaged_index_are_no_data(folder: Path) -> None:
    (folder / "index/sample_schema.json").write_text("{}")
    os.truncate(folder / "index/sample_locations.bin", 7)
    records = list(plain(folder))
    assert list(sk.open(folder)) == list(sk.open(folder, format="jsonl")) == records
    assert list(sk.open_stream(str(folder))) == list(sk.open_stream(str(folder), format="jsonl")) == records


lines = st.lists(st.sampled_from([b'{"a": 1}', b"", b" ", b"[2]\r", b'"' + b"x" * 90 + b'"', b"\t\r", b" 3"]))


@given(lines, st.sampled_from([b"", b"\n"]), st.integers(0, 40))
def test_of_any_lines_the_offsets_are_those_of_a_scan(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], end: bytes, whole: int
) -> None:
    folder = tmp_path_factory.mktemp("any") / "corpus"
    write_data(folder, {"a.jsonl": b"\n".join(parts) + (end if parts else b""), "b.jsonl": b'{"b": 1}\n'})
    write_index(folder, ["a.jsonl", "b.jsonl"])
    with pytest.MonkeyPatch.context() as patch:
        # So that the file counts as a large one, of which pieces are checked.
        patch.setattr(build_index, "_WHOLE_BYTES", whole)
        patch.setattr(build_index, "_PIECES", 2)
        patch.setattr(build_index, "_PIECE_BYTES", 8)
        patch.setattr(build_index, "_END_PIECE_BYTES", min(whole, 16))
        ds = sk.open(folder)
    assert ds.fingerprint == plain(folder).fingerprint


@pytest.mark.usefixtures("no_scan")
def test_of_a_large_file_pieces_are_compared(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    text = b"".join(b'{"id": %d, "text": "%s"}\n' % (row, b"x" * (row % 91)) for row in range(40_000))
    assert len(text) > 2 * build_index._WHOLE_BYTES
    write_data(folder, {"a.jsonl": text})
    write_index(folder, ["a.jsonl"])
    ds = sk.open(folder)
    assert len(ds) == 40_000
    assert [ds[row]["id"] for row in (0, 17, 23_456, 39_999)] == [0, 17, 23_456, 39_999]
    shutil.rmtree(folder / ".seekable")
    samples = samples_of([folder / "a.jsonl"])
    (start, stop), *_ = build_index._pieces(len(text))[20:]
    at = next(row for row, (_, first, _) in enumerate(samples) if start <= first < stop - 200)
    samples[at : at + 2] = [(0, samples[at][1], samples[at][2] + samples[at + 1][2])]
    write_index(folder, ["a.jsonl"], samples)
    with pytest.raises(AssertionError, match="a file is scanned"):
        sk.open(folder)


def large(folder: Path) -> tuple[list[bytes], int]:
    """Lines of a large file, and the number of one that lies far from all pieces that are read."""
    lines = [b'{"id": %d, "text": "%s"}\n' % (row, b"x" * (row % 91)) for row in range(40_000)]
    write_data(folder, {"a.jsonl": b"".join(lines)})
    pieces = build_index._pieces(sum(map(len, lines)))
    firsts = [first for _, first, _ in samples_of([folder / "a.jsonl"])]
    near = {
        row
        for row, first in enumerate(firsts)
        if any(start - 500 < first < stop + 500 for start, stop in pieces)
    }
    return lines, next(row for row in range(20_000, 40_000) if row not in near)


def test_between_pieces_a_blank_line_is_found_by_its_length(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    lines, at = large(folder)
    lines[at] = b" \r\n"
    write_data(folder, {"a.jsonl": b"".join(lines)})
    write_index(folder, ["a.jsonl"])
    ds = sk.open(folder)
    assert (len(ds), ds.fingerprint) == (39_999, plain(folder).fingerprint)


def test_between_pieces_a_change_is_found_by_its_time(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    lines, at = large(folder)
    write_index(folder, ["a.jsonl"])
    lines[at : at + 2] = lines[at + 1 : at - 1 : -1]
    (folder / "a.jsonl").write_bytes(b"".join(lines))
    os.utime(folder / "index/sample_locations.bin", (1_700_000_000, 1_700_000_000))
    os.utime(folder / "index/file_location.txt", (1_700_000_000, 1_700_000_000))
    assert sk.open(folder).fingerprint == plain(folder).fingerprint


@pytest.mark.parametrize("kind", ["a gap", "an overlap", "a line of no byte", "a line twice"])
def test_between_pieces_lines_lie_one_behind_the_other(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "corpus"
    _, at = large(folder)
    samples = samples_of([folder / "a.jsonl"])
    number, first, length = samples[at]
    samples[at : at + 1] = {
        "a gap": [],
        "an overlap": [(number, first, length + 5)],
        "a line of no byte": [(number, first, 0), (number, first, length)],
        "a line twice": [(number, first, length), (number, first, length)],
    }[kind]
    write_index(folder, ["a.jsonl"], samples)
    assert sk.open(folder).fingerprint == plain(folder).fingerprint


def test_many_short_lines_are_scanned(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    write_data(folder, {"a.jsonl": b'{"id": 1}\n' * 200_000})
    write_index(folder, ["a.jsonl"])
    assert sk.open(folder).fingerprint == plain(folder).fingerprint


@pytest.mark.usefixtures("no_scan")
def test_offsets_come_from_the_real_package(tmp_path: Path) -> None:
    indexer = pytest.importorskip("data_forager.indexers.jsonl_indexer")
    datasets = pytest.importorskip("data_forager.datasets.jsonl")
    write_data(tmp_path, FILES)
    indexer.create_default_jsonl_indexer(str(tmp_path))()
    theirs = datasets.JsonlDataset.create_from_index_on_filesystem(str(tmp_path))
    ours = sk.open(tmp_path)
    assert len(ours) == len(theirs)
    key = json.dumps
    assert sorted(map(key, ours)) == sorted(key(theirs[row]) for row in range(len(theirs)))
