"""Footers of Parquet files taken apart and put together again: Thrift with the kind of each field kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.formats.tables.parquet.thrift import unsigned, varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Struct = dict[int, tuple[int, Any]]
"""For each field its kind and its value; a list is the kind of its elements and the elements."""

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def _zigzag(value: int) -> bytes:
    return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def _read(  # noqa: PLR0911 - a case for each kind
    data: bytes, at: int, kind: int
) -> tuple[Any, int]:
    if kind in (1, 2):
        return None, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, I32, I64):
        value, at = varint(data, at)
        return (value >> 1) ^ -(value & 1), at
    if kind == 7:
        return data[at : at + 8], at + 8
    if kind == BINARY:
        size, at = varint(data, at)
        return data[at : at + size], at + size
    if kind == STRUCT:
        return read(data, at)
    assert kind in (LIST, 10)
    head, at = data[at], at + 1
    size, inner = head >> 4, head & 15
    if size == 15:
        size, at = varint(data, at)
    values = []
    for _ in range(size):
        value, at = (data[at], at + 1) if inner in (1, 2) else _read(data, at, inner)
        values.append(value)
    return (inner, values), at


def read(data: bytes, at: int = 0) -> tuple[Struct, int]:
    """Return a struct, and where it ends."""
    found: Struct = {}
    field = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            value, at = varint(data, at)
            field = (value >> 1) ^ -(value & 1)
        value, at = _read(data, at, head & 15)
        found[field] = (head & 15, value)
    return found, at + 1


def _written(  # noqa: PLR0911 - a case for each kind
    kind: int, value: Any
) -> bytes:
    if kind in (1, 2):
        return b""
    if kind == 3:
        return bytes((value,))
    if kind in (4, I32, I64):
        return _zigzag(value)
    if kind == BINARY:
        return unsigned(len(value)) + bytes(value)
    if kind == STRUCT:
        return write(value)
    if kind == 7:
        return bytes(value)
    inner, values = value
    head = bytes((len(values) << 4 | inner,)) if len(values) < 15 else bytes((0xF0 | inner,))
    head += b"" if len(values) < 15 else unsigned(len(values))
    return head + b"".join(bytes((v,)) if inner in (1, 2) else _written(inner, v) for v in values)


def write(struct: Struct) -> bytes:
    """Return a struct as bytes."""
    made, last = b"", 0
    for field, (kind, value) in sorted(struct.items()):
        step = field - last
        made += bytes((step << 4 | kind,)) if 0 < step < 16 else bytes((kind,)) + _zigzag(field)
        made, last = made + _written(kind, value), field
    return made + b"\0"


def patched(data: bytes, change: Callable[[Struct], None], *, body: bytes | None = None) -> bytes:
    """Return a file with another footer, and with other bytes before it if there are any."""
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = read(data[-8 - length : -8])
    assert write(footer) == data[-8 - length : -8]
    change(footer)
    made = write(footer)
    return (data[: -8 - length] if body is None else body) + made + len(made).to_bytes(4, "little") + b"PAR1"


def chunks(footer: Struct) -> Iterator[Struct]:
    """Yield what the footer says of each chunk of each group."""
    for group in footer[4][1][1]:
        yield from group[1][1][1]
