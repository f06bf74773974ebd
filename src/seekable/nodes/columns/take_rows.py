"""Rows of Arrow arrays by number, for types too that pyarrow's ``take`` lacks: views and run-end encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["one_array", "take_array", "take_batch", "take_pieces"]


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


def take_pieces(pieces: Sequence[tuple[NDArray[np.intp], pa.RecordBatch, Int64s]]) -> pa.RecordBatch:
    """Return rows of several record batches as one.

    Args:
        pieces: for each batch the places of its rows in the result, the batch, and the numbers of the rows.
            All places together are those of the result, each once.

    Example:
        >>> import pyarrow as pa
        >>> one, two = pa.record_batch({"n": [0, 1]}), pa.record_batch({"n": [2, 3]})
        >>> pieces = [(np.array([2]), one, np.array([1])), (np.array([1, 0]), two, np.array([0, 1]))]
        >>> take_pieces(pieces).to_pydict()
        {'n': [3, 2, 1]}
    """
    taken = [
        batch if _is_range(rows, batch.num_rows) else take_batch(batch, rows) for _, batch, rows in pieces
    ]
    joined, order = pa.concat_batches(taken), np.concatenate([at for at, _, _ in pieces])
    if _is_range(order, order.size):
        return joined
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return take_batch(joined, places)


def one_array(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return a column as one array, copied only if it has several chunks."""
    chunks = _chunks(column)
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def _is_range(rows: NDArray[np.integer[Any]], size: int) -> bool:
    return rows.size == size and bool((rows == np.arange(size)).all())


def _chunks(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[pa.Array[Any]]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
