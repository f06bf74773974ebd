"""The floor of single rows of a Parquet file: the work that every reader has to do."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tables.parquet.pages import DICTIONARY, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Floor"]

_HEADER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Page:
    """One page, behind its header."""

    start: int
    stop: int
    unpacked: int
    """The number of bytes of the page, decompressed."""
    values: int
    is_dictionary: bool
    needs_dictionary: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of a column in a group."""

    pages: tuple[Page, ...]
    first_rows: tuple[int, ...]
    dictionary: Page | None
    is_text: bool


@dataclass(frozen=True, slots=True)
class Floor:
    """Decompresses the one page of each column that has a row, and its dictionary, and picks the value.

    Pages are known beforehand. Of numbers nothing is decoded but where the value lies; texts are walked to.
    """

    data: memoryview
    group_rows: int
    chunks: Mapping[tuple[int, int], Chunk]
    columns: int
    codec: Any

    @classmethod
    def of(cls, path: str) -> Floor:
        """Find the pages of a file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        metadata = pq.read_metadata(path)
        with open(path, "rb") as file:
            data = memoryview(file.read())
        groups, columns = metadata.num_row_groups, metadata.num_columns
        chunks = {
            (group, column): _chunk(data, metadata.row_group(group).column(column))
            for group in range(groups)
            for column in range(columns)
        }
        codec = pa.Codec(metadata.row_group(0).column(0).compression.lower())
        return cls(data, metadata.row_group(0).num_rows, chunks, columns, codec)

    def rows(self, rows: Sequence[int]) -> None:
        """Read some rows."""
        for row in rows:
            group, within = divmod(row, self.group_rows)
            for column in range(self.columns):
                self._value(self.chunks[group, column], within)

    def _value(self, chunk: Chunk, row: int) -> Any:
        at = int(np.searchsorted(chunk.first_rows, row, side="right")) - 1
        page = chunk.pages[at]
        data = self._unpacked(page)
        if page.needs_dictionary and chunk.dictionary is not None:
            return self._unpacked(chunk.dictionary)
        return _text(data, row - chunk.first_rows[at]) if chunk.is_text else data

    def _unpacked(self, page: Page) -> Any:
        return self.codec.decompress(self.data[page.start : page.stop], page.unpacked)


def _chunk(data: memoryview, chunk: Any) -> Chunk:
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    pages = list(_pages(data, start, start + chunk.total_compressed_size))
    dictionary = next((page for page in pages if page.is_dictionary), None)
    rest = tuple(page for page in pages if not page.is_dictionary)
    firsts = tuple(accumulate((page.values for page in rest[:-1]), initial=0))
    return Chunk(rest, firsts, dictionary, chunk.physical_type == "BYTE_ARRAY")


def _pages(data: memoryview, at: int, stop: int) -> Iterator[Page]:
    while at < stop:
        header = read_header(bytes(data[at : min(stop, at + _HEADER_BYTES)]), stop - at)
        start = at + header.length
        at = start + header.packed
        is_dictionary = header.kind == DICTIONARY
        yield Page(start, at, header.unpacked, header.values, is_dictionary, header.needs_dictionary)


def _text(page: Any, row: int) -> bytes:
    """Return the text of a row of a page of plain values, behind the levels that the page begins with."""
    view = memoryview(page)
    at = 4 + struct.unpack_from("<I", view)[0]
    for _ in range(row):
        at += 4 + struct.unpack_from("<I", view, at)[0]
    size = struct.unpack_from("<I", view, at)[0]
    return bytes(view[at + 4 : at + 4 + size])
