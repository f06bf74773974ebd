"""Reading FlatBuffers, as far as Arrow's messages need it: nothing outside the bytes is looked at.

A table begins with the way back to its vtable, which says where in the table each field lies, if anywhere.
All numbers are little-endian.
"""

from __future__ import annotations

import struct

__all__ = ["Table", "Torn", "root"]

_U16, _U32, _I32, _U8, _I16, _I64 = (struct.Struct(f"<{code}") for code in "HIiBhq")
_VTABLE_HEAD = 4


class Torn(Exception):
    """The bytes are no such structure; the message says what was found where."""


class Table:
    """One table within some bytes; its fields are known by their slots, numbered as in the schema."""

    __slots__ = ("_at", "_data", "_vtable", "_vtable_bytes")

    def __init__(self, data: bytes, at: int) -> None:
        """Look at the table that begins there.

        Raises:
            Torn: no table fits there.
        """
        self._data, self._at = data, at
        self._vtable = at - _number(_I32, data, at)
        self._vtable_bytes = _number(_U16, data, self._vtable)

    @property
    def at(self) -> int:
        """Where in the bytes it begins."""
        return self._at

    def i16(self, slot: int) -> int:
        """Return a number, 0 if it is left out."""
        return self._scalar(_I16, slot)

    def u8(self, slot: int) -> int:
        """Return a number or a flag, 0 if it is left out."""
        return self._scalar(_U8, slot)

    def i64(self, slot: int) -> int:
        """Return a number, 0 if it is left out."""
        return self._scalar(_I64, slot)

    def table(self, slot: int) -> Table | None:
        """Return a table that lies elsewhere, None if it is left out."""
        at = self._field(slot)
        return Table(self._data, at + _number(_U32, self._data, at)) if at else None

    def structs(self, slot: int, form: struct.Struct) -> list[tuple[int, ...]]:
        """Return a vector of structs, empty if it is left out.

        Args:
            slot: the field.
            form: how one of them lies in the bytes.
        """
        at = self._field(slot)
        if not at:
            return []
        at += _number(_U32, self._data, at)
        start = at + _U32.size
        stop = start + _number(_U32, self._data, at) * form.size
        if stop > len(self._data):
            message = f"a vector is said to end at byte {stop}, and there are {len(self._data)}"
            raise Torn(message)
        return list(form.iter_unpack(memoryview(self._data)[start:stop]))

    def _scalar(self, form: struct.Struct, slot: int) -> int:
        at = self._field(slot)
        return _number(form, self._data, at) if at else 0

    def _field(self, slot: int) -> int:
        """Return where a field lies, 0 if it is left out."""
        entry = _VTABLE_HEAD + slot * _U16.size
        if entry + _U16.size > self._vtable_bytes:
            return 0
        within = _number(_U16, self._data, self._vtable + entry)
        return self._at + within if within else 0


def root(data: bytes) -> Table:
    """Return the table that some bytes are about.

    Raises:
        Torn: there is none.

    Example:
        >>> vtable = bytes([6, 0, 8, 0, 4, 0])
        >>> root(bytes([12, 0, 0, 0, 0, 0]) + vtable + bytes([6, 0, 0, 0, 42, 0])).i16(0)
        42
    """
    return Table(data, _number(_U32, data, 0))


def _number(form: struct.Struct, data: bytes, at: int) -> int:
    if not 0 <= at <= len(data) - form.size:
        message = f"byte {at} is pointed at, and there are {len(data)}"
        raise Torn(message)
    number: int = form.unpack_from(data, at)[0]
    return number
