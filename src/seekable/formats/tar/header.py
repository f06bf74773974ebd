"""The headers in a tar archive: 512 bytes with the name, size and type of a member, and PAX records.

Headers are checked many at a time: an array with one row a header costs a few numpy calls. A header passes
if its checksum has one of the forms that tools write, and is the sum of its bytes; so a single byte that
differs is found, wherever it lies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import IndexStale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.storage.mapped import View

__all__ = [
    "BLOCK_BYTES",
    "NAME_BYTES",
    "PAX",
    "TIMES",
    "TYPE_AT",
    "PaxFields",
    "find_flaw",
    "header_names",
    "header_number",
    "link_target",
    "long_name",
    "matters",
    "member_name",
    "pax_fields",
    "pax_records",
    "size_field",
]

BLOCK_BYTES = 512
"""The size of a header; data are padded with zeros to a multiple of it."""

TYPE_AT = 156
"""The position of the type in a header."""

PAX = ord("x")
"""The type of a header whose data are PAX records for the next member."""

_NAME = slice(0, 100)
_MODE = 100
_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)
_LINK = slice(157, 257)
_MAGIC = slice(257, 263)
_PREFIX = slice(345, 500)

_POSIX = b"ustar\0"
_ZERO, _SPACE = 48, 32
_BINARY, _NEGATIVE = 0x80, 0xFF
_OCTAL = b"01234567"
_OCTAL_WEIGHTS = 8 ** np.arange(5, -1, -1)
_CHECKSUM_FORM = re.compile(rb"( *[1-7][0-7]*|[0-7]+)(\0 | \0|\0)")
"""The forms of a checksum that tools write, of 8 bytes in all; most write six digits, NUL and space."""


def header_number(field: bytes) -> int:
    r"""Return the number that a field of a header holds.

    Raises:
        ValueError: it is negative, or no number.

    Example:
        >>> header_number(b"00000001750\0"), header_number(b"  12 \0 "), header_number(b"\x80\0\0\2")
        (1000, 10, 2)
    """
    if field[:1] and field[0] == _BINARY:
        return int.from_bytes(field[1:], "big")
    if field[:1] and field[0] == _NEGATIVE:
        raise ValueError(f"the negative number {field!r}")
    digits = field.partition(b"\0")[0].strip(b" ")
    if digits.strip(_OCTAL):
        raise ValueError(f"{field!r} where an octal number must stand")
    return int(digits or b"0", 8)


def size_field(block: bytes) -> bytes:
    """Return the 12 bytes of a header that hold the size."""
    return block[_SIZE]


def long_name(block: bytes) -> bytes:
    """Return the name in a header, with the prefix that the POSIX form may have.

    Example:
        >>> long_name(b"a.txt".ljust(257, bytes(1)) + b"ustar" + bytes(83) + b"folder".ljust(167, bytes(1)))
        b'folder/a.txt'
    """
    name = block[_NAME].partition(b"\0")[0]
    if block[_PREFIX.start] and block[_MAGIC] == _POSIX:
        return block[_PREFIX].partition(b"\0")[0] + b"/" + name
    return name


def link_target(block: bytes) -> bytes:
    """Return the name of the member that a link in a header leads to."""
    return block[_LINK].partition(b"\0")[0]


def header_names(heads: NDArray[np.uint8]) -> list[bytes]:
    """Return the name in each header, shape ``(n, 512)``, as `long_name` does, without final slashes."""
    names: list[bytes] = np.ascontiguousarray(heads[:, _NAME]).view("S100").ravel().tolist()
    magic = np.ascontiguousarray(heads[:, _MAGIC]).view("S6").ravel()
    with_prefix = (heads[:, _PREFIX.start] != 0) & (magic == _POSIX.rstrip(b"\0")) & (heads[:, 262] == 0)
    for row in np.flatnonzero(with_prefix).tolist():
        names[row] = long_name(heads[row].tobytes())
    joined = b"\n".join(names)
    if b"\0" in joined:
        names = [name.partition(b"\0")[0] for name in names]
    if b"/\n" in joined or joined.endswith(b"/"):
        names = [name.rstrip(b"/") for name in names]
    return names


def find_flaw(heads: NDArray[np.uint8]) -> tuple[int, str] | None:
    """Return the first of many headers that is damaged, and what is wrong with it; None if there is none.

    Args:
        heads: one header a row, uint8, shape ``(n, 512)``.
    """
    fields = heads[:, _CHECKSUM]
    digits = fields[:, :6].astype(np.int64) - _ZERO
    usual = ((digits >= 0) & (digits < len(_OCTAL))).all(1) & (fields[:, 6] == 0) & (fields[:, 7] == _SPACE)
    sums = heads.sum(1, dtype=np.uint32).astype(np.int64) - fields.sum(1, dtype=np.int64) + 8 * _SPACE
    suspects = np.flatnonzero(~usual | (digits @ _OCTAL_WEIGHTS != sums)).tolist()
    flaws = _checksum_flaws(heads, sums, suspects)
    sizes = heads[:, _SIZE]
    strange = ((sizes < _ZERO) | (sizes > _ZERO + 7)) & (sizes != 0) & (sizes != _SPACE)
    for row in np.flatnonzero(strange.any(1)).tolist():
        try:
            header_number(sizes[row].tobytes())
        except ValueError as error:
            flaws.setdefault(row, f"the size in the header is {error}")
            break
    return min(flaws.items(), default=None)


def _checksum_flaws(heads: NDArray[np.uint8], sums: NDArray[np.int64], suspects: list[int]) -> dict[int, str]:
    """Return the first header with a wrong checksum, as `find_flaw`, of those not of the usual form.

    Old tools summed signed bytes. Of several headers with bytes above 127, all must be summed in one way.
    """
    if not suspects:
        return {}
    fields = heads[:, _CHECKSUM]
    high = (heads >> 7).sum(1, dtype=np.int64) - (fields >> 7).sum(1, dtype=np.int64)
    signed = sums - 256 * high
    is_signed: bool | None = None
    rows = sorted({*suspects, *np.flatnonzero(high).tolist()})
    for row in rows:
        field = fields[row].tobytes()
        form = _CHECKSUM_FORM.fullmatch(field)
        if form is None or (field[0] == _SPACE and heads[row, _MODE] != _SPACE):
            return {row: f"no header stands there: its checksum is {field!r}"}
        stored, plain = int(form[1], 8), int(sums[row])
        if stored != plain and (stored != signed[row] or is_signed is False):
            return {
                row: f"the header is damaged: its checksum is {stored}, and the sum of its bytes is {plain}"
            }
        if high[row]:
            if is_signed and stored == plain:
                return {
                    row: f"the header is damaged: its checksum {stored} sums other bytes than those before"
                }
            is_signed = stored != plain
    return {}


TIMES = {b"%d mtime=" % size: size for size in range(10, 100)}
"""By its first 9 bytes, the size of a body whose only record is a time: a quick answer of `matters`."""

_SPARSE = b"GNU.sparse."


@dataclass(frozen=True, slots=True)
class PaxFields:
    """The fields of a member that PAX records give; None for those that they leave to its header."""

    path: bytes | None = None
    """The whole name."""

    size: int | None = None
    """The number of bytes of the payload."""

    link_path: bytes | None = None
    """The name of the member that a link leads to."""

    is_sparse: bool = False
    """True if the payload is a sparse file: a map of holes and what lies between them."""


def matters(body: bytes) -> bool:
    r"""Return True if records may give a name, a size, a link or a sparse file.

    Most hold times alone, and need not be parsed.

    Example:
        >>> matters(b"28 mtime=1700000000.1234567\n"), matters(b"14 path=a.txt\n")
        (False, True)
    """
    return b"path=" in body or b"size=" in body or b"sparse" in body


def pax_records(body: bytes) -> dict[bytes, bytes]:
    r"""Return records by key; the last of several with one key holds.

    Raises:
        ValueError: they are damaged; the message says at which of their bytes.

    Example:
        >>> pax_records(b"14 path=a.txt\n8 k=a\nb\n")
        {b'path': b'a.txt', b'k': b'a\nb'}
    """
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(body) and body[at]:
        digits = body[at : at + 20].partition(b" ")[0]
        stop = at + int(digits) if digits.isdigit() else -1
        key, equals, value = body[at + len(digits) + 1 : stop - 1].partition(b"=")
        if not at < stop <= len(body) or body[stop - 1 : stop] != b"\n" or not equals or not key:
            raise ValueError(f"the PAX records are damaged at their byte {at}: {body[at : at + 40]!r}")
        records[key] = value
        at = stop
    if body[at:].strip(b"\0"):
        raise ValueError(f"the PAX records are damaged at their byte {at}: {body[at : at + 40]!r}")
    return records


def pax_fields(body: bytes) -> PaxFields:
    r"""Return what records give of a member.

    Raises:
        ValueError: they are damaged, the name is empty or holds a NUL, or the size is not a decimal number.

    Example:
        >>> pax_fields(b"14 path=a.txt\n")
        PaxFields(path=b'a.txt', size=None, link_path=None, is_sparse=False)
    """
    records = pax_records(body)
    path, size = records.get(_SPARSE + b"name", records.get(b"path")), records.get(b"size")
    if path is not None and (not path or b"\0" in path):
        raise ValueError(f"the PAX record of the name is {path!r}; readers disagree on such a member")
    if size is not None and not size.isdigit():
        raise ValueError(f"the PAX record of the size is {size!r}")
    return PaxFields(
        path,
        None if size is None else int(size),
        records.get(b"linkpath"),
        any(key.startswith(_SPARSE) for key in records),
    )


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
            size = header_number(size_field(blocks[at : at + BLOCK_BYTES]))
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
