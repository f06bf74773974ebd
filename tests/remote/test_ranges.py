"""Ranges of a file that lies elsewhere, through any function that fetches bytes."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.remote import remote_ranges as module
from seekable.remote.block_cache import BlockCache
from seekable.remote.block_plan import BLOCK_BYTES
from seekable.remote.remote_ranges import RemoteRanges, fetch_all
from seekable.storage import ranges as storage_ranges
from seekable.storage.ranges import RangeFile

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = random.Random(0).randbytes(3 * BLOCK_BYTES + 1000)


class Elsewhere:
    """Holds the content, and counts the bytes that were fetched."""

    def __init__(self) -> None:
        self.fetched = 0

    def fetch(self, start: int, stop: int) -> bytes:
        self.fetched += stop - start
        return CONTENT[start:stop]


def opened(elsewhere: Elsewhere, folder: Path, *, version: str = "1") -> RemoteRanges:
    blocks = BlockCache(str(folder), most_bytes=1 << 30)
    return RemoteRanges(elsewhere.fetch, path="x://a", size=len(CONTENT), version=version, blocks=blocks)


def test_any_range_is_read_and_no_byte_is_fetched_twice(tmp_path: Path) -> None:
    elsewhere, rng = Elsewhere(), random.Random(1)
    source = opened(elsewhere, tmp_path, version="any range")
    for _ in range(200):
        start, stop = sorted(rng.choices(range(len(CONTENT) + 1), k=2))
        assert source.range(start, stop) == CONTENT[start:stop]
    assert source.range(0, len(CONTENT)) == CONTENT
    assert elsewhere.fetched == len(CONTENT)


def test_expected_places_are_fetched_with_the_first_one(tmp_path: Path) -> None:
    elsewhere = Elsewhere()
    source = opened(elsewhere, tmp_path, version="expected")
    far = 2 * BLOCK_BYTES
    source.expect([0, 5, far, 10 * BLOCK_BYTES])
    assert source.range(0, 10) == CONTENT[:10]
    fetched = elsewhere.fetched
    assert BLOCK_BYTES < fetched <= 2 * BLOCK_BYTES
    assert source.range(far, far + 9) == CONTENT[far : far + 9]
    assert elsewhere.fetched == fetched
    assert source.range(BLOCK_BYTES, BLOCK_BYTES + 9) == CONTENT[BLOCK_BYTES : BLOCK_BYTES + 9]
    assert elsewhere.fetched == fetched + BLOCK_BYTES


def test_blocks_on_disk_serve_other_processes_and_other_versions_do_not_share_them(tmp_path: Path) -> None:
    first, second, other = Elsewhere(), Elsewhere(), Elsewhere()
    assert opened(first, tmp_path, version="disk").range(10, 20) == CONTENT[10:20]
    module._BLOCKS.forget()  # As in another process, which has none of them in memory.
    assert opened(second, tmp_path, version="disk").range(10, 20) == CONTENT[10:20]
    assert opened(other, tmp_path, version="newer").range(10, 20) == CONTENT[10:20]
    assert (first.fetched, second.fetched, other.fetched) == (BLOCK_BYTES, 0, BLOCK_BYTES)


def test_an_error_of_the_function_that_fetches_is_raised_as_it_is(tmp_path: Path) -> None:
    def fail(start: int, stop: int) -> bytes:
        raise ConnectionError(f"bytes {start} to {stop}")

    blocks = BlockCache(str(tmp_path), most_bytes=1 << 30)
    source = RemoteRanges(fail, path="x://a", size=len(CONTENT), version="broken", blocks=blocks)
    with pytest.raises(ConnectionError, match=f"bytes 0 to {BLOCK_BYTES}"):
        source.range(0, 1)


def test_many_ranges_are_fetched_at_once_each_block_once(tmp_path: Path) -> None:
    first, second = Elsewhere(), Elsewhere()
    sources = [opened(first, tmp_path, version="one"), opened(second, tmp_path, version="two")]
    assert sources[0].range(0, 10) == CONTENT[:10]
    places = [(5, 6), (BLOCK_BYTES - 1, BLOCK_BYTES + 1), (len(CONTENT) - 1, len(CONTENT)), (7, 7)]
    fetch_all([(source, *place) for source in sources for place in [*places, *places]])
    tail = 64 << 10
    assert first.fetched == 2 * BLOCK_BYTES + tail
    assert second.fetched == 2 * BLOCK_BYTES + tail
    for source in sources:
        for start, stop in places:
            assert source.range(start, stop) == CONTENT[start:stop]
    assert (first.fetched, second.fetched) == (2 * BLOCK_BYTES + tail,) * 2


def test_more_blocks_than_allowed_are_not_fetched(tmp_path: Path) -> None:
    elsewhere = Elsewhere()
    source = opened(elsewhere, tmp_path, version="limit")
    fetch_all([(source, 0, BLOCK_BYTES + 1)], most_blocks=1)
    assert elsewhere.fetched == 0
    fetch_all([(source, 0, BLOCK_BYTES + 1)], most_blocks=2)
    assert elsewhere.fetched == 2 * BLOCK_BYTES


def test_an_error_of_one_of_many_ranges_is_raised(tmp_path: Path) -> None:
    def fail(start: int, stop: int) -> bytes:
        if start:
            raise ConnectionError(f"bytes {start} to {stop}")
        return CONTENT[start:stop]

    blocks = BlockCache(str(tmp_path), most_bytes=1 << 30)
    source = RemoteRanges(fail, path="x://a", size=len(CONTENT), version="fail", blocks=blocks)
    with pytest.raises(ConnectionError, match=f"bytes {2 * BLOCK_BYTES} to"):
        fetch_all([(source, 0, 1), (source, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 1)])


class Bytes:
    """Some bytes as a source of ranges, which counts its reads."""

    path = "x://bytes"

    def __init__(self, data: bytes) -> None:
        self.data, self.size, self.reads = data, len(data), 0

    def range(self, start: int, stop: int) -> memoryview:
        assert 0 <= start <= stop <= self.size
        self.reads += 1
        return memoryview(self.data)[start:stop]


@given(
    st.binary(max_size=40),
    st.lists(st.tuples(st.sampled_from(["seek", "read", "end", "back"]), st.integers(0, 50)), max_size=12),
    st.integers(1, 9),
)
def test_a_file_over_ranges_reads_as_any_file(data: bytes, calls: list[tuple[str, int]], window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_ranges, "_WINDOW_BYTES", window)
        with io.BytesIO(data) as expected, RangeFile(Bytes(data)) as file:
            for call, number in calls:
                if call == "read":
                    found = b""
                    while len(found) < number and (piece := file.read(number - len(found))):
                        found += piece
                    assert found == expected.read(number)
                elif call == "seek":
                    assert file.seek(number) == expected.seek(number)
                elif call == "end":
                    assert file.seek(0, io.SEEK_END) == expected.seek(0, io.SEEK_END)
                else:
                    back = -min(number, expected.tell())
                    assert file.seek(back, io.SEEK_CUR) == expected.seek(back, io.SEEK_CUR)
                assert file.tell() == expected.tell()


def test_a_file_over_ranges_is_read_in_windows_that_end_at_multiples_of_their_size() -> None:
    data = random.Random(2).randbytes(3 * storage_ranges._WINDOW_BYTES // 2)
    source = Bytes(data)
    with RangeFile(source) as file:
        file.seek(storage_ranges._WINDOW_BYTES - 1)
        assert file.read(1) == data[storage_ranges._WINDOW_BYTES - 1 :][:1]
        assert file.readall() == data[storage_ranges._WINDOW_BYTES :]
    assert source.reads == 2
