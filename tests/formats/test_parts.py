"""Parts of a file, cut anywhere, give together what the whole file gives."""

from __future__ import annotations

import itertools
import tempfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.formats.splitter import BOM, split
from tests.formats.test_lines import DATA

from seekable.formats.lines.line_bounds import scan_lines
from seekable.formats.table import format_named
from seekable.index import digest
from seekable.index.digest import PieceHasher
from seekable.index.finder import ByteSource, is_splittable


def scan_parts(data: bytes, cuts: list[int], *, keep_blank: bool, chunk_bytes: int) -> list[list[int]]:
    """Return where the records of each part start."""
    found = []
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        for part in itertools.pairwise([0, *cuts, len(data)]):
            source = ByteSource(file, size=len(data), head=data[:99], part=part, chunk_bytes=chunk_bytes)
            starts: list[int] = scan_lines(source, keep_blank=keep_blank).tolist()
            assert all(part[0] <= start < part[1] for start in starts)
            found.append(starts)
    return found


@given(
    data=DATA, cuts=st.lists(st.integers(0, 400)), keep_blank=st.booleans(), chunk_bytes=st.integers(1, 12)
)
@example(data=BOM + b"a\nb", cuts=[1, 2, 3], keep_blank=False, chunk_bytes=9)
@example(data=b"a\r\nb\r\n", cuts=[2, 5], keep_blank=True, chunk_bytes=9)
@example(data=b"a\n \t \r\nb", cuts=[3, 4, 6], keep_blank=False, chunk_bytes=9)
@example(data=b"a\n" + b" " * 90 + b"x\nb", cuts=[3, 50], keep_blank=False, chunk_bytes=4)
@example(data=b"a\n" + b" " * 90 + b"\nb", cuts=[2, 50], keep_blank=False, chunk_bytes=4)
@example(data=b"a\n   ", cuts=[2, 3], keep_blank=False, chunk_bytes=2)
@example(data=b"x" * 99, cuts=[1, 40, 98], keep_blank=True, chunk_bytes=7)
def test_parts_give_together_what_the_file_gives(
    *, data: bytes, cuts: list[int], keep_blank: bool, chunk_bytes: int
) -> None:
    inside = sorted(min(cut, len(data)) for cut in cuts)
    found = scan_parts(data, inside, keep_blank=keep_blank, chunk_bytes=chunk_bytes)
    assert list(itertools.chain.from_iterable(found)) == split(data, keep_blank=keep_blank)


@given(data=st.binary(max_size=60), piece=st.integers(1, 9), pieces=st.integers(1, 3))
def test_the_pieces_of_parts_are_those_of_the_file(*, data: bytes, piece: int, pieces: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile(buffering=0) as file:
        patch.setattr(digest, "PIECE_BYTES", piece)
        file.write(data)
        whole = PieceHasher()
        whole.update(memoryview(data))
        found = b""
        for start in range(0, len(data), piece * pieces):
            part = start, min(start + piece * pieces, len(data))
            source = ByteSource(file, size=len(data), head=b"", part=part, chunk_bytes=4)
            scan_lines(source, keep_blank=True)
            found += source.piece_digests()
        assert found == whole.digests()


def test_what_is_beyond_a_part_is_neither_hashed_nor_told() -> None:
    told: list[int] = []
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(b"a\n   b\nc\n")
        source = ByteSource(file, size=9, head=b"", part=(0, 4), on_bytes=told.append)
        assert scan_lines(source, keep_blank=False).tolist() == [0, 2]
        expected = PieceHasher()
        expected.update(memoryview(b"a\n  "))
        assert source.piece_digests() == expected.digests()
    assert sum(told) == 4


def test_formats_of_lines_are_scanned_in_parts() -> None:
    for name in ("jsonl", "text"):
        scanner = format_named(name).finder
        assert is_splittable(scanner)
