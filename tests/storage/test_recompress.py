"""What is recompressed is the same content, in small frames; it appears whole or not at all."""

from __future__ import annotations

import functools
import gzip
import io
import os
import struct
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import warm
from tests.storage.test_seek_points import texts

import seekable as sk
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.storage.compression import inflated
from seekable.storage.seek_points import FRAME_BYTES, _frames, recompress

if TYPE_CHECKING:
    from pathlib import Path


@functools.cache
def content() -> bytes:
    """Return lines of text."""
    return texts(3_000_000, 4).replace(b"a ", b"\n")


def frames_of(data: bytes) -> list[bytes]:
    """Return the content of each frame, by the table at the file's end alone."""
    count, descriptor, magic = struct.unpack("<IBI", data[-9:])
    assert (descriptor, magic) == (0, 0x8F92EAB1)
    table_bytes = 8 * count + 9
    assert struct.unpack("<II", data[-table_bytes - 8 : -table_bytes]) == (0x184D2A5E, table_bytes)
    at, found = 0, []
    for number in range(count):
        size, content_size = struct.unpack_from("<II", data, len(data) - table_bytes + 8 * number)
        found.append(zstandard.ZstdDecompressor().decompress(data[at : at + size]))
        assert len(found[-1]) == content_size
        at += size
    assert at == len(data) - table_bytes - 8
    return found


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_the_content_is_the_same_in_frames_of_whole_lines(suffix: str, tmp_path: Path) -> None:
    source, target = tmp_path / f"a.txt{suffix}", tmp_path / "new.txt.zst"
    data = {"": content(), ".gz": gzip.compress(content()), ".zst": zstandard.compress(content())}[suffix]
    source.write_bytes(data)
    told: list[int] = []
    done = recompress(str(source), str(target), level=3, on_bytes=told.append)
    written = target.read_bytes()
    frames = frames_of(written)
    assert b"".join(frames) == content()
    assert all(frame.endswith(b"\n") for frame in frames[:-1])
    assert all(FRAME_BYTES <= len(frame) < FRAME_BYTES + 10_000 for frame in frames[:-1])
    assert (done.frames, done.content_bytes, done.bytes) == (len(frames), len(content()), len(written))
    assert sum(told) == len(data)
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(written), read_across_frames=True)
    assert reader.read() == content()
    assert sorted(os.listdir(tmp_path)) == sorted([source.name, target.name])
    assert list(sk.open(target, decode="bytes")) == content().split(b"\n")


@given(st.lists(st.integers(0, 3_000_000), max_size=8), st.integers(1, 1 << 20))
def test_frames_are_bounded_and_whole(lengths: list[int], size: int) -> None:
    given_bytes = b"".join(bytes(length) + b"\n" for length in lengths)
    pieces = (given_bytes[at : at + size] for at in range(0, len(given_bytes), max(size, 50_000)))
    whole = b"".join(given_bytes[at : at + size] for at in range(0, len(given_bytes), max(size, 50_000)))
    frames = list(_frames(pieces))
    assert b"".join(frames) == whole
    assert all(FRAME_BYTES <= len(frame) <= 8 << 20 for frame in frames[:-1])


def test_a_line_without_an_end_is_cut(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "a.txt.zst"
    source.write_bytes(bytes(20 << 20))
    recompress(str(source), str(target), level=1)
    assert [len(frame) for frame in frames_of(target.read_bytes())] == [8 << 20, 8 << 20, 4 << 20]


def test_nothing_is_overwritten_and_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt.gz", tmp_path / "a.txt.zst"
    source.write_bytes(gzip.compress(content())[:-1])
    with pytest.raises(UnsupportedFormat, match="cannot be decompressed"):
        recompress(str(source), str(target), level=3)
    assert os.listdir(tmp_path) == ["a.txt.gz"]
    target.write_bytes(b"precious")
    with pytest.raises(InvalidArgument, match="there already"):
        recompress(str(source), str(target), level=3)
    assert target.read_bytes() == b"precious"


def test_a_killed_process_leaves_no_target(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content())
    code = (
        "import os, sys\n"
        "from seekable.storage.seek_points import recompress\n"
        "read = []\n"
        "def tell(count):\n"
        "    read.append(count)\n"
        "    if len(read) == 9: os.kill(os.getpid(), 9)\n"
        "recompress(sys.argv[1], sys.argv[1] + '.zst', level=3, on_bytes=tell)\n"
    )
    assert warm.run([str(tmp_path / "a.txt")], program=code).returncode == -9
    assert not (tmp_path / "a.txt.zst").exists()
    assert recompress(str(tmp_path / "a.txt"), str(tmp_path / "a.txt.zst"), level=3).content_bytes == len(
        content()
    )


def test_nothing_is_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    assert recompress(str(tmp_path / "a.txt"), str(tmp_path / "a.txt.zst"), level=3).frames == 0
    assert b"".join(inflated([(tmp_path / "a.txt.zst").read_bytes()], "zst", "a")) == b""
    assert len(sk.open(tmp_path / "a.txt.zst")) == 0
