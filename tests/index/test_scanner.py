from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from seekable.index.digest import PieceHasher
from seekable.index.finder import ByteSource

if TYPE_CHECKING:
    from io import BufferedRandom


def source_of(
    file: BufferedRandom, data: bytes, *, size: int, chunk_bytes: int, told: list[int]
) -> ByteSource:
    file.write(data)
    file.flush()
    file.seek(0)
    return ByteSource(file, size=size, head=b"", chunk_bytes=chunk_bytes, on_bytes=told.append)


@pytest.mark.parametrize("chunk_bytes", [1, 3, 10, 1000])
def test_chunks_are_the_file_in_order_and_hashed(chunk_bytes: int) -> None:
    told: list[int] = []
    with tempfile.TemporaryFile() as file:
        source = source_of(file, b"0123456789", size=10, chunk_bytes=chunk_bytes, told=told)
        read = b""
        for chunk in source.chunks():
            assert chunk.base == len(read)
            assert bytes(chunk.array) == bytes(chunk.buffer[: chunk.size])
            read += bytes(chunk.array)
    hasher = PieceHasher()
    hasher.update(memoryview(b"0123456789"))
    assert read == b"0123456789"
    assert source.piece_digests() == hasher.digests()
    assert sum(told) == 10


def test_what_is_appended_later_is_not_read() -> None:
    with tempfile.TemporaryFile() as file:
        source = source_of(file, b"0123456789", size=4, chunk_bytes=3, told=[])
        assert [bytes(chunk.array) for chunk in source.chunks()] == [b"012", b"3"]


def test_a_truncated_file_ends_early() -> None:
    with tempfile.TemporaryFile() as file:
        source = source_of(file, b"01234", size=10, chunk_bytes=3, told=[])
        assert [bytes(chunk.array) for chunk in source.chunks()] == [b"012", b"34"]


def test_the_descriptor_stays_the_callers() -> None:
    with tempfile.TemporaryFile() as file:
        source = source_of(file, b"0", size=1, chunk_bytes=1, told=[])
        del source
        assert os.fstat(file.fileno()).st_size == 1
