"""Ranges of files that lie elsewhere: places that are fetched ahead, and files over ranges."""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.remote.index.object_file import places_ahead
from seekable.storage import ranges as storage_ranges
from seekable.storage.ranges import RangeFile


@pytest.mark.parametrize(
    "starts",
    [
        [5 << 20, 1 << 20, 9 << 20, 3 << 20],
        [0, 0, 0, 0],
        [0, 100 << 20, 200 << 20, 300 << 20],
        [0, 1 << 20, 2 << 20],
        [0, 1 << 20, 2 << 20, 5 << 20],
    ],
)
def test_nothing_is_fetched_ahead_of_reads_without_a_stride(starts: list[int]) -> None:
    assert places_ahead(starts, 1 << 30) == []


def test_places_ahead_go_on_in_the_stride_and_end_with_the_object() -> None:
    starts = [0, 1 << 20, 2 << 20, 3 << 20]
    assert places_ahead(starts, 4 << 20) == []
    assert places_ahead(starts, (5 << 20) + 1) == [4 << 20, 5 << 20]
    assert places_ahead(starts, 1 << 30) == [number << 20 for number in range(4, 16)]


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
