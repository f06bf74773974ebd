"""Objects of Kaldi in other forms: for other holders, as JSON, as columns of Arrow, as shapes alone."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.errors import BadValue, InvalidArgument
from seekable.formats.kaldi.holders.basic_values import (
    BasicVectorHolder,
    NumberHolder,
    PairVectorHolder,
    VectorVectorHolder,
)
from seekable.formats.kaldi.holders.matrices import MatrixHolder, PackedMatrixHolder, VectorHolder
from seekable.kaldi import (
    CompressedMatrix,
    HtkMatrix,
    SparseMatrix,
    SparseVector,
    Wave,
    WaveInfo,
    find_holder,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.formats.kaldi.basic_types import BasicType
    from seekable.kaldi import Cursor, Holder, Output, Range
else:
    pa = optional("pyarrow", extra="parquet")

_NOT_FINITE = frozenset({"nan", "inf", "-inf"})
_BATCH_BYTES, _BATCH_ENTRIES = 1 << 20, 1024
"""About the most bytes, and the most entries, that become columns at a time."""

_ENTRY_BYTES = 64
"""The bytes that an object is taken to have at least."""

_MATRICES = frozenset({"compressed-matrix", "general-matrix", "sphinx-matrix"})
_WAVES = frozenset({"wave", "wave-info"})
_SAMPLE_BYTES = 2


def converted(value: Any, holder: str) -> Any:
    """Return an object in the form in which a holder writes it; an object that needs no change as it is.

    Matrices change between the forms dense, compressed, sparse and HTK, and a wave becomes the matrix of its
    channels. Numbers are converted by the holder itself, which also refuses what it cannot write.

    Example:
        >>> converted(SparseVector(3, [1], [0.5]), "vector").tolist()
        [0.0, 0.5, 0.0]
        >>> converted(np.float32([0, 0.5]), "sparse-vector").indices.tolist()
        [1]
    """
    if holder == "general-matrix" or (holder == "compressed-matrix" and isinstance(value, CompressedMatrix)):
        return value.data if isinstance(value, HtkMatrix | Wave) else value
    if holder == "sparse-vector":
        return value if isinstance(value, SparseVector) else _sparse_vector(plain(value))
    if holder == "sparse-matrix":
        return value if isinstance(value, SparseMatrix) else _sparse_matrix(plain(value))
    if holder == "htk-matrix":
        return value if isinstance(value, HtkMatrix) else HtkMatrix(plain(value))
    return value if holder == "wave" else plain(value)


def plain(value: Any) -> Any:
    """Return the array of an object that holds one array; all other objects as they are."""
    if isinstance(value, CompressedMatrix):
        return value.decode()
    if isinstance(value, SparseMatrix | SparseVector):
        return value.toarray()
    return value.data if isinstance(value, HtkMatrix | Wave) else value


def _sparse_vector(value: Any) -> SparseVector:
    array = np.asarray(value)
    indices = np.flatnonzero(array)
    return SparseVector(len(array), indices.astype(np.int32), array[indices])


def _sparse_matrix(value: Any) -> SparseMatrix:
    return SparseMatrix(tuple(_sparse_vector(row) for row in value))


def to_json(value: Any) -> Any:
    """Return an object in the types of JSON, so that `from_json` returns an equal one.

    Arrays become lists, with ``"nan"``, ``"inf"`` and ``"-inf"`` for the numbers that JSON lacks. Bytes
    become text in base64. Objects of several parts become dicts of them.

    Example:
        >>> to_json(SparseVector(3, [1], [0.5])), to_json([(1, float("inf"))])
        ({'dim': 3, 'indices': [1], 'values': [0.5]}, [[1, 'inf']])
    """
    if (form := _FORMS.get(type(value))) is not None:
        return form(value)
    array = plain(value)
    if not isinstance(array, np.ndarray):
        return array
    numbers = array.tolist()
    return numbers if array.dtype.kind != "f" or np.isfinite(array).all() else to_json(numbers)


def _whole_numbers(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return samples as integers, where all are; those of more than 16 bits have fractions."""
    whole = data.astype(np.int32)
    return whole if (whole == data).all() else data


def _list(values: Any) -> list[Any]:
    return [to_json(each) for each in values]


_FORMS: dict[type, Callable[[Any], Any]] = {
    list: _list,
    tuple: _list,
    float: lambda value: value if np.isfinite(value) else str(value),
    bytes: lambda value: base64.b64encode(value).decode(),
    HtkMatrix: lambda value: {"data": to_json(value.data), "period": value.period, "kind": value.kind},
    Wave: lambda value: {"rate": value.rate, "data": to_json(_whole_numbers(value.data))},
    WaveInfo: lambda value: {"rate": value.rate, "channels": value.channels, "samples": value.samples},
    SparseVector: lambda value: {
        "dim": value.dim,
        "indices": to_json(value.indices),
        "values": to_json(value.values),
    },
    SparseMatrix: lambda value: {"rows": _list(value.rows)},
}
"""The functions for the types that are not arrays and not of JSON already."""


def from_json(document: Any, holder: str) -> Any:
    """Return the object that a holder writes, from its form in JSON.

    Raises:
        InvalidArgument: the JSON has not the form that `to_json` returns for the holder.

    Example:
        >>> from_json({"dim": 3, "indices": [1], "values": [0.5]}, "sparse-vector").toarray().tolist()
        [0.0, 0.5, 0.0]
    """
    read = _READERS.get(holder, _numbers)
    try:
        return read(document)
    except (TypeError, KeyError, ValueError) as error:
        message = f"value must have the form of a {holder} in JSON (got {str(document)[:80]!r}): {error}"
        raise InvalidArgument(message) from None


def _numbers(document: Any) -> Any:
    """Return lists and numbers, with numbers in place of the texts for those that JSON lacks."""
    if isinstance(document, list):
        return [_numbers(each) for each in document]
    return float(document) if isinstance(document, str) and document in _NOT_FINITE else document


def _with_array(document: Any) -> dict[str, Any]:
    """Return the fields of an object whose field ``data`` is an array."""
    return {**document, "data": np.asarray(_numbers(document["data"]), np.float32)}


def _read_sparse_vector(document: Any) -> SparseVector:
    return SparseVector(*(_numbers(document[name]) for name in ("dim", "indices", "values")))


def _read_sparse_matrix(document: Any) -> SparseMatrix:
    return SparseMatrix(tuple(map(_read_sparse_vector, document["rows"])))


_READERS: dict[str, Callable[[Any], Any]] = {
    "token": lambda document: document,
    "token-vector": lambda document: document,
    "blob": lambda document: base64.b64decode(document, validate=True),
    "numpy-array": lambda document: np.asarray(_numbers(document), np.float64),
    "htk-matrix": lambda document: HtkMatrix(**_with_array(document)),
    "wave": lambda document: Wave(**_with_array(document)),
    "sparse-vector": _read_sparse_vector,
    "sparse-matrix": _read_sparse_matrix,
    "general-matrix": lambda document: (
        _read_sparse_matrix(document) if isinstance(document, dict) else _numbers(document)
    ),
}
"""The functions for the holders whose objects are neither numbers nor lists of them."""


@dataclass(frozen=True, slots=True)
class _TableColumns:
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
            BadValue: a key or a token is not UTF-8.
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


def table_columns(holder: Holder, *, flat: bool) -> _TableColumns:
    """Return the columns of the objects of a holder.

    Raises:
        InvalidArgument: there is no column for the holder, or ``flat`` is true for other objects than
            matrices.
    """
    element = _matrix_element(holder)
    if flat and element is None:
        raise InvalidArgument(f"--flat is for matrices (got the holder {holder.name})")
    if element is not None:
        if flat:
            return _TableColumns(pa.list_(element), _flat_array, flat=True)
        return _TableColumns(pa.list_(pa.list_(element)), _matrix_array)
    return _columns_of_others(holder)


def _matrix_element(holder: Holder) -> pa.DataType | None:
    """Return the type of the elements, if the objects are matrices."""
    is_square = isinstance(holder, PackedMatrixHolder) and holder.upper != "absent"
    if isinstance(holder, MatrixHolder) or (isinstance(holder, PackedMatrixHolder) and is_square):
        return _element(holder.basic)
    return pa.float32() if holder.name in _MATRICES else None


def _columns_of_others(holder: Holder) -> _TableColumns:
    match holder:
        case NumberHolder():
            return _TableColumns(_element(holder.basic), pa.array)
        case VectorHolder() | BasicVectorHolder() | PackedMatrixHolder():
            return _TableColumns(pa.list_(_element(holder.basic)), _flat_array)
        case VectorVectorHolder():
            return _TableColumns(pa.list_(pa.list_(_element(holder.basic))), pa.array)
        case PairVectorHolder():
            return _TableColumns(pa.list_(pa.list_(_element(holder.basic), 2)), pa.array)
    forms = _forms()
    if holder.name not in forms:
        names = ", ".join(sorted(forms))
        raise InvalidArgument(
            f"there is no column for the holder {holder.name}: there are columns for numbers, vectors, "
            f"matrices, {names}"
        )
    kind, change = forms[holder.name]
    return _TableColumns(kind, lambda values, kind: pa.array([change(value) for value in values], kind))


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
    """Return a column of arrays, each as a list of its elements."""
    arrays = [plain(value).ravel() for value in values]
    return pa.ListArray.from_arrays(_offsets(map(len, arrays)), _joined(arrays, kind.value_type))


def _matrix_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of matrices, each as a list of its rows."""
    arrays = [plain(value) for value in values]
    widths = np.repeat([array.shape[1] for array in arrays], [len(array) for array in arrays])
    elements = _joined([array.ravel() for array in arrays], kind.value_type.value_type)
    rows = pa.ListArray.from_arrays(_offsets(widths.tolist()), elements)
    return pa.ListArray.from_arrays(_offsets(map(len, arrays)), rows)


def _joined(arrays: list[NDArray[Any]], kind: pa.DataType) -> pa.Array:
    return pa.array(np.concatenate(arrays), kind)


def _offsets(lengths: Iterable[int]) -> pa.Array:
    return pa.array(np.cumsum([0, *lengths], dtype=np.int32))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The shape of an object, and of a wave also the rate and the length."""

    sizes: tuple[int, ...]
    """The shape; of a wave (channels, samples)."""

    rate: int | None = None
    """The number of samples a second; None for other objects than waves."""

    def numbers(self) -> list[int | float]:
        """Return the shape, and after it the seconds of a wave."""
        return [*self.sizes] if self.rate is None else [*self.sizes, self.seconds]

    @property
    def seconds(self) -> float:
        """The length of a wave in seconds."""
        assert self.rate is not None
        return self.sizes[1] / self.rate

    def fields(self) -> dict[str, Any]:
        """Return the fields of a JSON document."""
        wave = {} if self.rate is None else {"rate": self.rate, "seconds": self.seconds}
        return {"shape": list(self.sizes), **wave}


@dataclass(frozen=True, slots=True)
class ShapeHolder:
    """Reads the shapes of the objects of another holder."""

    holder: Holder

    @property
    def name(self) -> str:
        """The name of the other holder."""
        return self.holder.name

    def read(self, cursor: Cursor) -> _Shape:
        """Return the shape of the next object, and move past the object."""
        if self.name not in _WAVES:
            return _Shape(self.holder.shape(cursor))
        info: WaveInfo = find_holder("wave-info").read(cursor)
        samples = info.samples
        if samples < 0:  # The length is not in the header, and the samples reach to the end.
            samples = len(cursor.read()) // (_SAMPLE_BYTES * info.channels)
        return _Shape((info.channels, samples), info.rate)

    def read_range(self, cursor: Cursor, part: Range) -> _Shape:
        """Return the shape of a part of the next object, and move past the object."""
        sizes = self.read(cursor).sizes
        cut = [part.row_slice(sizes[0], cursor.name)] if sizes else []
        if len(sizes) > 1:
            cut.append(part.column_slice(sizes[1], cursor.name))
        elif sizes:
            part.without_columns(self.name)
        return _Shape(tuple(each.stop - each.start for each in cut))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Raise InvalidArgument: a shape alone is not an object."""
        raise InvalidArgument("shapes cannot be written as objects")

    def skip(self, cursor: Cursor) -> None:
        """Move past the next object."""
        self.holder.skip(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        """Return the shape of the next object, and move past the object."""
        return self.read(cursor).sizes
