"""The pages of a column chunk: their headers, where they lie, and which rows begin in each.

A page table is made from the OffsetIndex where a file has one, and otherwise from the headers, page by page.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable.formats.tables.parquet.encodings import CODECS, rle_bitpacked, unpacked
from seekable.formats.tables.parquet.thrift import ThriftError, Truncated, read_struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from seekable.formats.tables.parquet.footer import Chunk, LeafColumn
    from seekable.formats.tables.table_format import Int64s, PageStore, RangeSource

    Bools = NDArray[np.bool_]

__all__ = [
    "DATA",
    "DATA_V2",
    "DICTIONARY",
    "RLE",
    "NoRowStarts",
    "PageHeader",
    "PageSpan",
    "PageTable",
    "PageTables",
    "as_bytes",
    "from_bytes",
    "header_at",
    "leading_header",
    "page_table",
    "read_header",
    "rows_of_levels",
]

DATA, DICTIONARY, DATA_V2 = 0, 2, 3

RLE = 3

_WINDOW = 512

_DICTIONARY_ENCODINGS = (2, 8)


@dataclass(frozen=True, slots=True)
class PageHeader:
    """The header of a page, which stands before its bytes."""

    kind: int
    """`DATA`, `DICTIONARY`, `DATA_V2`, or a number that readers are to pass over."""

    length: int
    """The bytes of the header itself."""

    packed: int
    """The bytes of the page after the header."""

    unpacked: int
    """The bytes of the page before compression."""

    values: int
    """The number of values of the page, with nulls."""

    encoding: int
    """The encoding of the values, as Parquet numbers it."""

    levels: tuple[int, int]
    """Of `DATA_V2`: how many bytes the repetition levels take, and the definition levels."""

    compressed: bool
    """Of `DATA_V2`: whether the values are compressed."""

    crc: int | None = None
    """The CRC-32 of the bytes that follow, where the writer has left it."""

    levels_as: tuple[int, int] = (RLE, RLE)
    """The encodings of repetition and definition levels."""

    @property
    def needs_dictionary(self) -> bool:
        """True if its values are indices into the dictionary page."""
        return self.encoding in _DICTIONARY_ENCODINGS and self.kind in (DATA, DATA_V2)

    @property
    def size(self) -> int:
        """The bytes of header and page together."""
        return self.length + self.packed


def leading_header(data: memoryview) -> PageHeader:
    """Return the header that a page's bytes begin with.

    Raises:
        ThriftError: it is not a header, or one of another page.
    """
    window = _WINDOW
    while True:
        try:
            header = read_header(bytes(data[:window]), len(data))
        except Truncated:
            if window >= len(data):
                raise
            window *= 8
        else:
            if header.size != len(data):
                raise ThriftError(f"a page of {len(data)} bytes whose header says {header.size}")
            if header.crc is not None and header.crc != zlib.crc32(data[header.length :]):
                raise ThriftError(f"a page of {len(data)} bytes that are not those of its checksum")
            return header


def read_header(data: bytes, most: int) -> PageHeader:
    """Return the header at the start of some bytes.

    Args:
        data: the bytes.
        most: how many bytes header and page can have at most.

    Raises:
        Truncated: the bytes end before the header does.
        ThriftError: it is not a header, or says what cannot be.
    """
    fields, length = read_struct(data)
    header = _header(fields, length, most)
    crc = fields.get(4)
    return replace(header, crc=crc % (1 << 32)) if isinstance(crc, int) else header


def _header(fields: dict[int, Any], length: int, most: int) -> PageHeader:
    kind, unpacked, packed = fields.get(1), fields.get(2), fields.get(3)
    if not (isinstance(kind, int) and isinstance(unpacked, int) and isinstance(packed, int)):
        raise ThriftError("a page header lacks its kind or its sizes")
    if unpacked < 0 or not 0 <= packed <= most - length:
        raise ThriftError(
            f"a page header of {length} bytes says that {packed} bytes follow ({unpacked} unpacked), "
            f"and there are {most - length}"
        )
    about = fields.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(kind, 0), {})
    if kind not in (DATA, DICTIONARY, DATA_V2):
        return PageHeader(kind, length, packed, unpacked, 0, -1, (0, 0), compressed=False)
    values = _number(about, 1, kind)
    encoding = _number(about, 4 if kind == DATA_V2 else 2, kind)
    if kind != DATA_V2:
        ways = about.get(4, RLE), about.get(3, RLE)
        return PageHeader(
            kind, length, packed, unpacked, values, encoding, (0, 0), compressed=True, levels_as=ways
        )
    levels = _number(about, 6, kind), _number(about, 5, kind)
    if sum(levels) > min(packed, unpacked):
        raise ThriftError(f"a page of {packed} bytes ({unpacked} unpacked) has levels of {levels} bytes")
    compressed = about.get(7, True) is not False
    return PageHeader(kind, length, packed, unpacked, values, encoding, levels, compressed=compressed)


def _number(about: Any, field: int, kind: int) -> int:
    value = about.get(field) if isinstance(about, dict) else None
    if not isinstance(value, int) or value < 0:
        raise ThriftError(f"the header of a page of kind {kind} says {value} in field {field}")
    return value


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Pages that follow each other, and are decoded together."""

    first: int
    """The number of the first page."""

    last: int
    """The number of the last page."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """The pages of one leaf in one group, in their order."""

    first: Int64s
    """The number of rows that begin before each page, and at the end the number of rows of the group."""

    offset: Int64s
    """The first byte of the header of each page."""

    size: Int64s
    """The bytes of each page with its header."""

    mid_row: Bools | None
    """For each page, True if it starts within a row; None if no page does."""

    dictionary: tuple[int, int]
    """The first byte of the dictionary page, and its bytes with the header; 0 bytes if there is none."""

    def spans(self, rows: Int64s) -> list[PageSpan]:
        """Return the pages that hold some rows.

        Args:
            rows: within the group, ascending.
        """
        begins = np.searchsorted(self.first, rows, side="right") - 1
        if self.mid_row is None:
            if len(begins) == 1:
                return [PageSpan(int(begins[0]), int(begins[0]))]
            pages = np.unique(begins)
            breaks = np.flatnonzero(np.diff(pages) > 1)
            return _spans(pages, breaks)
        ends = np.searchsorted(self.first[:-1], rows + 1, side="right") - 1
        whole = (self.first[ends] == rows + 1) & ~self.mid_row[ends]
        ends -= whole  # the row behind begins a page: that page is not needed
        wanted = np.zeros(len(self.size) + 1, np.int64)
        np.add.at(wanted, begins, 1)
        np.add.at(wanted, ends + 1, -1)
        pages = np.flatnonzero(np.cumsum(wanted[:-1]))
        return _spans(pages, np.flatnonzero(np.diff(pages) > 1))

    def starts_mid_row(self, page: int) -> bool:
        """Return whether a page starts within a row."""
        return self.mid_row is not None and bool(self.mid_row[page])


def _spans(pages: Int64s, breaks: Int64s) -> list[PageSpan]:
    firsts = [0, *(breaks + 1).tolist()]
    lasts = [*breaks.tolist(), len(pages) - 1]
    return [PageSpan(int(pages[first]), int(pages[last])) for first, last in zip(firsts, lasts, strict=True)]


_FIRST_WINDOW = 1 << 10
"""The bytes that are read first for a header; one with long statistics takes more."""


class NoRowStarts(Exception):
    """The pages do not say where rows begin."""


def page_table(source: RangeSource, chunk: Chunk, leaf: LeafColumn, rows: int) -> PageTable:
    """Return the page table of a chunk.

    Args:
        source: the file.
        chunk: where the leaf's values of a group lie.
        leaf: the leaf.
        rows: how many rows the group has.

    Raises:
        ThriftError: the file is damaged there.
        NoRowStarts: the first rows of the pages cannot be found.
    """
    if chunk.index is not None and (table := _indexed(source, chunk, rows)) is not None:
        return table
    return _walked(source, chunk, leaf, rows)


def index_of(chunk: Chunk) -> list[tuple[int, int]]:
    """Return the bytes that `page_table` reads: first bytes, and bytes after the last.

    Without an index each page has to be found after the one before, so these are the bytes of the chunk.
    With one, the header of a dictionary has to be read too.

    Args:
        chunk: where the leaf's values of a group lie.
    """
    if chunk.index is None:
        return [(chunk.start, chunk.stop)]
    start, length = chunk.index
    heads = [(chunk.start, min(chunk.start + _FIRST_WINDOW, chunk.stop))] if chunk.has_dictionary else []
    return [(start, start + length), *heads]


def header_at(source: RangeSource, start: int, stop: int) -> PageHeader:
    """Return the header at a place.

    Args:
        source: the file.
        start: where it begins.
        stop: where the chunk ends.

    Raises:
        ThriftError: there is none.
    """
    window = _FIRST_WINDOW
    while True:
        end = min(start + window, stop)
        try:
            return read_header(bytes(source.range(start, end)), stop - start)
        except Truncated:
            if end == stop:
                raise
            window *= 8


def _indexed(source: RangeSource, chunk: Chunk, rows: int) -> PageTable | None:
    """Return the table that the OffsetIndex has, None if it is not one of this chunk."""
    assert chunk.index is not None
    start, length = chunk.index
    if start + length > source.size:
        return None
    try:
        found, _ = read_struct(bytes(source.range(start, start + length)))
        places = [(page[3], page[1], page[2]) for page in found[1]]
        table = np.array(places, np.int64).reshape(-1, 3)
    except (ThriftError, LookupError, TypeError, ValueError, OverflowError):
        return None
    first, offset, size = (np.ascontiguousarray(column) for column in table.T)
    first = np.append(first, rows)
    inside = len(offset) and offset[0] >= chunk.start and bool((offset + size <= chunk.stop).all())
    ordered = (np.diff(first) >= 0).all() and (offset[1:] >= offset[:-1] + size[:-1]).all()
    if not (inside and ordered and first[0] == 0 and (size > 0).all()):
        return None
    return PageTable(first, offset, size, None, _dictionary(source, chunk, offset, size))


def _dictionary(source: RangeSource, chunk: Chunk, offset: Int64s, size: Int64s) -> tuple[int, int]:
    """Return where the dictionary page begins and its size, 0 if there is none: it lies between other pages.

    Args:
        source: the file.
        chunk: where the pages are.
        offset: where each data page begins, ascending.
        size: how many bytes each has.

    Raises:
        ThriftError: there is no page between two pages that do not follow each other.
    """
    starts = np.append(chunk.start, offset + size)[:-1]
    for start, stop in zip(starts[starts < offset].tolist(), offset[starts < offset].tolist(), strict=True):
        header = header_at(source, start, stop)
        if header.kind == DICTIONARY:
            return start, header.size
    return chunk.start, 0


def _walked(source: RangeSource, chunk: Chunk, leaf: LeafColumn, rows: int) -> PageTable:
    at, values, begun = chunk.start, 0, 0
    dictionary = (chunk.start, 0)
    pages: list[tuple[int, int, int, bool]] = []
    while values < chunk.values:
        header = header_at(source, at, chunk.stop)
        if header.kind == DICTIONARY and not dictionary[1]:
            dictionary = (at, header.size)
        elif header.kind in (DATA, DATA_V2):
            more, starts_mid_row = _rows_begun(source, at, header, chunk, leaf)
            pages.append((begun, at, header.size, starts_mid_row))
            values += header.values
            begun += more
        at += header.size
    if begun != rows or values != chunk.values:
        raise ThriftError(
            f"the pages from byte {chunk.start} to {at} have {begun} rows and {values} values; the footer "
            f"says {rows} rows and {chunk.values} values"
        )
    first, offset, size = np.array([page[:3] for page in pages], np.int64).reshape(-1, 3).T
    tears = np.array([page[3] for page in pages], np.bool_)
    if tears[:1].any():
        raise ThriftError(f"the first page, at byte {offset[0]}, begins within a row")
    first = np.append(first, rows)
    return PageTable(first, offset.copy(), size.copy(), tears if tears.any() else None, dictionary)


def _rows_begun(
    source: RangeSource, at: int, header: PageHeader, chunk: Chunk, leaf: LeafColumn
) -> tuple[int, bool]:
    """Return how many rows begin in a page, and whether it begins within one.

    The levels are counted where there are any: the header of a page of version 2 has a number of rows, but
    pyarrow before 12 wrote the number of values there (apache/arrow#34086).
    """
    if not leaf.repeated:
        return header.values, False
    if not header.values:
        return 0, False
    if header.kind == DATA_V2:
        start = at + header.length
        return rows_of_levels(source.range(start, start + header.levels[0]), header.values, leaf)
    if header.levels_as[0] != RLE or (chunk.codec and chunk.codec not in CODECS):
        raise NoRowStarts
    page = source.range(at, at + header.size)
    leading_header(page)  # compares the checksum, for all other pages are counted from this one on
    data = memoryview(unpacked(chunk.codec, page[header.length :], header.unpacked)).cast("B")
    size = int.from_bytes(data[:4], "little")
    return rows_of_levels(data[4 : 4 + size], header.values, leaf)


def rows_of_levels(levels: memoryview, values: int, leaf: LeafColumn) -> tuple[int, bool]:
    """Return how many rows begin in a page, by its repetition levels, and whether it begins within one.

    Args:
        levels: the levels, as runs.
        values: how many there are.
        leaf: what the page is of.

    Raises:
        ThriftError: there are fewer.
    """
    found = rle_bitpacked(levels, leaf.repeated.bit_length(), values)
    return int(np.count_nonzero(found == 0)), bool(found[:1].any())


_MAGIC = b"SKPAGES1"

_DIGEST = 16

_HEAD = len(_MAGIC) + 2 * _DIGEST

_LINE = 5

Tables = dict[int, PageTable]


def as_bytes(footer: bytes, tables: Mapping[int, PageTable]) -> bytes:
    """Return page tables as bytes.

    Args:
        footer: that of the file.
        tables: by the number of the chunk: leaves of the first group, leaves of the second, and so on.
    """
    lines = np.zeros((len(tables), _LINE), "<i8")
    parts: list[bytes] = []
    for line, (chunk, table) in zip(lines, sorted(tables.items()), strict=True):
        line[:] = (chunk, len(table.size), table.mid_row is not None, *table.dictionary)
        arrays = [table.first, table.offset, table.size]
        if table.mid_row is not None:
            arrays.append(table.mid_row.astype(np.int64))
        parts.extend(array.astype("<i8").tobytes() for array in arrays)
    body = b"".join(
        (xxhash.xxh3_128_digest(footer), len(tables).to_bytes(8, "little"), lines.tobytes(), *parts)
    )
    return _MAGIC + xxhash.xxh3_128_digest(body) + body


def from_bytes(footer: bytes, data: bytes) -> Tables | None:
    """Return page tables; None if the bytes are damaged, of another version or of another file.

    Args:
        footer: that of the file.
        data: what `as_bytes` returned once.
    """
    body = memoryview(data)[len(_MAGIC) + _DIGEST :]
    if (
        data[: len(_MAGIC)] != _MAGIC
        or data[len(_MAGIC) : len(_MAGIC) + _DIGEST] != xxhash.xxh3_128_digest(body)
        or body[:_DIGEST] != xxhash.xxh3_128_digest(footer)
    ):
        return None
    numbers = np.frombuffer(body[_DIGEST:], "<i8")
    count = int(numbers[0])
    lines = numbers[1 : 1 + count * _LINE].reshape(count, _LINE).tolist()
    at = 1 + count * _LINE
    tables: Tables = {}
    for chunk, pages, starts_mid_row, start, size in lines:
        first, at = numbers[at : at + pages + 1], at + pages + 1
        offset, at = numbers[at : at + pages], at + pages
        sizes, at = numbers[at : at + pages], at + pages
        begins = None
        if starts_mid_row:
            begins, at = numbers[at : at + pages].astype(np.bool_), at + pages
        tables[chunk] = PageTable(first, offset, sizes, begins, (start, size))
    return tables


class PageTables:
    """Page tables by chunk; safe from threads."""

    def __init__(
        self, source: RangeSource, footer: bytes, shape: tuple[int, int], store: PageStore | None
    ) -> None:
        """Look at what is kept.

        Args:
            source: the file.
            footer: its footer.
            shape: how many groups it has, and how many leaves.
            store: where tables are kept; None keeps none.
        """
        self._source = source
        self._footer = footer
        self._leaves = shape[1]
        self._chunks = shape[0] * shape[1]
        self._store = store
        kept = store.load() if store is not None else None
        self._tables = (from_bytes(footer, kept) if kept is not None else None) or {}
        self._unpaged: set[int] = set()
        self._saved = len(self._tables)

    def table(self, group: int, chunk: Chunk, leaf: LeafColumn, rows: int) -> PageTable | None:
        """Return the table of a chunk, None if it can have none.

        Raises:
            ThriftError, OSError, pyarrow.ArrowException: the file is damaged there.
        """
        number = group * self._leaves + leaf.number
        if (known := self._tables.get(number)) is not None or number in self._unpaged:
            return known
        try:
            made = page_table(self._source, chunk, leaf, rows)
        except NoRowStarts:
            self._unpaged.add(number)
            return None
        self._tables[number] = made
        # Twice as many each time: what is written is then not much more than what there is in the end.
        have = len(self._tables)
        if have >= 2 * self._saved or have == self._chunks:
            self.save()
        return made

    def has(self, group: int, leaf: LeafColumn) -> bool:
        """Return True if ``table`` reads nothing of the file for a leaf of a group."""
        number = group * self._leaves + leaf.number
        return number in self._tables or number in self._unpaged

    def save(self) -> None:
        """Save the page tables that were made."""
        if self._store is not None:
            self._saved = len(self._tables)
            self._store.save(self.as_bytes())

    def as_bytes(self) -> bytes:
        """Return all that there is."""
        return as_bytes(self._footer, dict(self._tables))
