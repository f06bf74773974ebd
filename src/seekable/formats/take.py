"""Rows of Arrow arrays by number, for types too that pyarrow's ``take`` lacks: views and run-end encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional

if TYPE_CHECKING:
    import pyarrow as pa

    from seekable.formats.table_format import Int64s
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["one_array", "take_array", "take_batch"]


def take_array(column: pa.Array[Any] | pa.ChunkedArray[Any], rows: Int64s) -> pa.Array[Any]:
    """Return some rows of a column as an array of their own, which keeps nothing of the other rows.

    Args:
        column: the column.
        rows: the numbers of the rows, in any order; they may repeat.

    Example:
        >>> import pyarrow as pa
        >>> take_array(pa.array(["a", "b", "c"], pa.string_view()), np.array([2, 0, 0])).to_pylist()
        ['c', 'a', 'a']
    """
    try:
        taken = column.take(pa.array(rows))
    except pa.ArrowNotImplementedError:
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = [column.slice(int(run[0]), len(run)) for run in np.split(rows, breaks) if len(run)]
        taken = pa.chunked_array([part for run in runs for part in _chunks(run)], column.type)
    return one_array(taken)


def take_batch(batch: pa.RecordBatch, rows: Int64s) -> pa.RecordBatch:
    """Return some rows of a record batch; see `take_array`.

    Args:
        batch: the record batch; it has a column at least.
        rows: the numbers of the rows, in any order; they may repeat.
    """
    try:
        return batch.take(pa.array(rows))
    except pa.ArrowNotImplementedError:
        columns = [take_array(column, rows) for column in batch.columns]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def one_array(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return a column as one array, copied only if it has several chunks."""
    chunks = _chunks(column)
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def _chunks(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[pa.Array[Any]]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
