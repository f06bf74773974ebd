"""Lists of numbers in the records of a plan, as flat arrays: of tables from the buffers of Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import MissingColumn, WrongType
from seekable.nodes.columns.names import no_such_column
from seekable.nodes.display import describe_place
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.contract import Node
    from seekable.nodes.graph import Plan
    from seekable.nodes.sources import table_batches
else:
    pa = optional("pyarrow", extra="parquet")
    table_batches = lazy("seekable.nodes.sources.table_batches")

__all__ = ["Lists", "NotAList", "lists_in", "lists_of"]

_INTEGERS = "iub"
"""The kinds of numpy's types that tokens may have."""

_NUMBERS = "iubf"
"""The kinds of numpy's types that aligned arrays may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """The lists of one name in some records, one after another."""

    values: NDArray[Any]
    """The elements of all lists in the order of the records; a view of Arrow's buffer where possible."""

    bounds: Int64s
    """The start of each list in ``values``, then the end of the last one: int64."""

    @property
    def lengths(self) -> Int64s:
        """The number of elements of each list: int64; 0 for a hole."""
        lengths: Int64s = np.diff(self.bounds)
        return lengths


class NotAList(Exception):
    """A record without a flat list of integers.

    Attributes:
        record: the number of the record in its plan.
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
    if None not in names and table_batches.is_columnar(plan):
        batch = table_batches.table_of(plan)
        return [_of_table(batch, name, _kinds(name, aligned)) for name in names if name is not None]
    records = plan.read()
    return [lists_in(records, name, aligned) for name in names]


def _kinds(name: str | None, aligned: Collection[str]) -> str:
    return _NUMBERS if name in aligned else _INTEGERS


def _of_table(batch: pa.RecordBatch, name: str, kinds: str) -> Lists:
    at = batch.schema.get_field_index(name)
    if at < 0:
        raise NotAList(0, _missing(name, batch.schema.names))
    return _of_column(batch.column(at), name, kinds)


def _of_column(column: pa.Array, name: str, kinds: str) -> Lists:
    """Return the lists of a column.

    Raises:
        NotAList: the column is of another type, or has a null instead of a list or of a number.
    """
    types, kind = pa.types, column.type
    if types.is_list(kind) or types.is_large_list(kind):
        bounds = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    elif types.is_fixed_size_list(kind):
        bounds = (column.offset + np.arange(len(column) + 1, dtype=np.int64)) * kind.list_size
    else:
        raise NotAList(0, _wrong(name, f"a column of type {kind}", kinds))
    if column.null_count:
        raise NotAList(_first_null(column), _wrong(name, "null", kinds))
    first, stop = int(bounds[0]), int(bounds[-1])
    values = column.values.slice(first, stop - first)
    plain = types.is_integer(kind.value_type) or types.is_boolean(kind.value_type)
    plain = plain or (kinds == _NUMBERS and types.is_floating(kind.value_type))
    if stop > first and not plain:
        record = int(np.flatnonzero(np.diff(bounds))[0])
        raise NotAList(record, _wrong(name, f"a column of type {kind}", kinds))
    if values.null_count:
        record = int(np.searchsorted(bounds, first + _first_null(values), side="right")) - 1
        raise NotAList(record, _wrong(name, "a list with a null in it", kinds))
    numbers = values.to_numpy(zero_copy_only=False) if plain else np.empty(0, dtype=np.int64)
    return Lists(numbers, bounds - first)


def _first_null(array: pa.Array) -> int:
    return int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])


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
    bounds = np.zeros(len(arrays) + 1, dtype=np.int64)
    np.cumsum([array.size for array in arrays], out=bounds[1:])
    full = [array for array in arrays if array.size]
    values = full[0] if len(full) == 1 else np.concatenate(full) if full else np.empty(0, dtype=np.int64)
    if values.dtype.kind not in kinds:
        found = " and ".join(sorted({str(array.dtype) for array in full}))
        message = f"no integer type holds arrays of {found}: convert them in a map() before"
        raise NotAList(0, WrongType(message))
    return Lists(values, bounds)


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
