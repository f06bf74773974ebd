"""Decoded rows of tables, in the three ways in which users ask for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from seekable.nodes.sources.columnar.schema import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from seekable.nodes.sources.columnar.schema import Columns

__all__ = ["HELD", "DecodeTable", "Held", "Unconvertible", "held_as", "numpy_values", "python_values"]

DecodeTable = Literal["python", "numpy", "arrow"]

_OBJECT_BYTES = 60
"""What a value takes in Python besides its own bytes, about: an object's head, and its place in a list."""


class Held(ABC):
    """Some rows, decoded; kept in memory, so nothing that can be changed is given out twice."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How many bytes it takes, about."""

    @abstractmethod
    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return some of the rows as records, in the order asked; rows may repeat."""


@final
class PythonRows(Held):
    """Records are dicts of Python values; columns whose values cannot be changed are made into lists once."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        self._names = batch.schema.names
        self._rows = batch.num_rows
        self._columns: list[list[Any] | pa.Array] = [
            column if pa_is_nested(column.type) else python_values(column) for column in batch.columns
        ]
        self._nbytes: int = batch.nbytes + _OBJECT_BYTES * batch.num_rows * batch.num_columns

    @property
    def nbytes(self) -> int:
        """As Arrow has it, and the objects."""
        return self._nbytes

    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return new dicts."""
        if not self._names:
            return [{} for _ in rows]
        if len(rows) == 1:
            return [
                dict(zip(self._names, [self._one(column, rows[0]) for column in self._columns], strict=True))
            ]
        if len(rows) == self._rows and rows == range(self._rows):
            columns = [column if isinstance(column, list) else column.to_pylist() for column in self._columns]
        else:
            pick = itemgetter(*rows)
            columns = [
                pick(column) if isinstance(column, list) else column.take(arrow().array(rows)).to_pylist()
                for column in self._columns
            ]
        names = self._names
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _one(self, column: list[Any] | pa.Array, row: int) -> Any:
        value = column[row]
        return value if isinstance(column, list) else value.as_py()


@final
class NumpyRows(Held):
    """Records are dicts of what numpy makes of the values: scalars of its own, else objects."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        self._batch = batch
        self._columns = {name: numpy_values(batch.column(i)) for i, name in enumerate(batch.schema.names)}

    @property
    def nbytes(self) -> int:
        """As Arrow has it, and the arrays."""
        return int(self._batch.nbytes + sum(column.nbytes for column in self._columns.values()))

    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return new dicts."""
        return [{name: column[row] for name, column in self._columns.items()} for row in rows]


@final
class ArrowRows(Held):
    """Records are record batches of one row, without a copy."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        self.batch = batch

    @property
    def nbytes(self) -> int:
        """As Arrow has it."""
        return int(self.batch.nbytes)

    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return slices."""
        return [self.batch.slice(row, 1) for row in rows]


HELD: dict[DecodeTable, Callable[[pa.RecordBatch], Held]] = {
    "python": PythonRows,
    "numpy": NumpyRows,
    "arrow": ArrowRows,
}
"""What holds rows for each way of decoding."""


class Unconvertible(ValueError):
    """Values that there is no way to give as they are wanted."""


def held_as(decode: DecodeTable, columns: Columns, batch: pa.RecordBatch) -> Held:
    """Return rows of a file as they are wanted.

    Raises:
        Unconvertible: a value has no place in the common type of the files, or none in Python's.
    """
    try:
        return HELD[decode](columns.take(batch))
    except (arrow().ArrowException, ValueError, OverflowError) as error:
        types = ", ".join(f"{field.name!r} as {field.type}" for field in columns.changed(batch.schema))
        what = f"a value cannot be given as the other files have it ({types})" if types else "a value"
        raise Unconvertible(f"{what}: {error}") from error


def pa_is_nested(kind: pa.DataType) -> bool:
    """Tell whether Python makes lists and dicts of the values of a type."""
    types = arrow().types
    if types.is_dictionary(kind):
        return pa_is_nested(kind.value_type)
    return bool(types.is_nested(kind)) or isinstance(kind, arrow().BaseExtensionType)


def python_values(array: pa.Array) -> list[Any]:
    """Return what ``array.to_pylist()`` does, several times as fast for the commonest types.

    Example:
        >>> import pyarrow as pa
        >>> python_values(pa.array([1, None, 3])), python_values(pa.array(["a", None]))
        ([1, None, 3], ['a', None])
    """
    types = arrow().types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    ):
        strings: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return strings
    if not (types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind)):
        values: list[Any] = array.to_pylist()
        return values
    if not array.null_count:
        numbers: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return numbers
    some = (
        array.fill_null(False if types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False).astype(object)
    )
    some[array.is_null().to_numpy(zero_copy_only=False)] = None
    with_none: list[Any] = some.tolist()
    return with_none


def numpy_values(array: pa.Array) -> np.ndarray[Any, Any]:
    """Return a column as an array: of numbers and times where none is null, else of Python's objects."""
    types = arrow().types
    kind = array.type
    plain = (
        types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind) or types.is_temporal(kind)
    )
    if plain and not array.null_count:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    values = [np.asarray(value) if isinstance(value, list) else value for value in python_values(array)]
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made
