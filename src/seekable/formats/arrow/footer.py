"""The end of an Arrow file, read and made: which record batches and dictionaries there are, and where.

A stream has none. One that is made for it, and put behind its last byte, makes a file of it in which any
record batch can be read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from seekable.formats.arrow.flatbuffer import Torn, root
from seekable.formats.arrow.messages import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.table import RangeSource

__all__ = ["MAGIC", "blocks_of", "made_footer", "read_footer"]

MAGIC: Final = b"ARROW1"
"""Begins and ends a file; a stream has it nowhere."""

_LENGTH = struct.Struct("<i")
_BLOCK = struct.Struct("<qi4xq")
_COUNT = struct.Struct("<I")

# The slots of Footer in format/File.fbs of Apache Arrow.
_DICTIONARIES, _BATCHES = 2, 3

_HEAD = struct.Struct("<I6H iIIIh2x")
"""The way to the table, its vtable of four slots, and the table: three offsets and the version."""

_TABLE: Final = 16
_TABLE_BYTES: Final = 20
_VERSION_AT, _SCHEMA_AT, _DICTIONARIES_AT, _BATCHES_AT = 16, 4, 8, 12


def read_footer(source: RangeSource) -> bytes:
    """Return the footer of a file.

    Raises:
        Torn: it has none; it was cut off.
    """
    tail_bytes = _LENGTH.size + len(MAGIC)
    if source.size < 2 * len(MAGIC) + tail_bytes:
        message = f"it has {source.size} bytes, too few for a footer"
        raise Torn(message)
    tail = bytes(source.range(source.size - tail_bytes, source.size))
    if not tail.endswith(MAGIC):
        message = f"it does not end with {MAGIC!r}, as a whole one does, but with {tail[-len(MAGIC) :]!r}"
        raise Torn(message)
    (length,) = _LENGTH.unpack_from(tail)
    stop = source.size - tail_bytes
    if not 0 < length <= stop - len(MAGIC):
        message = f"its footer is said to have {length} bytes, and {stop} are before its end"
        raise Torn(message)
    return bytes(source.range(stop - length, stop))


def blocks_of(footer: bytes, *, size: int) -> tuple[list[Block], list[Block]]:
    """Return where a file's dictionaries and its record batches lie.

    Raises:
        Torn: it is no footer, or one of another file.
    """
    table = root(footer)
    found = []
    for slot in (_DICTIONARIES, _BATCHES):
        blocks = [Block(*parts) for parts in table.structs(slot, _BLOCK)]
        for block in blocks:
            if min(block.offset, block.head_bytes, block.body_bytes) < 0 or block.end > size:
                message = f"the footer speaks of {block}, and the file has {size} bytes"
                raise Torn(message)
        found.append(blocks)
    return found[0], found[1]


def made_footer(
    schema: bytes, *, at: int, version: int, dictionaries: Sequence[Block], batches: Sequence[Block]
) -> bytes:
    """Return what ends a file.

    Args:
        schema: the head of its schema's message.
        at: where in that the table of the schema begins.
        version: of Arrow's metadata.
        dictionaries: where its dictionaries lie.
        batches: where its record batches lie.
    """
    vectors = b""
    places = []
    for blocks in (dictionaries, batches):
        # Blocks are aligned to 8 bytes, and the count stands right before them.
        vectors += bytes(-(_TABLE + _TABLE_BYTES + len(vectors) + _COUNT.size) % 8)
        places.append(_TABLE + _TABLE_BYTES + len(vectors))
        vectors += _COUNT.pack(len(blocks))
        vectors += b"".join(_BLOCK.pack(block.offset, block.head_bytes, block.body_bytes) for block in blocks)
    # The table of the schema stays within its own message, where what it points at is.
    schema_at = _TABLE + _TABLE_BYTES + len(vectors) + at
    head = _HEAD.pack(
        *(_TABLE, 12, _TABLE_BYTES, _VERSION_AT, _SCHEMA_AT, _DICTIONARIES_AT, _BATCHES_AT),
        *(_TABLE - _COUNT.size, schema_at - _TABLE - _SCHEMA_AT),
        *(place - _TABLE - slot for place, slot in zip(places, (_DICTIONARIES_AT, _BATCHES_AT), strict=True)),
        version,
    )
    footer = head + vectors + schema
    return footer + _LENGTH.pack(len(footer)) + MAGIC
