"""Sources of an archive's bytes, and how much of them a walk reads."""

from __future__ import annotations

import io
import os
import tarfile
import tracemalloc
from typing import TYPE_CHECKING, final

import pytest
from tests.formats.tar.archives import PATH, archive, stream

from seekable.formats.tar.walk import Walk
from seekable.index.build.content import ForwardFile, ForwardStream

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.index.finder import ForwardReader


@final
class Counted:
    """The bytes of an archive, which notes what is read of them."""

    path = PATH

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.ranges: list[range] = []

    def read(self, start: int, count: int) -> bytes:
        data = self._data[start : start + count]
        assert not self.ranges or start >= self.ranges[-1].start
        self.ranges.append(range(start, start + len(data)))
        return data

    @property
    def bytes_read(self) -> int:
        return sum(map(len, self.ranges))


def names(source: ForwardReader) -> list[bytes]:
    return [name for run in Walk(source) for name in run.names]


def file_of(size: int, number: int, mtime: float = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(f"{number:06}.bin")
    info.size, info.mtime = size, mtime
    return info


@pytest.mark.parametrize("chunk_bytes", [1, 7, 512, 4096, 1 << 20])
def test_a_stream_may_come_in_chunks_of_any_size(chunk_bytes: int) -> None:
    data = archive(["a.txt", "b" * 200, "c.txt"])
    assert names(stream(data, chunk_bytes)) == [b"a.txt", b"b" * 200, b"c.txt"]


def test_a_stream_gives_what_any_later_range_holds() -> None:
    data = bytes(range(256)) * 4
    source = ForwardStream([data[at : at + 100] for at in range(0, 1024, 100)], path=PATH)
    for start, count in (
        (0, 5),
        (0, 150),
        (149, 1),
        (149, 500),
        (400, 0),
        (900, 500),
        (1023, 9),
        (1024, 1),
        (5000, 1),
    ):
        assert source.read(start, count) == data[start : start + count]


def test_a_stream_holds_no_more_than_a_range_and_a_chunk() -> None:
    tracemalloc.start()
    source = ForwardStream((bytes(1000) for _ in range(5000)), path=PATH)
    for start in range(0, 5_000_000, 700):
        assert len(source.read(start, 900)) == min(900, 5_000_000 - start)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000


def test_a_file_is_read_at_offsets_without_moving_its_position(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(archive([file_of(100_000, row) for row in range(20)]))
    with path.open("rb", buffering=0) as file:
        assert len(names(ForwardFile(file, str(path), size=path.stat().st_size))) == 20
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0


def test_a_file_that_is_indexed_gives_its_ranges_from_a_disk_and_from_elsewhere(tmp_path: Path) -> None:
    data = bytes(range(251)) * 9000
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    starts = [
        0,
        5,
        5,
        30_000,
        90_000,
        150_000,
        1_200_000,
        1_200_100,
        1_260_000,
        len(data) - 3,
        len(data),
        1 << 62,
    ]
    with path.open("rb", buffering=0) as disk, io.BytesIO(data) as elsewhere:
        for file in (disk, elsewhere):
            passed: list[int] = []
            source = ForwardFile(file, PATH, size=len(data), on_bytes=passed.append)
            assert all(source.read(start, 100) == data[start : start + 100] for start in starts)
            source.finish()
            assert sum(passed) == len(data)


@pytest.mark.parametrize("mtime", [0, 1.5])
def test_large_payloads_are_not_read(mtime: float) -> None:
    data = archive([file_of(70_000, row, mtime) for row in range(200)])
    source = Counted(data)
    assert len(names(source)) == 200
    assert source.bytes_read < 200 * 5000 + (1 << 20)
    assert len(source.ranges) < 210


def test_large_payloads_between_small_ones_are_not_read() -> None:
    sizes = [200_000, 200, 3] * 60
    source = Counted(archive([file_of(size, row) for row, size in enumerate(sizes)]))
    assert len(names(source)) == 180
    assert source.bytes_read < 60 * 3 * 5000 + (1 << 20)


def test_small_members_are_read_together() -> None:
    source = Counted(archive([file_of(1000, row) for row in range(2000)]))
    assert len(names(source)) == 2000
    assert len(source.ranges) < 20


def test_the_walk_finds_its_pace_again() -> None:
    sizes = [1000] * 300 + [500_000] * 10 + [1000] * 2000
    source = Counted(archive([file_of(size, row) for row, size in enumerate(sizes)]))
    assert len(names(source)) == 2310
    assert len(source.ranges) < 100
