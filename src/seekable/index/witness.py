"""Finding the files of a table again in a later table of the same index.

A few are known by themselves. Many are not listed, because what is pickled shall be small: of them it is
known of which generation the table was, which of its rows they were, and one digest of them all. A later
table holds the rows of that generation in the same order, among newer ones, unless one of them was
changed or removed; and that the digest tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.table import Table

_FEW = 256


@dataclass(frozen=True, slots=True)
class Few:
    """Files by name, format and content digest."""

    files: tuple[tuple[str, str, int], ...]

    def rows_in(self, table: Table, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return where they are in a later table than the one whose rows these are; None if they are not."""
        found = [int(table.rows([name], format_name=form)[0]) for name, form, _ in self.files]
        later = np.array(found, np.int64)
        return later if (later >= 0).all() and _few(table, later) == self else None


@dataclass(frozen=True, slots=True)
class Many:
    """Files by the generation of their table and one digest."""

    generation: int
    digest: int

    def rows_in(self, table: Table, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return where they are in a later table than the one whose rows these are; None if they are not."""
        # Either the table has grown since, or the index was lost and built again, its generations too.
        for there in (table.column("generation") <= self.generation, np.ones(table.files, bool)):
            present = np.flatnonzero(there)
            if int(rows.max(initial=-1)) < len(present) and table.digest_of(present[rows]) == self.digest:
                return present[rows]
        return None


def witness(table: Table, rows: NDArray[np.int64]) -> Few | Many:
    """Return what some rows of a table will be found by."""
    if len(rows) <= _FEW:
        return _few(table, rows)
    return Many(int(table.column("generation").max(initial=0)), table.digest_of(rows))


def compact(rows: NDArray[np.int64]) -> range | NDArray[np.int32]:
    """Return rows in a form that is small when it is pickled.

    Example:
        >>> compact(np.arange(5, 9))
        range(5, 9)
    """
    first = int(rows[0]) if len(rows) else 0
    if (rows == np.arange(first, first + len(rows))).all():
        return range(first, first + len(rows))
    return rows.astype(np.int32)


def _few(table: Table, rows: NDArray[np.int64]) -> Few:
    return Few(
        tuple((table.name(row), table.format(row), table.digest("content", row)) for row in rows.tolist())
    )
