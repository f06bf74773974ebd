"""Reading of rows of one column from the pages that hold them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._cached import cached
from seekable._optional import optional
from seekable.formats.tables.parquet import thrift
from seekable.formats.tables.parquet.encodings import packed
from seekable.formats.tables.parquet.pages import (
    DATA,
    DATA_V2,
    RLE,
    PageHeader,
    PageSpan,
    leading_header,
    rows_of_levels,
)
from seekable.formats.tables.parquet.point_read import Dictionary
from seekable.formats.tables.parquet.thrift import ThriftError
from seekable.nodes.columns.decode_column import take_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from seekable.formats.tables.parquet.footer import Chunk, Field, Footer, LeafColumn, ParquetLayout
    from seekable.formats.tables.parquet.pages import PageTable
    from seekable.formats.tables.parquet.point_read import PointReader
    from seekable.formats.tables.table_format import Int64s, RangeSource
else:
    pa = optional("pyarrow", extra="parquet")
    pq = optional("pyarrow.parquet", extra="parquet")

__all__ = ["OneColumnFiles", "Paged"]

_AT_ONCE = 64 << 20
"""The most bytes of pages, decompressed, that are decoded together."""


@dataclass(frozen=True, slots=True)
class _Page:
    header: PageHeader
    data: memoryview


@dataclass(frozen=True, slots=True)
class _PagePiece:
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
    leaf: LeafColumn
    table: PageTable
    file_maker: _OneColumnFile
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
        batch: list[_PagePiece] = []
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
            stop: the row after the last one; not the first one.
        """
        spans = self.table.spans(np.array((start, stop - 1), np.int64))
        first = spans[0].first
        decoded = self._decode([self._piece(first, *self._read(PageSpan(first, spans[-1].last)))])
        return decoded.slice(
            start - int(self.table.first[first]) + self.table.starts_mid_row(first), stop - start
        )

    def row_ranges(self, rows: Int64s) -> list[tuple[int, int]]:
        """Return the bytes that `rows` reads: first bytes, and bytes after the last; a dictionary first."""
        return [*self._dictionary_range(), *map(self._range, self.table.spans(rows))]

    def run_ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the bytes that `run` reads; as ``row_ranges``."""
        spans = self.table.spans(np.array((start, stop - 1), np.int64))
        return [*self._dictionary_range(), self._range(PageSpan(spans[0].first, spans[-1].last))]

    def _dictionary_range(self) -> list[tuple[int, int]]:
        start, size = self.table.dictionary
        return [(start, start + size)] if size else []

    def _range(self, span: PageSpan) -> tuple[int, int]:
        """Return the first byte of some pages, and the byte after the last of them."""
        offset, size = self.table.offset, self.table.size
        return int(offset[span.first]), int(offset[span.last] + size[span.last])

    def _points_of(self, piece: _PagePiece, rows: Int64s) -> pa.Array | None:
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

    def _pieces(self, spans: list[PageSpan]) -> Iterator[_PagePiece]:
        """Yield the pieces that can be decoded alone: pages, or several pages that rows go on over."""
        for span in spans:
            pages, data = self._read(span)
            if self.table.mid_row is not None:
                yield self._piece(span.first, pages, data)
            else:
                for number, page in enumerate(pages, span.first):
                    yield self._piece(number, [page], [page.data])

    def _piece(self, number: int, pages: list[_Page], data: Sequence[memoryview]) -> _PagePiece:
        first, last = self.table.first[number], self.table.first[number + len(pages)]
        return _PagePiece(pages, data, int(first), int(last), self.table.starts_mid_row(number))

    def _read(self, span: PageSpan) -> tuple[list[_Page], Sequence[memoryview]]:
        """Return pages, and their bytes as a `_PagePiece` has them; adjacent pages take one read."""
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

    def _pick(self, batch: Sequence[_PagePiece], rows: Int64s) -> pa.Array:
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

    def _decode(self, batch: Sequence[_PagePiece]) -> pa.ChunkedArray:
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
                parts.append(_row_before(self.leaf, self.chunk.codec))
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


_MAGIC = b"PAR1"
_PLAIN = 0
_STOP = b"\0"

_BOOLEAN, _INT96, _BYTE_ARRAY, _FIXED = 0, 3, 6, 7
_ZERO = {_BOOLEAN: 1, 1: 4, 2: 8, _INT96: 12, 4: 4, 5: 8, _BYTE_ARRAY: 4}
"""The bytes of a PLAIN value of each physical type: false, a number, or an empty string."""


class _OneColumnFile:
    """Makes files of the pages of one column; safe from threads."""

    def __init__(self, field: Field, leaf: int, stored: pa.Field | None, writer: bytes | None) -> None:
        """Encode the part of the footer that is the same in all these files.

        Args:
            field: the column.
            leaf: which of its leaves the pages are of.
            stored: the column as the writer's Arrow schema has it, None if the file has none.
            writer: who the file says it was written by.
        """
        self._leaf = leaf
        self._leaves = field.leaves
        root = thrift.string(4, b"schema") + thrift.short(1, 1) + _STOP
        count = thrift.unsigned(field.count + 1)
        self._head = thrift.short(1, 2) + bytes((0x19, 0xFC)) + count + root + field.elements
        self._tail = _metadata(stored)
        if writer is not None:
            self._tail += thrift.string(1 if stored is not None else 2, writer)
        self._tail += _STOP

    def footer(self, chunk: Chunk, values: int, size: int) -> bytes:
        """Return a file that is a footer alone; its pages lie from byte 0 of another file on.

        Args:
            chunk: what the pages are of.
            values: how many values the pages have.
            size: how many bytes.
        """
        # Other leaves are there, because the schema has them, but are never read.
        columns = [_column(leaf, chunk, values, size) for leaf in self._leaves]
        group = thrift.structs(1, columns) + thrift.number(1, size) + thrift.number(1, values) + _STOP
        body = b"".join((self._head, thrift.number(1, values), thrift.structs(1, [group]), self._tail))
        return b"".join((_MAGIC, body, len(body).to_bytes(4, "little"), _MAGIC))

    def read(self, file: pq.ParquetFile) -> pa.ChunkedArray:
        """Return the column of such a file, without its other leaves."""
        if len(self._leaves) == 1:
            return file.reader.read_column(0)
        return file.reader.read_row_group(0, column_indices=[self._leaf], use_threads=False).column(0)


class OneColumnFiles:
    """The makers of such files for the leaves of one file; safe from threads."""

    def __init__(self, footer: Footer, layout: ParquetLayout) -> None:
        """Read nothing yet.

        Args:
            footer: the footer of the file.
            layout: its columns.
        """
        self._footer = footer
        self._layout = layout
        self._makers: dict[int, _OneColumnFile] = {}

    def of(self, field: Field, leaf: LeafColumn) -> _OneColumnFile:
        """Return the maker of files for a leaf's pages.

        Args:
            field: the column.
            leaf: one of its leaves.
        """
        if leaf.number not in self._makers:
            stored = self._stored.field(field.number) if self._stored is not None else None
            which = field.leaves.index(leaf)
            self._makers[leaf.number] = _OneColumnFile(field, which, stored, self._footer.writer or None)
        return self._makers[leaf.number]

    @cached
    def _stored(self) -> pa.Schema | None:
        """The schema that an Arrow writer left in the footer."""
        stored = (self._footer.metadata.metadata or {}).get(b"ARROW:schema")
        if stored is None:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
        return schema if len(schema) == len(self._layout.fields) else None


def _column(leaf: LeafColumn, chunk: Chunk, values: int, size: int) -> bytes:
    meta = b"".join(
        (
            thrift.short(1, leaf.physical),
            thrift.shorts(1, [_PLAIN, RLE]),
            thrift.strings(1, list(leaf.path)),
            thrift.short(1, chunk.codec),
            thrift.number(1, values),
            thrift.number(1, size),
            thrift.number(1, size),
            thrift.number(2, 0),
            _STOP,
        )
    )
    return thrift.number(2, 0) + thrift.nested(1, meta) + _STOP


def _metadata(stored: pa.Field | None) -> bytes:
    """Return the field of the metadata, which follows the field of the groups."""
    if stored is None:
        return b""
    schema = base64.b64encode(pa.schema([stored]).serialize().to_pybytes())
    return thrift.structs(1, [thrift.string(1, b"ARROW:schema") + thrift.string(1, schema) + _STOP])


def _row_before(leaf: LeafColumn, codec: int) -> bytes:
    """Return a dummy page holding one row, to put before a page that continues a row started earlier."""
    size = leaf.width if leaf.physical == _FIXED else _ZERO[leaf.physical]
    levels = b"".join(
        _level(most, value) for most, value in ((leaf.repeated, 0), (leaf.defined, leaf.defined))
    )
    body = levels + bytes(size)
    small = packed(codec, body)
    about = thrift.short(1, 1) + thrift.short(1, _PLAIN) + thrift.short(1, RLE) + thrift.short(1, RLE) + _STOP
    sizes = thrift.short(1, DATA) + thrift.short(1, len(body)) + thrift.short(1, len(small))
    return sizes + thrift.nested(2, about) + _STOP + small


def _level(most: int, value: int) -> bytes:
    """Return the levels of one value: a run of one."""
    if not most:
        return b""
    run = thrift.unsigned(2) + value.to_bytes((most.bit_length() + 7) // 8, "little")
    return len(run).to_bytes(4, "little") + run
