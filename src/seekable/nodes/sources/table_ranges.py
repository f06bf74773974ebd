"""The bytes of tables that reads of rows take: pages, chunks and record batches, many rows at once.

Footers and page indexes say where they lie. Of files that lie elsewhere these are fetched first, those of
all files together.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from seekable.nodes.file_ranges import FileRanges
from seekable.nodes.sources.table_plan import DecodeBlock, steps

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.sources.table_files import RowPlaces
    from seekable.nodes.sources.table_rows import RowReader

__all__ = ["ranges_of_indexes", "ranges_of_rows", "ranges_of_tails"]

_TAIL_BYTES = 64 << 10
"""The bytes at the end of a table that are fetched first; most footers are within."""


def ranges_of_tails(places: RowPlaces, rows: Int64s) -> FileRanges:
    """Return the ends of those files of some rows that are not open yet."""
    files = [file for file in np.unique(places.in_file(rows)[0]).tolist() if not places.open.has(file)]
    sizes = [places.files.data_size(file) for file in files]
    return _ranges(places, files, [(max(0, size - _TAIL_BYTES), size) for size in sizes])


def ranges_of_indexes(places: RowPlaces, single: RowReader, rows: Int64s) -> FileRanges:
    """Return the bytes that say where some rows lie, as far as they are not known yet; opens the files."""
    files: list[int] = []
    found: list[tuple[int, int]] = []
    for group in np.unique(places.blocks.groups(rows)).tolist():
        file, number = places.blocks.group_in_file(group)
        columns = single.columns[single.schema_of[file]].there
        more = places.open.get(file).index_ranges(number, columns)
        found += more
        files += repeat(file, len(more))
    return _ranges(places, files, found)


def ranges_of_rows(places: RowPlaces, single: RowReader, rows: Int64s, dense: Container[int]) -> FileRanges:
    """Return the bytes that reading some rows takes.

    Args:
        places: the rows and their files.
        single: the reader of single rows, which has the columns.
        rows: the rows, in any order.
        dense: the blocks that are decoded whole.

    Raises:
        CorruptRecord: a file is damaged.
        IndexStale: a file has changed.
    """
    files: list[int] = []
    found: list[tuple[int, int]] = []
    for file, more in _steps(places, single, np.unique(rows), dense):
        found += more
        files += repeat(file, len(more))
    return _ranges(places, files, found)


def _steps(
    places: RowPlaces, single: RowReader, rows: Int64s, dense: Container[int]
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield for each step of reading ascending rows the file, and the ranges that it reads."""
    blocks = places.blocks
    for step in steps(rows, blocks, dense, threads=1):
        group = int(blocks.group_of[step.block]) if isinstance(step, DecodeBlock) else step.group
        file, number = blocks.group_in_file(group)
        columns, first = single.columns[single.schema_of[file]].there, int(blocks.group_starts[group])
        table = places.open.get(file)
        if isinstance(step, DecodeBlock):
            start, stop = (blocks.edges[step.block : step.block + 2] - first).tolist()
            yield file, table.run_ranges(number, start, stop, columns)
        else:
            yield file, table.row_ranges(number, step.rows - first, columns)


def _ranges(places: RowPlaces, files: Sequence[int], ranges: Sequence[tuple[int, int]]) -> FileRanges:
    starts, ends = np.array(ranges, np.int64).reshape(-1, 2).T
    return FileRanges.of(places.files, np.array(files, np.int64), starts, ends)
