"""Page tables as bytes, to be kept from one process to the next.

Little-endian: a magic with the version, a digest of all that follows, a digest of the footer that the tables
are of, how many tables there are, one line a table (chunk, pages, torn or not, the dictionary's place), and
the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.formats.parquet.pages import PageTable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["as_bytes", "from_bytes"]

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
        line[:] = (chunk, len(table.size), table.torn is not None, *table.dictionary)
        arrays = [table.first, table.offset, table.size]
        if table.torn is not None:
            arrays.append(table.torn.astype(np.int64))
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
    for chunk, pages, torn, start, size in lines:
        first, at = numbers[at : at + pages + 1], at + pages + 1
        offset, at = numbers[at : at + pages], at + pages
        sizes, at = numbers[at : at + pages], at + pages
        begins = None
        if torn:
            begins, at = numbers[at : at + pages].astype(np.bool_), at + pages
        tables[chunk] = PageTable(first, offset, sizes, begins, (start, size))
    return tables
