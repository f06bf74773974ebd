"""The files of a dataset, and where each of their records lies."""

from __future__ import annotations

import itertools
import os
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable.index.compressed import open_compressed
from seekable.index.digest import digest_text
from seekable.index.offsets import join_small
from seekable.index.pages import KeptPages
from seekable.index.part import OpenPart, Part, lasting, open_part, row_numbers
from seekable.index.surveyor import read_schema
from seekable.storage.compression import compression_of
from seekable.storage.mapped import MappedFile, most_maps, open_mapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from seekable.index.offsets import Offsets

_ROWS_PER_ARRAY_TAKE = 16
"""From this many rows a segment on, an array take is faster than Python's own indexing (measured)."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What identifies an indexed file, and nothing that depends on where it lies."""

    name: str
    """Its path relative to the root."""

    format: str
    """The name of the format that it was scanned as."""

    size: int
    """How many bytes it has."""

    records: int
    """How many records it has."""

    head_tail_digest: str
    """The digest of its first and last 64 KiB and its size."""

    content_digest: str
    """The digest of all of it."""

    offsets_digest: str
    """The digest of its record offsets."""


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The opened parts, put one behind the other."""

    parts: tuple[OpenPart, ...]
    part: NDArray[np.int64]
    row: NDArray[np.int64]
    sizes: NDArray[np.int64]
    mtimes_ns: NDArray[np.int64]
    records: NDArray[np.int64]
    starts: NDArray[np.int64]
    offsets: tuple[Offsets, ...]
    segment: NDArray[np.int64]
    first: NDArray[np.int64]


_Spot = tuple[weakref.ref[MappedFile], memoryview, int]
"""A file's map, the offsets of its segment, and where its own begin."""


class FileSet:
    """Indexed files in the order of their records; never changed, safe from threads and after fork.

    Files are known by their numbers, 0 to ``len(files) - 1``, and records by the file's number and
    the row in that file. A record's range of bytes ends where the next one starts, so it holds the end
    of its line too. Rows and files are taken as they are: whoever asks has checked them.

    Pickled, it is little more than the name of its table: no handles, no offsets. It is opened again
    at first use, in the later table of the index if its own was replaced.
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        """Make it of parts; `open_files` and `combine` are what callers want."""
        self._parts = parts
        self._opened: _Columns | None = None
        self._spots: dict[int, _Spot] = {}

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

    def __repr__(self) -> str:
        return f"<FileSet of {len(self)} files below {sorted({part.root for part in self._parts})}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._opened is None:
            return FileSet, (self._parts,)
        return FileSet, (tuple(lasting(part) for part in self._opened.parts),)

    @property
    def folders(self) -> tuple[str, ...]:
        """The index folders, each once."""
        return tuple(dict.fromkeys(part.folder for part in self._parts))

    @property
    def runs(self) -> tuple[tuple[str, str, int], ...]:
        """Consecutive files of one root and index: the root, the index folder, and how many files."""
        return tuple((part.root, part.folder, len(part.rows)) for part in self._parts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each file has."""
        return self._columns().sizes

    @property
    def mtimes_ns(self) -> NDArray[np.int64]:
        """When each file was modified."""
        return self._columns().mtimes_ns

    @property
    def records(self) -> NDArray[np.int64]:
        """How many records each file has."""
        return self._columns().records

    @property
    def starts(self) -> NDArray[np.int64]:
        """How many records there are before each file, and in all of them."""
        return self._columns().starts

    @property
    def contents(self) -> NDArray[np.uint64]:
        """The digest of all of each file."""
        parts = self._columns().parts
        digests = _joined([part.table.column("content", row_numbers(part.part)) for part in parts])
        return digests.view(np.uint64)

    def name(self, file: int) -> str:
        """Return a file's path relative to its root."""
        columns = self._columns()
        return columns.parts[int(columns.part[file])].table.name(int(columns.row[file]))

    def path(self, file: int) -> str:
        """Return a file's absolute path."""
        columns = self._columns()
        return os.path.join(columns.parts[int(columns.part[file])].part.root, self.name(file))

    def entry(self, file: int) -> FileEntry:
        """Return what identifies a file."""
        columns = self._columns()
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
        """Return the paths of all files relative to their roots: many times as fast as one by one."""
        found: list[str] = []
        for part in self._columns().parts:
            names = part.table.names()
            found.extend(names[row] for row in row_numbers(part.part).tolist())
        return found

    def digests(self, kind: Literal["head_tail", "content", "offsets"]) -> list[str]:
        """Return one of the digests of all files, as `entry` has it: many times as fast as one by one."""
        found: list[str] = []
        for part in self._columns().parts:
            found.extend(map(digest_text, part.table.digests(kind, row_numbers(part.part)).tolist()))
        return found

    def described(self) -> list[dict[str, Any]]:
        """Return, JSON-safe, what of each file enters fingerprints: nothing that depends on where it lies."""
        columns = (
            self.names(),
            self.sizes.tolist(),
            self.records.tolist(),
            self.digests("head_tail"),
            self.digests("offsets"),
        )
        return [
            {"name": name, "size": size, "records": records, "head_tail": head_tail, "offsets": offsets}
            for name, size, records, head_tail, offsets in zip(*columns, strict=True)
        ]

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return which rows of all files the row of a file is; its file may be there more than once."""
        return [int(self.starts[i]) + row for i in self.numbers(path) if row < self.records[i]]

    def numbers(self, path: str) -> list[int]:
        """Return the numbers that the file of an absolute path has; it may be there more than once."""
        found: list[int] = []
        before = 0
        for part in self._columns().parts:
            rows = row_numbers(part.part)
            folder = os.path.join(part.part.root, "")
            if len(rows) and path.startswith(folder):
                form = part.table.format(int(rows[0]))
                row = part.table.rows([path[len(folder) :]], format_name=form)
                found.extend((np.flatnonzero(rows == row) + before).tolist())
            before += len(rows)
        return found

    def mapped(self, file: int) -> MappedFile:
        """Return the map of a file.

        Raises:
            IndexStale: it is not the file that was indexed.
        """
        spot = self._spots.get(file)
        mapped = spot[0]() if spot else None
        if mapped is None:
            return self._map(file)[0]
        mapped.used = True
        return mapped

    def bytes_of(self, file: int, row: int) -> memoryview:
        """Return the bytes of a record and what follows up to the next one, after a look at its file.

        Raises:
            IndexStale: it is not the file that was indexed.
        """
        spot = self._spots.get(file)
        mapped = spot[0]() if spot else None
        if spot is None or mapped is None:
            mapped, offsets, at = self._map(file)
        else:
            _, offsets, at = spot
            mapped.used = True
        mapped.check()
        at += row
        return mapped.view[offsets[at] : offsets[at + 1]]

    def range(self, file: int, row: int) -> tuple[int, int]:
        """Return where in its file a record starts, and where the next one does."""
        columns = self._columns()
        offsets, at = columns.offsets[int(columns.segment[file])].view, int(columns.first[file]) + row
        return offsets[at], offsets[at + 1]

    def ranges(
        self, files: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where in their files records start, and where the next ones do.

        Args:
            files: the number of each record's file.
            rows: its row in that file.
        """
        columns = self._columns()
        at = columns.first[files] + rows
        if len(columns.offsets) == 1:
            array = columns.offsets[0].array
            return array[at], array[at + 1]
        return _gather(columns.offsets, columns.segment[files], at)

    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many groups each table has, and the first row of each group within its file."""
        columns = self._columns()
        counts = _joined([part.table.column("groups", row_numbers(part.part)) for part in columns.parts])
        ends = np.cumsum(counts)
        at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(columns.first - (ends - counts), counts)
        starts, _ = _gather(columns.offsets, np.repeat(columns.segment, counts), at)
        return counts, starts.view(np.int64)

    def schemas(self) -> tuple[list[bytes], NDArray[np.int64]]:
        """Return the distinct schemas of tables, in the order of the files, and which one each file has.

        Raises:
            IndexStale: one of them is gone from the index.
        """
        found: dict[int, bytes] = {}
        digests = []
        for part in self._columns().parts:
            of_part = part.table.column("schema", row_numbers(part.part)).view(np.uint64)
            digests.append(of_part.view(np.int64))
            for digest in dict.fromkeys(of_part.tolist()):
                if digest not in found:
                    found[digest] = read_schema(part.part.folder, digest)
        order = {digest: number for number, digest in enumerate(found)}
        numbers = [order[digest] for digest in _joined(digests).view(np.uint64).tolist()]
        return list(found.values()), np.array(numbers, np.int64)

    def pages(self, file: int) -> KeptPages:
        """Return where the page tables of a table are kept."""
        columns = self._columns()
        part = columns.parts[int(columns.part[file])]
        return KeptPages(part.part.folder, part.table.digest("content", int(columns.row[file])))

    def load(self) -> None:
        """Open it now and not at first use.

        Raises:
            IndexStale: its index is gone, or does not know the files any more as they were.
        """
        self._columns()

    def _map(self, file: int) -> tuple[MappedFile, memoryview, int]:
        columns = self._columns()
        part, row = columns.parts[int(columns.part[file])], int(columns.row[file])
        path, size, mtime_ns = self.path(file), int(columns.sizes[file]), int(columns.mtimes_ns[file])
        make = None
        if compression_of(path):
            content = part.table.digest("content", row)
            make = partial(open_compressed, part.part.folder, content, path, size=size, mtime_ns=mtime_ns)
        mapped = open_mapped(path, size, mtime_ns, make)
        offsets, first = columns.offsets[int(columns.segment[file])].view, int(columns.first[file])
        if len(self._spots) >= 2 * most_maps():
            for number, spot in list(self._spots.items()):
                if spot[0]() is None:
                    self._spots.pop(number, None)
        # Weakly, so that the cache of maps can still drop it.
        self._spots[file] = weakref.ref(mapped), offsets, first
        return mapped, offsets, first

    def _columns(self) -> _Columns:
        # No functools.cached_property: before Python 3.12 it takes a lock, which a fork can leave locked.
        if self._opened is None:
            self._opened = _open(self._parts)
        return self._opened


def combine(filesets: Iterable[FileSet]) -> FileSet:
    """Return the files of several sets as one, those of the first set first."""
    return FileSet(tuple(itertools.chain.from_iterable(files._parts for files in filesets)))  # noqa: SLF001 - its own class


def _open(parts: tuple[Part, ...]) -> _Columns:
    opened = tuple(open_part(part) for part in parts)
    rows = [row_numbers(part.part) for part in opened]
    offsets: dict[Offsets, int] = {}
    segments = []
    for part, part_rows in zip(opened, rows, strict=True):
        numbers = np.zeros(len(part.table.segments), np.int64)
        for number, some in part.offsets.items():
            numbers[number] = offsets.setdefault(some, len(offsets))
        segments.append(numbers[part.table.column("segment", part_rows)])

    def column(name: str) -> NDArray[np.int64]:
        return _joined([part.table.column(name, some) for part, some in zip(opened, rows, strict=True)])

    records, segment = column("records"), _joined(segments)
    # Sources that were opened one by one have a small segment each: as one array they are read at once.
    together, held_by, before = join_small(tuple(offsets))
    return _Columns(
        parts=opened,
        part=np.repeat(np.arange(len(rows)), np.array([len(some) for some in rows], np.int64)),
        row=_joined(rows),
        sizes=column("size"),
        mtimes_ns=column("mtime_ns"),
        records=records,
        starts=_joined([np.zeros(1, np.int64), np.cumsum(records)]),
        offsets=together,
        segment=held_by[segment],
        first=column("start") + before[segment],
    )


def _joined(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    joined = np.concatenate([np.zeros(0, np.int64), *arrays])
    joined.flags.writeable = False
    return joined


def _gather(
    offsets: tuple[Offsets, ...], segments: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the numbers at some places of many segments, and the numbers behind them."""
    present = np.unique(segments).tolist()
    starts, ends = np.empty((2, len(at)), np.uint64)
    if len(at) < _ROWS_PER_ARRAY_TAKE * len(present):
        views = [some.view for some in offsets]
        places = list(zip(segments.tolist(), at.tolist(), strict=True))
        starts[:] = [views[segment][place] for segment, place in places]
        ends[:] = [views[segment][place + 1] for segment, place in places]
        return starts, ends
    for segment in present:
        mine = np.flatnonzero(segments == segment)
        array = offsets[segment].array
        starts[mine] = array[at[mine]]
        ends[mine] = array[at[mine] + 1]
    return starts, ends
