"""Lists of numbers that planned records hold, as flat arrays; tables give Arrow's own buffers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import MissingColumn, WrongType
from seekable.nodes.columns.names import no_such_column
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.display import describe_place
from seekable.nodes.graph import HOLE, ColumnarPlan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.columns import record_batches
    from seekable.nodes.graph import Plan
    from seekable.nodes.node import Node

else:
    pa = optional("pyarrow", extra="parquet")
    record_batches = lazy("seekable.nodes.columns.record_batches")

__all__ = ["Lists", "NotAList", "lists_in", "lists_of"]

_INTEGERS = "iub"
"""The kinds of numpy's types that tokens may have."""

_NUMBERS = "iubf"
"""The kinds of numpy's types that aligned arrays may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """The lists of one name in some records: slices of flat arrays, which other lists may lie in too."""

    arrays: tuple[NDArray[Any], ...]
    """The flat arrays: of tables those of Arrow's record batches, which are not copied."""

    array_of: Int64s
    """The index of the array that each list lies in: int64."""

    starts: Int64s
    """The first element of each list in its array: int64."""

    lengths: Int64s
    """The number of elements of each list: int64; 0 for a hole."""

    @property
    def dtypes(self) -> set[str]:
        """The types of the arrays that have elements of these lists."""
        used = np.unique(self.array_of[self.lengths > 0])
        return {str(self.arrays[number].dtype) for number in used.tolist()}

    def by_array(self, records: Int64s) -> Iterator[tuple[NDArray[Any], NDArray[np.intp]]]:
        """Yield each array, and the indices in ``records`` of those whose lists lie in it."""
        if len(self.arrays) == 1:
            yield self.arrays[0], np.arange(records.size)
            return
        owners = self.array_of[records]
        order = np.argsort(owners, kind="stable")
        edges = np.searchsorted(owners[order], np.arange(len(self.arrays) + 1))
        for array, (start, stop) in zip(self.arrays, pairwise(edges.tolist()), strict=True):
            if start < stop:
                yield array, order[start:stop]


class NotAList(Exception):
    """A record without a flat list of integers.

    Attributes:
        record: the index of the record in its plan.
        error: the error for users, without the file and the row.
    """

    def __init__(self, record: int, error: MissingColumn | WrongType) -> None:
        self.record = record
        self.error = error
        super().__init__(record, error)

    def placed(self, node: Node, position: int, call: str) -> MissingColumn | WrongType:
        """Return the error for users.

        Args:
            node: the dataset of the plan.
            position: the position of the record in the dataset.
            call: the method that needs the lists, as ``"pack()"``.
        """
        return type(self.error)(f"{describe_place(node, position)}: {call} {self.error}")


def lists_of(plan: Plan, names: Sequence[str | None], aligned: Collection[str] = ()) -> list[Lists]:
    """Read the lists of some names in the records of a plan.

    A hole has lists of no elements.

    Args:
        plan: a plan of one record or more.
        names: the names of the lists; None stands for the record itself, if records are lists.
        aligned: those of the names whose lists may have floats, too.

    Raises:
        NotAList: a record lacks a name, or has something else there than a flat list of integers.
    """
    if None not in names and record_batches.is_columnar(plan):
        return _of_batches(plan, [name for name in names if name is not None], aligned)
    records = plan.read()
    return [lists_in(records, name, aligned) for name in names]


def _kinds(name: str | None, aligned: Collection[str]) -> str:
    return _NUMBERS if name in aligned else _INTEGERS


def _of_batches(plan: Plan, names: Sequence[str], aligned: Collection[str]) -> list[Lists]:
    """Return the lists in columns of tables; no element is copied."""
    size = len(plan)
    array_of = np.empty(size, dtype=np.int64)
    spans = [(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)) for _ in names]
    arrays: list[list[NDArray[Any]]] = [[] for _ in names]
    for number, (at, batch, rows) in enumerate(_batches(plan)):
        array_of[at] = number
        for name, found, (starts, lengths) in zip(names, arrays, spans, strict=True):
            try:
                values, bounds = _of_column(batch, name, rows, _kinds(name, aligned))
            except NotAList as error:
                raise NotAList(int(at[error.record]), error.error) from None
            found.append(values)
            starts[at] = bounds[rows]
            lengths[at] = bounds[rows + 1] - bounds[rows]
    return [Lists(tuple(found), array_of, *span) for found, span in zip(arrays, spans, strict=True)]


def _batches(plan: Plan) -> Iterator[tuple[NDArray[np.intp], pa.RecordBatch, Int64s]]:
    """Yield record batches: the records of a plan that lie in each, the batch, and their rows in it."""
    if isinstance(plan, GatheredPlan):
        for at, part in plan.parts:
            for inner, batch, rows in _batches(part):
                yield at[inner], batch, rows
    else:
        assert isinstance(plan, ColumnarPlan)
        yield from plan.batches()


def _of_column(batch: pa.RecordBatch, name: str, rows: Int64s, kinds: str) -> tuple[NDArray[Any], Int64s]:
    """Return the elements of a list column, and the bounds of its lists.

    Raises:
        NotAList: the column is of another type, or one of the rows has a null instead of a list or a number.
    """
    if batch.schema.get_field_index(name) < 0:
        raise NotAList(0, _missing(name, batch.schema.names))
    column, types = batch.column(name), pa.types
    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind):
        bounds = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    elif types.is_fixed_size_list(kind):
        bounds = (column.offset + np.arange(len(column) + 1, dtype=np.int64)) * kind.list_size
    else:
        raise NotAList(0, _wrong(name, f"a column of type {kind}", kinds))
    if column.null_count and (wrong := np.flatnonzero(_nulls(column)[rows])).size:
        raise NotAList(int(wrong[0]), _wrong(name, "null", kinds))
    plain = types.is_integer(kind.value_type) or types.is_boolean(kind.value_type)
    if not plain and not (kinds == _NUMBERS and types.is_floating(kind.value_type)):
        if (wrong := np.flatnonzero(bounds[rows + 1] > bounds[rows])).size:
            raise NotAList(int(wrong[0]), _wrong(name, f"a column of type {kind}", kinds))
        return np.empty(0, dtype=np.int64), bounds
    values = column.values
    if values.null_count:
        before = np.concatenate([[0], np.cumsum(_nulls(values))])
        if (wrong := np.flatnonzero(before[bounds[rows + 1]] > before[bounds[rows]])).size:
            raise NotAList(int(wrong[0]), _wrong(name, "a list with a null in it", kinds))
        values = values.fill_null(False if types.is_boolean(kind.value_type) else 0)
    return values.to_numpy(zero_copy_only=False), bounds


def _nulls(array: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def lists_in(records: Sequence[Any], name: str | None, aligned: Collection[str] = ()) -> Lists:
    """Return the lists in records that are dicts, or in records that are lists if ``name`` is None.

    Raises:
        NotAList: a record has no flat list of integers there.
    """
    arrays, kinds = [], _kinds(name, aligned)
    for number, record in enumerate(records):
        try:
            arrays.append(_array(record, name, kinds))
        except (MissingColumn, WrongType) as error:
            raise NotAList(number, error) from error
    lengths = np.array([array.size for array in arrays], dtype=np.int64)
    full = [array for array in arrays if array.size]
    values = full[0] if len(full) == 1 else np.concatenate(full) if full else np.empty(0, dtype=np.int64)
    if values.dtype.kind not in kinds:
        found = " and ".join(sorted({str(array.dtype) for array in full}))
        message = f"no integer type holds arrays of {found}: convert them in a map() before"
        raise NotAList(0, WrongType(message))
    return Lists((values,), np.zeros_like(lengths), np.cumsum(lengths) - lengths, lengths)


def _array(record: Any, name: str | None, kinds: str) -> NDArray[Any]:
    """Return the list in a record as an array of one dimension."""
    if record is HOLE:
        return np.empty(0, dtype=np.int64)
    value = record
    if name is not None:
        if not isinstance(record, dict):
            message = (
                f"needs records that are dicts with a list in {name!r} (got a {type(record).__name__}): "
                f"where the records are lists themselves, say key=None"
            )
            raise WrongType(message)
        if name not in record:
            raise _missing(name, record)
        value = record[name]
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise _wrong(name, f"{value!r:.60}", kinds) from None
    if array.ndim != 1 or (array.dtype.kind not in kinds and array.size):
        found = f"an array of {array.dtype} of shape {array.shape}" if array.ndim else f"{value!r:.60}"
        raise _wrong(name, found, kinds)
    return array


def _missing(name: str, columns: Iterable[str]) -> MissingColumn:
    return MissingColumn(f"needs the list {name!r}: {no_such_column(name, columns)}")


def _wrong(name: str | None, found: str, kinds: str) -> WrongType:
    where = "each record" if name is None else repr(name)
    numbers = "numbers" if kinds == _NUMBERS else "integers"
    return WrongType(f"needs a flat list of {numbers} in {where} (got {found})")
