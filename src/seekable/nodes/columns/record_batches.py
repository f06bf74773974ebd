"""Records as one batch, column by column, wherever they come from."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.errors import BadValue, InvalidArgument
from seekable.index.location import Location
from seekable.nodes.columns.decode_column import numpy_values, take_array
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.graph import ColumnarPlan, held
from seekable.nodes.readahead import reads_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.nodes.columns.decode_column import DecodeTable
    from seekable.nodes.graph import Plan
    from seekable.nodes.node import BatchForm, Node
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = [
    "batch_of",
    "batch_of_records",
    "batches",
    "empty_table",
    "gathered_batch",
    "is_columnar",
    "numpy_batch",
    "table_of",
    "with_rows",
]


_AHEAD = 4096
"""The number of positions whose order is resolved at a time."""

_BYTES = 8 << 20
"""About the number of bytes of files whose rows are put in order at a time."""


def batches(node: Node, kind: BatchForm, size: int) -> Iterator[Any]:
    """Yield the records of epoch 0 in batches; see ``Dataset.batches``."""
    for count, plan, ahead in reads_ahead(_planned(node, size)):
        # The order of several small batches is resolved together.
        each = max(1, plan.bytes // max(1, len(plan)))
        step = size if kind == "python" else _even(count, each, size)
        for first in range(0, count, step):
            last = min(first + step, count)
            ahead.read_to(last)
            part = plan.slice(first, last)
            if kind == "python":
                yield part.read()
            else:
                yield from _in_columns(part, kind, size)


def _even(count: int, each: int, size: int) -> int:
    """Return into how long parts of whole batches to cut some rows, of so many bytes each."""
    parts = max(1, round(count * each / _BYTES))
    return max(1, -(-count // (parts * size))) * size


def _planned(node: Node, size: int) -> Iterator[tuple[int, Plan]]:
    """Yield the plans of epoch 0 in their order, each for whole batches, with its record count."""
    at_once, start = max(1, _AHEAD // size) * size, 0
    while node.size is None or start < node.size:
        stop = start + at_once if node.size is None else min(start + at_once, node.size)
        yield stop - start, node.plan(np.arange(start, stop, dtype=np.int64))
        start = stop


def _in_columns(part: Plan, kind: BatchForm, size: int) -> Iterator[Any]:
    """Yield a plan's records in batches of columns: record batches, or dicts of arrays."""
    pieces = (part.slice(at, min(at + size, len(part))) for at in range(0, len(part), size))
    first = part.slice(0, min(size, len(part))).arrays() if kind == "numpy" else None
    if first is not None:
        yield first
        for piece in itertools.islice(pieces, 1, None):
            yield piece.arrays() or numpy_batch(table_of(piece), piece)
        return
    table = table_of(part)
    for at in range(0, len(part), size):
        batch = table.slice(at, size)
        yield batch if kind == "arrow" else numpy_batch(batch, part, at)


def batch_of(plan: Plan, decode: DecodeTable) -> Any:
    """Return a plan's records as a list of records, a dict of arrays, or a record batch."""
    if decode == "python":
        return plan.read()
    if decode == "arrow":
        return table_of(plan)
    columns = plan.arrays()
    return numpy_batch(table_of(plan), plan) if columns is None else columns


def table_of(plan: Plan) -> pa.RecordBatch:
    """Return the records of a plan as one record batch, in the order of the plan.

    Raises:
        InvalidArgument: records are not dicts, or their values have no common types.
    """
    if isinstance(plan, ColumnarPlan):
        batch: pa.RecordBatch = plan.table()
        return batch
    if isinstance(plan, GatheredPlan) and _has_tables(plan):
        return _put_together(plan)
    return batch_of_records(plan.read(), {})


def _has_tables(plan: Plan) -> bool:
    """Return True if a plan has a table of its own, or all of its parts have."""
    if isinstance(plan, GatheredPlan):
        return bool(plan.parts) and all(_has_tables(part) for _, part in plan.parts)
    return isinstance(plan, ColumnarPlan)


def is_columnar(plan: Plan) -> bool:
    """Return True if a plan reads its columns as columns: no record is made, and none can be a hole."""
    if isinstance(plan, GatheredPlan):
        return bool(plan.parts) and all(is_columnar(part) for _, part in plan.parts)
    return isinstance(plan, ColumnarPlan) and plan.columnar


def batch_of_records(records: Sequence[Any], types: Mapping[str, Any]) -> pa.RecordBatch:
    """Return records as one record batch.

    Args:
        records: the records.
        types: the Arrow types of columns, which come first in the batch; the types of other columns, and of
            those with None here, are inferred.

    Raises:
        InvalidArgument: records are not dicts, or their values have no common types.
    """
    wrong = next((record for record in records if not isinstance(record, dict)), None)
    if wrong is not None:
        message = f"Arrow has columns, so records must be dicts (got {type(wrong).__name__}: {wrong!r:.100})"
        raise InvalidArgument(message)
    names = dict.fromkeys([*types, *(name for record in records for name in record)])
    try:
        arrays = {name: pa.array([record.get(name) for record in records], types.get(name)) for name in names}
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        message = f"values of a column have no common Arrow type: {error}; cast them first, with ds.cast(...)"
        raise InvalidArgument(message) from error
    return with_rows(list(arrays), list(arrays.values()), len(records))


def with_rows(names: Sequence[str], arrays: Sequence[pa.Array], rows: int) -> pa.RecordBatch:
    """Return a record batch with some columns, or without any: it has the given number of rows."""
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _put_together(plan: GatheredPlan) -> pa.RecordBatch:
    """Return the rows of several sources in the plan's order, with the columns of all sources.

    Raises:
        InvalidArgument: a column has types without a common one, or a value that does not fit it.
    """
    with held(plan):
        batches = [table_of(part) for _, part in plan.parts]
    try:
        return gathered_batch(plan.size, [at for at, _ in plan.parts], batches)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidArgument(_clash(plan, [batch.schema for batch in batches], error)) from error


def gathered_batch(
    size: int, at: Sequence[NDArray[np.intp]], batches: Sequence[pa.RecordBatch]
) -> pa.RecordBatch:
    """Join several batches into one, with the columns of all of them.

    Args:
        size: the number of all rows.
        at: for each batch the places of its rows in the result.
        batches: the batches.

    Raises:
        ArrowInvalid, ArrowTypeError, ArrowNotImplementedError: the types of a column have no common one, or a
            value does not fit it.
    """
    if len(batches) == 1:
        return batches[0]
    places = np.empty(size, dtype=np.int64)
    places[np.concatenate(at)] = np.arange(size)
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    joined = pa.concat_tables(tables, promote_options="permissive")
    if not joined.num_columns:
        return with_rows([], [], size)
    columns = [take_array(column, places) for column in joined.columns]
    return pa.RecordBatch.from_arrays(columns, schema=joined.schema)


def _clash(plan: GatheredPlan, schemas: list[pa.Schema], error: Exception) -> str:
    """Return the error for sources whose columns do not fit into one record batch."""
    for name in dict.fromkeys(name for schema in schemas for name in schema.names):
        having = [number for number, schema in enumerate(schemas) if name in schema.names]
        for number in having[1:]:
            kinds = [schemas[each].field(name).type for each in (having[0], number)]
            fields = [pa.schema([(name, kind)]).empty_table() for kind in kinds]
            try:
                pa.concat_tables(fields, promote_options="permissive")
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                paths = [min(plan.parts[each][1].paths) for each in (having[0], number)]
                there = [f"{kind} in {path}" for path, kind in sorted(zip(paths, kinds, strict=True))]
                return (
                    f"the column {name!r} is {' and '.join(there)}, and no type holds both: cast it in one "
                    f"dataset first, with ds.cast({{{name!r}: ...}})"
                )
    return f"the columns of several datasets do not go together: {error}; cast them first, with ds.cast(...)"


def empty_table(node: Node) -> pa.RecordBatch:
    """Return no rows of a dataset, with the columns that its files declare."""
    columns = node.declared() or {}
    schema = pa.schema([(name, pa.null() if kind is None else kind) for name, kind in columns.items()])
    return pa.RecordBatch.from_pylist([], schema=schema)


def numpy_batch(batch: pa.RecordBatch, plan: Plan | None = None, first: int = 0) -> dict[str, Any]:
    """Return a record batch as a dict of arrays; of what numpy has no type for, lists.

    Args:
        batch: the rows.
        plan: the plan that the rows were read by, for errors.
        first: which record of the plan the first row is.

    Raises:
        BadValue: neither numpy nor Python has a value of a column.
    """
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            values = numpy_values(column)
        except (pa.ArrowException, ValueError, ArithmeticError) as error:
            raise _bad_value(name, column, plan, first) from error
        columns[name] = values.tolist() if values.dtype == object else values
    return columns


def _bad_value(name: str, column: pa.Array, plan: Plan | None, first: int) -> BadValue:
    """Return the error for a column with a value that neither numpy nor Python can hold."""
    for row in range(len(column)):
        try:
            numpy_values(column.slice(row, 1))
        except (pa.ArrowException, ValueError, ArithmeticError) as error:
            place = plan.slice(first + row, first + row + 1).locate()[0] if plan is not None else ""
            where = f"{place.path}: row {place.row}" if isinstance(place, Location) else f"record {place}"
            return BadValue(
                f"{where}, column {name!r}: a value of the type {column.type} that neither numpy nor Python "
                f'has one for: {error}. Read batches as "arrow", or leave the column out'
            )
    raise AssertionError  # a column is converted value by value
