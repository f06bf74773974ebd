"""Rows of tables become records: rows taken from arrays, the records of them, a cache, and threads."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor, wait
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

import numpy as np

from seekable._optional import optional
from seekable.storage.memory import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa
    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from seekable._typing import Int64s
else:
    pa = optional("pyarrow", extra="parquet")
    pc = optional("pyarrow.compute", extra="parquet")

__all__ = [
    "DECODED",
    "DECODERS",
    "DecodeTable",
    "DecodedRows",
    "Unconvertible",
    "cast_column",
    "in_threads",
    "numpy_values",
    "one_array",
    "python_values",
    "take_array",
    "take_pieces",
]


def take_array(column: pa.Array[Any] | pa.ChunkedArray[Any], rows: Int64s) -> pa.Array[Any]:
    """Copy some rows of a column into an array that keeps nothing of the other rows.

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


def _take_batch(batch: pa.RecordBatch, rows: Int64s) -> pa.RecordBatch:
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
        batch if _is_range(rows, batch.num_rows) else _take_batch(batch, rows) for _, batch, rows in pieces
    ]
    joined, order = pa.concat_batches(taken), np.concatenate([at for at, _, _ in pieces])
    if _is_range(order, order.size):
        return joined
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return _take_batch(joined, places)


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


DecodeTable = Literal["python", "numpy", "arrow"]

_OBJECT_BYTES = 60
"""About the bytes of a Python value beyond its own: the head of an object, and its entry in a list."""


class DecodedRows(ABC):
    """Decoded rows, kept in memory. Records share no value that a user could change."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The approximate number of bytes in memory."""

    @abstractmethod
    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return records of some rows, in the order of ``rows``, which may repeat."""


@final
class PythonRows(DecodedRows):
    """Records are dicts of Python values; columns whose values cannot be changed are made into lists once."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Convert the columns of some rows.

        Raises:
            Unconvertible: Python has no such value.
        """
        self._rows = batch.num_rows
        self._columns: dict[str, list[Any] | pa.Array] = {
            name: column if pa_is_nested(column.type) else _converted(name, column, python_values)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        self._nbytes: int = batch.nbytes + _OBJECT_BYTES * batch.num_rows * batch.num_columns

    @property
    def nbytes(self) -> int:
        """The bytes of the Arrow arrays and of the Python objects."""
        return self._nbytes

    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return a new dict for each row."""
        if not self._columns:
            return [{} for _ in rows]
        if len(rows) == 1:
            return [{name: self._one(name, column, rows[0]) for name, column in self._columns.items()}]
        if len(rows) == self._rows and rows == range(self._rows):
            columns = [
                column if isinstance(column, list) else _converted(name, column, python_values)
                for name, column in self._columns.items()
            ]
        else:
            pick, numbers = itemgetter(*rows), np.fromiter(rows, np.int64, len(rows))
            columns = [
                pick(column)
                if isinstance(column, list)
                else _converted(name, take_array(column, numbers), python_values)
                for name, column in self._columns.items()
            ]
        names = tuple(self._columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _one(self, name: str, column: list[Any] | pa.Array, row: int) -> Any:
        return column[row] if isinstance(column, list) else _converted(name, column[row], _as_python)


@final
class NumpyRows(DecodedRows):
    """Records are dicts of numpy's scalars; values without a type of numpy are Python objects."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Convert the columns of some rows.

        Raises:
            Unconvertible: neither numpy nor Python has such a value.
        """
        self._batch = batch
        self._columns = {
            name: _converted(name, column, numpy_values)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }

    @property
    def nbytes(self) -> int:
        """The bytes of the Arrow arrays and of numpy's."""
        return int(self._batch.nbytes + sum(column.nbytes for column in self._columns.values()))

    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return a new dict for each row."""
        return [{name: column[row] for name, column in self._columns.items()} for row in rows]


@final
class ArrowRows(DecodedRows):
    """Records are record batches of one row, without a copy."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        """Keep the record batch; nothing is converted."""
        self.batch = batch

    @property
    def nbytes(self) -> int:
        """The bytes of the Arrow arrays."""
        return int(self.batch.nbytes)

    def records(self, rows: Sequence[int]) -> list[Any]:
        """Return slices of the record batch."""
        return [self.batch.slice(row, 1) for row in rows]


DECODERS: dict[DecodeTable, Callable[[pa.RecordBatch], DecodedRows]] = {
    "python": PythonRows,
    "numpy": NumpyRows,
    "arrow": ArrowRows,
}
"""The decoder of rows for each form of records."""


class Unconvertible(ValueError):
    """A value of a column that cannot be converted.

    Attributes:
        column: the name of the column.
        other: True if the value does not fit the type that the column has in other files; False if Python
            has no such value.
    """

    def __init__(self, column: str, why: Exception, *, other: bool) -> None:
        self.column = column
        self.other = other
        super().__init__(str(why))


def _converted(name: str, values: Any, convert: Callable[[Any], Any]) -> Any:
    """Return values of a column as a function of Arrow's values gives them.

    Raises:
        Unconvertible: there are no such values.
    """
    try:
        return convert(values)
    except (pa.ArrowException, ValueError, ArithmeticError) as error:
        raise Unconvertible(name, error, other=False) from error


def cast_column(name: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a column of a file in the type that it has in all files.

    Raises:
        Unconvertible: a value does not fit.
    """
    types = pa.types
    try:
        if types.is_dictionary(array.type) and not types.is_dictionary(target):
            values = array.dictionary
            if types.is_string_view(values.type) or types.is_binary_view(values.type):
                return pa.array(array.to_pylist(), target)  # pyarrow cannot take from views
            array = array.dictionary_decode()
        elif types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        return array.cast(target)
    except (pa.ArrowException, ValueError, ArithmeticError) as error:
        raise Unconvertible(name, error, other=True) from error


def _as_python(value: pa.Scalar) -> Any:
    return value.as_py()


def pa_is_nested(kind: pa.DataType) -> bool:
    """Return True if the Python values of a type are lists or dicts."""
    if pa.types.is_dictionary(kind):
        return pa_is_nested(kind.value_type)
    return bool(pa.types.is_nested(kind)) or isinstance(kind, pa.BaseExtensionType)


def python_values(array: pa.Array) -> list[Any]:
    """Return what ``array.to_pylist()`` does, several times as fast for the commonest types.

    Raises:
        ArrowInvalid, ValueError, ArithmeticError: Python has no such value. pyarrow cuts off the nanoseconds
            of a time of day, where pandas is installed; here they are an error.

    Example:
        >>> import pyarrow as pa
        >>> python_values(pa.array([1, None, 3])), python_values(pa.array(["a", None]))
        ([1, None, 3], ['a', None])
    """
    types = pa.types
    if types.is_dictionary(array.type):
        try:
            array = array.dictionary_decode()
        except pa.ArrowNotImplementedError:  # string views
            decoded: list[Any] = array.to_pylist()
            return decoded
    kind = array.type
    if types.is_time64(kind) and kind.unit == "ns":
        array = array.cast(pa.time64("us"))
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
    types = pa.types
    kind = array.type
    plain = (
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_floating(kind)
        or (types.is_temporal(kind) and not types.is_interval(kind))
    )
    if (plain and not array.null_count) or types.is_string(kind) or types.is_large_string(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    values = [np.asarray(value) if isinstance(value, list) else value for value in python_values(array)]
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


DECODED: Cache[Any] = Cache(attrgetter("nbytes"))
"""Decoded blocks of all tables that this process reads, bounded in bytes."""

# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=DECODED.forget)

T = TypeVar("T")
R = TypeVar("R")

_pools: dict[int, ThreadPoolExecutor] = {}


def in_threads(job: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
    """Call a function for each item; return the results in the order of the items.

    ``pyarrow.cpu_count()`` threads share the items; a single item, or a count of 1, starts no thread.

    Example:
        >>> list(in_threads(str, [1, 2, 3]))
        ['1', '2', '3']
    """
    if len(items) <= 1 or pa.cpu_count() == 1:
        return map(job, items)
    pool = _pool(pa.cpu_count())
    futures = [pool.submit(job, item) for item in items]
    try:
        # All of them, also where one fails: nothing reads a file on behalf of a call that is over.
        wait(futures)
    finally:
        for future in futures:
            future.cancel()
        wait(futures)
    return [future.result() for future in futures]


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="seekable-decode")
    return _pools[threads]


# A child process has none of its parent's threads.
os.register_at_fork(after_in_child=_pools.clear)
