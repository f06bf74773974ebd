from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
from tests.index.corpus import write
from tests.index.test_damage import the
from tests.index.test_verify import verified

import seekable as sk
from seekable.errors import IndexStale

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINES = [str(number) for number in range(10_000)]
"""More offsets than are read as a whole: 80 kB."""


def text_file(folder: Path, lines: list[str] = LINES, name: str = "a.txt") -> Path:
    write(folder / name, "".join(f"{line}\n" for line in lines).encode())
    return folder / name


def flip(path: Path, at: int) -> None:
    changed = bytearray(path.read_bytes())
    changed[at] ^= 4
    path.write_bytes(changed)


def test_a_flipped_bit_in_a_small_segment_is_found_when_it_is_opened(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 21)]
    path = text_file(tmp_path, lines)
    sk.open(path)
    flip(the(tmp_path, "offsets-*.u64"), 80)
    assert list(sk.open(path)) == lines


@pytest.mark.parametrize(
    "read",
    [lambda ds: ds[4_999], lambda ds: list(ds[4_990:5_010]), lambda ds: ds.locate(5_000)],
    ids=["alone", "together", "located"],
)
def test_a_flipped_bit_in_a_large_segment_is_found_when_it_is_touched(
    tmp_path: Path, read: Callable[[sk.Dataset], Any]
) -> None:
    path = text_file(tmp_path)
    sk.open(path)
    segment = the(tmp_path, "offsets-*.u64")
    flip(segment, 8 * 5_000)
    ds = sk.open(path)
    assert ds[0] == "0"
    with pytest.raises(IndexStale, match=r"between byte 36,864 and byte 40,968 .* it was removed"):
        read(ds)
    assert not segment.exists()
    again = sk.open(path)
    assert [again[row] for row in (0, 4_999, 5_000, 9_999)] == ["0", "4999", "5000", "9999"]
    assert list(again) == LINES


def test_damage_in_the_digests_alone_is_no_damage_of_records(tmp_path: Path) -> None:
    path = text_file(tmp_path)
    sk.open(path)
    units = the(tmp_path, "offsets-*.units")
    flip(units, 8)
    assert list(sk.open(path)) == LINES
    assert not units.exists()


@pytest.mark.parametrize("way", ["verify", "the next build"])
def test_an_index_without_digests_opens_and_is_completed(tmp_path: Path, way: str) -> None:
    path = text_file(tmp_path)
    sk.open(path)
    units = the(tmp_path, "offsets-*.units")
    written = units.read_bytes()
    units.unlink()
    assert list(sk.open(path)) == LINES
    assert not units.exists()
    if way == "verify":
        assert not verified(tmp_path, form="text", deep=False).problems
    else:
        sk.open(text_file(tmp_path, ["one more"], "b.txt"))
    assert units.read_bytes() == written


def test_a_build_leaves_out_what_is_damaged_in_an_index_without_digests(tmp_path: Path) -> None:
    path = text_file(tmp_path)
    sk.open(path)
    the(tmp_path, "offsets-*.units").unlink()
    flip(the(tmp_path, "offsets-*.u64"), 8 * 5_000)
    text_file(tmp_path, ["one more"], "b.txt")
    assert list(sk.open(tmp_path / "*.txt")) == [*LINES, "one more"]


def test_a_flipped_bit_in_seek_points_is_found_when_they_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    write(path, gzip.compress("".join(f"{line}\n" for line in LINES).encode(), mtime=0))
    sk.open(path)
    flip(the(tmp_path, "points-*"), 8 * 6)  # Where the content of the first point begins.
    with pytest.raises(IndexStale, match=r"seek points of .* damaged .* it was removed"):
        sk.open(path)[0]
    assert list(sk.open(path)) == LINES


@pytest.mark.parametrize("count", [100, 10_000])
def test_a_flipped_bit_in_a_key_index_loses_no_key(tmp_path: Path, count: int) -> None:
    path = tmp_path / "a.jsonl"
    write(path, b"".join(b'{"id": "%d"}\n' % row for row in range(count)))
    sk.open(path, key="id").key("7")
    pairs = the(tmp_path, "keys-*.u64")
    words = memoryview(pairs.read_bytes()).cast("Q")
    place = words[count:].tolist().index(7)
    flip(pairs, 8 * place)
    with pytest.raises(IndexStale, match=r"keys-.*damaged"):
        sk.open(path, key="id").key("7")
    assert sk.open(path, key="id").key("7") == {"id": "7"}
