"""The places of the record batches of a file, found without reading data.

The footer of a file lists them. A stream is walked from one message to the next. A dictionary of a stream
holds until another one replaces it: record batches in a row with the same dictionaries are a *segment*.
Streams of one schema may stand one after the other: their record batches are those of one stream.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec
import xxhash

from seekable.formats.tables.arrow.ipc import (
    BLOCK_FORM,
    DICTIONARY,
    FOOTER_LENGTH,
    MAGIC,
    ROWS,
    SCHEMA,
    Head,
    InvalidArrow,
    IpcBlock,
    Message,
    blocks_of,
    head_at,
    parse,
    read_footer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tables.table_format import RangeSource

__all__ = ["ArrowLayout", "Group", "find_layout", "kept_layout", "layout_to_keep", "tail_of"]

_MOST_ROWS = 1 << 62
_ALIGNED = 8
_END_MARK = b"\xff\xff\xff\xff"
_BETWEEN_BYTES = 4096
"""The bytes after the last message that are looked at: the mark of the end, and padding."""

_segment = attrgetter("segment")


@dataclass(frozen=True, slots=True)
class Group:
    """A record batch and its place in the file."""

    block: IpcBlock
    """The place of its message."""

    rows: int
    """The number of its rows."""

    compressed: bool
    """True if its buffers are compressed."""

    segment: int
    """The segment that it is of."""

    number: int
    """The number of the record batch in its segment."""


@dataclass(frozen=True, slots=True)
class ArrowLayout:
    """The record batches of a file, and the dictionaries of a stream."""

    groups: tuple[Group, ...]
    """Its record batches in their order."""

    segments: tuple[tuple[IpcBlock, ...], ...]
    """The dictionaries that hold in each segment of a stream; empty for what is not a stream."""


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    """A layout as it is kept between processes."""

    version: int
    size: int
    groups: tuple[Group, ...]
    segments: tuple[tuple[IpcBlock, ...], ...]


_VERSION = 1
_DIGEST_BYTES = 8


def layout_to_keep(layout: ArrowLayout, *, size: int) -> bytes:
    """Return a layout as bytes.

    Args:
        layout: the layout.
        size: of the file that it is of.
    """
    data = msgspec.msgpack.encode(_Kept(_VERSION, size, layout.groups, layout.segments))
    return data + xxhash.xxh3_64_digest(data)


def kept_layout(data: bytes | None, *, size: int) -> ArrowLayout | None:
    """Return the layout of bytes from `layout_to_keep`; None if they are damaged, or of another file."""
    if data is None or xxhash.xxh3_64_digest(data[:-_DIGEST_BYTES]) != data[-_DIGEST_BYTES:]:
        return None
    try:
        kept = msgspec.msgpack.decode(data[:-_DIGEST_BYTES], type=_Kept)
    except msgspec.DecodeError:
        return None
    return ArrowLayout(kept.groups, kept.segments) if (kept.version, kept.size) == (_VERSION, size) else None


def find_layout(source: RangeSource) -> ArrowLayout:
    """Return the places of the record batches of a file.

    Raises:
        InvalidArrow: it is damaged, or was cut off.
    """
    whole = bytes(source.range(0, min(len(MAGIC), source.size))) == MAGIC
    layout = _layout_of_file(source) if whole else _layout_of_stream(source)
    if sum(group.rows for group in layout.groups) > _MOST_ROWS:
        message = "its record batches are said to have more rows than can be counted"
        raise InvalidArrow(message)
    return layout


def tail_of(source: RangeSource, layout: ArrowLayout, segment: int) -> bytes:
    """Return the bytes to add after the end of a file so that a segment's batches can be read.

    Raises:
        InvalidArrow: a stream does not begin with a schema.
    """
    if not layout.segments:
        return b""
    head, message = _schema(source)
    first, behind = (bisect_left(layout.groups, each, key=_segment) for each in (segment, segment + 1))
    batches = [group.block for group in layout.groups[first:behind]]
    return _made_footer(
        head.data,
        at=message.at,
        version=message.version,
        dictionaries=layout.segments[segment],
        batches=batches,
    )


_HEAD = struct.Struct("<I6H iIIIh2x")
"""The way to the table, its vtable of four slots, and the table: three offsets and the version."""

_COUNT = struct.Struct("<I")

_TABLE: Final = 16

_TABLE_BYTES: Final = 20

_VERSION_AT, _SCHEMA_AT, _DICTIONARIES_AT, _BATCHES_AT = 16, 4, 8, 12


def _made_footer(
    schema: bytes, *, at: int, version: int, dictionaries: Sequence[IpcBlock], batches: Sequence[IpcBlock]
) -> bytes:
    """Return the bytes of a footer.

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
        vectors += b"".join(
            BLOCK_FORM.pack(block.offset, block.head_bytes, block.body_bytes) for block in blocks
        )
    # The table of the schema stays within its own message, where what it points at is.
    schema_at = _TABLE + _TABLE_BYTES + len(vectors) + at
    head = _HEAD.pack(
        *(_TABLE, 12, _TABLE_BYTES, _VERSION_AT, _SCHEMA_AT, _DICTIONARIES_AT, _BATCHES_AT),
        *(_TABLE - _COUNT.size, schema_at - _TABLE - _SCHEMA_AT),
        *(place - _TABLE - slot for place, slot in zip(places, (_DICTIONARIES_AT, _BATCHES_AT), strict=True)),
        version,
    )
    footer = head + vectors + schema
    return footer + FOOTER_LENGTH.pack(len(footer)) + MAGIC


def _layout_of_file(source: RangeSource) -> ArrowLayout:
    groups = []
    footer = read_footer(source)
    dictionaries, batches = blocks_of(footer, size=source.size)
    _check_nothing_between(source, [*dictionaries, *batches], footer)
    for number, block in enumerate(batches):
        found = head_at(source, block.offset)
        message = _parsed(found) if found else None
        if message is None or message.kind != ROWS:
            there = message.name if message else "nothing"
            wrong = f"{there} is at byte {block.offset}, where record batch {number} should be"
            raise InvalidArrow(wrong)
        groups.append(Group(block, message.rows, message.compressed, 0, number))
    return ArrowLayout(tuple(groups), ())


def _check_nothing_between(source: RangeSource, blocks: Sequence[IpcBlock], footer: bytes) -> None:
    """Check that the footer follows the last message; two files in one fail here.

    Raises:
        InvalidArrow: other bytes lie between them.
    """
    stop = source.size - len(MAGIC) - FOOTER_LENGTH.size - len(footer)
    start = max((block.end for block in blocks), default=0)
    between = bytes(source.range(start, min(stop, start + _BETWEEN_BYTES))) if 0 < start < stop else b""
    if between.removeprefix(_END_MARK).strip(b"\0"):
        wrong = (
            f"the last record batch that its footer knows ends at byte {start}, and {stop - start} bytes "
            f"follow it before the footer: it may be several files, one behind the other"
        )
        raise InvalidArrow(wrong)


@dataclass(slots=True)
class _StreamWalk:
    """The messages of a stream up to the current byte."""

    dictionaries: list[tuple[int, IpcBlock]] = field(default_factory=list)
    """Those that hold now, with their numbers."""
    batches: int = 0
    """The number of record batches in the present segment."""
    groups: list[Group] = field(default_factory=list)
    segments: list[tuple[IpcBlock, ...]] = field(default_factory=list)

    def end_segment(self) -> None:
        self.segments.append(tuple(block for _, block in self.dictionaries))
        self.batches = 0

    def begin_stream(self) -> None:
        """Drop the dictionaries: those of a stream hold for that stream alone."""
        if self.dictionaries and self.batches:
            self.end_segment()
        self.dictionaries = []

    def add(self, message: Message, block: IpcBlock) -> None:
        if message.kind == ROWS:
            segment = len(self.segments)
            self.groups.append(Group(block, message.rows, message.compressed, segment, self.batches))
            self.batches += 1
            return
        if not message.delta and any(number == message.dictionary for number, _ in self.dictionaries):
            if self.batches:
                self.end_segment()
            self.dictionaries = [each for each in self.dictionaries if each[0] != message.dictionary]
        self.dictionaries.append((message.dictionary, block))


def _layout_of_stream(source: RangeSource) -> ArrowLayout:
    head, message = _schema(source)
    at = head.stop + message.body_bytes
    walk = _StreamWalk()
    # A stream may end without saying so: then it ends where a message would begin.
    while at < source.size:
        found = head_at(source, at)
        if found is None:
            at += _mark_bytes(source, at)
            if at == source.size:
                break
            found = _next_stream(source, at, head)
        if found.data == head.data:
            walk.begin_stream()
            at = found.stop + message.body_bytes
            continue
        part = _parsed(found)
        block = IpcBlock(at, found.stop - at, part.body_bytes)
        if wrong := _wrong_in_stream(part, block, source.size):
            raise InvalidArrow(wrong)
        walk.add(part, block)
        at = block.end
    walk.end_segment()
    return ArrowLayout(tuple(walk.groups), tuple(walk.segments))


def _mark_bytes(source: RangeSource, at: int) -> int:
    """Return the bytes of the mark at a byte that ends a stream; before Arrow 0.15 it had 4."""
    word = bytes(source.range(at, min(at + _ALIGNED, source.size)))
    return len(word) if not any(word[4:]) else 4


def _next_stream(source: RangeSource, at: int, first: Head) -> Head:
    """Return the head of the schema that begins another stream after the end of one.

    Args:
        source: the file.
        at: the byte after the mark that ends the stream before.
        first: the head of the schema of the first stream.

    Raises:
        InvalidArrow: no stream of that schema begins there.
    """
    try:
        found = head_at(source, at)
    except InvalidArrow:
        found = None
    if found is not None and found.data == first.data:
        return found
    wrong = (
        f"its stream ends at byte {at}, and the {source.size - at} bytes behind that are no stream of the "
        f"same schema: write what they are into a file of its own"
    )
    raise InvalidArrow(wrong)


def _wrong_in_stream(message: Message, block: IpcBlock, size: int) -> str:
    """Say what is wrong with where a message lies, nothing if all is well."""
    what = f"{message.name} at byte {block.offset}"
    if message.kind not in (DICTIONARY, ROWS):
        return f"there is {what}, and a table has none there"
    if block.end > size:
        return f"{what} is said to end at byte {block.end}, and the file has {size}: it was cut off"
    if block.offset % _ALIGNED:
        return f"there is {what}, which is no multiple of {_ALIGNED}"
    return ""


def _schema(source: RangeSource) -> tuple[Head, Message]:
    head = head_at(source, 0)
    message = _parsed(head) if head else None
    if head is None or message is None or message.kind != SCHEMA:
        wrong = f"it begins with {message.name if message else 'nothing'}, and a stream begins with a schema"
        raise InvalidArrow(wrong)
    return head, message


def _parsed(head: Head) -> Message:
    try:
        return parse(head.data)
    except InvalidArrow as torn:
        message = f"the message at byte {head.start}: {torn}"
        raise InvalidArrow(message) from None
