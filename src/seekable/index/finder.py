"""Finders: the protocols by which a format finds the records of its files for the index.

A `Scanner` reads a file as a whole, from a `ByteSource`. A `Surveyor` goes from header to header of a file,
and a `TableIndexer` reads the footer of a table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
import numpy as np

from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import InvalidArgument
from seekable.index.digest import PieceHasher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from seekable.storage import paths
    from seekable.storage.ranges import RangeSource, SeekableBytes
else:
    paths = lazy("seekable.storage.paths")


ALWAYS_NS = (1 << 63) - 1
"""The time of an index that lies in a store: uploads come in any order, so times there prove nothing."""

CHUNK_BYTES = 1 << 20
"""The bytes that are read at a time: 512 KiB to 4 MiB are within 10 % of it (measured)."""


class ByteChunk(Value, frozen=True):
    """Some consecutive bytes of a file. They are overwritten when the next chunk is read."""

    base: int
    """The position of the first byte in the file."""

    held: bytearray | memoryview
    """What holds the bytes; its first `size` bytes are those of the chunk."""

    size: int
    """The number of bytes, at least 1."""

    array: NDArray[np.uint8]
    """The same bytes as an array."""

    @property
    def buffer(self) -> bytearray:
        """A buffer whose first `size` bytes are those of the chunk; copied if a view holds them."""
        return self.held if isinstance(self.held, bytearray) else bytearray(self.held)


class ByteSource:
    """The bytes of a file or a part of it, read once from start to end and hashed meanwhile."""

    __slots__ = ("_chunk_bytes", "_file", "_hasher", "_on_bytes", "_units", "head", "size", "start", "stop")

    def __init__(
        self,
        file: SeekableBytes,
        *,
        size: int,
        head: bytes,
        part: tuple[int, int] | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        units: PieceHasher | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Read from an open file, whose position changes; closing it stays the caller's task.

        Args:
            file: the file.
            size: its size in bytes; bytes that are appended meanwhile are not read.
            head: its first bytes, at least 4 if it has as many.
            part: where the part starts and ends; None for the whole file.
            chunk_bytes: the number of bytes to read at a time.
            units: takes the bytes of the part as well.
            on_bytes: is called with the size of each chunk after it was scanned.
        """
        self.size = size
        """The size of the file in bytes."""
        self.head = head
        """The first bytes of the file, also where the part begins later."""
        self.start, self.stop = (0, size) if part is None else part
        """The first byte of the part, and the byte after its last."""
        self._file = file
        self._chunk_bytes = chunk_bytes
        self._on_bytes = on_bytes
        self._hasher = PieceHasher()
        self._units = units

    @property
    def content_bytes(self) -> int | None:
        """The size of the content in bytes; None if it is known only when all of it was read."""
        return self.size

    @property
    def before(self) -> bytes:
        """The byte before the part, none at the start of the file."""
        before = bytearray(1)
        return bytes(before) if self.start and self._read_at(self.start - 1, memoryview(before)) else b""

    def chunks(self) -> Iterator[ByteChunk]:
        """Yield the part's bytes in order."""
        for chunk in self._read(self.start, self.stop):
            self._hash(memoryview(chunk.held)[: chunk.size])
            yield chunk
            if self._on_bytes:
                self._on_bytes(chunk.size)

    def beyond(self) -> Iterator[ByteChunk]:
        """Yield what follows the part, up to the end of the file; read as much of it as is needed."""
        return self._read(self.stop, self.size)

    def piece_digests(self) -> bytes:
        """Return the digests of the part's pieces, after its last chunk was read."""
        return self._hasher.digests()

    def unit_digests(self) -> bytes:
        """Return the digests of the part's units, after its last chunk was read; none if none are made."""
        return b"" if self._units is None else self._units.digests()

    def _hash(self, data: memoryview) -> None:
        self._hasher.update(data)
        if self._units is not None:
            self._units.update(data)

    def _read(self, start: int, stop: int) -> Iterator[ByteChunk]:
        # No isinstance of a protocol: for a small file that takes as long as the scan.
        next_view = getattr(self._file, "next_view", None)
        return self._read_views(next_view, start, stop) if next_view else self._read_copies(start, stop)

    def _read_views(
        self, next_view: Callable[[int], memoryview], start: int, stop: int
    ) -> Iterator[ByteChunk]:
        """Yield chunks of a file whose bytes are in memory when they are read; none is copied."""
        self._file.seek(start)
        while start < stop and len(view := next_view(min(self._chunk_bytes, stop - start))):
            yield ByteChunk(start, view, len(view), np.frombuffer(view, np.uint8))
            start += len(view)
            self._file.seek(start)

    def _read_copies(self, start: int, stop: int) -> Iterator[ByteChunk]:
        buffer = bytearray(max(min(self._chunk_bytes, stop - start), 1))
        view, array = memoryview(buffer), np.frombuffer(buffer, np.uint8)
        base = start
        while base < stop:
            count = self._read_at(base, view[: stop - base])
            if not count:
                return  # It was truncated, which the caller finds out by its size.
            yield ByteChunk(base, buffer, count, array[:count])
            base += count

    def _read_at(self, at: int, buffer: memoryview) -> int:
        """Read into a buffer, and return the number of bytes; 0 at the end of the file."""
        self._file.seek(at)
        return self._file.readinto(buffer) or 0


class Scanner(Protocol):
    """Finds where the records of a file start: what a format must provide to be indexed.

    A scanner is a small value without handles: it is pickled to other processes, compared, and used
    from several threads at once. What it finds is a pure function of the file's bytes and of its own
    fields. It reads every chunk of the source to the end. Memory beyond the chunk and the offsets
    themselves must not grow with the file.
    """

    @property
    def splittable(self) -> bool:
        """True if records can be found from the middle of a file.

        Then `scan` is also given parts of a large file, each cut off at any byte and without what is
        before it: it returns the records that start within the part, and may look `beyond` the part to
        know whether the last one is a record. The parts of a file together must give what the whole
        file gives, wherever it is cut. Otherwise a source is always a whole file.
        """

    @property
    def name(self) -> str:
        """The name in the index: of the format, with all options that decide where records start.

        Lower-case letters, digits and ``-``; a file is indexed once for each such name.
        """

    def check_head(self, head: bytes, path: str) -> None:
        """Look at the first 64 KiB of a file (all of it, if it is smaller) before it is scanned.

        Raises:
            UnsupportedFormat: it is certainly of another format; the message says which one and what
                to do. A record that is merely corrupt is not a reason: it is an error when it is read.
        """

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return where in the file the records start, ascending and without repeats.

        A record's range ends where the next one starts, the last one's at the end of the file.
        """


class OtherOffsets(Value, frozen=True, eq=False):
    """The lines of one file by the index of another tool; not yet compared with the file."""

    made_ns: int
    """The time at which that index was last written, in nanoseconds; `ALWAYS_NS` of one in a store."""

    ranges: Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]
    """The first bytes of lines, and their lengths with their ends, some lines at a time, uint64."""


class OtherIndex(Protocol):
    """The index of another tool over the files below a folder."""

    @property
    def label(self) -> str:
        """The name of the index in messages."""

    def find(self, name: str) -> OtherOffsets | None:
        """Return the lines of a file; None if the index does not have the file.

        Nothing of it is believed before it is compared with the file.

        Args:
            name: the path of the file, relative to the folder.
        """


@runtime_checkable
class ReadsOtherIndexes(Scanner, Protocol):
    """A scanner of lines that finds indexes of other tools, which save scans."""

    def other_indexes(self, folder: str, names: Sequence[str]) -> Sequence[OtherIndex]:
        """Return the indexes that other tools keep of the files below a folder, in order of trust.

        Args:
            folder: the folder.
            names: the files that are to be indexed, by their paths relative to the folder.
        """


class ForwardReader(Protocol):
    """The bytes of one file, read from its start to its end; what lies between may be left out."""

    @property
    def path(self) -> str:
        """The name of the file in error messages."""

    def read(self, start: int, count: int) -> bytes:
        """Return up to ``count`` bytes, fewer only at the end of the file.

        Args:
            start: the first byte, not before that of an earlier call.
            count: the number of bytes.
        """


class Survey(Value, frozen=True, eq=False):
    """The places of the records of a file, as the index keeps them."""

    words: NDArray[np.uint64]
    """The numbers that the format reads back: first where each record starts, and where the last one ends."""

    records: int
    """The number of records."""

    schema: bytes
    """The fields of the file and the form of its words, in few distinct values over many files."""

    digest: bytes
    """The digest of all headers, of 8 bytes."""


class Surveyor(Protocol):
    """Finds the records of a file by its headers: a small value without handles, as a ``Scanner`` is.

    The result is a pure function of the headers, and of the fields of the surveyor.
    """

    @property
    def name(self) -> str:
        """The name in the index: of the format, with all options that decide where records start."""

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first 64 KiB of a file (all of it, if it is smaller) before it is surveyed.

        Raises:
            UnsupportedFormat: the file is certainly of another format; the message says of which one and what
                to do.
        """

    def survey(self, source: ForwardReader) -> Survey:
        """Return the records of a file.

        Raises:
            UnsupportedFormat: the file is damaged, or has members that cannot be read; the message says
                which one, where, and what to do.
        """


def is_surveyor(finder: object) -> TypeIs[Surveyor]:
    """Return True for a format whose files are surveyed."""
    return hasattr(finder, "survey")


class TableLayout(msgspec.Struct, frozen=True):
    """The groups and the columns of a table file, as the index keeps them.

    Example:
        >>> layout = TableLayout((2, 0, 3), b"id text")
        >>> layout.starts.tolist(), layout.records
        ([0, 2, 2], 5)
    """

    group_rows: tuple[int, ...]
    """The number of rows of each group, in the order of the file; groups without rows are included."""

    schema: bytes
    """The columns of the file, as the format itself reads them back: at least 1 byte, in few distinct values
    over many files. Of Parquet and Arrow by ``pyarrow.Schema.serialize``, without metadata of the schema."""

    def __post_init__(self) -> None:
        """Check the columns, by which the index knows a table.

        Raises:
            InvalidArgument: there is no byte.
        """
        if not self.schema:
            message = "the schema of a TableLayout must have at least 1 byte (got none)"
            raise InvalidArgument(message)

    @property
    def records(self) -> int:
        """The number of rows of the file."""
        return sum(self.group_rows)

    @property
    def starts(self) -> NDArray[np.uint64]:
        """The first row of each group."""
        return np.array([0, *accumulate(self.group_rows)][:-1], np.uint64)


class TableIndexer(Protocol):
    """Finds the groups of rows of a table file: a small value without handles, as a ``Scanner`` is.

    The result is a pure function of the bytes of the file. Only the list of the groups is read, in the footer
    for instance.
    """

    @property
    def name(self) -> str:
        """The name of the format in the index: lower-case letters, digits and ``-``."""

    def read_layout(self, source: RangeSource) -> TableLayout:
        """Return the groups and the columns of a file.

        Raises:
            UnsupportedFormat: the file is of another format, damaged, encrypted, or needs a codec that is not
                installed; the message says what was found, where, and what to do.
            MissingDependency: a package is needed that is not installed.
        """


def is_table_indexer(finder: object) -> TypeIs[TableIndexer]:
    """Return True for a format of tables."""
    return hasattr(finder, "read_layout")


if TYPE_CHECKING:
    Finder = Scanner | TableIndexer | Surveyor


def is_splittable(finder: Finder) -> bool:
    """Return True if the records of a file can be found from its middle on."""
    return bool(getattr(finder, "splittable", False))


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file beside a data file that was read to survey it, as it was then."""

    file: str
    """The path of the file relative to the folder of the data file."""

    size: int
    """Its size in bytes; -1 for a file that was not there."""

    mtime_ns: int
    """Its modification time; -1 for a file that was not there."""

    @classmethod
    def absent(cls, file: str) -> SideFile:
        """Return the entry of a file that the survey looked for, and that was not there."""
        return cls(file, -1, -1)


@runtime_checkable
class ReadsSideFiles(Protocol):
    """A surveyor that reads files beside a data file: it is surveyed again when one of them has changed."""

    def side_files(self, schema: bytes) -> Iterable[SideFile]:
        """Return the files beside a data file that its survey read, or looked for, given its schema."""


def changed_beside(path: str, beside: Iterable[SideFile]) -> str | None:
    """Return the path of the first file beside a data file that has changed, come or gone; None if none has.

    Args:
        path: the path of the data file.
        beside: the files beside it, as they were when it was surveyed.
    """
    folder = os.path.dirname(path)
    for side in beside:
        there = _beside(folder, side.file)
        if _status(there) != (side.size, side.mtime_ns):
            return there
    return None


def _beside(folder: str, name: str) -> str:
    """Return the path of a file relative to a folder; in a store the folders above are resolved by name."""
    path = os.path.join(folder, name)
    scheme, mark, key = path.partition("://")
    return f"{scheme}://{os.path.normpath(key)}" if mark and ".." in key else path


def _status(path: str) -> tuple[int, int]:
    """Return the size and the modification time of a file, -1 and -1 if it is not there."""
    try:
        if "://" in path:
            found = paths.status(path)
            return found.size, found.mtime_ns
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return -1, -1
    return status.st_size, status.st_mtime_ns
