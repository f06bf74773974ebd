"""Reading some values of a page without decoding the others: numbers and strings, PLAIN or by a dictionary.

Pages of other kinds, and pages that seem to be damaged, are left to pyarrow.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.formats.tables.parquet.encodings import (
    constant,
    decompress_start,
    rle_bitpacked,
    select_values,
    unpacked,
)
from seekable.formats.tables.parquet.pages import DATA, DATA_V2, RLE, leading_header
from seekable.formats.tables.parquet.thrift import ThriftError
from seekable.storage.memory import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.tables.parquet.footer import LeafColumn
    from seekable.formats.tables.parquet.pages import PageHeader
    from seekable.formats.tables.table_format import Int64s

    Bools = NDArray[np.bool_]
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["Dictionary", "PointReader", "point_reader"]

_PLAIN = 0
_PLAIN_DICTIONARY = 2
_INT32, _INT64, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = 1, 2, 4, 5, 6, 7
_WIDTHS = {_INT32: 4, _INT64: 8, _FLOAT: 4, _DOUBLE: 8}
_MOST_STRINGS = 2000
"""The most strings that are skipped one by one; with more, pyarrow decodes all of them faster."""

_SPARE, _SPARE_BYTES = 1.1, 4096
"""The spare, beyond its share of a page, that is decompressed to reach a value: a factor, and bytes."""

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class _Unpacking:
    """Decompresses pages, either to their ends or by a guess up to the last value that is needed."""

    codec: int
    guess: bool

    def until(self, value: int, of: int, data: memoryview, size: int) -> memoryview:
        """Return the first bytes of a page: up to one value of so many, if all are about equally long."""
        if not self.guess:
            return memoryview(unpacked(self.codec, data, size)).cast("B")
        most = int(size * (value + 1) / max(of, 1) * _SPARE) + _SPARE_BYTES
        return memoryview(decompress_start(self.codec, data, size, most)).cast("B")


@dataclass(frozen=True, slots=True)
class PointReader:
    """Reads some values of the pages of one column."""

    kind: pa.DataType
    """The Arrow type of the column."""

    leaf: LeafColumn
    width: int
    """The bytes of a value in the file; 0 for strings."""

    taken: int
    """The bytes of a value in Arrow; for strings, the bytes of an offset."""

    def rows(
        self,
        codec: int,
        header: PageHeader,
        data: memoryview,
        places: Int64s,
        dictionary: Callable[[], Dictionary],
    ) -> pa.Array | None:
        """Return some rows of a page, None where pyarrow has to see to it.

        Args:
            codec: how the chunk is compressed.
            header: the page's header.
            data: the page, header and all.
            places: which of its rows.
            dictionary: returns the chunk's dictionary page.
        """
        if not header.needs_dictionary:
            stepping = not self.width and int(places[-1]) >= _MOST_STRINGS
            if header.encoding != _PLAIN or stepping:
                return None
        for guess in (True, False):
            try:
                return self._rows(_Unpacking(codec, guess), header, data, places, dictionary)
            except (ThriftError, ValueError, IndexError, OSError, struct.error, pa.ArrowException):
                continue
        return None

    def _rows(
        self,
        unpacking: _Unpacking,
        header: PageHeader,
        data: memoryview,
        places: Int64s,
        dictionary: Callable[[], Dictionary],
    ) -> pa.Array | None:
        valid, values, places = self._values(unpacking, header, data[header.length :], places)
        if header.needs_dictionary:
            numbers = select_values(values[1:], values[0], places)
            page = dictionary()
            about = page.header()
            if numbers is None or about.encoding not in (_PLAIN, _PLAIN_DICTIONARY):
                return None
            places, last = numbers, int(numbers.max(initial=0))
            if not self.width and last >= _MOST_STRINGS:
                return None
            values = page.values(last, about, unpacking.until)
        return self._array(values, valid, places)

    def _values(
        self, unpacking: _Unpacking, header: PageHeader, body: memoryview, places: Int64s
    ) -> tuple[Bools | None, memoryview, Int64s]:
        """Return which of the rows have a value, the page's values, and where among them the rows' are."""
        last = int(places[-1])
        if header.kind == DATA:
            body = unpacking.until(last, header.values, body, header.unpacked)
            if not self.leaf.defined:
                return None, body, places
            if header.levels_as[1] != RLE:
                raise ThriftError("levels of an old kind")
            stop = 4 + int.from_bytes(body[:4], "little")
            levels, values = body[4:stop], body[stop:]
        else:
            assert header.kind == DATA_V2
            start, stop = header.levels[0], sum(header.levels)
            levels = body[start:stop]
            values = body[stop:]
            if header.compressed:
                values = unpacking.until(last, header.values, values, header.unpacked - stop)
        if not self.leaf.defined or constant(levels, 1, header.values) == 1:
            return None, values, places
        there = rle_bitpacked(levels, 1, header.values)
        valid = there[places] == 1
        return valid, values, (np.cumsum(there) - 1)[places[valid]]

    def _array(self, values: memoryview, valid: Bools | None, places: Int64s) -> pa.Array | None:
        """Return values as an array, with nulls between them."""
        size = len(places) if valid is None else len(valid)
        bitmap = None
        if valid is not None:
            bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        if self.width:
            made = self._numbers(values, valid, places)
            return pa.Array.from_buffers(self.kind, size, [bitmap, pa.py_buffer(made)])
        strings = _strings(values, places)
        if strings is None:
            return None
        lengths = np.zeros(size + 1, f"<i{self.taken}")
        lengths[1:][slice(None) if valid is None else valid] = [len(string) for string in strings]
        offsets = np.cumsum(lengths, dtype=lengths.dtype)
        joined = pa.py_buffer(b"".join(strings))
        return pa.Array.from_buffers(self.kind, size, [bitmap, pa.py_buffer(offsets), joined])

    def _numbers(self, values: memoryview, valid: Bools | None, places: Int64s) -> Any:
        whole = len(values) // self.width * self.width
        raw = np.frombuffer(values[:whole], np.uint8).reshape(-1, self.width)
        found = raw[places, : self.taken]  # of a small number the low bytes
        if valid is None:
            return np.ascontiguousarray(found)
        spread = np.zeros((len(valid), self.taken), np.uint8)
        spread[valid] = found
        return spread


def _strings(values: memoryview, places: Int64s) -> list[memoryview] | None:
    """Return strings that stand one after the other, each after its length; None if that takes long."""
    if len(places) and int(places.max()) >= _MOST_STRINGS:
        return None
    found: dict[int, memoryview] = {}
    at = number = 0
    read = _LENGTH.unpack_from
    for place in sorted(set(places.tolist())):
        while number < place:
            at += 4 + read(values, at)[0]
            number += 1
        stop = at + 4 + read(values, at)[0]
        if stop > len(values):
            raise ThriftError(f"string {place} ends at byte {stop} of {len(values)}")
        found[place] = values[at + 4 : stop]
    return [found[place] for place in places.tolist()]


def point_reader(kind: pa.DataType, leaf: LeafColumn) -> PointReader | None:
    """Return the reader of some values of a column; None if pyarrow has to decode its pages.

    Args:
        kind: the column's type.
        leaf: its leaf.
    """
    if leaf.repeated or leaf.defined > 1 or len(leaf.path) > 1 or isinstance(kind, pa.BaseExtensionType):
        return None
    kinds = pa.types
    physical = leaf.physical
    same = {
        _INT32: kinds.is_integer(kind) or kinds.is_date32(kind) or kinds.is_time32(kind),
        _INT64: kinds.is_integer(kind) or kinds.is_timestamp(kind) or kinds.is_time64(kind),
        _FLOAT: kinds.is_float32(kind),
        _DOUBLE: kinds.is_float64(kind),
        _FIXED: kind == pa.binary(leaf.width) if leaf.width > 0 else False,
    }
    if physical == _BYTE_ARRAY:
        if kinds.is_string(kind) or kinds.is_binary(kind):
            return PointReader(kind, leaf, 0, 4)
        if kinds.is_large_string(kind) or kinds.is_large_binary(kind):
            return PointReader(kind, leaf, 0, 8)
        return None
    if not same.get(physical, False):
        return None
    width = _WIDTHS.get(physical, leaf.width)
    taken = kind.bit_width // 8
    return PointReader(kind, leaf, width, taken) if taken <= width else None


_KEPT: Cache[memoryview] = Cache(attrgetter("nbytes"), most_bytes=64 << 20)
os.register_at_fork(after_in_child=_KEPT.forget)


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The dictionary page of one chunk of one open file."""

    key: tuple[int, int]
    """The number of the open file in this process, and the first byte of the page."""

    codec: int
    """The codec, as Parquet numbers it."""

    page: memoryview
    """The page, header and all."""

    def header(self) -> PageHeader:
        """Return the header of the page.

        Raises:
            ThriftError: the page begins with no header.
        """
        return leading_header(self.page)

    def values(
        self, last: int, header: PageHeader, until: Callable[[int, int, memoryview, int], memoryview]
    ) -> memoryview:
        """Return the page's bytes without its header, unpacked; up to a value at least.

        Args:
            last: the number of the value.
            header: the page's header.
            until: unpacks a page as far as a value.

        Raises:
            ThriftError, OSError, pyarrow.ArrowException: the page is damaged.
        """
        if (kept := _KEPT.get(self.key)) is not None:
            return kept
        body = self.page[header.length :]
        if not _KEPT.should_keep(self.key, header.unpacked):
            return until(last, header.values, body, header.unpacked)
        whole = memoryview(unpacked(self.codec, body, header.unpacked)).cast("B")
        _KEPT.put(self.key, whole)
        return whole
