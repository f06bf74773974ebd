"""The bytes of tables that reads of rows take: pages, chunks and record batches, many rows at once.

Footers and page indexes say where they lie. Of files that lie elsewhere these are fetched first, those of
all files together.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import CorruptRecord
from seekable.formats.tables.table_plan import DecodeBlock, steps
from seekable.nodes.graph import FileRanges
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.formats.tables.table_files import RowPlaces
    from seekable.formats.tables.table_rows import RowReader

__all__ = ["table_ranges"]

_TAIL_BYTES = 64 << 10
"""The bytes at the end of a table that are fetched first; most footers are within."""

_LARGE_BYTES = 32 << 20
"""The bytes of a chunk without an index of pages that take longer to fetch than to go from page to page."""

_FEW = 16
"""Rows are few if they are less than one part in so many of their group."""


def table_ranges(
    places: RowPlaces, single: RowReader, rows: Int64s, dense: Container[int]
) -> Iterator[FileRanges]:
    """Yield the bytes that reading some rows takes, in the order of the rows in the files; opens the files.

    Args:
        places: the rows and their files.
        single: the reader of single rows, which has the columns.
        rows: the rows, in any order.
        dense: the blocks that are decoded whole.

    Raises:
        IndexStale: a file has changed.
        UnsupportedFormat: a file cannot be opened.
    """
    if not rows.size:
        return
    rows = np.unique(rows)
    if not places.files.has_objects:
        yield _rows(places, single, rows, dense)
        return
    with far().reads.holding([_tails(places, rows)]):
        indexes = _indexes(places, single, rows)
    with far().reads.holding([indexes]):
        found = _rows(places, single, rows, dense)
    yield found


def _tails(places: RowPlaces, rows: Int64s) -> FileRanges:
    """Return the ends of those files of some rows that are not open yet."""
    files = [file for file in np.unique(places.in_file(rows)[0]).tolist() if not places.open.has(file)]
    sizes = [places.files.data_size(file) for file in files]
    tails = [(max(0, size - _TAIL_BYTES), size) for size in sizes]
    return _ranges(places, [(file, *tail) for file, tail in zip(files, tails, strict=True)])


def _indexes(places: RowPlaces, single: RowReader, rows: Int64s) -> FileRanges:
    """Return the bytes that say where the pages of some rows lie, as far as they are not known yet.

    Where few rows of a large chunk without an index are read, it is left out: the reader goes from page to
    page, and several pages ahead.
    """
    found: list[tuple[int, int, int]] = []
    groups, counts = np.unique(places.blocks.groups(rows), return_counts=True)
    are_few = counts * _FEW < np.diff(places.blocks.group_starts)[groups]
    for group, is_few in zip(groups.tolist(), are_few.tolist(), strict=True):
        file, number = places.blocks.group_in_file(group)
        columns = single.columns[single.schema_of[file]].there
        with suppress(CorruptRecord):  # reading names the row
            indexes = places.open.get(file).index_ranges(number, columns)
            found += [(file, *each) for each in indexes if not is_few or each[1] - each[0] <= _LARGE_BYTES]
    return _ranges(places, found)


def _rows(places: RowPlaces, single: RowReader, rows: Int64s, dense: Container[int]) -> FileRanges:
    """Return the bytes of ascending rows."""
    blocks = places.blocks
    found: list[tuple[int, int, int]] = []
    for step in steps(rows, blocks, dense, threads=1):
        group = int(blocks.group_of[step.block]) if isinstance(step, DecodeBlock) else step.group
        file, number = blocks.group_in_file(group)
        columns, first = single.columns[single.schema_of[file]].there, int(blocks.group_starts[group])
        table = places.open.get(file)
        with suppress(CorruptRecord):  # reading names the row
            if isinstance(step, DecodeBlock):
                start, stop = (blocks.edges[step.block : step.block + 2] - first).tolist()
                found += [(file, *each) for each in table.run_ranges(number, start, stop, columns)]
            else:
                found += [(file, *each) for each in table.row_ranges(number, step.rows - first, columns)]
    return _ranges(places, found)


def _ranges(places: RowPlaces, found: Sequence[tuple[int, int, int]]) -> FileRanges:
    """Return ranges, given the file, the first byte and the byte behind the last of each."""
    return FileRanges.of(places.files, *np.array(found, np.int64).reshape(-1, 3).T)
