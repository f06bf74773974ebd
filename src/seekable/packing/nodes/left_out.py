"""Documents that are left out of packed samples: their tokens become padding, all others stay in place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._cached import cached
from seekable.order.exclusion import row_set
from seekable.packing.order.pieces import LEFT_OUT
from seekable.state.excluded_rows import described_rows, rows_as_text, rows_of_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.saving import Loading, Saving
    from seekable.order.exclusion import RowSet
    from seekable.packing.nodes.sample_arrays import PlacedPieces

__all__ = ["LeftOutDocuments"]


@final
@dataclass(frozen=True, eq=False)
class LeftOutDocuments:
    """Rows of the child of a packing whose tokens are masked in its samples."""

    rows: Int64s
    """The rows: int64, ascending and distinct."""

    def described(self) -> dict[str, Any]:
        """Return the number and the digest of the rows, and few rows themselves, JSON-safe."""
        return described_rows(self.rows)

    @classmethod
    def from_description(cls, tree: Mapping[str, Any]) -> LeftOutDocuments | None:
        """Return the documents that a description of a node has; None if it has none."""
        return cls(rows_of_text(tree["list"])) if "list" in tree else None

    def as_json(self, into: Saving) -> str:
        """Return the rows as text."""
        return rows_as_text(self.rows)

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> LeftOutDocuments:
        """Return the rows that `as_json` wrote; errors are those of `seekable.nodes.saving.Loading`."""
        return cls(rows_of_text(given.checked(value, str, where)))

    def with_rows(self, rows: Int64s) -> LeftOutDocuments:
        """Return more documents: itself if the rows are left out already."""
        joined = np.union1d(self.rows, rows)
        return self if joined.size == self.rows.size else LeftOutDocuments(joined)

    def out_of(self, pieces: PlacedPieces) -> PlacedPieces:
        """Return the pieces, with those that these documents made marked as left out.

        The sentinels of a document that was rearranged are left out with it.
        """
        out = np.zeros(pieces.documents.size, dtype=np.bool_)
        stored = np.flatnonzero(pieces.documents >= 0)
        out[stored[self._holding(pieces.documents[stored])]] = True
        if not out.any():
            return pieces
        if pieces.joined is not None:
            heads = ~pieces.joined
            heads[pieces.bounds[:-1]] = True
            out = np.logical_or.reduceat(out, np.flatnonzero(heads))[np.cumsum(heads) - 1]
        return replace(pieces, documents=np.where(out, LEFT_OUT, pieces.documents))

    def kept(self, rows: Int64s) -> Int64s:
        """Return those of some rows that are not left out."""
        is_kept = np.ones(rows.size, dtype=np.bool_)
        is_kept[self._holding(rows)] = False
        return rows[is_kept]

    def _holding(self, rows: Int64s) -> NDArray[np.intp]:
        # What is asked for may be any document, also one after the last that is left out.
        return self._set.holding(np.minimum(rows, self._set.size - 1))

    @cached
    def _set(self) -> RowSet:
        return row_set(self.rows, int(self.rows[-1]) + 2)
