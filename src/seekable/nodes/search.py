"""The range of positions that a search covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s


__all__ = ["SearchRange"]

_MOST_FOUND = 10_000_000
"""The number of positions that one search may return."""

_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class SearchRange:
    """The positions ``start <= p < stop`` of a search.

    If ``stop`` is None, the range is some ``epochs``, of step 1, of the first nodes below that have epochs.
    """

    start: int
    stop: int | None
    epochs: range

    def holds(self, positions: Int64s) -> NDArray[np.bool_]:
        """Return a bool array: True for each position in the range."""
        return (positions >= self.start) & (positions < (_LAST if self.stop is None else self.stop))

    def in_each_epoch(self, rows: Int64s, size: int) -> Int64s:
        """Return the positions of some rows in each epoch of ``size`` rows that the range touches.

        Raises:
            InvalidArgument: there are more than 10 million such positions.
        """
        if not rows.size:
            return rows
        first, last = self.epochs.start, self.epochs.stop
        if self.stop is not None:
            first, last = self.start // size, max(self.start // size, -(-self.stop // size))
        if (last - first) * rows.size > _MOST_FOUND:
            message = (
                f"a row comes at more than {_MOST_FOUND:,} positions: search a part of the dataset, or "
                f"what is repeated instead of the repetition"
            )
            raise InvalidArgument(message)
        return (np.arange(first, last, dtype=np.int64)[:, None] * size + rows).ravel()
