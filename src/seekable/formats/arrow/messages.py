"""What an Arrow file is made of: messages, each of them a head, which is a FlatBuffer, and a body."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seekable.formats.arrow.flatbuffer import Torn, root

if TYPE_CHECKING:
    from seekable.formats.arrow.flatbuffer import Table
    from seekable.formats.table import RangeSource

__all__ = ["DICTIONARY", "ROWS", "SCHEMA", "Block", "Head", "Message", "buffers_of", "head_at", "parse"]

SCHEMA: Final = 1
DICTIONARY: Final = 2
ROWS: Final = 3
_KINDS: Final = {SCHEMA: "a schema", DICTIONARY: "a dictionary", ROWS: "a record batch", 4: "a tensor"}

_CONTINUED: Final = 0xFFFFFFFF
"""Begins every message since Arrow 0.15; older ones begin with their length."""

_LENGTH = struct.Struct("<I")
_CONTINUED_LENGTH = struct.Struct("<II")
_BUFFER = struct.Struct("<qq")

# The slots of Message, RecordBatch and DictionaryBatch in format/Message.fbs of Apache Arrow.
_VERSION, _KIND, _HEADER, _BODY_BYTES = range(4)
_BATCH_ROWS, _, _BATCH_BUFFERS, _BATCH_COMPRESSION = range(4)
_DICTIONARY_ID, _DICTIONARY_BATCH, _DICTIONARY_DELTA = range(3)


@dataclass(frozen=True, slots=True)
class Block:
    """Where a message lies."""

    offset: int
    """Where in the file its head begins."""

    head_bytes: int
    """How long that is, with the length before it and the padding behind it."""

    body_bytes: int
    """How long what follows is."""

    @property
    def end(self) -> int:
        """Where the next message begins."""
        return self.offset + self.head_bytes + self.body_bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a message as bytes, and where it was found."""

    data: bytes
    """The FlatBuffer, without the length before it."""

    start: int
    """Where in the file the message begins."""

    stop: int
    """Where the body begins."""


@dataclass(frozen=True, slots=True)
class Message:
    """What the head of a message says."""

    kind: int
    """`SCHEMA`, `DICTIONARY`, `ROWS`, or something else that no table has."""

    version: int
    """Which version of Arrow's metadata it is written in."""

    body_bytes: int
    """How long its body is."""

    at: int
    """Where in the head the table of its kind begins."""

    rows: int = 0
    """How many rows a record batch has."""

    compressed: bool = False
    """Whether each buffer is compressed by itself."""

    dictionary: int = 0
    """Which dictionary it is."""

    delta: bool = False
    """Whether it adds to the dictionary and does not replace it."""

    @property
    def name(self) -> str:
        """What to call it in errors."""
        return _KINDS.get(self.kind, f"a message of kind {self.kind}")


def head_at(source: RangeSource, at: int) -> Head | None:
    """Return the head of the message that begins at a byte of a file, None if a stream ends there.

    Raises:
        Torn: there is no whole head.
    """
    word = bytes(source.range(at, min(at + _CONTINUED_LENGTH.size, source.size)))
    if not word:
        return None
    if len(word) < _LENGTH.size:
        message = f"the file ends at byte {source.size} within the length of a message"
        raise Torn(message)
    (length,) = _LENGTH.unpack_from(word)
    start = at + _LENGTH.size
    if length == _CONTINUED:
        if len(word) < _CONTINUED_LENGTH.size:
            message = f"the file ends at byte {source.size} within the length of a message"
            raise Torn(message)
        length, start = _CONTINUED_LENGTH.unpack(word)[1], at + _CONTINUED_LENGTH.size
    if not length:
        return None
    if start + length > source.size:
        message = f"a head of {length} bytes is said to begin at byte {start}, and the file has {source.size}"
        raise Torn(message)
    return Head(bytes(source.range(start, start + length)), at, start + length)


def parse(data: bytes) -> Message:
    """Return what the head of a message says.

    Raises:
        Torn: it is none.
    """
    table = root(data)
    kind, header = table.u8(_KIND), table.table(_HEADER)
    if header is None:
        message = "a message has nothing in it"
        raise Torn(message)
    body_bytes, version = table.i64(_BODY_BYTES), table.i16(_VERSION)
    if body_bytes < 0:
        message = f"{_KINDS.get(kind, 'a message')} is said to have {body_bytes} bytes"
        raise Torn(message)
    if kind == ROWS:
        return Message(kind, version, body_bytes, header.at, *_batch(header))
    if kind == DICTIONARY:
        batch = header.table(_DICTIONARY_BATCH)
        if batch is None:
            message = "a dictionary has nothing in it"
            raise Torn(message)
        number, delta = header.i64(_DICTIONARY_ID), bool(header.u8(_DICTIONARY_DELTA))
        return Message(kind, version, body_bytes, header.at, *_batch(batch), number, delta)
    return Message(kind, version, body_bytes, header.at)


def buffers_of(data: bytes, *, body_bytes: int) -> list[tuple[int, int]]:
    """Return where in the body of a record batch its buffers begin, and how long they are.

    Args:
        data: the head of its message.
        body_bytes: how long the body is.

    Raises:
        Torn: a buffer does not lie in the body.
    """
    header = root(data).table(_HEADER)
    buffers = []
    for start, length in header.structs(_BATCH_BUFFERS, _BUFFER) if header else ():
        # A buffer without bytes may be said to lie anywhere: some writers put 0, some the end.
        if length and not 0 <= start <= start + length <= body_bytes:
            message = f"a buffer of {length} bytes at {start} does not lie in a body of {body_bytes}"
            raise Torn(message)
        buffers.append((start, length))
    return buffers


def _batch(batch: Table) -> tuple[int, bool]:
    rows = batch.i64(_BATCH_ROWS)
    if rows < 0:
        message = f"a record batch is said to have {rows} rows"
        raise Torn(message)
    return rows, batch.table(_BATCH_COMPRESSION) is not None
