"""The tables of a pack of Lhotse's indexes, ``corpus.idxpack``, and all that can be checked of them.

All numbers are little-endian. Version 3 has arrays of uint32 besides; else it is version 2:

- The header has 256 bytes: ``IDXPACK2``, uint32 version, uint32 256, then pairs of uint64, a position
  and a count, of the collections, sequences, segments, bytes of texts and bytes of payloads; a SHA-256 of
  the layout.
- A collection has 72 bytes: a SHA-256 as its key; uint64 first sequence, sequences, records, position of the
  text of its kind; uint32 bytes of that text, flags (1: paths alone, 2: an array).
- A sequence has 16 bytes: uint64 segment, records of the collection up to its end.
- A segment has 56 bytes: uint64 position of the text of its path, of its payload; uint32 bytes of the text,
  flags as above; uint64 numbers, size of the file, bytes of the payload; uint32 CRC-32 of the payload, flags.

The payload of a segment is the index of its file, as in `seekable.formats.shar.lhotse_index`; or one number
for a path alone; or an array. A collection is a sequence of segments, and a segment may belong to several.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats.shar.lhotse_index import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Collection", "PackTables", "read_tables", "refuse"]


def _row(*fields: str) -> np.dtype[np.void]:
    """Return the type of the rows of a table, of the names and types of its fields."""
    return np.dtype([(name, f"<{kind}") for name, _, kind in (field.partition(" ") for field in fields)])


_MAGIC = b"IDXPACK2"
_OFFSETS_ALONE, _WITH_ARRAYS = 2, 3
_HEADER = struct.Struct("<8sII10Q32s")
_HEADER_BYTES = 256
_DIGEST_AT = 96
_COLLECTION = _row("key V32", "first u8", "count u8", "records u8", "kind u8", "kind_bytes u4", "flags u4")
_SEQUENCE = _row("segment u8", "end u8")
_SEGMENT = _row(
    "path u8",
    "payload u8",
    "path_bytes u4",
    "flags u4",
    "count u8",
    "size u8",
    "bytes u8",
    "crc u4",
    "more u4",
)
_PATHS_ALONE, _ARRAY = 1, 2
_SIZE_GIVEN = 1
_ARRAY_BYTES = 4

Content = Literal["offsets", "paths", "array"]
"""The payloads of a collection: the offsets of records, none beside the paths, or an array of numbers."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection of a pack: files in an order, and where their records lie."""

    number: int
    """Its number in the pack, from 0."""

    kind: str
    """The kind of the files, in the words of the program that wrote the pack."""

    content: Content
    """What the pack holds of each file."""

    records: int
    """The number of records; 0 where the pack holds paths alone."""

    paths: tuple[str, ...]
    """The paths of the files, as they were written; none of an array."""

    def __str__(self) -> str:
        """Return the collection in words, for messages."""
        if self.content == "array":
            return f"{self.number}: an array of {self.records:,} numbers, kind {self.kind!r}"
        records = f"{self.records:,} records" if self.content == "offsets" else "no offsets"
        first = f", the first is {self.paths[0]!r}" if self.paths else ""
        return f"{self.number}: paths {len(self.paths):,}, {records}, kind {self.kind!r}{first}"


def refuse(path: str, at: int, found: str) -> NoReturn:
    """Raise the error for a damaged pack."""
    message = (
        f"{path!r} is no whole pack of indexes, at byte {at:,}: {found}. Write it again "
        f"(lhotse.index_pack.write_index_pack), or open the data files themselves: no pack is needed"
    )
    raise UnsupportedFormat(message)


def read_tables(path: str, data: memoryview) -> PackTables:
    """Return the tables of a pack; the rows are not checked yet.

    Raises:
        UnsupportedFormat: it is no pack, one of another version, or its parts are not where they must be.
    """
    if len(data) < _HEADER_BYTES:
        refuse(path, len(data), f"it ends within its header of {_HEADER_BYTES} bytes")
    sections, version = _sections(path, data)
    tables = [
        np.frombuffer(data[begin : begin + count * kind.itemsize], kind)
        for (begin, count), kind in zip(sections, (_COLLECTION, _SEQUENCE, _SEGMENT), strict=False)
    ]
    return PackTables(path, data, sections, version, *tables)


def _sections(path: str, data: memoryview) -> tuple[list[tuple[int, int]], int]:
    """Return the positions of the parts of a pack, with their counts, and its version.

    Raises:
        UnsupportedFormat: it is no pack, or its parts are not where they must be.
    """
    magic, version, header_bytes, *fields, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        refuse(path, 0, f"it begins with {bytes(magic)!r}, not with {_MAGIC!r}")
    if version not in (_OFFSETS_ALONE, _WITH_ARRAYS) or header_bytes != _HEADER_BYTES:
        message = (
            f"{path!r} is a pack of version {version} with a header of {header_bytes} bytes; versions 2 and "
            f"3 with {_HEADER_BYTES} are read. Open the data files themselves: no pack is needed"
        )
        raise UnsupportedFormat(message)
    sections = list(zip(fields[::2], fields[1::2], strict=True))
    expected = _HEADER_BYTES
    names = ("collections", "sequences", "segments", "strings", "payloads")
    sizes = (_COLLECTION.itemsize, _SEQUENCE.itemsize, _SEGMENT.itemsize, 1, 1)
    for number, (name, size, (begin, count)) in enumerate(zip(names, sizes, sections, strict=True)):
        if name == "payloads":
            expected += -expected % NUMBERS.itemsize
        if begin != expected:
            refuse(path, 24 + 16 * number, f"the {name} begin at byte {begin:,}, not {expected:,}")
        expected = begin + count * size
        if expected > len(data):
            refuse(
                path, 16 + 16 * number, f"the {name} end at byte {expected:,}, and the file at {len(data):,}"
            )
    if expected != len(data):
        refuse(path, expected, f"there are {len(data) - expected:,} bytes more than its header says")
    return sections, version


@dataclass(frozen=True, slots=True, eq=False)
class PackTables:
    """The tables of a pack."""

    path: str
    data: memoryview
    sections: list[tuple[int, int]]
    version: int
    rows: NDArray[np.void]
    sequences: NDArray[np.void]
    segments: NDArray[np.void]

    def texts(self) -> tuple[str, ...]:
        """Return the paths of all segments, after a check of the segments.

        Raises:
            UnsupportedFormat: a segment is damaged.
        """
        (begin, _), (payloads, payload_bytes) = self.sections[2], self.sections[4]
        end, texts = payloads, []
        for number, row in enumerate(self.segments.tolist()):
            path, payload, path_bytes, flags, count, size, length, _, more = row
            at = begin + number * _SEGMENT.itemsize
            self._check_flags(at + 20, flags)
            item = _ARRAY_BYTES if flags & _ARRAY else NUMBERS.itemsize
            wrong = count != 1 if flags & _PATHS_ALONE else not flags and not count
            if length != count * item or wrong:
                refuse(self.path, at + 24, f"segment {number} has {count:,} numbers in {length:,} bytes")
            if (flags and size) or (more & ~_SIZE_GIVEN) or (more and not flags & _PATHS_ALONE):
                refuse(self.path, at + 32, f"segment {number} has a size or flags that are of no use there")
            if payload != end or payload + length > payloads + payload_bytes:
                refuse(
                    self.path,
                    at + 8,
                    f"the payload of segment {number} begins at byte {payload:,}, not {end:,}",
                )
            end += length
            texts.append(self._text(at, path, path_bytes))
        if end != payloads + payload_bytes:
            refuse(
                self.path,
                end,
                f"the payloads of all segments end here, not at byte {payloads + payload_bytes:,}",
            )
        return tuple(texts)

    def collections(self, texts: tuple[str, ...]) -> Iterator[Collection]:
        """Yield the collections, after a check of each.

        Raises:
            UnsupportedFormat: a collection is damaged.
        """
        begin, first = self.sections[0][0], 0
        for number, row in enumerate(self.rows.tolist()):
            _, start, count, records, kind, kind_bytes, flags = row
            at = begin + number * _COLLECTION.itemsize
            self._check_flags(at + 68, flags)
            if start != first or start + count > len(self.sequences):
                refuse(
                    self.path,
                    at + 32,
                    f"collection {number} has the sequences from {start:,}, {count:,} of them",
                )
            first += count
            some = self._segments_of(number, start, count, records)
            kinds = {int(self.segments["flags"][segment]) for segment in some} or {flags}
            if len(kinds) > 1 or (flags and kinds != {flags}) or (_ARRAY in kinds and not flags):
                refuse(
                    self.path,
                    at + 68,
                    f"collection {number} has segments of several kinds, or of another kind",
                )
            content = _CONTENTS[kinds.pop()]
            paths = () if content == "array" else tuple(texts[segment] for segment in some)
            yield Collection(number, self._text(at + 56, kind, kind_bytes), content, records, paths)
        if first != len(self.sequences):
            refuse(
                self.path,
                self.sections[1][0] + first * _SEQUENCE.itemsize,
                "sequences belong to no collection",
            )

    def check_layout(self, collections: tuple[Collection, ...]) -> None:
        """Check the digest of the keys, paths and counts of all collections.

        Raises:
            UnsupportedFormat: it is another one.
        """
        hasher = hashlib.sha256()
        for row, collection in zip(self.rows, collections, strict=True):
            hasher.update(row["key"].tobytes())
            hasher.update(_LAYOUT_MARKS[collection.content])
            hasher.update(row["count"].tobytes())
            if collection.content == "array":
                first = int(row["first"])
                some = self.sequences["segment"][first : first + int(row["count"])].astype(np.int64)
                hasher.update(self.segments["count"][some].tobytes())
            for path in collection.paths:
                text = path.encode()
                hasher.update(len(text).to_bytes(8, "little") + text)
        if hasher.digest() != self.data[_DIGEST_AT : _DIGEST_AT + hasher.digest_size]:
            refuse(
                self.path, _DIGEST_AT, "the SHA-256 of its layout is not that of its collections and paths"
            )

    def _segments_of(self, number: int, start: int, count: int, records: int) -> list[int]:
        """Return the segments of a collection, after a check that their records add up."""
        at = self.sections[1][0] + start * _SEQUENCE.itemsize
        rows = self.sequences[start : start + count]
        some = rows["segment"]
        if count and int(some.max()) >= len(self.segments):
            refuse(
                self.path,
                at,
                f"collection {number} has a segment {int(some.max()):,}, of {len(self.segments):,}",
            )
        chosen = self.segments[some.astype(np.int64)]
        counts = chosen["count"] - (chosen["flags"] & _ARRAY == 0)
        ends = np.cumsum(counts, dtype=np.uint64)
        wrong = np.flatnonzero(ends != rows["end"])
        if wrong.size or (int(ends[-1]) if count else 0) != records:
            at += (int(wrong[0]) if wrong.size else count) * _SEQUENCE.itemsize
            refuse(self.path, at, f"the records of collection {number} do not add up to {records:,}")
        found: list[int] = some.tolist()
        return found

    def _check_flags(self, at: int, flags: int) -> None:
        if flags not in _CONTENTS or (flags == _ARRAY and self.version == _OFFSETS_ALONE):
            refuse(self.path, at, f"flags {flags:#x} are not known in version {self.version}")

    def _text(self, at: int, position: int, length: int) -> str:
        begin, count = self.sections[3]
        if length and not begin <= position <= position + length <= begin + count:
            refuse(self.path, at, f"a text of {length:,} bytes at byte {position:,} is not among the texts")
        try:
            return str(self.data[position : position + length], "utf-8")
        except UnicodeDecodeError as error:
            refuse(self.path, position + error.start, "a text is no UTF-8")


_LAYOUT_MARKS: dict[Content, bytes] = {"paths": b"\0", "offsets": b"\1", "array": b"\2"}
_CONTENTS: dict[int, Content] = {0: "offsets", _PATHS_ALONE: "paths", _ARRAY: "array"}
