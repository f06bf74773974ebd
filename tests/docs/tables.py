"""Rows of the tables ``theirs | ours | note`` of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Row", "rows_of", "spans"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table of names."""

    theirs: str
    ours: str
    note: str


def rows_of(page: str) -> list[Row]:
    """Return the rows of all tables of a page whose heading names seekable in its second column."""
    found: list[Row] = []
    inside = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 3:
            inside = False
        elif cells[1] == "seekable":
            inside = True
        elif inside and set(cells[0]) != {"-"}:
            found.append(Row(*cells))
    return found


def spans(cell: str) -> list[str]:
    """Return the code spans of a cell."""
    return re.findall(r"`([^`]+)`", cell)
