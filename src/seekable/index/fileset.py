"""The files of a dataset, and the bytes of each of their records."""

from __future__ import annotations

import copy
import itertools
import operator
import os
import weakref
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import structs

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._typing import Value
from seekable.index.digest import digest_text, digest_texts
from seekable.index.index_location import is_remote, may_hold_placeholders
from seekable.index.indexed_files import OpenIndexedFiles, each_file, open_indexed, refreshed, row_numbers
from seekable.index.location import path_of_shown, shown_path
from seekable.index.offsets import UNIT_SHIFT, join_small
from seekable.index.sidecar_files import PageTableFile, open_unmapped, read_schema
from seekable.storage.compression import compression_of
from seekable.storage.far import far
from seekable.storage.mapped import MOST_OPEN_FILES, MappedFile, OpenFiles, most_maps, next_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from seekable.index.indexed_files import IndexedFiles
    from seekable.index.offsets import Offsets
    from seekable.storage import addresses
    from seekable.storage.access import CacheChoice
    from seekable.storage.ranges import RangeSource
else:
    addresses = lazy("seekable.storage.addresses")

_ROWS_PER_ARRAY_TAKE = 16
"""From this many rows a segment on, an array take is faster than Python's own indexing (measured)."""


class _FileColumns(Value, frozen=True, eq=False):
    """One element for each file in each array, in the order of their records."""

    parts: tuple[OpenIndexedFiles, ...]
    """The open indexes of the files."""
    part: NDArray[np.int64]
    """The position in ``parts`` of the index that has the file."""
    row: NDArray[np.int64]
    """The row of the file in the table of that index."""
    sizes: NDArray[np.int64]
    """The size of the file in bytes."""
    mtimes_ns: NDArray[np.int64]
    """The modification time of the file in nanoseconds."""
    records: NDArray[np.int64]
    """The number of records of the file."""
    starts: NDArray[np.int64]
    """The number of records before it; a last element is the number of all records."""
    offsets: tuple[Offsets, ...]
    """The record offsets, some segments joined."""
    segment: NDArray[np.int64]
    """The position in ``offsets`` of the segment that holds the file's."""
    first: NDArray[np.int64]
    """The first of the file's offsets in that segment."""


_COLUMNS = ("segment", "size", "mtime_ns", "records", "start")


def _open_columns(parts: tuple[IndexedFiles, ...]) -> _FileColumns:
    """Open the indexes of some files.

    Raises:
        IndexStale: an index is gone, or no longer has the files as they were.
    """
    opened = tuple(map(open_indexed, parts))
    rows = [row_numbers(part.part) for part in opened]
    offsets: dict[Offsets, int] = {}
    columns = [np.zeros((len(_COLUMNS), 0), np.int64)]
    for part, some in zip(opened, rows, strict=True):
        numbers = np.zeros(len(part.table.segments), np.int64)
        for number, of_segment in part.offsets.items():
            numbers[number] = offsets.setdefault(of_segment, len(offsets))
        columns.append(part.table.columns(_COLUMNS, some))
        columns[-1][0] = numbers[columns[-1][0]]
    segments, sizes, mtimes_ns, records, first = _joined_columns(columns)
    # Sources that were opened one by one have a small segment each: as one array they are read at once.
    together, held_by, before = join_small(tuple(offsets))
    return _FileColumns(
        parts=opened,
        part=np.repeat(np.arange(len(rows)), np.array([len(some) for some in rows], np.int64)),
        row=_joined_columns(rows),
        sizes=sizes,
        mtimes_ns=mtimes_ns,
        records=records,
        starts=_joined_columns([np.zeros(1, np.int64), np.cumsum(records)]),
        offsets=together,
        segment=held_by[segments],
        first=first + before[segments],
    )


def _joined_columns(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return arrays concatenated to one that cannot be written."""
    joined = np.concatenate(arrays or [np.zeros(0, np.int64)], axis=-1)
    joined.flags.writeable = False
    return joined


def _gather(
    offsets: tuple[Offsets, ...], segments: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return numbers of many segments, and the number after each.

    Args:
        offsets: the segments.
        segments: the index of each number's segment.
        at: its index in the segment.

    Raises:
        IndexStale: a segment is damaged.
    """
    if len(offsets) == 1:
        return offsets[0].pairs(at)
    # Small numbers are counted in a tenth of the time of np.unique.
    used = np.flatnonzero(np.bincount(segments)).tolist()
    starts, ends = np.empty((2, len(at)), np.uint64)
    if len(at) < _ROWS_PER_ARRAY_TAKE * len(used):
        indexes = zip(segments.tolist(), at.tolist(), strict=True)
        pairs = [offsets[segment].pair(index) for segment, index in indexes]
        starts[:], ends[:] = [start for start, _ in pairs], [end for _, end in pairs]
        return starts, ends
    for segment in used:
        mine = np.flatnonzero(segments == segment)
        starts[mine], ends[mine] = offsets[segment].pairs(at[mine])
    return starts, ends


def _groups_of(
    columns: _FileColumns, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the groups of each table, and return the first row of each group within its file.

    Args:
        columns: the files, which are tables.
        counts: the number of words of each.
    """
    ends = np.cumsum(counts)
    at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(columns.first - (ends - counts), counts)
    starts, _ = _gather(columns.offsets, np.repeat(columns.segment, counts), at)
    return counts, starts.view(np.int64)


def _schemas_of(parts: tuple[OpenIndexedFiles, ...]) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the distinct schemas of tables in file order, and the index of each file's schema.

    Raises:
        IndexStale: an index has lost a schema.
    """
    found: dict[int, bytes] = {}
    digests = []
    for part in parts:
        of_part = part.table.column("schema", row_numbers(part.part)).view(np.uint64)
        digests.append(of_part.view(np.int64))
        for digest in dict.fromkeys(of_part.tolist()):
            if digest not in found:
                found[digest] = read_schema(part.part.folder, digest)
    order = {digest: number for number, digest in enumerate(found)}
    numbers = [order[digest] for digest in _joined_columns(digests).view(np.uint64).tolist()]
    return list(found.values()), np.array(numbers, np.int64)


_OpenFile: TypeAlias = "tuple[weakref.ref[MappedFile], Offsets, int, memoryview, bytes | bytearray]"
"""The map of a file, which goes when it is closed; its segment, first offset, numbers, and compared units."""


class FileEntry(msgspec.Struct, frozen=True):
    """The identity of an indexed file, without anything that depends on where it lies."""

    name: str
    """The path of the file, relative to the root."""

    format: str
    """The name of the format that it was scanned as."""

    size: int
    """The size of the file in bytes."""

    records: int
    """The number of records of the file."""

    head_tail_digest: str
    """The digest of its first and last 64 KiB and its size."""

    content_digest: str
    """The digest of all of it."""

    offsets_digest: str
    """The digest of its record offsets."""


class FileSet:
    """Indexed files in the order of their records; never changed, safe from threads and after fork.

    A file is given by its index, 0 to ``len(files) - 1``, and a record by the index of its file and its
    row in that file. The range of bytes of a record ends where the next one starts, so it includes the end
    of its line. Numbers and rows are not checked: the caller has done so.

    A pickle holds little more than the name of the table: no handles, no offsets. It is opened again
    at first use, in a later table of the index if its own was replaced.
    """

    def __init__(
        self,
        parts: tuple[IndexedFiles, ...],
        kept_open: tuple[tuple[int, OpenFiles], ...] = (),
        _mounts: object = None,  # A pickle has them: they are set up where it is read.
    ) -> None:
        """Make a set of parts, whose runs of files have open files each; callers use `open_files`."""
        self._parts = parts
        self._count = sum(map(len, map(operator.attrgetter("rows"), parts)))
        self._kept_open = kept_open or ((self._count, OpenFiles(MOST_OPEN_FILES)),)
        self._ends = [*itertools.accumulate(map(operator.itemgetter(0), self._kept_open))]
        self._open_files: dict[int, _OpenFile] = {}

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<FileSet of {len(self)} files below {sorted({part.root for part in self._parts})}>"

    def __reduce__(self) -> tuple[Any, ...]:
        parts = tuple(map(refreshed, self._columns.parts)) if "_columns" in vars(self) else self._parts
        mounted = (far().passport(part.root for part in parts),) if self.has_objects else ()
        return FileSet, (parts, self._kept_open, *mounted)

    @property
    def most_open(self) -> int:
        """The most files that are open at once."""
        return max(kept_open.most for _, kept_open in self._kept_open)

    def by_versions(self) -> FileSet:
        """Return the same files, of which objects are read by the versions that the index folders have."""
        parts = (structs.replace(part, by_version="://" in part.root) for part in self._parts)
        return FileSet(tuple(parts), tuple((count, copy.copy(kept)) for count, kept in self._kept_open))

    def apart(self) -> list[FileSet]:
        """Return a set for each file, in their order."""
        return [FileSet((part,)) for opened in self._columns.parts for part in each_file(opened)]

    def close(self) -> None:
        """Close all files; a file that is read again is opened again."""
        for _, kept_open in self._kept_open:
            kept_open.close()

    @property
    def folders(self) -> tuple[str, ...]:
        """The index folders, each once."""
        return tuple(dict.fromkeys(part.folder for part in self._parts))

    @property
    def runs(self) -> tuple[tuple[str, str, int], ...]:
        """For each run of files with one root: the root, the index folder, and how many files follow."""
        return tuple((part.root, part.folder, len(part.rows)) for part in self._parts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The size of each file in bytes; of a placeholder, its own."""
        return self._columns.sizes

    @property
    def data_sizes(self) -> NDArray[np.int64]:
        """The size of each file in bytes, int64; for a placeholder, of the file that it stands for."""
        if not self.has_placeholders:
            return self.sizes.copy()
        return np.array([self.data_size(file) for file in range(len(self))], np.int64)

    @cached
    def has_objects(self) -> bool:
        """True if a file is an object of a store, or of the Hub without a copy on this machine."""
        roots = "\n".join({part.root for part in self._parts})  # most have nothing of both, seen in one look
        if "://" in roots or not may_hold_placeholders(roots):
            return "://" in roots
        return self.has_placeholders and far().placeholders.are_elsewhere(map(self.path, range(len(self))))

    @property
    def has_placeholders(self) -> bool:
        """True if a file is in a folder of placeholders, which stand for files of the Hub."""
        return any(map(is_remote, {part.root for part in self._parts}))

    @property
    def mtimes_ns(self) -> NDArray[np.int64]:
        """The modification time of each file, in nanoseconds."""
        return self._columns.mtimes_ns

    @property
    def records(self) -> NDArray[np.int64]:
        """The number of records of each file."""
        return self._columns.records

    @property
    def starts(self) -> NDArray[np.int64]:
        """The number of records before each file; a last element is the number of all records."""
        return self._columns.starts

    @property
    def contents(self) -> NDArray[np.uint64]:
        """The content digest of each file."""
        parts = self._columns.parts
        digests = _joined_columns([part.table.column("content", row_numbers(part.part)) for part in parts])
        return digests.view(np.uint64)

    def name(self, file: int) -> str:
        """Return a file's path relative to its root."""
        columns = self._columns
        return columns.parts[int(columns.part[file])].table.name(int(columns.row[file]))

    def data_size(self, file: int) -> int:
        """Return the size of a file in bytes; for a placeholder, of the file that it stands for."""
        path = self.path(file)
        size = far().placeholders.size(path) if may_hold_placeholders(path) else None
        return int(self.sizes[file]) if size is None else size

    def path(self, file: int) -> str:
        """Return a file's absolute path."""
        columns = self._columns
        return os.path.join(columns.parts[int(columns.part[file])].part.root, self.name(file))

    def shown_path(self, file: int) -> str:
        """Return the name of a file in messages: its absolute path, or its address."""
        return shown_path(self.path(file))

    def entry(self, file: int) -> FileEntry:
        """Return the identity of a file."""
        columns = self._columns
        table, row = columns.parts[int(columns.part[file])].table, int(columns.row[file])
        return FileEntry(
            name=table.name(row),
            format=table.format(row),
            size=int(columns.sizes[file]),
            records=int(columns.records[file]),
            head_tail_digest=digest_text(table.digest("head_tail", row)),
            content_digest=digest_text(table.digest("content", row)),
            offsets_digest=digest_text(table.digest("offsets", row)),
        )

    def names(self) -> list[str]:
        """Return the paths of all files relative to their roots, many times faster than one by one."""
        found: list[str] = []
        for part in self._columns.parts:
            names = part.table.names()
            found.extend(names[row] for row in row_numbers(part.part).tolist())
        return found

    def digests(self, kind: Literal["head_tail", "content", "offsets"]) -> list[str]:
        """Return one digest for all files, many times faster than by `entry` for each."""
        found: list[str] = []
        for part in self._columns.parts:
            found.extend(digest_texts(part.table.digests(kind, row_numbers(part.part))))
        return found

    def plain_names(self) -> list[str]:
        """Return the paths of all files relative to their roots, without percent signs of web addresses."""
        roots = (root for root, _, count in self.runs for _ in range(count))
        return list(map(addresses.plain_name, roots, self.names())) if self.has_objects else self.names()

    def described(self) -> list[dict[str, Any]]:
        """Return the description of each file that enters fingerprints, JSON-safe, without where it lies."""
        names, head_tails, offsets = self.plain_names(), self.digests("head_tail"), self.digests("offsets")
        columns = zip(names, self.sizes.tolist(), self.records.tolist(), head_tails, offsets, strict=True)
        return [
            {"name": name, "size": size, "records": records, "head_tail": head_tail, "offsets": offset}
            for name, size, records, head_tail, offset in columns
        ]

    def rows_of(self, path: str, row: int) -> list[int]:
        """Convert a row of one file to a row over all files; several if the file is listed repeatedly.

        Args:
            path: the absolute path of the file, or its address in a store or on the Hub.
            row: the row in the file.
        """
        path = path_of_shown([part.root for part in self._parts], path)
        return [int(self.starts[i]) + row for i in self.numbers(path) if row < self.records[i]]

    def numbers(self, path: str) -> list[int]:
        """Return the index of the file with an absolute path; several if the file is listed repeatedly."""
        found: list[int] = []
        before = 0
        for part in self._columns.parts:
            rows = row_numbers(part.part)
            folder = os.path.join(part.part.root, "")
            if len(rows) and path.startswith(folder):
                form = part.table.format(int(rows[0]))
                row = part.table.rows([path[len(folder) :]], format_name=form)
                found.extend((np.flatnonzero(rows == row) + before).tolist())
            before += len(rows)
        return found

    def mapped(self, file: int, use: int | None = None) -> MappedFile:
        """Return the memory map of a file; readers of many files call `next_use` once for all.

        Raises:
            IndexStale: the file is not the one that was indexed.
        """
        known = self._open_files.get(file)
        mapped = known[0]() if known else None
        if mapped is None:
            return self._map(file)
        mapped.last_use = next_use() if use is None else use
        return mapped

    def source(self, file: int) -> RangeSource:
        """Check a file and return its bytes; for a placeholder, those of the file that it stands for.

        Raises:
            IndexStale: the file is not the one that was indexed.
            UnsupportedFormat: the placeholder is damaged.
        """
        mapped = self.mapped(file)
        mapped.check()
        return mapped.source

    def bytes_of(self, file: int, row: int) -> memoryview:
        """Return the bytes from a record to the next one, after a check of the file.

        Raises:
            IndexStale: the file is not the one that was indexed, or the index is damaged.
        """
        known = self._open_files.get(file)
        mapped = known[0]() if known else None
        if known is None or mapped is None:
            mapped = self._map(file)
            known = self._open_files[file]
        else:
            mapped.last_use = next_use()
        mapped.check()
        _, offsets, at, numbers, compared = known
        at += row
        if not compared[at >> UNIT_SHIFT]:
            offsets.compare(at >> UNIT_SHIFT)
        return mapped.view[numbers[at] : numbers[at + 1]]

    def cache(self, file: int) -> CacheChoice | None:
        """Return the cache on disk that the dataset of a file has chosen; None for the shared one."""
        columns = self._columns
        return columns.parts[int(columns.part[file])].part.cache

    @property
    def caches(self) -> frozenset[CacheChoice | None]:
        """The caches on disk that the datasets of the files have chosen; None for the shared one."""
        return frozenset(part.cache for part in self._parts)

    def range(self, file: int, row: int) -> tuple[int, int]:
        """Return the first byte of a record in its file, and that of the next record."""
        words, at = self.file_words(file)
        return words.pair(at + row)

    def words(
        self, files: NDArray[np.int64], at: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return words of files, and the word after each; of files that are scanned, they are bytes.

        Args:
            files: the index of each word's file, int64.
            at: its index among the words of that file, int64; of one that is scanned, the row of a record,
                whose first byte the word is.
        """
        columns = self._columns
        return _gather(columns.offsets, columns.segment[files], columns.first[files] + at)

    def file_words(self, file: int) -> tuple[Offsets, int]:
        """Return the segment that has the words of a file, and where they begin in it."""
        columns = self._columns
        return columns.offsets[int(columns.segment[file])], int(columns.first[file])

    def word_counts(self) -> NDArray[np.int64]:
        """Count the words of each surveyed file, without the record count at the end; int64."""
        parts = self._columns.parts
        return _joined_columns([part.table.column("groups", row_numbers(part.part)) for part in parts])

    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the groups of each table, and return the first row of each group within its file."""
        return _groups_of(self._columns, self.word_counts())

    def schemas(self) -> tuple[list[bytes], NDArray[np.int64]]:
        """Return the distinct schemas of tables in file order, and the index of each file's schema.

        Raises:
            IndexStale: the index has lost a schema.
        """
        return _schemas_of(self._columns.parts)

    def pages(self, file: int) -> PageTableFile:
        """Return the file for the page tables of a table."""
        columns = self._columns
        part = columns.parts[int(columns.part[file])]
        return PageTableFile(part.part.folder, part.table.digest("content", int(columns.row[file])))

    def load(self) -> None:
        """Open the index now and not at first use.

        Raises:
            IndexStale: the index is gone, or no longer has the files as they were.
        """
        _ = self._columns

    def _map(self, file: int) -> MappedFile:
        columns = self._columns
        part, row = columns.parts[int(columns.part[file])], int(columns.row[file])
        path = os.path.join(part.part.root, part.table.name(row))
        size, mtime_ns = int(columns.sizes[file]), int(columns.mtimes_ns[file])
        make: Callable[[], MappedFile] = partial(MappedFile, path, size=size, mtime_ns=mtime_ns)
        remote = is_remote(part.part.root)
        if remote or "://" in path or compression_of(path):
            opened = partial(open_unmapped, part.part, part.table.digest("content", row), path)
            make = partial(opened, size=size, mtime_ns=mtime_ns, remote=remote)
        run = bisect_right(self._ends, file)
        number = file - (self._ends[run - 1] if run else 0)
        mapped = self._kept_open[run][1].open(number, make)
        offsets, first = columns.offsets[int(columns.segment[file])], int(columns.first[file])
        if len(self._open_files) >= 2 * most_maps():
            for number, known in list(self._open_files.items()):
                if known[0]() is None:
                    self._open_files.pop(number, None)
        self._open_files[file] = weakref.ref(mapped), offsets, first, offsets.view, offsets.compared
        return mapped

    @cached
    def _columns(self) -> _FileColumns:
        return _open_columns(self._parts)


def combine(filesets: Iterable[FileSet]) -> FileSet:
    """Return the files of several sets as one, those of the first set first."""
    sets = list(filesets)
    parts = itertools.chain.from_iterable(files._parts for files in sets)  # noqa: SLF001 - its own class
    kept_open = itertools.chain.from_iterable(files._kept_open for files in sets)  # noqa: SLF001 - its own class
    return FileSet(tuple(parts), tuple(kept_open))
