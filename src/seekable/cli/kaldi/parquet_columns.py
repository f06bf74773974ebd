"""The Arrow columns of the objects of Kaldi tables: a type for each holder, and arrays of many objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.cli.kaldi.conversion import plain
from seekable.errors import BadValue, InvalidArgument
from seekable.formats.kaldi.holders.basic_vectors import (
    BasicVectorHolder,
    PairVectorHolder,
    VectorVectorHolder,
)
from seekable.formats.kaldi.holders.dense import MatrixHolder, VectorHolder
from seekable.formats.kaldi.holders.packed import PackedMatrixHolder
from seekable.formats.kaldi.holders.scalars import NumberHolder

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.kaldi.objects.basic_types import BasicType
    from seekable.kaldi import Holder
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["TableColumns", "table_columns"]

_BATCH_BYTES, _BATCH_ENTRIES = 1 << 20, 1024
"""About the most bytes, and the most entries, that become columns at a time."""

_ENTRY_BYTES = 64
"""The bytes that an object is taken to have at least."""

_MATRICES = frozenset({"compressed-matrix", "general-matrix", "sphinx-matrix"})


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns ``key`` and ``value`` of a table, and ``shape`` where matrices are flat."""

    value_type: pa.DataType
    value_array: Callable[[list[Any], pa.DataType], pa.Array]
    """Makes the column of some objects."""
    flat: bool = False
    """True if a matrix is one list of all its elements, with its shape beside it."""

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        shape = [("shape", pa.list_(pa.int32(), 2))] if self.flat else []
        return pa.schema([("key", pa.string()), ("value", self.value_type), *shape])

    def batches(self, entries: Iterable[tuple[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Yield entries as record batches of about a MiB, in their order.

        Raises:
            BadValue: a key or a token is no UTF-8.
        """
        keys: list[str] = []
        values: list[Any] = []
        size = 0
        for key, value in entries:
            keys.append(key)
            values.append(value)
            size += _ENTRY_BYTES + getattr(plain(value), "nbytes", 0)
            if size >= _BATCH_BYTES or len(keys) >= _BATCH_ENTRIES:
                yield self._batch(keys, values)
                keys, values, size = [], [], 0
        if keys:
            yield self._batch(keys, values)

    def _batch(self, keys: list[str], values: list[Any]) -> pa.RecordBatch:
        try:
            columns = [pa.array(keys, pa.string()), self.value_array(values, self.value_type)]
        except UnicodeEncodeError as error:
            message = f"Parquet holds text in UTF-8 (got {error.object!r}, with bytes that are no UTF-8)"
            raise BadValue(message) from None
        if self.flat:
            shapes = np.array([plain(value).shape for value in values], np.int32)
            columns.append(pa.FixedSizeListArray.from_arrays(pa.array(shapes.ravel()), 2))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def table_columns(holder: Holder, *, flat: bool) -> TableColumns:
    """Return the columns of the objects of a holder.

    Raises:
        InvalidArgument: there is no column for the holder, or ``flat`` is true for other objects than
            matrices.
    """
    element = _matrix_element(holder)
    if flat and element is None:
        message = f"--flat is for matrices (got the holder {holder.name})"
        raise InvalidArgument(message)
    if element is not None:
        if flat:
            return TableColumns(pa.list_(element), _flat_array, flat=True)
        return TableColumns(pa.list_(pa.list_(element)), _matrix_array)
    return _columns_of_others(holder)


def _matrix_element(holder: Holder) -> pa.DataType | None:
    """Return the type of the elements, if the objects are matrices."""
    is_square = isinstance(holder, PackedMatrixHolder) and holder.upper != "absent"
    if isinstance(holder, MatrixHolder) or (isinstance(holder, PackedMatrixHolder) and is_square):
        return _element(holder.basic)
    return pa.float32() if holder.name in _MATRICES else None


def _columns_of_others(holder: Holder) -> TableColumns:
    match holder:
        case NumberHolder():
            return TableColumns(_element(holder.basic), pa.array)
        case VectorHolder() | BasicVectorHolder() | PackedMatrixHolder():
            return TableColumns(pa.list_(_element(holder.basic)), _flat_array)
        case VectorVectorHolder():
            return TableColumns(pa.list_(pa.list_(_element(holder.basic))), pa.array)
        case PairVectorHolder():
            return TableColumns(pa.list_(pa.list_(_element(holder.basic), 2)), pa.array)
    forms = _forms()
    if holder.name not in forms:
        names = ", ".join(sorted(forms))
        message = (
            f"there is no column for the holder {holder.name}: there are columns for numbers, vectors, "
            f"matrices, {names}"
        )
        raise InvalidArgument(message)
    kind, change = forms[holder.name]
    return TableColumns(kind, lambda values, kind: pa.array([change(value) for value in values], kind))


def _element(basic: BasicType) -> pa.DataType:
    return pa.from_numpy_dtype(basic.dtype)


def _forms() -> dict[str, tuple[pa.DataType, Callable[[Any], Any]]]:
    """Return the types of other columns by holder, each with the function that makes Python values of it."""
    floats = pa.list_(pa.float32())
    sparse = pa.struct({"dim": pa.int32(), "indices": pa.list_(pa.int32()), "values": floats})
    info = {"rate": pa.int32(), "channels": pa.int32(), "samples": pa.int64()}
    pair = pa.struct({"id": pa.int32(), "weight": pa.float32()})
    gaussian = pa.struct({"id": pa.int32(), "values": floats})
    htk = {"data": pa.list_(floats), "period": pa.int32(), "kind": pa.int32()}
    wave = {"rate": pa.int32(), "data": pa.list_(pa.list_(pa.int16()))}
    array = {"shape": pa.list_(pa.int64()), "data": pa.list_(pa.float64())}
    return {
        "bool": (pa.bool_(), bool),
        "token": (pa.string(), str),
        "token-vector": (pa.list_(pa.string()), list),
        "blob": (pa.binary(), bytes),
        "posterior": (pa.list_(pa.list_(pair)), lambda value: _frames(value, "weight")),
        "gauss-posterior": (pa.list_(pa.list_(gaussian)), lambda value: _frames(value, "values")),
        "sparse-vector": (sparse, _sparse),
        "sparse-matrix": (pa.list_(sparse), lambda value: [_sparse(row) for row in value.rows]),
        "htk-matrix": (
            pa.struct(htk),
            lambda value: {"data": list(value.data), "period": value.period, "kind": value.kind},
        ),
        "wave": (
            pa.struct(wave),
            lambda value: {"rate": value.rate, "data": list(value.data.astype(np.int16))},
        ),
        "wave-info": (
            pa.struct(info),
            lambda value: {"rate": value.rate, "channels": value.channels, "samples": value.samples},
        ),
        "numpy-array": (
            pa.struct(array),
            lambda value: {"shape": value.shape, "data": value.ravel().astype(np.float64)},
        ),
    }


def _frames(posterior: Any, second: str) -> list[list[dict[str, Any]]]:
    return [[{"id": number, second: rest} for number, rest in frame] for frame in posterior]


def _sparse(vector: Any) -> dict[str, Any]:
    return {"dim": vector.dim, "indices": vector.indices, "values": vector.values}


def _flat_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return the column of arrays, each of them a list of all its elements."""
    arrays = [plain(value).ravel() for value in values]
    return pa.ListArray.from_arrays(_offsets(map(len, arrays)), _joined(arrays, kind.value_type))


def _matrix_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return the column of matrices, each of them a list of its rows."""
    arrays = [plain(value) for value in values]
    widths = np.repeat([array.shape[1] for array in arrays], [len(array) for array in arrays])
    elements = _joined([array.ravel() for array in arrays], kind.value_type.value_type)
    rows = pa.ListArray.from_arrays(_offsets(widths.tolist()), elements)
    return pa.ListArray.from_arrays(_offsets(map(len, arrays)), rows)


def _joined(arrays: list[NDArray[Any]], kind: pa.DataType) -> pa.Array:
    return pa.array(np.concatenate(arrays), kind)


def _offsets(lengths: Iterable[int]) -> pa.Array:
    return pa.array(np.cumsum([0, *lengths], dtype=np.int32))
