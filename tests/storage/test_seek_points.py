"""Any range of a compressed file is that of its content, from any seek point on; damage is found."""

from __future__ import annotations

import functools
import gzip
import io
import os
import random
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.compressing import bgzf, compressed
from tests.thrift import ALL, some

from seekable.errors import IndexStale
from seekable.formats.table import format_named
from seekable.index.build import content as entering
from seekable.index.build.scan import ScanJob, scan_part
from seekable.storage import seek_points as blocks
from seekable.storage.memory import Cache
from seekable.storage.seek_points import _FILLERS, CompressedFile, SeekPoints, inflate_from_bit

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.storage.compression import Compression

BYTES = 4_000_000
KINDS = ("one member", "several members", "many members", "stored", "bgzf", "frames", "one frame")


def texts(size: int, seed: int) -> bytes:
    """Return text that compresses as such does."""
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3000)]
    return b" ".join(rng.choices(words, k=size // 6))


@functools.cache
def content() -> bytes:
    """Return lines of text."""
    return texts(BYTES, 3).replace(b"a ", b"\n")


@functools.cache
def packed(name: str) -> tuple[Compression, bytes]:
    """Return a file of the content."""
    whole = content()

    def cut(size: int) -> list[bytes]:
        return [whole[at : at + size] for at in range(0, len(whole), size)]

    if name == "bgzf":
        return "gz", bgzf(whole)
    if name == "stored":
        return "gz", compressed([whole], "gz", 0)
    if name in ("one frame", "frames"):
        return "zst", compressed([whole] if name == "one frame" else cut(700_000), "zst")
    parts = {"one member": [whole], "many members": cut(9999)}
    return "gz", compressed(
        parts.get(name, [whole[:100], whole[100:2_500_000], b"", whole[2_500_000:]]), "gz"
    )


@pytest.fixture(scope="module", params=KINDS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompressedFile:
    kind, data = packed(request.param)
    path = tmp_path_factory.mktemp("blocks") / f"a.txt.{kind}"
    path.write_bytes(data)
    return opened(path, kind)


def points_of(path: Path) -> SeekPoints:
    status = path.stat()
    job = ScanJob(str(path), status.st_size, status.st_mtime_ns, 0, status.st_size)
    scan = scan_part(job, format_named("text").finder, on_bytes=None)
    assert scan is not None
    assert scan.content_size == len(content())
    points = SeekPoints(scan.points)
    assert points.is_whole()
    return points


def opened(path: Path, kind: Compression) -> CompressedFile:
    status, points = path.stat(), points_of(path)
    return CompressedFile(
        str(path), size=status.st_size, mtime_ns=status.st_mtime_ns, kind=kind, points=points
    )


@given(st.integers(0, BYTES), st.integers(0, 3000) | st.integers(0, BYTES))
def check_range(file: CompressedFile, start: int, length: int) -> None:
    assert file.view[start : start + length] == content()[start : start + length]


def test_any_range_is_that_of_the_content(file: CompressedFile) -> None:
    check_range(file)
    assert file.view[:] == content()
    file.check()
    file.advise(0, len(content()))
    file.advise(5, 5)


def test_blocks_are_small_enough_and_not_too_small(file: CompressedFile) -> None:
    points = file._points
    sizes = [points.start(number + 1) - points.start(number) for number in range(points.count)]
    assert sum(sizes) == len(content())
    if points.count > 1:
        assert min(sizes[:-1]) >= 256 << 10
        assert max(sizes) < 2 << 20
    assert points.bytes_of(points.count - 1)[1] == file.size


def test_threads_read_at_once(file: CompressedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    # Content is dropped and read again.
    monkeypatch.setattr(blocks, "_cache", Cache[bytes](len, most_bytes=1 << 20))
    rng = random.Random(1)
    starts = [rng.randrange(len(content())) for _ in range(some(100, of=4))]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda start: bytes(file.view[start : start + 500]), starts))
    assert found == [content()[start : start + 500] for start in starts]


def test_the_cache_is_bounded(file: CompressedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_cache", Cache[bytes](len, most_bytes=3 << 20))
    for start in range(0, len(content()), 100_000 if ALL else 200_000):
        assert file.view[start : start + 1] == content()[start : start + 1]
        held = blocks._cache._values.values()
        assert blocks._cache._bytes == sum(map(len, held))
        assert blocks._cache._bytes <= 3 << 20


def test_a_child_reads_even_if_the_lock_was_held(file: CompressedFile) -> None:
    assert file.view[:9] == content()[:9]
    with blocks._cache._lock:
        child = os.fork()
        if not child:
            os._exit(0 if file.view[3_000_000:3_000_009] == content()[3_000_000:3_000_009] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("name", ["one member", "stored", "frames"])
def test_damage_that_keeps_size_and_time_is_found(name: str, tmp_path: Path) -> None:
    kind, data = packed(name)
    path = tmp_path / f"a.txt.{kind}"
    path.write_bytes(data)
    file = opened(path, kind)
    first, last = file._points.bytes_of(1)
    middle = (first + last) // 2
    with path.open("r+b") as changed:
        changed.seek(middle)
        changed.write(bytes(20))
    os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
    blocks._cache.forget()
    assert file.view[:100] == content()[:100]
    with pytest.raises(IndexStale, match=rf"bytes {first:,} to {last:,}, are not the block 1 .*--deep"):
        file.view[: len(content()) // 2]


def test_tables_that_are_damaged_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(packed("one member")[1])
    data = bytes(points_of(path)._data)
    for bad in (
        b"",
        data[:8],
        data[:100],
        data[:-1],
        data + b"x",
        b"x" + data[1:],
        data[:8] + b"\2" + data[9:],
    ):
        with pytest.raises(ValueError, match="points"):
            SeekPoints(bad)
    for at in (40, len(data) - 1):
        assert not SeekPoints(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).is_whole()


def test_fillers_are_nothing_but_bits() -> None:
    for bits, filler in enumerate(_FILLERS):
        assert len(filler) % 8 == bits
        whole = filler + "1" + "10" + "0000000"  # the last block, an empty one
        data = int(whole[::-1], 2).to_bytes(len(whole) // 8 + 1, "little")
        stream = zlib.decompressobj(-15)
        assert (stream.decompress(data), stream.eof) == (b"", True)


@pytest.mark.parametrize("level", [1, 6, 9])
def test_all_points_of_a_file_lead_to_its_content(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entering, "SPACING", 40_000)
    whole = texts(3_000_000, level)
    data = gzip.compress(whole[:1_000_000], level) + gzip.compress(whole[1_000_000:], level)
    path = tmp_path / "a.gz"
    path.write_bytes(data)
    with io.FileIO(path) as file:
        points = entering.gzip_seek_points(file, str(path))
    assert len(points) > 40
    assert {point.bit % 8 for point in points} == set(range(8))
    for number, point in enumerate(points):
        assert whole[point.start - 1000 : point.start].endswith(point.window[-1000:])
        rest = memoryview(data)[point.bit // 8 :]
        # What follows a point is read up to the next ones, and of some points up to the end.
        enough = len(whole) if ALL or number % 8 == 0 else 100_000
        found = bytearray()
        for part in inflate_from_bit(rest, bit=point.bit % 8, window=point.window, path="a.gz"):
            found += part
            if len(found) >= enough:
                break
        assert found == whole[point.start : point.start + len(found)]
        assert len(found) >= min(enough, len(whole) - point.start)
