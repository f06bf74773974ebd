"""Some rows of a column as an array of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from seekable.formats.table import Int64s

__all__ = ["joined", "taken"]


def taken(column: pa.ChunkedArray, places: Int64s) -> pa.Array:
    """Return some rows of a column, copied, so that nothing of the rest is kept.

    Args:
        column: the column.
        places: which rows, ascending and distinct.
    """
    import pyarrow as pa

    try:
        return joined(column.take(pa.array(places)))
    except pa.ArrowNotImplementedError:  # string_view and its kin
        breaks = np.flatnonzero(np.diff(places) > 1) + 1
        runs = [(int(run[0]), len(run)) for run in np.split(places, breaks) if len(run)]
        parts = [part for start, size in runs for part in column.slice(start, size).chunks]
        return pa.concat_arrays(parts) if parts else joined(column.slice(0, 0))


def joined(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only where it has to be."""
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
