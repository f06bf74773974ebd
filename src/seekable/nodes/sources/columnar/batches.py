"""Records as one batch, column by column, wherever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.compile import Parts
from seekable.nodes.contract import OrderNode
from seekable.nodes.sources.columnar.held import numpy_values
from seekable.nodes.sources.columnar.plan import TablesPlan
from seekable.nodes.sources.columnar.schema import arrow
from seekable.nodes.sources.columnar.source import TableSource

if TYPE_CHECKING:
    import pyarrow as pa

    from seekable.nodes.contract import Node, Plan
    from seekable.nodes.sources.columnar.held import DecodeTable

__all__ = ["batch_of", "decoded_as", "empty_table", "numpy_batch", "table_of"]


def decoded_as(node: Node) -> DecodeTable:
    """Return how a batch of a dataset's records comes: as the tables below are decoded, if all are alike."""
    if isinstance(node, TableSource):
        return "python" if node.errors is not None else node.decode
    if not isinstance(node, OrderNode):
        return "python"
    ways = {decoded_as(child) for child in node.children}
    return ways.pop() if len(ways) == 1 else "python"


def batch_of(plan: Plan, decode: DecodeTable) -> Any:
    """Return what a plan reads: a list of records, a dict of arrays, or a record batch."""
    if decode == "python":
        return plan.read()
    return table_of(plan) if decode == "arrow" else numpy_batch(table_of(plan))


def table_of(plan: Plan) -> pa.RecordBatch:
    """Return what a plan reads as one record batch, in the order asked.

    Raises:
        InvalidArgument: records are no dicts, or their values have no common types.
    """
    pa = arrow()
    if isinstance(plan, TablesPlan):
        return plan.table()
    if isinstance(plan, Parts) and plan.parts and all(isinstance(part, TablesPlan) for _, part in plan.parts):
        tables = [pa.Table.from_batches([table_of(part)]) for _, part in plan.parts]
        places = np.empty(plan.size, dtype=np.int64)
        places[np.concatenate([at for at, _ in plan.parts])] = np.arange(plan.size)
        joined = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
        (batch,) = joined.take(pa.array(places)).combine_chunks().to_batches()
        return batch
    records = plan.read()
    wrong = next((record for record in records if not isinstance(record, dict)), None)
    if wrong is not None:
        message = f"Arrow has columns, so records must be dicts (got {type(wrong).__name__}: {wrong!r:.100})"
        raise InvalidArgument(message)
    names = dict.fromkeys(name for record in records for name in record)
    try:
        arrays = {name: pa.array([record.get(name) for record in records]) for name in names}
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        message = f"values of a column have no common Arrow type: {error}; cast them first, with ds.cast(...)"
        raise InvalidArgument(message) from error
    return pa.RecordBatch.from_pydict(arrays)


def empty_table(node: Node) -> pa.RecordBatch:
    """Return no rows of a dataset, with the columns that its files declare."""
    pa = arrow()
    columns = node.declared() or {}
    schema = pa.schema([(name, pa.null() if kind is None else kind) for name, kind in columns.items()])
    return pa.RecordBatch.from_pylist([], schema=schema)


def numpy_batch(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return a record batch as a dict of arrays; of what numpy has no type for, lists."""
    columns = {name: numpy_values(batch.column(i)) for i, name in enumerate(batch.schema.names)}
    return {name: column.tolist() if column.dtype == object else column for name, column in columns.items()}
