"""Where the pages of a column's chunk lie, and which rows begin in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.table import Int64s

    Bools = NDArray[np.bool_]

__all__ = ["PageTable", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """Pages that follow each other, and are decoded together."""

    first: int
    """The first of them."""

    last: int
    """The last of them."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """The pages of one leaf in one group, in their order."""

    first: Int64s
    """How many rows of the group begin before each page, and behind the last one how many there are."""

    offset: Int64s
    """Where in the file each page's header begins."""

    size: Int64s
    """How many bytes each page has, its header among them."""

    torn: Bools | None
    """Which pages begin within a row; None if none does."""

    dictionary: tuple[int, int]
    """Where the dictionary page begins and how many bytes it has, with its header; 0 if there is none."""

    def spans(self, rows: Int64s) -> list[Span]:
        """Return the pages that hold some rows.

        Args:
            rows: within the group, ascending.
        """
        begins = np.searchsorted(self.first, rows, side="right") - 1
        if self.torn is None:
            if len(begins) == 1:
                return [Span(int(begins[0]), int(begins[0]))]
            pages = np.unique(begins)
            breaks = np.flatnonzero(np.diff(pages) > 1)
            return _spans(pages, breaks)
        ends = np.searchsorted(self.first[:-1], rows + 1, side="right") - 1
        whole = (self.first[ends] == rows + 1) & ~self.torn[ends]
        ends -= whole  # the row behind begins a page: that page is not needed
        wanted = np.zeros(len(self.size) + 1, np.int64)
        np.add.at(wanted, begins, 1)
        np.add.at(wanted, ends + 1, -1)
        pages = np.flatnonzero(np.cumsum(wanted[:-1]))
        return _spans(pages, np.flatnonzero(np.diff(pages) > 1))

    def begins_torn(self, page: int) -> bool:
        """Whether a page begins within a row."""
        return self.torn is not None and bool(self.torn[page])


def _spans(pages: Int64s, breaks: Int64s) -> list[Span]:
    firsts = [0, *(breaks + 1).tolist()]
    lasts = [*breaks.tolist(), len(pages) - 1]
    return [Span(int(pages[first]), int(pages[last])) for first, last in zip(firsts, lasts, strict=True)]
