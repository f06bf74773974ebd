"""The table of an index: its files, in a form that is opened without parsing.

``files-<digest>.bin``, all numbers little-endian and 8 bytes wide, so that `numpy.memmap` reads it::

    magic "seekable", version 1, F files, S segments, M formats, B bytes of strings     6 numbers
    size, mtime_ns, indexed_ns, records, head_tail, content, offsets,
        format, segment, start                                                    10 x F numbers
    digests of the segments, then how many offsets each holds                      2 x S numbers
    the strings: F file names, M formats, each with a NUL byte behind it, filled up
        with NUL bytes to a multiple of 8                                                B bytes

Files are sorted by the natural order of their names, then by format; names are the bytes that the
file system has. ``format`` and ``segment`` are numbers of formats and segments; ``start`` is where in
``offsets-<digest>.u64`` the file's ``records + 1`` offsets begin. The digest in the table's own name
is xxh3_64 of the table, so a damaged one is known when it is opened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.index.entry import Entry, Segment
from seekable.storage.listing import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_MAGIC = int.from_bytes(b"seekable", "little")
_VERSION = 1
_WORD = np.dtype("<u8")
_HEADER_WORDS = 6
_SEGMENT_WORDS = 2
_COLUMNS = ("size", "mtime_ns", "indexed_ns", "records", "head_tail", "content", "offsets")
_REFERENCES = ("format", "segment", "start")


class Table:
    """The files of one index, as they were at one time; never changed."""

    def __init__(self, data: bytes) -> None:
        """Take the bytes of a table file.

        Raises:
            ValueError: they are not a table of this version, or not all of one.
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
        self.segments = [
            Segment(digest, length)
            for digest, length in words[at : at + _SEGMENT_WORDS * segments].reshape(2, segments).T.tolist()
        ]
        """The segments that its files' offsets are in."""
        self._names = data[strings_at:].split(b"\0")
        self.formats = [name.decode() for name in self._names[self.files : self.files + formats]]
        """The formats that its files were scanned as."""
        self._by_name: list[dict[bytes, int]] | None = None
        self.file_name = table_name(data)
        """What it is called in the index folder."""

    def column(self, name: str, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return one of the numbers of all rows, or of some."""
        column = self._columns[name].view(np.int64)
        return column if rows is None else column[rows]

    def digest(self, name: str, row: int) -> int:
        """Return one of the digests of a row."""
        return int(self._columns[name][row])

    def format(self, row: int) -> str:
        """Return the name of the format that the file of a row was scanned as."""
        return self.formats[int(self._columns["format"][row])]

    def name(self, row: int) -> str:
        """Return the name of the file of a row."""
        return os.fsdecode(self._names[row])

    def rows(self, names: Sequence[str], *, format_name: str) -> NDArray[np.int64]:
        """Return the rows of these files in this format, -1 where there is none."""
        if format_name not in self.formats:
            return np.full(len(names), -1, np.int64)
        by_name = self._numbered()[self.formats.index(format_name)]
        found = (by_name.get(os.fsencode(name), -1) for name in names)
        return np.fromiter(found, np.int64, len(names))

    def _numbered(self) -> list[dict[bytes, int]]:
        """Return the rows of each format by name, made when they are first asked for."""
        if self._by_name is None:
            by_name: list[dict[bytes, int]] = [{} for _ in self.formats]
            for row, number in enumerate(self._columns["format"].tolist()):
                by_name[number][self._names[row]] = row
            self._by_name = by_name
        return self._by_name

    def entries(self) -> list[Entry]:
        """Return all rows as values."""
        numbers = (self._columns[name].view(_type_of(name)).tolist() for name in _COLUMNS)
        references = (self._columns[name].tolist() for name in _REFERENCES)
        return [
            Entry(
                os.fsdecode(name), self.formats[number], *values, segment=self.segments[segment], start=start
            )
            for name, number, segment, start, values in zip(
                self._names[: self.files], *references, zip(*numbers, strict=True), strict=True
            )
        ]


def encode_table(entries: Iterable[Entry]) -> bytes:
    """Return the bytes of the table of these files, given in any order.

    Example:
        >>> segment = Segment(digest=1, length=2)
        >>> entry = Entry("a", "text", 3, 5, 7, 1, 11, 13, 17, segment=segment, start=0)
        >>> Table(encode_table([entry])).entries() == [entry]
        True
    """
    ordered = sorted(entries, key=lambda entry: (natural_key(entry.name), entry.format))
    formats = {name: number for number, name in enumerate(sorted({entry.format for entry in ordered}))}
    segments = {segment: number for number, segment in enumerate(_unique(entry.segment for entry in ordered))}
    strings = [*(os.fsencode(entry.name) for entry in ordered), *(name.encode() for name in formats)]
    blob = b"".join(string + b"\0" for string in strings)
    blob += bytes(-len(blob) % _WORD.itemsize)
    words = [
        np.array([_MAGIC, _VERSION, len(ordered), len(segments), len(formats), len(blob)], _WORD),
        *(np.array([getattr(entry, name) for entry in ordered], _type_of(name)) for name in _COLUMNS),
        np.array([formats[entry.format] for entry in ordered], _WORD),
        np.array([segments[entry.segment] for entry in ordered], _WORD),
        np.array([entry.start for entry in ordered], _WORD),
        np.array([segment.digest for segment in segments], _WORD),
        np.array([segment.length for segment in segments], _WORD),
    ]
    return b"".join([*(column.tobytes() for column in words), blob])


def table_name(data: bytes) -> str:
    """Return what a table file of these bytes is called."""
    return f"files-{xxhash.xxh3_64_intdigest(data):016x}.bin"


def _type_of(column: str) -> np.dtype[np.int64] | np.dtype[np.uint64]:
    return np.dtype("<i8") if column.endswith("_ns") else _WORD


def _unique(segments: Iterable[Segment]) -> list[Segment]:
    return list(dict.fromkeys(segments))
