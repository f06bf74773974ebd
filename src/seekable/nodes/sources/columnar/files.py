"""The files of tables: open ones, a bounded number of them, and where their rows lie in groups and blocks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.order.blocks import cut_long_blocks
from seekable.remote.placeholder import LARGEST_PLACEHOLDER, read_placeholder, told_path
from seekable.remote.ranges import ranges_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.table import TableFile, TableFormat
    from seekable.index.fileset import FileSet

    Int64s = NDArray[np.int64]

__all__ = ["Layout", "OpenTables", "table_sizes"]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the rows of some files lie. Rows are counted over all files, groups too."""

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
    def of(cls, files: FileSet) -> Layout:
        """Return the layout of some tables, which the index has."""
        counts, firsts = files.groups()
        file_of = np.repeat(np.arange(len(counts)), counts)
        starts = np.append(firsts + files.starts[:-1][file_of], files.starts[-1])
        edges = cut_long_blocks(np.diff(starts))
        group_of = np.searchsorted(starts, edges[:-1], side="right") - 1
        return cls(edges, group_of, starts, file_of, np.cumsum(counts) - counts)


class OpenTables:
    """Opens tables and keeps the last ones open. Safe from threads, and in a forked child."""

    def __init__(self, files: FileSet, form: TableFormat, most: int) -> None:
        """Open none yet.

        Args:
            files: the files.
            form: of which format they are.
            most: how many are kept open.
        """
        self._files = files
        self._form = form
        self._most = most
        self._open: OrderedDict[int, TableFile] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: int) -> TableFile:
        """Return a file, open, after a look whether it is the one that was indexed.

        Raises:
            IndexStale: it is not.
            UnsupportedFormat: it cannot be opened.
        """
        mapped = self._files.mapped(file)
        mapped.check()
        table = self._open.get(file)
        if table is not None:
            return table
        table = self._form.open(ranges_of(mapped), self._files.pages(file))
        with self._lock:
            self._open[file] = table
            while len(self._open) > self._most:
                self._open.popitem(last=False)
        return table


def table_sizes(files: FileSet) -> Int64s:
    """Return how many bytes each file has: of a placeholder, the file of the Hub that it stands for."""
    sizes = files.sizes.copy()
    for file in np.flatnonzero(sizes <= LARGEST_PLACEHOLDER).tolist():
        path = files.path(file)
        if told_path(path) != path:
            sizes[file] = read_placeholder(path, bytes(files.mapped(file).view[: int(sizes[file])])).size
    return sizes
