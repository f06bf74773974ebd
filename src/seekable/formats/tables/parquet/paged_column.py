"""Reading of rows of one column from the pages that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._optional import optional
from seekable.formats.tables.parquet.dictionaries import Dictionary
from seekable.formats.tables.parquet.one_column_file import row_before
from seekable.formats.tables.parquet.pages import DATA_V2, PageHeader, Span, leading_header, rows_of_levels
from seekable.formats.tables.parquet.thrift import ThriftError
from seekable.nodes.columns.decode_column import take_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from seekable.formats.tables.parquet.layout import Chunk, Leaf
    from seekable.formats.tables.parquet.one_column_file import OneColumnFile
    from seekable.formats.tables.parquet.pages import PageTable
    from seekable.formats.tables.parquet.point_read import PointReader
    from seekable.formats.tables.table_format import Int64s, RangeSource
else:
    pa = optional("pyarrow", extra="parquet")
    pq = optional("pyarrow.parquet", extra="parquet")

__all__ = ["Paged"]

_AT_ONCE = 64 << 20
"""The most bytes of pages, decompressed, that are decoded together."""


@dataclass(frozen=True, slots=True)
class _Page:
    header: PageHeader
    data: memoryview


@dataclass(frozen=True, slots=True)
class _Piece:
    """Pages that begin with a row, or are given one to begin with, and hold their last row whole."""

    pages: list[_Page]
    data: Sequence[memoryview]
    """The bytes of the pages, in one piece where they are adjacent in the file."""
    start: int
    stop: int
    starts_mid_row: bool

    @property
    def rows(self) -> int:
        """The number of rows that are decoded."""
        return self.stop - self.start + self.starts_mid_row

    @property
    def weight(self) -> int:
        """The number of bytes of its pages, decompressed."""
        return sum(page.header.unpacked for page in self.pages)


@dataclass(frozen=True, slots=True)
class Paged:
    """One leaf of one group, read by its pages."""

    source: RangeSource
    chunk: Chunk
    leaf: Leaf
    table: PageTable
    file_maker: OneColumnFile
    points: PointReader | None
    opened: int
    """The number of the open file, which no other one of this process has."""

    def rows(self, rows: Int64s) -> Iterator[pa.Array]:
        """Yield some rows of the column, in pieces.

        Args:
            rows: within the group, ascending and distinct; at least one.

        Raises:
            ThriftError, OSError, pyarrow.ArrowException: the file is damaged there.
        """
        batch: list[_Piece] = []
        weight = 0
        for piece in self._pieces(self.table.spans(rows)):
            if (some := self._points_of(piece, rows)) is not None:
                if batch:
                    yield self._pick(batch, rows)
                    batch, weight = [], 0
                yield some
                continue
            batch.append(piece)
            weight += piece.weight
            if weight > _AT_ONCE:
                yield self._pick(batch, rows)
                batch, weight = [], 0
        if batch:
            yield self._pick(batch, rows)

    def run(self, start: int, stop: int) -> pa.ChunkedArray:
        """Return consecutive rows of the column; as ``rows``.

        Args:
            start: the first row within the group.
            stop: the row behind the last one; not the first one.
        """
        spans = self.table.spans(np.array((start, stop - 1), np.int64))
        first = spans[0].first
        decoded = self._decode([self._piece(first, *self._read(Span(first, spans[-1].last)))])
        return decoded.slice(
            start - int(self.table.first[first]) + self.table.starts_mid_row(first), stop - start
        )

    def row_ranges(self, rows: Int64s) -> list[tuple[int, int]]:
        """Return the bytes that `rows` reads: first bytes, and bytes behind the last; a dictionary first."""
        return [*self._dictionary_range(), *map(self._range, self.table.spans(rows))]

    def run_ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the bytes that `run` reads; as ``row_ranges``."""
        spans = self.table.spans(np.array((start, stop - 1), np.int64))
        return [*self._dictionary_range(), self._range(Span(spans[0].first, spans[-1].last))]

    def _dictionary_range(self) -> list[tuple[int, int]]:
        start, size = self.table.dictionary
        return [(start, start + size)] if size else []

    def _range(self, span: Span) -> tuple[int, int]:
        """Return the first byte of some pages, and the byte behind the last of them."""
        offset, size = self.table.offset, self.table.size
        return int(offset[span.first]), int(offset[span.last] + size[span.last])

    def _points_of(self, piece: _Piece, rows: Int64s) -> pa.Array | None:
        """Return those of some rows that a page has, None where pyarrow has to decode it."""
        if self.points is None:
            return None
        low, high = np.searchsorted(rows, (piece.start, piece.stop))
        page = piece.pages[0]
        places = rows[low:high] - piece.start
        return self.points.rows(self.chunk.codec, page.header, page.data, places, self._dictionary)

    def _dictionary(self) -> Dictionary:
        """Return the dictionary page of the chunk."""
        start, size = self.table.dictionary
        if not size:
            raise ThriftError(f"the chunk at byte {self.chunk.start} has no dictionary, and a page needs one")
        return Dictionary((self.opened, start), self.chunk.codec, self.source.range(start, start + size))

    def _pieces(self, spans: list[Span]) -> Iterator[_Piece]:
        """Yield the pieces that can be decoded alone: pages, or several pages that rows go on over."""
        for span in spans:
            pages, data = self._read(span)
            if self.table.mid_row is not None:
                yield self._piece(span.first, pages, data)
            else:
                for number, page in enumerate(pages, span.first):
                    yield self._piece(number, [page], [page.data])

    def _piece(self, number: int, pages: list[_Page], data: Sequence[memoryview]) -> _Piece:
        first, last = self.table.first[number], self.table.first[number + len(pages)]
        return _Piece(pages, data, int(first), int(last), self.table.starts_mid_row(number))

    def _read(self, span: Span) -> tuple[list[_Page], Sequence[memoryview]]:
        """Return pages, and their bytes as a `_Piece` has them; adjacent pages take one read."""
        offset, size, first = self.table.offset, self.table.size, self.table.first
        start, stop = self._range(span)
        data = self.source.range(start, stop)
        pages = []
        for number in range(span.first, span.last + 1):
            at = int(offset[number]) - start
            page = data[at : at + int(size[number])]
            header = leading_header(page)
            rows = self._rows_begun(header, page)
            expected = int(first[number + 1] - first[number])
            if rows is not None and rows != expected:
                raise ThriftError(f"the page at byte {start + at} has {rows} rows; expected {expected}")
            pages.append(_Page(header, page))
        parts = [page.data for page in pages]
        return pages, [data] if sum(map(len, parts)) == len(data) else parts

    def _rows_begun(self, header: PageHeader, page: memoryview) -> int | None:
        """Return how many rows begin in a page, None where only decoding it tells."""
        if not self.leaf.repeated:
            return header.values
        if header.kind != DATA_V2:
            return None
        levels = page[header.length : header.length + header.levels[0]]
        return rows_of_levels(levels, header.values, self.leaf)[0]

    def _pick(self, batch: Sequence[_Piece], rows: Int64s) -> pa.Array:
        """Return the rows of a batch that are among some rows."""
        low, high = np.searchsorted(rows, (batch[0].start, batch[-1].stop))
        wanted = rows[low:high]
        starts = np.array([piece.start for piece in batch], np.int64)
        sizes = np.array([piece.rows for piece in batch], np.int64)
        starts_mid_row = np.array([piece.starts_mid_row for piece in batch], np.int64)
        # Where row 0 of the group would be, were all of a piece's rows before it there.
        shift = np.cumsum(sizes) - sizes + starts_mid_row - starts
        places = wanted + shift[np.searchsorted(starts, wanted, side="right") - 1]
        return take_array(self._decode(batch), places)

    def _decode(self, batch: Sequence[_Piece]) -> pa.ChunkedArray:
        """Return all rows of a batch; before a piece that begins within a row there is one to leave out."""
        parts: list[bytes | memoryview] = []
        values = 0
        if any(page.header.needs_dictionary for piece in batch for page in piece.pages):
            dictionary = self._dictionary()
            dictionary.header()  # compares the checksum
            parts.append(dictionary.page)
        for piece in batch:
            if piece.starts_mid_row:
                if self.leaf.width > self.chunk.unpacked:
                    raise ThriftError(
                        f"values of {self.leaf.width} bytes in a chunk of {self.chunk.unpacked}"
                    )
                parts.append(row_before(self.leaf, self.chunk.codec))
                values += 1
            parts.extend(piece.data)
            values += sum(page.header.values for page in piece.pages)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        footer = pq.read_metadata(pa.BufferReader(self.file_maker.footer(self.chunk, values, len(data))))
        file = pq.ParquetFile(pa.BufferReader(data), metadata=footer, pre_buffer=False)
        column = self.file_maker.read(file)
        expected = sum(piece.rows for piece in batch)
        if len(column) != expected:
            raise ThriftError(f"pages of {len(column)} rows; expected {expected}")
        return column
