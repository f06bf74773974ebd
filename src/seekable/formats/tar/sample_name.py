"""The name of the member at a known place of a tar file, from its headers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import IndexStale

if TYPE_CHECKING:
    from seekable.storage.mapped import View

__all__ = ["HEADER_BYTES", "NAME_BYTES", "member_name"]

NAME_BYTES = 1536
"""The bytes that hold the headers of most members: an extended header, its block, and the header itself."""

HEADER_BYTES = 512
"""The bytes of a header."""

_EXTENDED = b"xX"
_POSIX = b"ustar\0"
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
        if len(blocks) < at + HEADER_BYTES:
            start, at = start + at, 0
            blocks = bytes(view[start : start + NAME_BYTES])
            if len(blocks) < HEADER_BYTES:
                break
        kind = blocks[at + 156 : at + 157]
        if kind not in b"xXgLK":
            name = _own_name(blocks, at) if given is None else given
            return name.rstrip(b"/")
        size = _number(blocks[at + 124 : at + 136])
        data = blocks[at + HEADER_BYTES : at + HEADER_BYTES + size]
        if len(data) < size:
            data = bytes(view[start + at + HEADER_BYTES : start + at + HEADER_BYTES + size])
        if kind == b"L":
            given = data.partition(b"\0")[0] if given is None else given
        elif kind in _EXTENDED and b"path=" in data:
            given = _path(data) or given
        at += HEADER_BYTES + (size + HEADER_BYTES - 1 & -HEADER_BYTES)
    message = f"there is no header of a member at byte {start:,}; the file was changed after it was indexed"
    raise IndexStale(message)


def _own_name(blocks: bytes, at: int) -> bytes:
    name = blocks[at : at + 100].partition(b"\0")[0]
    if blocks[at + 345] and blocks[at + 257 : at + 263] == _POSIX:
        return blocks[at + 345 : at + 500].partition(b"\0")[0] + b"/" + name
    return name


def _number(field: bytes) -> int:
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")
    return int(field.partition(b"\0")[0].strip() or b"0", 8)


def _path(records: bytes) -> bytes | None:
    """Return the name that the records of PAX give, None if they give none."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(records) and (space := records.find(b" ", at)) > 0 and records[at:space].isdigit():
        end = at + int(records[at:space])
        key, _, value = records[space + 1 : end - 1].partition(b"=")
        found[key], at = value, end
    return found.get(b"GNU.sparse.name", found.get(b"path"))
