"""Some files of one index: what a set of files is made of, and all that is pickled of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import IndexStale
from seekable.index.catalog import open_table, read_table
from seekable.index.offsets import Offsets, open_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.table import Table

_MOST_WITNESSES = 256

Witness = tuple[str, str, int]
"""A file by name, format and content digest."""


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

    witnesses: tuple[Witness, ...]
    """The files themselves, to find them in a later table; none if they are many, because a pickle
    shall be small."""


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
    witnesses = _witnesses(table, rows) if len(rows) <= _MOST_WITNESSES else ()
    return Part(root, folder, table.file_name, _compact(rows), witnesses)


def open_part(part: Part) -> OpenPart:
    """Open a part; in a later table of its index, if its own is gone.

    Raises:
        IndexStale: the index is gone, or does not know the files any more as they were.
    """
    table = open_table(part.folder, part.table)
    opened = _opened(part, table) if table else None
    return opened or _open_again(part, part.witnesses)


def lasting(opened: OpenPart) -> Part:
    """Return the part as another process will find it, if its table was replaced meanwhile.

    Raises:
        IndexStale: the index is gone, or does not know the files any more as they were.
    """
    part = opened.part
    if os.path.exists(os.path.join(part.folder, part.table)):
        return part
    return _open_again(part, _witnesses(opened.table, row_numbers(part))).part


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


def _open_again(part: Part, witnesses: tuple[Witness, ...]) -> OpenPart:
    table = read_table(part.folder)
    rows = _find(table, witnesses) if table and witnesses else None
    if table is None or rows is None:
        raise IndexStale(
            f"the index in {part.folder!r} that this dataset was opened with ({part.table}) is gone, and "
            f"the present one does not tell where its {len(part.rows)} files are; open the dataset again"
        )
    again = Part(part.root, part.folder, table.file_name, _compact(rows), witnesses)
    opened = _opened(again, table)
    if opened is None:
        raise IndexStale(f"the index in {part.folder!r} is damaged; open the dataset again to rebuild it")
    return opened


def _find(table: Table, witnesses: tuple[Witness, ...]) -> NDArray[np.int64] | None:
    found = [int(table.rows([name], format_name=form)[0]) for name, form, _ in witnesses]
    rows = np.array(found, np.int64)
    return rows if (rows >= 0).all() and _witnesses(table, rows) == witnesses else None


def _witnesses(table: Table, rows: NDArray[np.int64]) -> tuple[Witness, ...]:
    return tuple((table.name(row), table.format(row), table.digest("content", row)) for row in rows.tolist())


def _compact(rows: NDArray[np.int64]) -> range | NDArray[np.int32]:
    first = int(rows[0]) if len(rows) else 0
    if (rows == np.arange(first, first + len(rows))).all():
        return range(first, first + len(rows))
    return rows.astype(np.int32)
