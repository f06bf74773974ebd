"""Deciding what an index build has to do. Pure: nothing here touches a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.index.digest import PIECE_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.index.table import Table

RACY_NS = 2_000_000_000
"""A file indexed this close to its modification may have been changed after it, at the same time:
file systems keep times in steps of up to two seconds."""

_BATCH_BYTES = PIECE_BYTES
_BATCH_FILES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What an index holds of some files, and what it lacks."""

    rows: NDArray[np.int64]
    """The row of each file in the table, -1 where there is none that is valid."""

    racy: NDArray[np.bool_]
    """Which of the files with a row must be read again to be sure of them."""

    @property
    def to_scan(self) -> NDArray[np.bool_]:
        """Which of the files are to be read."""
        return (self.rows < 0) | self.racy


def survey(
    table: Table | None,
    names: Sequence[str],
    *,
    format_name: str,
    sizes: NDArray[np.int64],
    mtimes_ns: NDArray[np.int64],
    whole: NDArray[np.bool_] | None,
    doubt: bool,
) -> Survey:
    """Return which files an index knows as they are now.

    Args:
        table: the index's table, if it has one.
        names: the files' names relative to the root.
        format_name: the format that they are wanted in.
        sizes: how many bytes they have.
        mtimes_ns: when they were modified.
        whole: which of the table's segments can be used, if there is a table.
        doubt: whether files that were indexed right after they were modified are to be read again.
    """
    if table is None or whole is None:
        return Survey(np.full(len(names), -1, np.int64), np.zeros(len(names), bool))
    rows = table.rows(names, format_name=format_name)
    here = np.flatnonzero(rows >= 0)
    known = rows[here]
    valid = (
        (table.column("size", known) == sizes[here])
        & (table.column("mtime_ns", known) == mtimes_ns[here])
        & whole[table.column("segment", known)]
    )
    rows[here[~valid]] = -1
    racy = np.zeros(len(names), bool)
    racy[here] = doubt & valid & (np.abs(table.column("indexed_ns", known) - mtimes_ns[here]) < RACY_NS)
    return Survey(rows, racy)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file, to be scanned."""

    file: int
    """The number of the file."""

    number: int
    """The number of the part in the file."""

    start: int
    """Where it starts."""

    stop: int
    """Where it ends."""


def parts_of(size: int, *, part_bytes: int | None) -> int:
    """Return into how many parts a file of this size is cut; one if there is no size of parts."""
    return max(-(-size // part_bytes), 1) if part_bytes else 1


def plan_batches(
    sizes: Sequence[int], *, part_bytes: int | None, whole: Collection[int] = ()
) -> Iterator[list[Part]]:
    """Yield what to scan together: the largest files first, part by part, small files in one batch.

    Args:
        sizes: how many bytes the files have.
        part_bytes: how many bytes a part has, but for a file's last one; None to leave all files whole.
        whole: the files that are left whole in any case.

    Example:
        >>> for batch in plan_batches([10, 100 << 20, 30], part_bytes=PIECE_BYTES):
        ...     [(part.file, part.start >> 20) for part in batch]
        [(1, 0)]
        [(1, 64), (2, 0), (0, 0)]
    """
    batch: list[Part] = []
    room = _BATCH_BYTES
    for file in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        cut = None if file in whole else part_bytes
        for number in range(parts_of(sizes[file], part_bytes=cut)):
            start = number * (cut or 0)
            stop = min(start + cut, sizes[file]) if cut else sizes[file]
            if batch and (stop - start > room or len(batch) == _BATCH_FILES):
                yield batch
                batch, room = [], _BATCH_BYTES
            batch.append(Part(file, number, start, stop))
            room -= stop - start
    if batch:
        yield batch
