"""The name of the member at a known place of a tar file, from its headers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import IndexStale
from seekable.formats.tar.header import BLOCK_BYTES, TYPE_AT, long_name, number, size_field
from seekable.formats.tar.pax import pax_fields

if TYPE_CHECKING:
    from seekable.storage.mapped import View

__all__ = ["NAME_BYTES", "member_name"]

NAME_BYTES = 1536
"""The bytes that hold the headers of most members: an extended header, its block, and the header itself."""

_EXTENDED = b"xX"
_MOST_HEADERS = 64


def member_name(view: View, start: int) -> bytes:
    """Return the name of a member, as the walk of the file found it.

    Args:
        view: the bytes of the file, which was walked when it was indexed.
        start: the first byte of the member's first header, an extended one if it has any.

    Raises:
        IndexStale: there is no header of a member; the file was changed after it was indexed.
    """
    blocks, at, given = bytes(view[start : start + NAME_BYTES]), 0, None
    for _ in range(_MOST_HEADERS):
        if len(blocks) < at + BLOCK_BYTES:
            start, at = start + at, 0
            blocks = bytes(view[start : start + NAME_BYTES])
            if len(blocks) < BLOCK_BYTES:
                break
        kind = blocks[at + TYPE_AT : at + TYPE_AT + 1]
        if kind not in b"xXgLK":
            name = long_name(blocks[at : at + BLOCK_BYTES]) if given is None else given
            return name.rstrip(b"/")
        try:
            size = number(size_field(blocks[at : at + BLOCK_BYTES]))
            data = blocks[at + BLOCK_BYTES : at + BLOCK_BYTES + size]
            if len(data) < size:
                data = bytes(view[start + at + BLOCK_BYTES : start + at + BLOCK_BYTES + size])
            if kind == b"L":
                given = data.partition(b"\0")[0] if given is None else given
            elif kind in _EXTENDED and b"path=" in data:
                given = pax_fields(data).path or given
        except ValueError:
            break
        at += BLOCK_BYTES + (size + BLOCK_BYTES - 1 & -BLOCK_BYTES)
    message = f"there is no header of a member at byte {start:,}; the file was changed after it was indexed"
    raise IndexStale(message)
