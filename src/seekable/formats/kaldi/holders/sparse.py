"""Sparse vectors and matrices (``SV``, ``SM``): values, and how they are read and written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import (
    BASIC_TYPES,
    BINARY_HEADER,
    DIGITS,
    decoded,
    parse_number,
    read_header,
    read_size,
    token_bytes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor, Output
    from seekable.formats.kaldi.holders.script_ranges import Range

_FLOAT, _INT32 = BASIC_TYPES["float"], BASIC_TYPES["int32"]
_ELEMENTS = {
    size: np.dtype([("index_mark", "u1"), ("index", "<i4"), ("value_mark", "u1"), ("value", f"<f{size}")])
    for size in (4, 8)
}
_BEFORE_VALUE = 5  # bytes of an element before the size of its value


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """A vector that stores some of its elements; the others are 0.

    Attributes:
        dim: the number of elements.
        indices: int32, strictly increasing; the elements that are stored.
        values: float32, as long as `indices`.

    Example:
        >>> SparseVector(5, [0, 3], [0.5, 1.5]).toarray().tolist()
        [0.5, 0.0, 0.0, 1.5, 0.0]
    """

    dim: int
    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        checked_count("dim", self.dim, least=0)
        indices = _INT32.checked_array("indices", self.indices)
        values = _FLOAT.checked_array("values", self.values)
        if indices.ndim != 1 or indices.shape != values.shape:
            raise InvalidArgument(
                f"indices and values must be as long (got {indices.shape} and {values.shape})"
            )
        if len(indices) and (indices[0] < 0 or indices[-1] >= self.dim or (np.diff(indices) <= 0).any()):
            raise InvalidArgument(f"indices must increase strictly, within 0 to {self.dim - 1}")
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "values", values)

    def toarray(self) -> NDArray[np.float32]:
        """Return all elements, float32 of shape (dim,)."""
        array = np.zeros(self.dim, np.float32)
        array[self.indices] = self.values
        return array


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """A matrix whose rows are sparse vectors, all of one dimension.

    Attributes:
        rows: the rows.
    """

    rows: tuple[SparseVector, ...]

    def __post_init__(self) -> None:
        rows = tuple(self.rows) if isinstance(self.rows, Iterable) else (self.rows,)
        if not all(isinstance(row, SparseVector) for row in rows):
            raise WrongType(f"rows must be SparseVectors (got {self.rows!r:.200})")
        object.__setattr__(self, "rows", rows)
        if len({row.dim for row in self.rows}) > 1:
            raise InvalidArgument(
                f"all rows must have one dim (got {sorted({row.dim for row in self.rows})})"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return len(self.rows), self.rows[0].dim if self.rows else 0

    def toarray(self) -> NDArray[np.float32]:
        """Return all elements, float32 of shape (rows, columns)."""
        return np.stack([row.toarray() for row in self.rows]) if self.rows else np.zeros((0, 0), np.float32)

    def part(self, part: Range, path: str) -> SparseMatrix:
        """Return some rows and columns."""
        rows, columns = part.row_slice(len(self.rows), path), part.column_slice(self.shape[1], path)
        return SparseMatrix(tuple(_cut(row, columns) for row in self.rows[rows]))


def _cut(row: SparseVector, columns: slice) -> SparseVector:
    first, last = np.searchsorted(row.indices, [columns.start, columns.stop])
    indices = row.indices[first:last] - np.int32(columns.start)
    return SparseVector(columns.stop - columns.start, indices, row.values[first:last])


@dataclass(frozen=True, slots=True)
class SparseVectorHolder:
    """The sparse vectors, read as `SparseVector`."""

    name: str = "sparse-vector"
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> SparseVector:
        """Return the next vector, and move past it."""
        return _read_vector(cursor) if read_header(cursor) else _read_vector_text(cursor)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a vector, in binary form or as text."""
        if not isinstance(value, SparseVector):
            raise WrongType(f"value must be a SparseVector (got a {type(value).__name__})")
        file.write(
            BINARY_HEADER + _vector_bytes(value) if binary else _vector_text(value, self.precision).encode()
        )

    def skip(self, cursor: Cursor) -> None:
        """Move past the next vector."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (dim,) of the next vector."""
        return (_skip_vector(cursor) if read_header(cursor) else _read_vector_text(cursor).dim,)


@dataclass(frozen=True, slots=True)
class SparseMatrixHolder:
    """The sparse matrices, read as `SparseMatrix`."""

    name: str = "sparse-matrix"
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> SparseMatrix:
        """Return the next matrix, and move past it."""
        return read_sparse_matrix(cursor, binary=read_header(cursor))

    def read_range(self, cursor: Cursor, part: Range) -> SparseMatrix:
        """Return some rows and columns of the next matrix; all of it is read."""
        return self.read(cursor).part(part, cursor.name)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a matrix, in binary form or as text."""
        if not isinstance(value, SparseMatrix):
            raise WrongType(f"value must be a SparseMatrix (got a {type(value).__name__})")
        file.write(
            BINARY_HEADER + sparse_matrix_bytes(value)
            if binary
            else sparse_matrix_text(value, self.precision)
        )

    def skip(self, cursor: Cursor) -> None:
        """Move past the next matrix."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (rows, columns) of the next matrix; in binary form, values are not read."""
        return skip_sparse_matrix(cursor, binary=read_header(cursor))


def read_sparse_matrix(cursor: Cursor, *, binary: bool) -> SparseMatrix:
    """Return the matrix after the binary header, or in text."""
    if not binary:
        return _read_matrix_text(cursor)
    size, start = _matrix_size(cursor), cursor.position
    return _united(cursor, [_read_vector(cursor) for _ in range(size)], start)


def skip_sparse_matrix(cursor: Cursor, *, binary: bool) -> tuple[int, int]:
    """Move past the matrix after the binary header, or in text; return its rows and columns."""
    if not binary:
        return _read_matrix_text(cursor).shape
    rows, dim = _matrix_size(cursor), 0
    for _ in range(rows):
        dim = _skip_vector(cursor)
    return rows, dim


def sparse_matrix_bytes(matrix: SparseMatrix) -> bytes:
    """Return a matrix in binary form, without the binary header."""
    return b"SM " + _INT32.packed(len(matrix.rows)) + b"".join(map(_vector_bytes, matrix.rows))


def sparse_matrix_text(matrix: SparseMatrix, precision: int = DIGITS) -> bytes:
    """Return a matrix in text."""
    rows = "".join(_vector_text(row, precision) for row in matrix.rows)
    return f"rows={len(matrix.rows)} {rows}\n".encode()


def _united(cursor: Cursor, rows: list[SparseVector], at: int) -> SparseMatrix:
    dims = sorted({row.dim for row in rows})
    if len(dims) > 1:
        raise cursor.error("rows of one dimension", f"rows of dimensions {dims[:5]}", at=at)
    return SparseMatrix(tuple(rows))


def _matrix_size(cursor: Cursor) -> int:
    _expect(cursor, b"SM ", "SM (a sparse matrix)")
    return read_size(cursor, "the number of rows")


def _vector_size(cursor: Cursor) -> tuple[int, int]:
    _expect(cursor, b"SV ", "SV (a sparse vector)")
    return read_size(cursor, "the dimension"), read_size(cursor, "the number of elements")


def _expect(cursor: Cursor, token: bytes, what: str) -> None:
    start = cursor.position
    found = bytes(cursor.take(len(token), what))
    if found != token:
        raise cursor.error(what, repr(found), at=start)


def _read_vector(cursor: Cursor) -> SparseVector:
    dim, size = _vector_size(cursor)
    start = cursor.position
    if not size:
        return SparseVector(dim, np.empty(0, np.int32), np.empty(0, np.float32))
    head, dtype = _first_element(cursor)
    rest = cursor.take(size * dtype.itemsize - len(head), f"{size} elements of a sparse vector")
    elements = np.frombuffer(head + bytes(rest), dtype)
    if (elements["index_mark"] != _INT32.mark).any() or (elements["value_mark"] != head[-1]).any():
        raise cursor.error("elements of one type", "other bytes before them", at=start)
    indices = elements["index"]
    if indices[0] < 0 or indices[-1] >= dim or (np.diff(indices.astype(np.int64)) <= 0).any():
        raise cursor.error(
            f"indices that increase strictly, below {dim}", str(indices[:8].tolist()), at=start
        )
    with np.errstate(over="ignore"):
        return SparseVector(dim, indices.copy(), elements["value"].astype(np.float32))


def _skip_vector(cursor: Cursor) -> int:
    dim, size = _vector_size(cursor)
    if size:
        head, dtype = _first_element(cursor)
        cursor.skip(size * dtype.itemsize - len(head), f"{size} elements of a sparse vector")
    return dim


def _first_element(cursor: Cursor) -> tuple[bytes, np.dtype[Any]]:
    """Return the bytes before the first value, whose last one says how large values are, and the type."""
    start = cursor.position
    head = bytes(cursor.take(_BEFORE_VALUE + 1, "an element of a sparse vector"))
    dtype = _ELEMENTS.get(head[-1])
    if dtype is None:
        raise cursor.error("the byte 0x04 or 0x08 of a value", f"{head[-1]:#04x}", at=start + _BEFORE_VALUE)
    return head, dtype


def _vector_bytes(vector: SparseVector) -> bytes:
    elements = np.empty(len(vector.indices), _ELEMENTS[4])
    elements["index_mark"] = elements["value_mark"] = 4
    elements["index"], elements["value"] = vector.indices, vector.values
    return b"SV " + _INT32.packed(vector.dim) + _INT32.packed(len(elements)) + elements.tobytes()


def _vector_text(vector: SparseVector, precision: int) -> str:
    pairs = zip(vector.indices.tolist(), vector.values.tolist(), strict=True)
    return f"dim={vector.dim} [ " + "".join(f"{i} {_FLOAT.text(v, precision)} " for i, v in pairs) + "] "


def _read_vector_text(cursor: Cursor) -> SparseVector:
    dim = _read_field(cursor, b"dim=")
    start = cursor.position
    word = token_bytes(cursor, "'[' of a sparse vector")
    if word != b"[":
        raise cursor.error("'[' of a sparse vector", repr(decoded(word)), at=start)
    start = cursor.position
    body = cursor.through(b"]")
    if not body.endswith(b"]"):
        raise cursor.error("']' at the end of a sparse vector")
    if cursor.peek() == ord(" "):
        cursor.skip(1, "a space")
    words = body[:-1].split()
    if len(words) % 2:
        raise cursor.error("pairs of an index and a value", f"{len(words)} numbers", at=start)
    indices = [parse_number(cursor, word, _INT32, start) for word in words[::2]]
    values = [parse_number(cursor, word, _FLOAT, start) for word in words[1::2]]
    if any(one >= two for one, two in zip([-1, *indices], [*indices, dim], strict=True)):
        raise cursor.error(f"indices that increase strictly, below {dim}", str(indices[:8]), at=start)
    return SparseVector(dim, np.array(indices, np.int32), np.array(values, np.float32))


def _read_matrix_text(cursor: Cursor) -> SparseMatrix:
    size, start = _read_field(cursor, b"rows="), cursor.position
    rows = [_read_vector_text(cursor) for _ in range(size)]
    while cursor.peek() in {ord(" "), ord("\t"), ord("\r")}:
        cursor.skip(1, "a space")
    if cursor.peek() != ord("\n"):
        raise cursor.error("the end of the line after a sparse matrix")
    cursor.skip(1, "a line end")
    return _united(cursor, rows, start)


def _read_field(cursor: Cursor, name: bytes) -> int:
    """Return the integer after a name such as ``dim=``."""
    cursor.skip_spaces()
    start = cursor.position
    word = token_bytes(cursor, f"{decoded(name)} of a sparse object")
    if not word.startswith(name):
        raise cursor.error(f"{decoded(name)} of a sparse object", repr(decoded(word[:60])), at=start)
    size = int(parse_number(cursor, word[len(name) :], _INT32, start))
    if size < 0:
        raise cursor.error(f"{decoded(name)} of a sparse object", str(size), at=start)
    return size
