"""Packs of Lhotse's indexes, ``corpus.idxpack``: the offsets of many files in one, and the files they name.

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
import os
import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from seekable._cached import cached
from seekable.errors import DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.classify import card_of_all, find_data, format_for
from seekable.formats.contract import Claim
from seekable.formats.lines.jsonl import Jsonl
from seekable.formats.refusals import refuse_unopened
from seekable.formats.shar.lhotse_index import NUMBERS, consecutive_ranges
from seekable.index.finder import ALWAYS_NS, OtherOffsets
from seekable.storage import paths
from seekable.storage.addresses import shown
from seekable.storage.files import read_or_map, unreadable_error
from seekable.storage.trust import check_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.formats.look import Look
    from seekable.storage.listing import FoundFiles

__all__ = ["SUFFIX", "pack_claim", "pack_over", "read_pack"]


def _row(*fields: str) -> np.dtype[np.void]:
    """Return the dtype of a table's rows from names and types of fields."""
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
class _Collection:
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


def _damaged(path: str, at: int, found: str) -> NoReturn:
    """Raise the error for a damaged pack."""
    message = (
        f"{path!r} is no whole pack of indexes, at byte {at:,}: {found}. Write it again "
        f"(lhotse.index_pack.write_index_pack), or open the data files themselves: no pack is needed"
    )
    raise UnsupportedFormat(message)


def _read_tables(path: str, data: memoryview) -> _PackTables:
    """Return the tables of a pack; the rows are not checked yet.

    Raises:
        UnsupportedFormat: it is not a pack, one of another version, or its parts are not where they must be.
    """
    if len(data) < _HEADER_BYTES:
        _damaged(path, len(data), f"it ends within its header of {_HEADER_BYTES} bytes")
    sections, version = _sections(path, data)
    tables = [
        np.frombuffer(data[begin : begin + count * kind.itemsize], kind)
        for (begin, count), kind in zip(sections, (_COLLECTION, _SEQUENCE, _SEGMENT), strict=False)
    ]
    return _PackTables(path, data, sections, version, *tables)


def _sections(path: str, data: memoryview) -> tuple[list[tuple[int, int]], int]:
    """Return the positions of the parts of a pack, with their counts, and its version.

    Raises:
        UnsupportedFormat: it is not a pack, or its parts are not where they must be.
    """
    magic, version, header_bytes, *fields, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        _damaged(path, 0, f"it begins with {bytes(magic)!r}, not with {_MAGIC!r}")
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
            _damaged(path, 24 + 16 * number, f"the {name} begin at byte {begin:,}, not {expected:,}")
        expected = begin + count * size
        if expected > len(data):
            _damaged(
                path, 16 + 16 * number, f"the {name} end at byte {expected:,}, and the file at {len(data):,}"
            )
    if expected != len(data):
        _damaged(path, expected, f"there are {len(data) - expected:,} bytes more than its header says")
    return sections, version


@dataclass(frozen=True, slots=True, eq=False)
class _PackTables:
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
                _damaged(self.path, at + 24, f"segment {number} has {count:,} numbers in {length:,} bytes")
            if (flags and size) or (more & ~_SIZE_GIVEN) or (more and not flags & _PATHS_ALONE):
                _damaged(self.path, at + 32, f"segment {number} has a size or flags that are of no use there")
            if payload != end or payload + length > payloads + payload_bytes:
                _damaged(
                    self.path,
                    at + 8,
                    f"the payload of segment {number} begins at byte {payload:,}, not {end:,}",
                )
            end += length
            texts.append(self._text(at, path, path_bytes))
        if end != payloads + payload_bytes:
            _damaged(
                self.path,
                end,
                f"the payloads of all segments end here, not at byte {payloads + payload_bytes:,}",
            )
        return tuple(texts)

    def collections(self, texts: tuple[str, ...]) -> Iterator[_Collection]:
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
                _damaged(
                    self.path,
                    at + 32,
                    f"collection {number} has the sequences from {start:,}, {count:,} of them",
                )
            first += count
            some = self._segments_of(number, start, count, records)
            kinds = {int(self.segments["flags"][segment]) for segment in some} or {flags}
            if len(kinds) > 1 or (flags and kinds != {flags}) or (_ARRAY in kinds and not flags):
                _damaged(
                    self.path,
                    at + 68,
                    f"collection {number} has segments of several kinds, or of another kind",
                )
            content = _CONTENTS[kinds.pop()]
            paths = () if content == "array" else tuple(texts[segment] for segment in some)
            yield _Collection(number, self._text(at + 56, kind, kind_bytes), content, records, paths)
        if first != len(self.sequences):
            _damaged(
                self.path,
                self.sections[1][0] + first * _SEQUENCE.itemsize,
                "sequences belong to no collection",
            )

    def check_layout(self, collections: tuple[_Collection, ...]) -> None:
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
            _damaged(
                self.path, _DIGEST_AT, "the SHA-256 of its layout is not that of its collections and paths"
            )

    def _segments_of(self, number: int, start: int, count: int, records: int) -> list[int]:
        """Return the segments of a collection, after a check that their records add up."""
        at = self.sections[1][0] + start * _SEQUENCE.itemsize
        rows = self.sequences[start : start + count]
        some = rows["segment"]
        if count and int(some.max()) >= len(self.segments):
            _damaged(
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
            _damaged(self.path, at, f"the records of collection {number} do not add up to {records:,}")
        found: list[int] = some.tolist()
        return found

    def _check_flags(self, at: int, flags: int) -> None:
        if flags not in _CONTENTS or (flags == _ARRAY and self.version == _OFFSETS_ALONE):
            _damaged(self.path, at, f"flags {flags:#x} are not known in version {self.version}")

    def _text(self, at: int, position: int, length: int) -> str:
        begin, count = self.sections[3]
        if length and not begin <= position <= position + length <= begin + count:
            _damaged(self.path, at, f"a text of {length:,} bytes at byte {position:,} is not among the texts")
        try:
            return str(self.data[position : position + length], "utf-8")
        except UnicodeDecodeError as error:
            _damaged(self.path, position + error.start, "a text is no UTF-8")


_LAYOUT_MARKS: dict[Content, bytes] = {"paths": b"\0", "offsets": b"\1", "array": b"\2"}
_CONTENTS: dict[int, Content] = {0: "offsets", _PATHS_ALONE: "paths", _ARRAY: "array"}


SUFFIX = ".idxpack"
"""The end of the name of a pack."""


@dataclass(frozen=True, eq=False)
class _IndexPack:
    """A pack whose catalog was checked; payloads are checked when they are used."""

    path: str
    """The path of the pack."""

    data: memoryview
    """All of it, memory-mapped unless it is small."""

    made_ns: int
    """The time at which it was last written, in nanoseconds; `ALWAYS_NS` in a store."""

    collections: tuple[_Collection, ...]
    segments: NDArray[np.void]
    """The table of segments."""

    texts: tuple[str, ...]
    """The path of each segment."""

    @cached
    def numbers(self) -> Mapping[str, int]:
        """The segments that have offsets, by the absolute paths of their files."""
        found = enumerate(zip(self.texts, self.segments["flags"].tolist(), strict=True))
        return {self.located(text): number for number, (text, flags) in found if not flags}

    def located(self, text: str) -> str:
        """Return the absolute path of a file: below the working folder, else below that of the pack."""
        path = paths.absolute(text)
        if "://" in path:
            return path
        beside = os.path.join(os.path.dirname(paths.absolute(self.path)), text)
        if "://" in beside:
            return path if os.path.lexists(path) else beside
        return beside if not os.path.lexists(path) and os.path.lexists(beside) else path

    def offsets(self, segment: int) -> NDArray[np.uint64]:
        """Return where each record of one file begins, and the file's size, uint64.

        Raises:
            UnsupportedFormat: they are damaged; the message names the byte.
        """
        row, of = self.segments[segment], f"the offsets of {self.texts[segment]!r}"
        begin, count = int(row["payload"]), int(row["bytes"])
        payload = self.data[begin : begin + count]
        if (crc := zlib.crc32(payload)) != (wanted := int(row["crc"])):
            _damaged(self.path, begin, f"{of} have the CRC-32 {crc:#x}, not {wanted:#x}")
        bounds = np.frombuffer(payload, NUMBERS)
        descending = np.flatnonzero(bounds[1:] < bounds[:-1])
        if descending.size:
            at = int(descending[0]) + 1
            found = f"{of} descend: {bounds[at]} behind {bounds[at - 1]}"
            _damaged(self.path, begin + at * NUMBERS.itemsize, found)
        if (last := int(bounds[-1])) != (size := int(row["size"])):
            _damaged(
                self.path, begin + count - NUMBERS.itemsize, f"{of} end with {last:,}, not with {size:,}"
            )
        return bounds


@dataclass(frozen=True, slots=True)
class _PackedOffsets:
    """The files of a pack below a folder; an `OtherIndex`."""

    pack: _IndexPack
    folder: str

    @property
    def label(self) -> str:
        """The name of the pack in messages."""
        return f"the pack {self.pack.path!r}"

    def find(self, name: str) -> OtherOffsets | None:
        """Return the lines of a file; None if the pack has no offsets of it.

        Raises:
            UnsupportedFormat: its offsets are damaged.
        """
        segment = self.pack.numbers.get(os.path.join(self.folder, name))
        if segment is None:
            return None
        return OtherOffsets(self.pack.made_ns, iter([consecutive_ranges(self.pack.offsets(segment))]))


def pack_over(folder: str, _names: Sequence[str], named: str) -> _PackedOffsets:
    """Return a pack's offsets for the files below a folder; a `FindIndex`.

    Raises:
        DataNotFound: the pack is not there.
        UnsupportedFormat: it is damaged.
    """
    return _PackedOffsets(read_pack(named), folder)


def read_pack(path: str) -> _IndexPack:
    """Return a pack, after a check of its catalog.

    Raises:
        DataNotFound: there is no such file.
        AccessDenied: this user may not read it.
        UnsupportedFormat: it is not a pack, one of another version, or damaged; the message names the byte.
    """
    status = paths.status(path)
    if "://" in path:
        data = memoryview(paths.read_bytes(path))
    else:
        try:
            data = memoryview(read_or_map(path))
        except PermissionError:
            raise unreadable_error(path) from None
    tables = _read_tables(path, data)
    texts = tables.texts()
    collections = tuple(tables.collections(texts))
    tables.check_layout(collections)
    made_ns = ALWAYS_NS if "://" in path else status.mtime_ns
    return _IndexPack(path, tables.data, made_ns, collections, tables.segments, texts)


_SCHEME = SUFFIX[1:]
_FORM = "idxpack:PATH:NUMBER"
_MOST_LISTED = 20
_OUTSIDE = "Or copy the pack to this machine, where it may name any file"


def pack_claim(look: Look) -> Claim:
    """Return the files of a collection of a pack: ``idxpack:PATH:NUMBER``, ``idxpack:PATH`` or a path.

    Lines are read with the offsets of the pack.

    Raises:
        InvalidArgument: there is no path or no such collection, there are several, or the user gave the value
            of another format.
        DataNotFound: the pack or a file of it is not there, or the collection has no file.
        UnsupportedFormat: the pack is damaged, or a file lies on another machine.
    """
    path, number = look.path, ""
    if look.spec == _SCHEME:
        path, _, number = look.rest.rpartition(":")
        if not path or not number.isdecimal():
            path, number = look.rest, ""
        if not path:
            message = f"{look.path!r} is not complete: the form is {_FORM}, or {_SCHEME}:PATH"
            raise InvalidArgument(message)
    pack = read_pack(os.path.expanduser(path))
    found = _files_of(pack, _chosen(pack, look.path, int(number) if number else None), look)
    form = format_for(look, card_of_all(found).name if look.name is None else look.name)
    if isinstance(form, Jsonl):
        form = replace(form, pack=pack.path)
    return Claim(format=form, found=found)


def _files_of(pack: _IndexPack, collection: _Collection, look: Look) -> tuple[FoundFiles, ...]:
    """Return the files of a collection in its order.

    Raises:
        DataNotFound: a file is not there, or the collection has no file.
        UnsupportedFormat: a file lies on another machine.
    """
    if not collection.paths:
        message = f"the collection {collection} of {pack.path!r} names no file"
        raise DataNotFound(message)
    for path in collection.paths:
        refuse_unopened(path)
        if "://" in pack.path:
            folder = shown(os.path.dirname(pack.path))
            check_below(shown(path), [folder], by=repr(pack.path), way_out=_OUTSIDE, allow=look.allow)
    try:
        return find_data([pack.located(path) for path in collection.paths], format_name=look.name)
    except DataNotFound as error:
        error.add_note(f"collection {collection.number} of the pack {pack.path!r} names it")
        raise


def _chosen(pack: _IndexPack, text: str, number: int | None) -> _Collection:
    """Return the collection that the user named, or the only one of JSON lines, or of files.

    Args:
        pack: the pack.
        text: the spec, or the path of the pack, as the user wrote it.
        number: the index of the collection; None for the only one whose files can be opened.

    Raises:
        InvalidArgument: there is no such collection, or there are several.
    """
    listed = "; ".join(map(str, pack.collections[:_MOST_LISTED])) or "none"
    if (more := len(pack.collections) - _MOST_LISTED) > 0:
        listed += f"; and {more:,} more"
    if number is not None:
        if number < len(pack.collections):
            return pack.collections[number]
        message = f"{text!r}: the pack has no collection {number}. It has {listed}"
        raise InvalidArgument(message)
    files = [each for each in pack.collections if each.content != "array"]
    lines = [each for each in files if _has_lines(each)]
    chosen = lines or files
    if len(chosen) == 1:
        return chosen[0]
    message = (
        f"the pack {pack.path!r} has {len(chosen) or 'no'} collections of files: open one "
        f"as {_FORM}, {f'idxpack:{pack.path}:0'!r}. It has {listed}"
    )
    raise InvalidArgument(message)


def _has_lines(collection: _Collection) -> bool:
    return bool(collection.paths) and all(
        path.lower().endswith(Jsonl.card.suffixes) for path in collection.paths
    )
