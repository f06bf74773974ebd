from __future__ import annotations

import tempfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.formats.splitter import BOM, split

from seekable.formats.lines import line_bounds as lines_module
from seekable.formats.lines.line_bounds import find_newlines, scan_lines
from seekable.index.digest import PieceHasher
from seekable.index.finder import ByteChunk, ByteSource

PIECES = st.sampled_from(
    [b"\n", b"\r", b" ", b"\t", b"{", b"}", b"a", b"x", b"\x00", b"\xff", b"\r\n", b" " * 70]
)
DATA = st.builds(
    lambda mark, pieces: mark + b"".join(pieces),
    st.sampled_from([b"", b"", BOM, BOM[:2]]),
    st.lists(PIECES, max_size=40),
)


def scan(data: bytes, *, keep_blank: bool, chunk_bytes: int, head_bytes: int = 1 << 16) -> list[int]:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        file.seek(0)
        source = ByteSource(file, size=len(data), head=data[:head_bytes], chunk_bytes=chunk_bytes)
        starts = scan_lines(source, keep_blank=keep_blank)
        hasher = PieceHasher()
        hasher.update(memoryview(data))
        assert source.piece_digests() == hasher.digests()
    assert starts.dtype == np.uint64
    found: list[int] = starts.tolist()
    return found


@given(data=DATA, keep_blank=st.booleans(), chunk_bytes=st.integers(1, 12))
@example(data=BOM, keep_blank=True, chunk_bytes=1)
@example(data=BOM + b"\n", keep_blank=False, chunk_bytes=2)
@example(data=b" " * 200 + b"\n", keep_blank=False, chunk_bytes=64)
@example(data=b" " * 200 + b"x", keep_blank=False, chunk_bytes=64)
@example(data=b"\n" + b" " * 64 + b"\n" + b" " * 65 + b"x\n", keep_blank=False, chunk_bytes=1000)
def test_lines_start_where_a_plain_splitter_says(*, data: bytes, keep_blank: bool, chunk_bytes: int) -> None:
    assert scan(data, keep_blank=keep_blank, chunk_bytes=chunk_bytes) == split(data, keep_blank=keep_blank)


@given(
    data=DATA,
    keep_blank=st.booleans(),
    short_line=st.sampled_from([0, 10**9]),
)
def test_every_way_of_finding_newlines_gives_the_same_lines(
    *, data: bytes, keep_blank: bool, short_line: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_SHORT_LINE", short_line)
        assert scan(data, keep_blank=keep_blank, chunk_bytes=17) == split(data, keep_blank=keep_blank)


@given(st.lists(st.sampled_from([b"\n", b"x", b"x" * 9]), max_size=60), st.sampled_from([1, 1000]))
def test_newlines_are_found_whatever_length_of_line_is_expected(pieces: list[bytes], mean_line: int) -> None:
    data = b"".join(pieces)
    buffer = bytearray(data + b"\n\n\n")  # What is behind the chunk's size is not part of it.
    chunk = ByteChunk(0, buffer, len(data), np.frombuffer(buffer, np.uint8, len(data)))
    expected = [place for place in range(len(data)) if data[place : place + 1] == b"\n"]
    assert find_newlines(chunk, mean_line=mean_line).tolist() == expected


@pytest.mark.parametrize("width", [1, 10, 11, 12, 13, 100, 2000, 9000])
def test_lines_of_any_length_are_found_in_chunks_of_the_usual_size(width: int) -> None:
    data = (b"x" * width + b"\n") * (2_500_000 // (width + 1))
    expected = list(range(0, len(data), width + 1))
    assert scan(data, keep_blank=False, chunk_bytes=2 << 20) == expected


def test_lines_that_become_longer_and_shorter_are_followed() -> None:
    data = b"".join(b"y" * length + b"\n" for length in [3, 30_000, 5, 900, 1, 100_000] * 40)
    data += b"\n \n" * 50_000 + b"z" * 400_000
    for keep_blank in (False, True):
        found = scan(data, keep_blank=keep_blank, chunk_bytes=1 << 16)
        assert found == split(data, keep_blank=keep_blank)
