"""The table of an index: its files, in a form that is opened without parsing.

``files-<digest>.bin``, all numbers little-endian and 8 bytes wide, so that it can be mapped::

    magic "seekable", version 3, F files, S segments, M formats, B bytes of strings     6 numbers
    size, mtime_ns, indexed_ns, records, head_tail, content, offsets,
        format, segment, start, generation, groups, schema                        13 x F numbers
    digests of the segments, then how many offsets each holds                      2 x S numbers
    the strings: F file names, M formats, each followed by a NUL byte, filled up
        with NUL bytes to a multiple of 8                                                B bytes

Files are sorted by the natural order of their names, then by format; names are the bytes that the
file system has. ``format`` and ``segment`` are indexes of formats and segments; ``start`` is where in
``offsets-<digest>.u64`` the file's ``records + 1`` offsets begin; of a table, which has a ``schema`` (a
digest, else 0), the first rows of its ``groups`` and the number of all its rows. A change of the index that
adds files, or changes their entries, gives them a ``generation`` higher than all others. The digest in the
table's own name is xxh3_64 of the table, so a damaged table is found out when it is opened.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from seekable.index.digest import unread_content_digest
from seekable.storage.file_names import natural_key, natural_sorted

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

OFFSET_BYTES = 8
TABLE_NAMES = "files-", "files-~"
"""Names between which the names of all tables are."""

_MAGIC = int.from_bytes(b"seekable", "little")
_VERSION = 3
_WORD = np.dtype("<u8")
_HEADER_WORDS = 6
_SEGMENT_WORDS = 2
_COLUMNS = ("size", "mtime_ns", "indexed_ns", "records", "head_tail", "content", "offsets")
_REFERENCES = ("format", "segment", "start", "generation", "groups", "schema")

_FEW = 16
"""Up to this many names are looked for one by one: that makes nothing of all the others."""


class OffsetSegment(msgspec.Struct, frozen=True):
    """A file of record offsets in an index folder."""

    digest: int
    """The xxh3_64 of its bytes."""

    length: int
    """The number of offsets that it holds."""

    @property
    def file_name(self) -> str:
        """The file name in the index folder."""
        return f"offsets-{self.digest:016x}.u64"

    @property
    def bytes(self) -> int:
        """The size of the segment in bytes."""
        return self.length * OFFSET_BYTES


class Entry(msgspec.Struct, frozen=True):
    """A file in one format, as the index keeps it."""

    name: str
    """The path of the file, relative to the root."""

    format: str
    """The name of the format that it was scanned as."""

    size: int
    """The size of the file in bytes."""

    mtime_ns: int
    """When it was modified, in nanoseconds."""

    indexed_ns: int
    """When it was last read to be indexed or checked."""

    records: int
    """The number of records of the file."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    offsets: int
    """The digest of its record offsets."""

    segment: OffsetSegment
    """The segment that holds its record offsets."""

    start: int
    """The index of the first of its offsets in that segment."""

    generation: int
    """The generation of the index in which the entry was last changed; the first one is 1."""

    groups: int = 0
    """The number of groups of a table, whose first rows are its offsets; 0 for a file that is not a table."""

    schema: int = 0
    """The digest of a table's schema; 0 for a file that is not a table."""

    @property
    def numbers(self) -> int:
        """The number of its offsets: one for each record, or group, and the end."""
        return (self.groups if self.schema else self.records) + 1

    @property
    def unread(self) -> bool:
        """True for a file that was not read as a whole, because another tool's index had its offsets."""
        return self.content == unread_content_digest(
            head_tail=self.head_tail, offsets=self.offsets, size=self.size, mtime_ns=self.mtime_ns
        )

    @property
    def key(self) -> tuple[str, str]:
        """The name and the format: one file may be indexed in several formats."""
        return self.name, self.format


class FileTable:
    """The files of one index, as they were at one time; never changed.

    No objects are made for the files before they are needed: a table that is mapped takes 8 bytes a file.
    """

    def __init__(self, data: bytes | mmap.mmap, file_name: str | None = None) -> None:
        """Take the bytes of a table file.

        Args:
            data: the bytes.
            file_name: their `table_name`, where it is known.

        Raises:
            ValueError: the bytes are not a table of this version, or are cut off.
        """
        words = np.frombuffer(data, _WORD, len(data) // _WORD.itemsize)
        if len(words) < _HEADER_WORDS or tuple(words[:2].tolist()) != (_MAGIC, _VERSION):
            raise ValueError(f"not a table of version {_VERSION}")
        self.files, segments, formats, string_bytes = map(int, words[2:_HEADER_WORDS])
        width = len(_COLUMNS) + len(_REFERENCES)
        strings_at = (_HEADER_WORDS + width * self.files + _SEGMENT_WORDS * segments) * _WORD.itemsize
        if len(data) != strings_at + string_bytes:
            raise ValueError(f"a table of {strings_at + string_bytes} bytes has {len(data)}")
        columns = words[_HEADER_WORDS : _HEADER_WORDS + width * self.files].reshape(width, self.files)
        self._columns = dict(zip((*_COLUMNS, *_REFERENCES), columns, strict=True))
        at = _HEADER_WORDS + width * self.files
        digests_and_lengths = words[at : at + _SEGMENT_WORDS * segments].reshape(2, segments).tolist()
        self.segments = [*map(OffsetSegment, *digests_and_lengths)]
        """The segments that its files' offsets are in."""
        self._data = data
        # Of each string, where it starts; and of one more, where that would.
        ends = np.flatnonzero(np.frombuffer(data, np.uint8, string_bytes, strings_at) == 0)
        self._starts = np.concatenate([[0], ends[: self.files + formats] + 1]) + strings_at
        if len(self._starts) <= self.files + formats:
            raise ValueError(f"a table of {self.files} files and {formats} formats lacks names")
        self.formats = [self._string(self.files + number).decode() for number in range(formats)]
        """The formats that its files were scanned as."""
        self.file_name = file_name or table_name(data)
        """The file name in the index folder."""

    def check(self) -> None:
        """Find out whether the table may be read, though its digest is that of its name.

        Raises:
            ValueError: a file is of a format or a segment that the table does not have.
        """
        for name, count in (("format", len(self.formats)), ("segment", len(self.segments))):
            if self.files and int(self._columns[name].max()) >= count:
                raise ValueError(f"a file refers to a {name} that the table does not have")

    def column(self, name: str, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return a column of numbers, for all rows or for those given."""
        column = self._columns[name].view(np.int64)
        return column if rows is None else column[rows]

    def columns(self, names: Iterable[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return several columns of numbers for some rows, as an array of shape (columns, rows)."""
        return np.stack([self._columns[name].view(np.int64)[rows] for name in names])

    def digest(self, name: str, row: int) -> int:
        """Return a digest of one row, by the name of its column."""
        return int(self._columns[name][row])

    def digests(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the digests of some rows, by the name of their column."""
        digests: NDArray[np.uint64] = self._columns[name][rows]
        return digests

    def format(self, row: int) -> str:
        """Return the name of the format that the file of a row was scanned as."""
        return self.formats[int(self._columns["format"][row])]

    def name(self, row: int) -> str:
        """Return the name of the file of a row."""
        return os.fsdecode(self._string(row))

    def names(self) -> list[str]:
        """Return the names of the files of all rows."""
        return os.fsdecode(self._strings()).split("\0")[:-1]

    def rows(self, names: Sequence[str], *, format_name: str) -> NDArray[np.int64]:
        """Return the rows of these files in this format, -1 where there is none."""
        if format_name not in self.formats:
            return np.full(len(names), -1, np.int64)
        number = self.formats.index(format_name)
        if len(names) <= _FEW:
            return np.array([self._row(os.fsencode(name), number) for name in names], np.int64)
        if len(self.formats) == 1 and _joined(names) == self._strings():
            return np.arange(self.files)
        mine = np.flatnonzero(self._columns["format"] == number).tolist()
        here = self.names()
        by_name = dict(zip(map(here.__getitem__, mine), mine, strict=True))
        return np.fromiter((by_name.get(name, -1) for name in names), np.int64, len(names))

    def digest_of(self, rows: NDArray[np.int64]) -> int:
        """Return a digest of some files in this order, made of their names, formats and contents."""
        numbers, number_of = np.unique(self._columns["format"][rows], return_inverse=True)
        whole = len(rows) == self.files and bool((rows == np.arange(self.files)).all())
        hasher = xxhash.xxh3_64(self._strings() if whole else _joined(map(self.name, rows.tolist())))
        hasher.update(_joined(map(self.formats.__getitem__, numbers.tolist())))
        hasher.update(number_of.astype(_WORD).tobytes())
        hasher.update(self._columns["content"][rows].tobytes())
        return hasher.intdigest()

    def _row(self, name: bytes, format_number: int) -> int:
        """Return the row of a file, found by looking at all names; -1 if there is none."""
        first, last = int(self._starts[0]), int(self._starts[self.files])
        end = b"\0"
        # The first name has numbers before it and no NUL byte.
        at = first if self._data[first : first + len(name) + 1] == name + end else -1
        if at < 0:
            at = self._data.find(end + name + end, first, last) + 1
        if at <= 0:
            return -1
        row = int(np.searchsorted(self._starts, at))
        while row < self.files and self._string(row) == name:
            if int(self._columns["format"][row]) == format_number:
                return row
            row += 1
        return -1

    def _string(self, number: int) -> bytes:
        return self._data[int(self._starts[number]) : int(self._starts[number + 1]) - 1]

    def _strings(self) -> bytes:
        """Return the names of all files, as they are written."""
        return self._data[int(self._starts[0]) : int(self._starts[self.files])]

    def entries(self) -> list[Entry]:
        """Return all rows as values."""
        numbers = (self._columns[name].view(_type_of(name)).tolist() for name in _COLUMNS)
        references = (self._columns[name].tolist() for name in _REFERENCES)
        return [
            Entry(
                *(name, self.formats[form], size, mtime_ns, indexed_ns, records, head_tail, content, offsets),
                segment=self.segments[segment],
                start=start,
                generation=generation,
                groups=groups,
                schema=schema,
            )
            for (
                (size, mtime_ns, indexed_ns, records, head_tail, content, offsets),
                (name, form, segment, start, generation, groups, schema),
            ) in zip(zip(*numbers, strict=True), zip(self.names(), *references, strict=True), strict=True)
        ]


def encode_table(ordered: Sequence[Entry]) -> bytes:
    """Return the bytes of the table of these files, given in the order that `in_order` has.

    Example:
        >>> segment = OffsetSegment(digest=1, length=2)
        >>> entry = Entry("a", "text", 3, 5, 7, 1, 11, 13, 17, segment=segment, start=0, generation=1)
        >>> FileTable(encode_table([entry])).entries() == [entry]
        True
    """
    formats = {name: number for number, name in enumerate(sorted({entry.format for entry in ordered}))}
    segments = {segment: number for number, segment in enumerate(_unique(entry.segment for entry in ordered))}
    blob = _joined(entry.name for entry in ordered) + _joined(formats)
    blob += bytes(-len(blob) % _WORD.itemsize)
    words = [
        np.array([_MAGIC, _VERSION, len(ordered), len(segments), len(formats), len(blob)], _WORD),
        *(np.array([getattr(entry, name) for entry in ordered], _type_of(name)) for name in _COLUMNS),
        np.array([formats[entry.format] for entry in ordered], _WORD),
        np.array([segments[entry.segment] for entry in ordered], _WORD),
        np.array([entry.start for entry in ordered], _WORD),
        np.array([entry.generation for entry in ordered], _WORD),
        np.array([entry.groups for entry in ordered], _WORD),
        np.array([entry.schema for entry in ordered], _WORD),
        np.array([segment.digest for segment in segments], _WORD),
        np.array([segment.length for segment in segments], _WORD),
    ]
    return b"".join([*(column.tobytes() for column in words), blob])


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries in the order of a table: by the natural order of names, then by format."""
    by_name: dict[str, Entry] = {}
    others = [entry for entry in entries if by_name.setdefault(entry.name, entry) is not entry]
    ordered = [by_name[name] for name in natural_sorted(by_name)]
    if others:  # In several formats, as few files ever are.
        ordered = sorted([*ordered, *others], key=lambda entry: (natural_key(entry.name), entry.format))
    return ordered


def table_name(data: bytes | mmap.mmap) -> str:
    """Return the file name of a table with these bytes."""
    return f"files-{xxhash.xxh3_64_intdigest(data):016x}.bin"


def is_table_name(name: str) -> bool:
    """Return True if a text is the file name of a table.

    Example:
        >>> is_table_name("files-00000000000000ff.bin"), is_table_name("../files-00000000000000ff.bin")
        (True, False)
    """
    return re.fullmatch(r"files-[0-9a-f]{16}\.bin", name) is not None


def _type_of(column: str) -> np.dtype[np.int64] | np.dtype[np.uint64]:
    return np.dtype("<i8") if column.endswith("_ns") else _WORD


def _unique(segments: Iterable[OffsetSegment]) -> list[OffsetSegment]:
    return list(dict.fromkeys(segments))


def _joined(strings: Iterable[str]) -> bytes:
    """Join strings as they are written, each followed by a NUL byte."""
    return os.fsencode("\0".join((*strings, "")))
