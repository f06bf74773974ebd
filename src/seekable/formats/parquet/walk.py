"""Page tables made: from the OffsetIndex where a file has one, else from the headers, page after page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.formats.parquet.codecs import CODECS, unpacked
from seekable.formats.parquet.header import DATA, DATA_V2, DICTIONARY, RLE, PageHeader, read_header
from seekable.formats.parquet.levels import hybrid
from seekable.formats.parquet.pages import PageTable
from seekable.formats.parquet.thrift import BadThrift, Cut, read_struct

if TYPE_CHECKING:
    from seekable.formats.parquet.layout import Chunk, Leaf
    from seekable.formats.table import Int64s, RangeSource

__all__ = ["Unpaged", "header_at", "page_table"]

_WINDOW = 1 << 10
"""How much is read for a header at first; one with long statistics takes more."""


class Unpaged(Exception):
    """Where rows begin in the pages cannot be told here."""


def page_table(source: RangeSource, chunk: Chunk, leaf: Leaf, rows: int) -> PageTable:
    """Return where the pages of a chunk lie.

    Args:
        source: the file.
        chunk: where the leaf's values of a group lie.
        leaf: the leaf.
        rows: how many rows the group has.

    Raises:
        BadThrift: the file is damaged there.
        Unpaged: where rows begin in the pages cannot be told.
    """
    if chunk.index is not None and (table := _indexed(source, chunk, rows)) is not None:
        return table
    return _walked(source, chunk, leaf, rows)


def header_at(source: RangeSource, start: int, stop: int) -> PageHeader:
    """Return the header at a place.

    Args:
        source: the file.
        start: where it begins.
        stop: where the chunk ends.

    Raises:
        BadThrift: there is none.
    """
    window = _WINDOW
    while True:
        end = min(start + window, stop)
        try:
            return read_header(bytes(source.range(start, end)), stop - start)
        except Cut:
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
    except (BadThrift, LookupError, TypeError, ValueError, OverflowError):
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
        BadThrift: there is no page between two pages that do not follow each other.
    """
    starts = np.append(chunk.start, offset + size)[:-1]
    for start, stop in zip(starts[starts < offset].tolist(), offset[starts < offset].tolist(), strict=True):
        header = header_at(source, start, stop)
        if header.kind == DICTIONARY:
            return start, header.size
    return chunk.start, 0


def _walked(source: RangeSource, chunk: Chunk, leaf: Leaf, rows: int) -> PageTable:
    at, values, begun = chunk.start, 0, 0
    dictionary = (chunk.start, 0)
    pages: list[tuple[int, int, int, bool]] = []
    while values < chunk.values:
        header = header_at(source, at, chunk.stop)
        if header.kind == DICTIONARY and not dictionary[1]:
            dictionary = (at, header.size)
        elif header.kind in (DATA, DATA_V2):
            more, torn = _rows(source, at, header, chunk, leaf)
            pages.append((begun, at, header.size, torn))
            values += header.values
            begun += more
        at += header.size
    if begun != rows or values != chunk.values:
        raise BadThrift(
            f"the pages from byte {chunk.start} to {at} have {begun} rows and {values} values; the footer "
            f"says {rows} rows and {chunk.values} values"
        )
    first, offset, size = np.array([page[:3] for page in pages], np.int64).reshape(-1, 3).T
    tears = np.array([page[3] for page in pages], np.bool_)
    if tears[:1].any():
        raise BadThrift(f"the first page, at byte {offset[0]}, begins within a row")
    first = np.append(first, rows)
    return PageTable(first, offset.copy(), size.copy(), tears if tears.any() else None, dictionary)


def _rows(source: RangeSource, at: int, header: PageHeader, chunk: Chunk, leaf: Leaf) -> tuple[int, bool]:
    """Return how many rows begin in a page, and whether it begins within one."""
    if not leaf.repeated:
        return header.values, False
    if header.rows is not None:
        return header.rows, False
    if not header.values:
        return 0, False
    if header.levels_as[0] != RLE or (chunk.codec and chunk.codec not in CODECS):
        raise Unpaged
    body = source.range(at + header.length, at + header.size)
    data = memoryview(unpacked(chunk.codec, body, header.unpacked)).cast("B")
    size = int.from_bytes(data[:4], "little")
    levels = hybrid(data[4 : 4 + size], leaf.repeated.bit_length(), header.values)
    return int(np.count_nonzero(levels == 0)), bool(levels[0])
