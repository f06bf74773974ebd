"""The page tables of one open file: loaded from where they are kept, and made where they are not kept yet.

Kept tables are little-endian bytes: a magic with the version, a digest of all that follows, a digest of the
footer that the tables are of, the number of tables, one line a table (number of the chunk, number of pages,
1 if pages can start within a row, start and size of the dictionary page), and the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.formats.tables.parquet.pages import NoRowStarts, PageTable, page_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.formats.tables.parquet.layout import Chunk, Leaf
    from seekable.formats.tables.table_format import PageStore, RangeSource


__all__ = ["PageTables", "as_bytes", "from_bytes"]


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

    def table(self, group: int, chunk: Chunk, leaf: Leaf, rows: int) -> PageTable | None:
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

    def has(self, group: int, leaf: Leaf) -> bool:
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
