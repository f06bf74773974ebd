"""The comparison of an index with the files on disk. Pure: no file is accessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.index.file_table import Table

__all__ = ["RACY_NS", "FileStatus", "file_status"]

RACY_NS = 2_000_000_000
"""A file indexed this soon after its modification may have changed again with the same time: the times of
some file systems have steps of two seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class FileStatus:
    """The files that an index has, and those that are to be scanned."""

    rows: NDArray[np.int64]
    """The row of each file in the table, -1 where there is none that is valid."""

    racy: NDArray[np.bool_]
    """True for each file with a row that must be read again: it may have changed after it was indexed."""

    @property
    def to_scan(self) -> NDArray[np.bool_]:
        """True for each file to be read."""
        return (self.rows < 0) | self.racy


def file_status(
    table: Table | None,
    names: Sequence[str],
    *,
    format_name: str,
    sizes: NDArray[np.int64],
    mtimes_ns: NDArray[np.int64],
    whole: NDArray[np.bool_] | None,
    doubt: bool,
) -> FileStatus:
    """Return the files that an index has as they are now.

    Args:
        table: the index's table, if it has one.
        names: the files' names relative to the root.
        format_name: the name of the format that they are opened in.
        sizes: their numbers of bytes, int64.
        mtimes_ns: their modification times, int64.
        whole: True for each segment of the table that can be used; None without a table.
        doubt: True to read files again that were indexed right after they were modified.
    """
    if table is None or whole is None:
        return FileStatus(np.full(len(names), -1, np.int64), np.zeros(len(names), bool))
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
    return FileStatus(rows, racy)
