"""Damaged archives in `sk.open`: the error of the walk, with the file; nothing is lost without a word."""

from __future__ import annotations

import gzip
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.formats.tar.archives import END, archive, head, padded
from tests.formats.tar.test_damage import DAMAGE, FLIPPED, GOOD, HEADERS
from tests.formats.tar.test_headers_of_tools import REFUSED

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = ("empty", "text", "short text")


def written(folder: Path, data: bytes, name: str = "a.tar") -> Path:
    """Write a file that looks old."""
    path = folder / name
    path.write_bytes(data)
    os.utime(path, ns=(10**18, 10**18))
    return path


def refused(path: Path | list[Path], **options: Any) -> str:
    with pytest.raises(sk.errors.UnsupportedFormat) as raised:
        sk.open(path, **options)
    return str(raised.value)


@pytest.mark.parametrize("which", [name for name in DAMAGE if name not in EMPTY])
def test_damage_is_an_error_when_the_file_is_opened(which: str, tmp_path: Path) -> None:
    data, at, what, last = DAMAGE[which]
    path = written(tmp_path, data)
    told = refused(path)
    assert told.startswith(f"{path}: byte {at}: ")
    assert what in told
    assert last in told
    assert refused(path) == told  # Nothing of the file was kept in the index.


@pytest.mark.parametrize(
    "which", ["cut in a header", "wrong checksum", "second archive", "cut in the last padding"]
)
def test_damage_inside_of_compressed_files_is_an_error(which: str, tmp_path: Path) -> None:
    data, at, what, last = DAMAGE[which]
    path = written(tmp_path, gzip.compress(data), "a.tar.gz")
    told = refused(path)
    assert told.startswith(f"{path}: byte {at}: ")
    assert what in told
    assert last in told


@pytest.mark.parametrize("which", EMPTY)
def test_a_file_that_is_no_archive_is_an_error_in_a_list_too(which: str, tmp_path: Path) -> None:
    good, bad = written(tmp_path, GOOD, "a.tar"), written(tmp_path, DAMAGE[which][0], "b.tar")
    assert str(bad) in refused([good, bad])
    assert str(bad) in refused(bad)


@pytest.mark.parametrize("which", REFUSED)
def test_members_that_cannot_be_read_in_place_are_errors(which: str, tmp_path: Path) -> None:
    data, message = REFUSED[which]
    path = written(tmp_path, head(b"a.txt", 0) + data + head(b"z.end", 0) + END)
    told = refused(path)
    assert told.startswith(f"{path}: byte ")
    assert message.partition("byte 512: ")[2] in told


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["a.x", "b.x", "a.y"],
            "the members of the sample 'a' at byte 0 are not next to each other: others are at byte 2048",
        ),
        (["a.x", "a.X"], "byte 1024: the member 'a.X' is the second one of its field in sample 'a'"),
        (["a.pyd"], "pyd"),
        (["a.pkl"], "pkl"),
        (["a.pickle"], "pickle"),
    ],
)
def test_samples_that_cannot_be_whole_or_safe_are_errors(
    names: list[str], message: str, tmp_path: Path
) -> None:
    assert message in refused(written(tmp_path, archive(names)))


def test_the_ways_out_that_errors_name_are_ways_out(tmp_path: Path) -> None:
    torn = sk.open(
        written(tmp_path, archive(["a.x", "b.x", "a.y"]), "torn.tar"),
        format=sk.formats.Tar(group="key"),
        decode="bytes",
    )
    assert list(torn) == [{"__key__": "a", "x": b"0 a.x", "y": b"2 a.y"}, {"__key__": "b", "x": b"1 b.x"}]
    with pytest.warns(sk.errors.DuplicateKeys):
        joined = sk.open(
            written(tmp_path, GOOD + GOOD, "joined.tar"), format=sk.formats.Tar(concatenated=True)
        )
    assert [record["__key__"] for record in joined] == [*"abcabc"]
    dots = sk.open(
        written(tmp_path, archive(["a.1.x", "a.2.x"]), "dots.tar"),
        format=sk.formats.Tar(splitname="last"),
        decode="bytes",
    )
    assert [record["__key__"] for record in dots] == ["a.1", "a.2"]


def test_a_key_that_comes_again_is_warned_of_and_both_records_stay(tmp_path: Path) -> None:
    path = written(tmp_path, archive(["a.x", "b.x", "a.x"]))
    with pytest.warns(sk.errors.DuplicateKeys, match="'a'"):
        ds = sk.open(path, decode="bytes")
    assert [record["x"] for record in ds] == [b"0 a.x", b"1 b.x", b"2 a.x"]


def test_hard_links_have_the_payload_of_their_target(tmp_path: Path) -> None:
    data = head(b"a.txt", 3) + padded(b"abc") + head(b"a.cls", 1) + padded(b"7")
    data += head(b"b.txt", 0, kind=b"1", link=b"a.txt") + head(b"b.cls", 1) + padded(b"8") + END
    expected = [{"__key__": "a", "txt": "abc", "cls": 7}, {"__key__": "b", "txt": "abc", "cls": 8}]
    for path in (written(tmp_path, data), written(tmp_path, gzip.compress(data), "b.tar.gz")):
        ds = sk.open(path)
        assert list(ds) == expected
        assert ds[[1, 0]] == expected[::-1]
        assert ds[1] == expected[1]


@pytest.mark.parametrize("zeros", [1024, 10240])
def test_zeros_are_no_records(zeros: int, tmp_path: Path) -> None:
    assert len(sk.open(written(tmp_path, bytes(zeros)))) == 0


def test_a_changed_byte_of_a_header_is_an_error_when_opened(tmp_path: Path) -> None:
    for number, start in enumerate(HEADERS[:-2]):
        at = start + (number * 97 + 13) % 512
        changed = FLIPPED[:at] + bytes([FLIPPED[at] ^ 0x40]) + FLIPPED[at + 1 :]
        folder = tmp_path / str(number)
        folder.mkdir()
        assert f"byte {start}: " in refused(written(folder, changed))


def test_a_file_that_is_cut_after_it_was_indexed_is_stale(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    ds = sk.open(path)
    assert len(list(ds)) == 3
    path.write_bytes(GOOD[:2600])
    with pytest.raises(sk.IndexStale):
        ds[2]
    assert "byte 2048: the member is cut" in refused(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD[:3072], "the archive has no end mark: its writer was not closed, or it was cut at byte 3072"),
        (archive(["README", "d/.x"]), "no samples: of 2 members, no name has the form KEY.FIELD"),
        (archive([f"sp0.9_{row}.x" for row in range(100)]), "format=sk.formats.Tar(splitname='last')"),
    ],
)
def test_what_may_not_be_meant_is_warned_of(data: bytes, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, data)
    for _ in range(2):  # With and without an index.
        with pytest.warns(sk.errors.TarWarning, match=re.escape(message)):
            sk.open(path, decode="bytes")
