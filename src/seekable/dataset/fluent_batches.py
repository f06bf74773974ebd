"""Columns as methods: records as Arrow has them.

Each method imports what it needs inside, because sources are datasets, and those import this class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from seekable._arguments import checked_count
from seekable._cached import cached
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset
    from seekable.nodes.sources.decode import DecodeTable

__all__ = ["Columnar"]

_KINDS = ("python", "numpy", "arrow")
_AHEAD = 4096
"""Positions whose order is resolved in one go."""

_BYTES = 8 << 20
"""Bytes of files, about, whose rows are put in order in one go."""


class Columnar:
    """Batches of records, column by column."""

    def to_arrow(self, rows: Any = None) -> pa.RecordBatch:
        """Return some rows of epoch 0 as one record batch, in the order asked.

        Of tables (Parquet, Arrow) no Python object is made of a value.

        Args:
            rows: a list or array of rows; all if left out.

        Raises:
            InvalidArgument: records are no dicts, or the values of a column have no common type.
            OutOfRange: a row that the dataset does not have.
            MissingDependency: pyarrow is not installed.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": 0, "text": "a"}, {"id": 1, "text": "b"}])
            >>> ds.to_arrow([1, 0]).to_pydict()
            {'id': [1, 0], 'text': ['b', 'a']}
        """
        from seekable.dataset.base import known_size
        from seekable.dataset.position import checked_places
        from seekable.nodes.sources.table_batches import empty_table, table_of

        dataset = cast("Dataset", self)
        if rows is None:
            rows = np.arange(known_size(dataset, "to_arrow() without rows"), dtype=np.int64)
        positions = checked_places(rows, dataset.size)
        return table_of(dataset.plan(positions)) if positions.size else empty_table(dataset)

    def batches(self, kind: DecodeTable, *, size: int) -> Iterator[Any]:
        """Yield the records of epoch 0 in batches: the last may be short.

        Args:
            kind: ``"python"`` for lists of records, ``"numpy"`` for dicts of arrays (lists, of what numpy
                has no type for), ``"arrow"`` for record batches.
            size: records in a batch.

        Raises:
            InvalidArgument: an argument breaks a rule, or records are no dicts.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence([{"id": number} for number in range(3)])
            >>> [batch.to_pydict() for batch in ds.batches("arrow", size=2)]
            [{'id': [0, 1]}, {'id': [2]}]
        """
        if kind not in _KINDS:
            message = f"kind must be one of {', '.join(map(repr, _KINDS))} (got {kind!r})"
            raise InvalidArgument(message)
        return self._batches(kind, checked_count("size", size, least=1))

    def batch_at(self, positions: NDArray[np.int64]) -> Any:
        """Return the records at some positions: a list, but of tables what their ``decode`` says."""
        dataset = cast("Dataset", self)
        if self._decoded_as == "python":
            return dataset.fetch(positions)
        from seekable.nodes.sources.table_batches import batch_of, empty_table, numpy_batch

        if positions.size:
            return batch_of(dataset.plan(positions), self._decoded_as)
        return empty_table(dataset) if self._decoded_as == "arrow" else numpy_batch(empty_table(dataset))

    @cached
    def _decoded_as(self) -> DecodeTable:
        from seekable.nodes.sources.table_batches import decoded_as

        return decoded_as(cast("Dataset", self))

    def _batches(self, kind: DecodeTable, size: int) -> Iterator[Any]:
        from seekable.nodes.sources.table_batches import numpy_batch, table_of

        dataset, ahead, start = cast("Dataset", self), max(1, _AHEAD // size) * size, 0
        while dataset.size is None or start < dataset.size:
            stop = start + ahead if dataset.size is None else min(start + ahead, dataset.size)
            plan = dataset.plan(np.arange(start, stop, dtype=np.int64))
            # Several batches are put in order in one go, as far as they are small.
            each = max(1, plan.bytes // max(1, len(plan)))
            step = size if kind == "python" else max(1, _BYTES // each // size) * size
            for first in range(0, stop - start, step):
                part = plan.slice(first, min(first + step, stop - start))
                if kind == "python":
                    yield part.read()
                    continue
                table = table_of(part)
                for at in range(0, len(part), size):
                    batch = table.slice(at, size)
                    yield batch if kind == "arrow" else numpy_batch(batch, part, at)
            start = stop
