"""Some files of one index: what a set of files is made of, and all that is pickled of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import IndexStale
from seekable.index.catalog import open_table, read_table
from seekable.index.offsets import Offsets, open_offsets
from seekable.index.witness import Few, Many, compact, witness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows of one table."""

    root: str
    """The absolute folder that the files' names are relative to."""

    folder: str
    """The index folder."""

    table: str
    """The name of the table file."""

    rows: range | NDArray[np.int32]
    """The rows, in the order in which their records come."""

    witness: Few | Many
    """What finds the files in a later table."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenPart:
    """A part with its table, and with the segments that its rows are in."""

    part: Part
    """What is open."""

    table: Table
    """Its table."""

    offsets: dict[int, Offsets]
    """The open segments, by their numbers in the table."""


def part_of(root: str, folder: str, table: Table, rows: NDArray[np.int64]) -> Part:
    """Return some rows of a table as a part."""
    return Part(root, folder, table.file_name, compact(rows), witness(table, rows))


def open_part(part: Part) -> OpenPart:
    """Open a part; in a later table of its index, if its own is gone.

    Raises:
        IndexStale: the index is gone, or does not know the files any more as they were.
    """
    table = open_table(part.folder, part.table)
    opened = _opened(part, table) if table else None
    return opened or _open_again(part)


def lasting(opened: OpenPart) -> Part:
    """Return the part as another process will find it, if its table was replaced meanwhile.

    Raises:
        IndexStale: the index is gone, or does not know the files any more as they were.
    """
    part = opened.part
    if os.path.exists(os.path.join(part.folder, part.table)):
        return part
    return _open_again(part).part


def row_numbers(part: Part) -> NDArray[np.int64]:
    """Return the rows of a part as an array."""
    return np.asarray(part.rows, np.int64)


def _opened(part: Part, table: Table) -> OpenPart | None:
    numbers = np.unique(table.column("segment", row_numbers(part))).tolist()
    try:
        offsets = {number: open_offsets(part.folder, table.segments[number]) for number in numbers}
    except FileNotFoundError:
        return None
    return OpenPart(part, table, offsets)


def _open_again(part: Part) -> OpenPart:
    table = read_table(part.folder)
    rows = part.witness.rows_in(table, row_numbers(part)) if table else None
    if table is None or rows is None:
        raise IndexStale(
            f"the index in {part.folder!r} that this dataset was opened with ({part.table}) is gone, and "
            f"the present one does not have its {len(part.rows)} files as they were; open the dataset again"
        )
    opened = _opened(part_of(part.root, part.folder, table, rows), table)
    if opened is None:
        raise IndexStale(f"the index in {part.folder!r} is damaged; open the dataset again to rebuild it")
    return opened
