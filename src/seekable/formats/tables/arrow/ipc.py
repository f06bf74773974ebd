"""Arrow's IPC format: FlatBuffers, the messages of a file, and the footer.

A file is a sequence of messages, each with a head (a FlatBuffer) and a body, and a footer that says where the
record batches and dictionaries lie. A stream has no footer. One is made for it: put after the last byte, it
turns the stream into a file of which any record batch can be read. A FlatBuffer table begins with the offset
of its vtable, which says where in the table each field lies, if anywhere. All numbers are little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seekable.formats.tables.table_format import RangeSource


__all__ = [
    "BLOCK_FORM",
    "DICTIONARY",
    "FOOTER_LENGTH",
    "MAGIC",
    "ROWS",
    "SCHEMA",
    "FlatTable",
    "Head",
    "InvalidArrow",
    "IpcBlock",
    "Message",
    "blocks_of",
    "buffers_of",
    "head_at",
    "parse",
    "read_footer",
    "root",
]


_U16, _U32, _I32, _U8, _I16, _I64 = (struct.Struct(f"<{code}") for code in "HIiBhq")

_VTABLE_HEAD = 4


class InvalidArrow(Exception):
    """The bytes are not what the format demands; the message names the byte and the value found there."""


class FlatTable:
    """One table within some bytes. A field is read by its slot, which the schema numbers."""

    __slots__ = ("_at", "_data", "_vtable", "_vtable_bytes")

    def __init__(self, data: bytes, at: int) -> None:
        """Read the head of the table at a byte.

        Raises:
            InvalidArrow: no table fits there.
        """
        self._data, self._at = data, at
        self._vtable = at - _number(_I32, data, at)
        self._vtable_bytes = _number(_U16, data, self._vtable)

    @property
    def at(self) -> int:
        """The first byte of the table."""
        return self._at

    def i16(self, slot: int) -> int:
        """Return the number of a field; 0 if the field is absent."""
        return self._scalar(_I16, slot)

    def u8(self, slot: int) -> int:
        """Return the number or the flag of a field; 0 if the field is absent."""
        return self._scalar(_U8, slot)

    def i64(self, slot: int) -> int:
        """Return the number of a field; 0 if the field is absent."""
        return self._scalar(_I64, slot)

    def table(self, slot: int) -> FlatTable | None:
        """Return the table that a field points to; None if the field is absent."""
        at = self._field(slot)
        return FlatTable(self._data, at + _number(_U32, self._data, at)) if at else None

    def structs(self, slot: int, form: struct.Struct) -> list[tuple[int, ...]]:
        """Return the vector of structs of a field; empty if the field is absent.

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
            raise InvalidArrow(message)
        return list(form.iter_unpack(memoryview(self._data)[start:stop]))

    def _scalar(self, form: struct.Struct, slot: int) -> int:
        at = self._field(slot)
        return _number(form, self._data, at) if at else 0

    def _field(self, slot: int) -> int:
        """Return the first byte of a field; 0 if the field is absent."""
        entry = _VTABLE_HEAD + slot * _U16.size
        if entry + _U16.size > self._vtable_bytes:
            return 0
        within = _number(_U16, self._data, self._vtable + entry)
        return self._at + within if within else 0


def root(data: bytes) -> FlatTable:
    """Return the root table of some bytes.

    Raises:
        InvalidArrow: there is none.

    Example:
        >>> vtable = bytes([6, 0, 8, 0, 4, 0])
        >>> root(bytes([12, 0, 0, 0, 0, 0]) + vtable + bytes([6, 0, 0, 0, 42, 0])).i16(0)
        42
    """
    return FlatTable(data, _number(_U32, data, 0))


def _number(form: struct.Struct, data: bytes, at: int) -> int:
    if not 0 <= at <= len(data) - form.size:
        message = f"byte {at} is pointed at, and there are {len(data)}"
        raise InvalidArrow(message)
    number: int = form.unpack_from(data, at)[0]
    return number


SCHEMA: Final = 1

DICTIONARY: Final = 2

ROWS: Final = 3

_KINDS: Final = {SCHEMA: "a schema", DICTIONARY: "a dictionary", ROWS: "a record batch", 4: "a tensor"}

_CONTINUED: Final = 0xFFFFFFFF
"""Begins every message since Arrow 0.15; older ones begin with their length."""

_LENGTH = struct.Struct("<I")

_CONTINUED_LENGTH = struct.Struct("<II")

_BUFFER = struct.Struct("<qq")

_COLUMN = struct.Struct("<qq")
"""The number of values of a column, and that of its nulls."""

# The slots of Message, RecordBatch and DictionaryBatch in format/Message.fbs of Apache Arrow.
_VERSION, _KIND, _HEADER, _BODY_BYTES = range(4)

_BATCH_ROWS, _BATCH_COLUMNS, _BATCH_BUFFERS, _BATCH_COMPRESSION = range(4)

_DICTIONARY_ID, _DICTIONARY_BATCH, _DICTIONARY_DELTA = range(3)


@dataclass(frozen=True, slots=True)
class IpcBlock:
    """The place of a message in a file."""

    offset: int
    """The first byte of its head."""

    head_bytes: int
    """The bytes of the head, with the length before it and the padding after it."""

    body_bytes: int
    """The bytes of the body, which follows the head."""

    @property
    def end(self) -> int:
        """The offset of the first byte after the message."""
        return self.offset + self.head_bytes + self.body_bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a message as bytes, and where it was found."""

    data: bytes
    """The FlatBuffer, without the length before it."""

    start: int
    """The first byte of the message in the file."""

    stop: int
    """The first byte of the body in the file."""


@dataclass(frozen=True, slots=True)
class Message:
    """The content of the head of a message."""

    kind: int
    """`SCHEMA`, `DICTIONARY`, `ROWS`, or something else that no table has."""

    version: int
    """The version of Arrow's metadata in which the message is written."""

    body_bytes: int
    """The number of bytes of the body."""

    at: int
    """The first byte, in the head, of the table of its kind."""

    rows: int = 0
    """The number of rows of a record batch."""

    compressed: bool = False
    """True if each buffer is compressed by itself."""

    dictionary: int = 0
    """The number of the dictionary that the message holds."""

    delta: bool = False
    """True if the message adds to its dictionary, False if it replaces it."""

    @property
    def name(self) -> str:
        """The name of the kind of message, for errors."""
        return _KINDS.get(self.kind, f"a message of kind {self.kind}")


def head_at(source: RangeSource, at: int) -> Head | None:
    """Return the head of the message at a byte of a file; None if a stream ends there.

    Raises:
        InvalidArrow: there is no whole head.
    """
    word = bytes(source.range(at, min(at + _CONTINUED_LENGTH.size, source.size)))
    if not word:
        return None
    if len(word) < _LENGTH.size:
        message = f"the file ends at byte {source.size} within the length of a message"
        raise InvalidArrow(message)
    (length,) = _LENGTH.unpack_from(word)
    start = at + _LENGTH.size
    if length == _CONTINUED:
        if len(word) < _CONTINUED_LENGTH.size:
            message = f"the file ends at byte {source.size} within the length of a message"
            raise InvalidArrow(message)
        length, start = _CONTINUED_LENGTH.unpack(word)[1], at + _CONTINUED_LENGTH.size
    if not length:
        return None
    if start + length > source.size:
        message = f"a head of {length} bytes is said to begin at byte {start}, and the file has {source.size}"
        raise InvalidArrow(message)
    return Head(bytes(source.range(start, start + length)), at, start + length)


def parse(data: bytes) -> Message:
    """Return the content of the head of a message.

    Raises:
        InvalidArrow: it is none.
    """
    table = root(data)
    kind, header = table.u8(_KIND), table.table(_HEADER)
    if header is None:
        message = "a message has nothing in it"
        raise InvalidArrow(message)
    body_bytes, version = table.i64(_BODY_BYTES), table.i16(_VERSION)
    if body_bytes < 0:
        message = f"{_KINDS.get(kind, 'a message')} is said to have {body_bytes} bytes"
        raise InvalidArrow(message)
    if kind == ROWS:
        return Message(kind, version, body_bytes, header.at, *_batch(header))
    if kind == DICTIONARY:
        batch = header.table(_DICTIONARY_BATCH)
        if batch is None:
            message = "a dictionary has nothing in it"
            raise InvalidArrow(message)
        number, delta = header.i64(_DICTIONARY_ID), bool(header.u8(_DICTIONARY_DELTA))
        return Message(kind, version, body_bytes, header.at, *_batch(batch), number, delta)
    return Message(kind, version, body_bytes, header.at)


def buffers_of(data: bytes, *, body_bytes: int) -> list[tuple[int, int]]:
    """Return the first byte of each buffer in the body of a record batch, and its length.

    Args:
        data: the head of its message.
        body_bytes: how long the body is.

    Raises:
        InvalidArrow: a buffer does not lie in the body.
    """
    header = root(data).table(_HEADER)
    buffers = []
    for start, length in header.structs(_BATCH_BUFFERS, _BUFFER) if header else ():
        # A buffer without bytes may be said to lie anywhere: some writers put 0, some the end.
        if length and not 0 <= start <= start + length <= body_bytes:
            message = f"a buffer of {length} bytes at {start} does not lie in a body of {body_bytes}"
            raise InvalidArrow(message)
        buffers.append((start, length))
    return buffers


def _batch(batch: FlatTable) -> tuple[int, bool]:
    rows = batch.i64(_BATCH_ROWS)
    if rows < 0:
        message = f"a record batch is said to have {rows} rows"
        raise InvalidArrow(message)
    columns = batch.structs(_BATCH_COLUMNS, _COLUMN)
    if columns and columns[0][0] != rows:
        message = f"a record batch is said to have {rows} rows, and its first column has {columns[0][0]}"
        raise InvalidArrow(message)
    return rows, batch.table(_BATCH_COMPRESSION) is not None


MAGIC: Final = b"ARROW1"
"""Begins and ends a file; a stream has it nowhere."""

FOOTER_LENGTH: Final = struct.Struct("<i")
"""The length of the footer, which stands between the footer and the last magic."""

BLOCK_FORM: Final = struct.Struct("<qi4xq")
"""A `IpcBlock` as footers hold it."""

# The slots of Footer in format/File.fbs of Apache Arrow.
_DICTIONARIES_SLOT, _BATCHES_SLOT = 2, 3


def read_footer(source: RangeSource) -> bytes:
    """Return the footer of a file.

    Raises:
        InvalidArrow: it has none; it was cut off.
    """
    tail_bytes = FOOTER_LENGTH.size + len(MAGIC)
    if source.size < 2 * len(MAGIC) + tail_bytes:
        message = f"it has {source.size} bytes, too few for a footer"
        raise InvalidArrow(message)
    tail = bytes(source.range(source.size - tail_bytes, source.size))
    if not tail.endswith(MAGIC):
        message = f"it does not end with {MAGIC!r}, as a whole one does, but with {tail[-len(MAGIC) :]!r}"
        raise InvalidArrow(message)
    (length,) = FOOTER_LENGTH.unpack_from(tail)
    stop = source.size - tail_bytes
    if not 0 < length <= stop - len(MAGIC):
        message = f"its footer is said to have {length} bytes, and {stop} are before its end"
        raise InvalidArrow(message)
    return bytes(source.range(stop - length, stop))


def blocks_of(footer: bytes, *, size: int) -> tuple[list[IpcBlock], list[IpcBlock]]:
    """Return the places of a file's dictionaries and record batches.

    Raises:
        InvalidArrow: it is not a footer, or one of another file.
    """
    table = root(footer)
    found = []
    for slot in (_DICTIONARIES_SLOT, _BATCHES_SLOT):
        blocks = [IpcBlock(*parts) for parts in table.structs(slot, BLOCK_FORM)]
        for block in blocks:
            if min(block.offset, block.head_bytes, block.body_bytes) < 0 or block.end > size:
                message = f"the footer speaks of {block}, and the file has {size} bytes"
                raise InvalidArrow(message)
        found.append(blocks)
    return found[0], found[1]
