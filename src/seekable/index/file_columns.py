"""Arrays over many files, from one or more indexes: sizes, times, numbers of records, first offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.index.companions import read_schema
from seekable.index.indexed_files import OpenIndexedFiles, open_indexed, row_numbers
from seekable.index.offsets import join_small

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.indexed_files import IndexedFiles
    from seekable.index.offsets import Offsets

__all__ = ["FileColumns", "gather", "groups_of", "joined_columns", "open_columns", "schemas_of"]

_ROWS_PER_ARRAY_TAKE = 16
"""From this many rows a segment on, an array take is faster than Python's own indexing (measured)."""


@dataclass(frozen=True, slots=True, eq=False)
class FileColumns:
    """One element for each file in each array, in the order of their records."""

    parts: tuple[OpenIndexedFiles, ...]
    """The open indexes of the files."""
    part: NDArray[np.int64]
    """The number of the file's index in ``parts``."""
    row: NDArray[np.int64]
    """The row of the file in the table of that index."""
    sizes: NDArray[np.int64]
    """The number of bytes of the file."""
    mtimes_ns: NDArray[np.int64]
    """The modification time of the file in nanoseconds."""
    records: NDArray[np.int64]
    """The number of records of the file."""
    starts: NDArray[np.int64]
    """The number of records before it; a last element is the number of all records."""
    offsets: tuple[Offsets, ...]
    """The record offsets, some segments joined."""
    segment: NDArray[np.int64]
    """The number in ``offsets`` of the segment that holds the file's."""
    first: NDArray[np.int64]
    """The first of the file's offsets in that segment."""


def open_columns(parts: tuple[IndexedFiles, ...]) -> FileColumns:
    """Open the indexes of some files.

    Raises:
        IndexStale: an index is gone, or no longer has the files as they were.
    """
    opened = tuple(open_indexed(part) for part in parts)
    rows = [row_numbers(part.part) for part in opened]
    offsets: dict[Offsets, int] = {}
    segments = []
    for part, part_rows in zip(opened, rows, strict=True):
        numbers = np.zeros(len(part.table.segments), np.int64)
        for number, some in part.offsets.items():
            numbers[number] = offsets.setdefault(some, len(offsets))
        segments.append(numbers[part.table.column("segment", part_rows)])

    def column(name: str) -> NDArray[np.int64]:
        found = [part.table.column(name, some) for part, some in zip(opened, rows, strict=True)]
        return joined_columns(found)

    records, segment = column("records"), joined_columns(segments)
    # Sources that were opened one by one have a small segment each: as one array they are read at once.
    together, held_by, before = join_small(tuple(offsets))
    return FileColumns(
        parts=opened,
        part=np.repeat(np.arange(len(rows)), np.array([len(some) for some in rows], np.int64)),
        row=joined_columns(rows),
        sizes=column("size"),
        mtimes_ns=column("mtime_ns"),
        records=records,
        starts=joined_columns([np.zeros(1, np.int64), np.cumsum(records)]),
        offsets=together,
        segment=held_by[segment],
        first=column("start") + before[segment],
    )


def joined_columns(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return arrays concatenated to one that cannot be written."""
    joined = np.concatenate([np.zeros(0, np.int64), *arrays])
    joined.flags.writeable = False
    return joined


def gather(
    offsets: tuple[Offsets, ...], segments: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return numbers of many segments, and the number behind each.

    Args:
        offsets: the segments.
        segments: the number of each number's segment.
        at: its index in the segment.

    Raises:
        IndexStale: a segment is damaged.
    """
    if len(offsets) == 1:
        return offsets[0].pairs(at)
    present = np.unique(segments).tolist()
    starts, ends = np.empty((2, len(at)), np.uint64)
    if len(at) < _ROWS_PER_ARRAY_TAKE * len(present):
        indexes = zip(segments.tolist(), at.tolist(), strict=True)
        pairs = [offsets[segment].pair(index) for segment, index in indexes]
        starts[:], ends[:] = [start for start, _ in pairs], [end for _, end in pairs]
        return starts, ends
    for segment in present:
        mine = np.flatnonzero(segments == segment)
        starts[mine], ends[mine] = offsets[segment].pairs(at[mine])
    return starts, ends


def groups_of(columns: FileColumns, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of groups of each table, and the first row of each group within its file.

    Args:
        columns: the files, which are tables.
        counts: the number of words of each.
    """
    ends = np.cumsum(counts)
    at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(columns.first - (ends - counts), counts)
    starts, _ = gather(columns.offsets, np.repeat(columns.segment, counts), at)
    return counts, starts.view(np.int64)


def schemas_of(parts: tuple[OpenIndexedFiles, ...]) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the distinct schemas of tables, in the order of the files, and the number of each file's.

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
    numbers = [order[digest] for digest in joined_columns(digests).view(np.uint64).tolist()]
    return list(found.values()), np.array(numbers, np.int64)
