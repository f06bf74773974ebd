"""The files of tables: the open ones, and where rows lie in files, groups and blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._cached import cached
from seekable.index.location import Location
from seekable.nodes.graph import Origins
from seekable.order.blocks import cut_long_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tables.table_format import TableFile, TableFormat
    from seekable.index.fileset import FileSet

__all__ = ["OpenTables", "RowBlocks", "RowPlaces", "row_bytes"]


@dataclass(frozen=True, slots=True, eq=False)
class RowBlocks:
    """The groups and the blocks of the rows of some files. Rows and groups are counted over all files."""

    edges: Int64s
    """The first row of each block, and the number of all rows."""

    group_of: Int64s
    """The group that each block is part of."""

    group_starts: Int64s
    """The first row of each group, and the number of all rows."""

    file_of: Int64s
    """The file that each group is in."""

    first_groups: Int64s
    """The first group of each file."""

    @classmethod
    def of(cls, files: FileSet) -> RowBlocks:
        """Return the groups and blocks of indexed tables."""
        counts, firsts = files.groups()
        file_of = np.repeat(np.arange(len(counts)), counts)
        starts = np.append(firsts + files.starts[:-1][file_of], files.starts[-1])
        edges = cut_long_blocks(np.diff(starts))
        group_of = np.searchsorted(starts, edges[:-1], side="right") - 1
        return cls(edges, group_of, starts, file_of, np.cumsum(counts) - counts)

    def blocks(self, rows: Int64s) -> Int64s:
        """Return the block of each row, int64."""
        found: Int64s = np.searchsorted(self.edges, rows, side="right") - 1
        return found

    def groups(self, rows: Int64s) -> Int64s:
        """Return the group of each row, int64."""
        found: Int64s = np.searchsorted(self.group_starts, rows, side="right") - 1
        return found

    def group_in_file(self, group: int) -> tuple[int, int]:
        """Return a group's file, and the group's index in that file."""
        file = int(self.file_of[group])
        return file, group - int(self.first_groups[file])


@dataclass(frozen=True, slots=True, eq=False)
class OpenTables:
    """The tables of some files; each is open as long as its file is. Safe from threads and after fork."""

    files: FileSet

    form: TableFormat
    """The format of all files."""

    def get(self, file: int) -> TableFile:
        """Return an open table, after a check that its file has not changed since it was indexed.

        Raises:
            IndexStale: the file has changed.
            UnsupportedFormat: the file cannot be opened.
        """
        mapped = self.files.mapped(file)
        mapped.check()
        table: TableFile | None = mapped.reader
        if table is None:
            table = mapped.reader = self.form.open(self.files.source(file), self.files.pages(file))
        return table

    def has(self, file: int) -> bool:
        """Return True if a table is open."""
        return self.files.mapped(file).reader is not None


def row_bytes(files: FileSet) -> NDArray[np.float64]:
    """Return the mean bytes of a row in each file, float64; placeholders count as files on the Hub."""
    return files.data_sizes / np.maximum(files.records, 1)


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """The places of rows: their files, and their bytes in the files."""

    files: FileSet
    blocks: RowBlocks
    open: OpenTables

    def path(self, file: int) -> str:
        """Return the path of a file for messages; of a file on the Hub its name there."""
        return self.files.shown_path(file)

    def in_file(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the file of each row, and the row in that file."""
        files = self.blocks.file_of[self.blocks.groups(rows)]
        return files, rows - self.files.starts[files]

    def span(self, group: int) -> tuple[int, int]:
        """Return the first byte of a group in its file, and the number of its bytes."""
        file, number = self.blocks.group_in_file(group)
        return self.open.get(file).span(number)

    def locate(self, rows: Int64s) -> list[Any]:
        """Return the location of each row: the file, the row in it, and the bytes of the row's group."""
        files, within = self.in_file(rows)
        groups = self.blocks.groups(rows).tolist()
        return [
            Location(self.path(file), row, *self.span(group), is_shared=True)
            for file, row, group in zip(files.tolist(), within.tolist(), groups, strict=True)
        ]

    def origins(self, rows: Int64s) -> Origins:
        """Return the file and the row in it of each row."""
        files, within = self.in_file(rows)
        present, numbers = np.unique(files, return_inverse=True)
        paths = tuple(map(self.path, present.tolist()))
        return Origins(paths, tuple(map(self.files.name, present.tolist())), numbers, within)

    def paths(self, rows: Int64s) -> set[str]:
        """Return the paths of the files of some rows."""
        return set(map(self.path, np.unique(self.in_file(rows)[0]).tolist()))

    def bytes(self, rows: Int64s) -> int:
        """Return the approximate number of bytes of some rows in their files."""
        return int(self.row_bytes[self.in_file(rows)[0]].sum())

    @cached
    def row_bytes(self) -> NDArray[np.float64]:
        """The bytes that a row takes in each file, on average."""
        return row_bytes(self.files)
