"""The header block of a tar archive: 512 bytes that give the name, the size and the type of a member.

Headers are checked many at a time: an array with one row a header costs a few numpy calls. A header passes
if its checksum has one of the forms that tools write, and is the sum of its bytes; so a single byte that
differs is found, wherever it lies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BLOCK_BYTES",
    "PAX",
    "TYPE_AT",
    "find_flaw",
    "header_names",
    "link_target",
    "long_name",
    "number",
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


def number(field: bytes) -> int:
    r"""Return the number that a field of a header holds.

    Raises:
        ValueError: it is negative, or no number.

    Example:
        >>> number(b"00000001750\0"), number(b"  12 \0 "), number(b"\x80\0\0\2"), number(bytes(12))
        (1000, 10, 2, 0)
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
            number(sizes[row].tobytes())
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
