"""A Parquet file of one column, made in memory from some pages of another file.

pyarrow decodes it as it decodes any file, with all encodings, logical types and levels. Only the footer is
made here: it says what the footer of the original says, for one column and the values of those pages.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from seekable._cached import cached
from seekable._optional import optional
from seekable.formats.tables.parquet import thrift
from seekable.formats.tables.parquet.encodings import packed
from seekable.formats.tables.parquet.pages import DATA, RLE

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from seekable.formats.tables.parquet.footer import Footer
    from seekable.formats.tables.parquet.layout import Chunk, Field, Layout, Leaf
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["OneColumnFile", "OneColumnFiles", "row_before"]

_MAGIC = b"PAR1"
_PLAIN = 0
_STOP = b"\0"

_BOOLEAN, _INT96, _BYTE_ARRAY, _FIXED = 0, 3, 6, 7
_ZERO = {_BOOLEAN: 1, 1: 4, 2: 8, _INT96: 12, 4: 4, 5: 8, _BYTE_ARRAY: 4}
"""The bytes of a PLAIN value of each physical type: false, a number, or an empty string."""


class OneColumnFile:
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

    def __init__(self, footer: Footer, layout: Layout) -> None:
        """Read nothing yet.

        Args:
            footer: the footer of the file.
            layout: its columns.
        """
        self._footer = footer
        self._layout = layout
        self._makers: dict[int, OneColumnFile] = {}

    def of(self, field: Field, leaf: Leaf) -> OneColumnFile:
        """Return the maker of files of the pages of a leaf.

        Args:
            field: the column.
            leaf: one of its leaves.
        """
        if leaf.number not in self._makers:
            stored = self._stored.field(field.number) if self._stored is not None else None
            which = field.leaves.index(leaf)
            self._makers[leaf.number] = OneColumnFile(field, which, stored, self._footer.writer or None)
        return self._makers[leaf.number]

    @cached
    def _stored(self) -> pa.Schema | None:
        """The schema that an Arrow writer left in the footer."""
        stored = (self._footer.metadata.metadata or {}).get(b"ARROW:schema")
        if stored is None:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
        return schema if len(schema) == len(self._layout.fields) else None


def _column(leaf: Leaf, chunk: Chunk, values: int, size: int) -> bytes:
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


def row_before(leaf: Leaf, codec: int) -> bytes:
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
