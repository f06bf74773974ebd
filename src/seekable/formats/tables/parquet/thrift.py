"""Thrift's compact protocol, as far as Parquet needs it: structs to dicts, and back by the field.

A struct becomes ``{field id: value}``: bools, ints, floats, bytes, lists and structs; what a field is called,
and whether it may be missing, is for those who ask. Nothing is made that the bytes themselves do not fill.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ThriftError",
    "Truncated",
    "fields",
    "list_head",
    "nested",
    "number",
    "read_struct",
    "short",
    "shorts",
    "skip",
    "string",
    "strings",
    "structs",
    "unsigned",
    "varint",
]

Buffer = bytes | memoryview
_DEPTH = 32
"""The most levels of nested structs and lists; Parquet has at most 10."""

_LONG_FIELD = 16
"""A field's first byte is below this where the field's id follows it."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class ThriftError(ValueError):
    """The bytes break a rule of the protocol."""


class Truncated(ThriftError):
    """The bytes end before the struct does: more of them may help."""


def varint(data: Buffer, at: int) -> tuple[int, int]:
    """Return an unsigned number of variable length, and where it ends.

    Raises:
        Truncated: the bytes end before it does.
        ThriftError: it has more than 64 bits.

    Example:
        >>> varint(bytes([0xAC, 0x02]), 0)
        (300, 2)
    """
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the top bit says whether more follows
                break
            shift += 7
            if shift > 63:  # noqa: PLR2004 - ten bytes of seven bits
                raise ThriftError(f"a number at byte {at} has more than 64 bits")
    except IndexError:
        raise Truncated("ends within a number") from None
    return value, at


def read_struct(data: Buffer, at: int = 0, *, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return a struct, and where it ends.

    Raises:
        Truncated: the bytes end before it does.
        ThriftError: it is not a struct of this protocol.

    Example:
        >>> read_struct(bytes([0x15, 0x06, 0x00]))
        ({1: 3}, 3)
    """
    _bounded(depth, at)
    found: dict[int, Any] = {}
    field = 0
    try:
        while head := data[at]:
            at += 1
            kind = head & 15
            if head >> 4:
                field += head >> 4
            else:
                field, at = _zigzag(data, at)
            if kind <= _FALSE and kind:
                found[field] = kind == _TRUE
            else:
                found[field], at = _value(data, at, kind, depth)
    except IndexError:
        raise Truncated("ends within a struct") from None
    return found, at + 1


def _bounded(depth: int, at: int) -> None:
    if depth > _DEPTH:
        raise ThriftError(f"structs and lists lie more than {_DEPTH} deep in each other at byte {at}")


def _zigzag(data: Buffer, at: int) -> tuple[int, int]:
    value, at = varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _value(data: Buffer, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if _I16 <= kind <= _I64:
        return _zigzag(data, at)
    if kind == _BINARY:
        size, at = varint(data, at)
        if at + size > len(data):
            raise Truncated("ends within a string")
        return bytes(data[at : at + size]), at + size
    if kind == _STRUCT:
        return read_struct(data, at, depth=depth + 1)
    if kind in (_LIST, _SET):
        return _list(data, at, depth)
    if kind <= _BYTE and kind:
        return data[at], at + 1
    if kind == _DOUBLE:
        if at + 8 > len(data):
            raise Truncated("ends within a number")
        return struct.unpack_from("<d", data, at)[0], at + 8
    raise ThriftError(f"a field of the unknown kind {kind} at byte {at}")


def _list(data: Buffer, at: int, depth: int) -> tuple[list[Any], int]:
    _bounded(depth, at)
    size, kind, at = list_head(data, at)
    values = []
    for _ in range(size):
        if kind in (_FALSE, _TRUE):  # a byte each within lists
            value: Any = data[at] == _TRUE
            at += 1
        else:
            value, at = _value(data, at, kind, depth + 1)
        values.append(value)
    return values, at


def list_head(data: Buffer, at: int) -> tuple[int, int, int]:
    """Return how many elements a list has, of what kind, and where they begin.

    Raises:
        Truncated: there are not as many bytes as elements.
    """
    head = data[at]
    size, kind, at = head >> 4, head & 15, at + 1
    if size == 15:  # noqa: PLR2004 - more than fit into four bits
        size, at = varint(data, at)
    if size > len(data) - at:  # an element has a byte at least
        raise Truncated(f"a list of {size} elements in {len(data) - at} bytes")
    return size, kind, at


def skip(data: bytes, at: int, *, depth: int = 0) -> int:
    """Return where a struct ends, without making anything of it.

    Raises:
        Truncated: the bytes end before it does.
        ThriftError: it is not a struct of this protocol.

    Example:
        >>> skip(bytes([0x15, 0x06, 0x00]), 0)
        3
    """
    _bounded(depth, at)
    try:
        while head := data[at]:
            at += 1
            if head < _LONG_FIELD:
                at = _skip_varint(data, at)
            if (kind := head & 15) > _FALSE:
                at = _skip_value(data, at, kind, depth)
            elif not kind:
                raise ThriftError(f"a field without a kind at byte {at}")
    except IndexError:
        raise Truncated("ends within a struct") from None
    return at + 1


def _skip_varint(data: bytes, at: int) -> int:
    while data[at] > 127:  # noqa: PLR2004 - the top bit says whether more follows
        at += 1
    return at + 1


def fields(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield for each field of a struct its id, its kind and where its value begins, without reading values.

    Raises:
        Truncated: the bytes end before it does.
        ThriftError: it is not a struct of this protocol.

    Example:
        >>> list(fields(bytes([0x15, 0x06, 0x18, 0x01, 0x61, 0x00]), 0))
        [(1, 5, 1), (2, 8, 3)]
    """
    field = 0
    try:
        while head := data[at]:
            at += 1
            if head < _LONG_FIELD:
                field, at = _zigzag(data, at)
            else:
                field += head >> 4
            kind = head & 15
            yield field, kind, at
            if kind > _FALSE:
                at = _skip_value(data, at, kind, 0)
    except IndexError:
        raise Truncated("ends within a struct") from None


def _skip_value(data: bytes, at: int, kind: int, depth: int) -> int:
    if _I16 <= kind <= _I64:
        return _skip_varint(data, at)
    if kind == _BINARY:
        size, at = varint(data, at)
        return at + size
    if kind == _STRUCT:
        return skip(data, at, depth=depth + 1)
    if kind in (_LIST, _SET):
        _bounded(depth, at)
        size, kind, at = list_head(data, at)
        for _ in range(size):
            at = at + 1 if kind <= _BYTE else _skip_value(data, at, kind, depth + 1)
        return at
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    raise ThriftError(f"a field of the unknown kind {kind} at byte {at}")


def number(field: int, value: int) -> bytes:
    r"""Return an int as a field, ``field`` being how far its id is from the one before; ids from 1 to 15.

    Example:
        >>> read_struct(number(1, 3) + number(2, -70000) + b"\0")[0]
        {1: 3, 3: -70000}
    """
    return bytes((field << 4 | _I64,)) + unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def short(field: int, value: int) -> bytes:
    """Return an int of 32 bits as a field; see `number`."""
    return bytes((field << 4 | _I32,)) + unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def string(field: int, value: bytes) -> bytes:
    """Return bytes as a field; see `number`."""
    return bytes((field << 4 | _BINARY,)) + unsigned(len(value)) + value


def structs(field: int, values: list[bytes]) -> bytes:
    """Return a list of structs that are encoded, each with the zero at its end, as a field; see `number`."""
    return _elements(field, _STRUCT, values)


def strings(field: int, values: list[bytes]) -> bytes:
    """Return a list of bytes as a field; see `number`."""
    return _elements(field, _BINARY, [unsigned(len(value)) + value for value in values])


def shorts(field: int, values: list[int]) -> bytes:
    """Return a list of numbers that are not negative as a field; see `number`."""
    return _elements(field, _I32, [unsigned(value << 1) for value in values])


def nested(field: int, value: bytes) -> bytes:
    """Return a struct that is encoded as a field; see `number`."""
    return bytes((field << 4 | _STRUCT,)) + value


def _elements(field: int, kind: int, values: list[bytes]) -> bytes:
    return b"".join((bytes((field << 4 | _LIST, 0xF0 | kind)), unsigned(len(values)), *values))


def unsigned(value: int) -> bytes:
    """Return an unsigned number of variable length; what `varint` reads."""
    digits = bytearray()
    while value > 127:  # noqa: PLR2004 - seven bits a byte
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)
