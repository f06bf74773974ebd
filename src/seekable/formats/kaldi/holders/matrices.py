"""Holders of matrices and vectors of floating-point numbers: dense, compressed and packed ones."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.basic_types import (
    BASIC_TYPES,
    BINARY_HEADER,
    DIGITS,
    SPACED_KEY,
    BasicType,
    decoded,
    parse_number,
    read_header,
    read_size,
    token_bytes,
)
from seekable.formats.kaldi.cursor import Run
from seekable.formats.kaldi.holders import compressed_matrix
from seekable.formats.kaldi.holders.compressed_matrix import (
    FIRST,
    CompressedMatrix,
    checked_method,
    compress,
    compressed_bytes,
    read_compressed,
)
from seekable.formats.kaldi.holders.number_text import (
    end_bracket,
    matrix_text,
    parse_words,
    read_matrix_text,
    read_vector_text,
    skip_brackets,
    vector_text,
)
from seekable.formats.kaldi.holders.script_ranges import read_rows_and_columns
from seekable.formats.kaldi.holders.sparse import (
    SparseMatrix,
    read_sparse_matrix,
    skip_sparse_matrix,
    sparse_matrix_bytes,
    sparse_matrix_text,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor, Output
    from seekable.formats.kaldi.holders.script_ranges import Range

_FLOAT, _DOUBLE = BASIC_TYPES["float"], BASIC_TYPES["double"]
_VECTORS = {b"FV ": _FLOAT, b"DV ": _DOUBLE}
_VECTOR_HEAD, _MATRIX_HEAD = struct.Struct("<3sBi"), struct.Struct("<3sBiBi")
_FIRST_LETTERS = frozenset(b"FD")
_INT_MARK = BASIC_TYPES["int32"].mark
_MATRICES = {b"FM ": _FLOAT, b"DM ": _DOUBLE}
_VECTOR_START, _MATRIX_START = struct.Struct("<6si"), struct.Struct("<6siBi")
_VECTOR_STARTS = {basic.mark: BINARY_HEADER + token + b"\4" for token, basic in _VECTORS.items()}
_MATRIX_STARTS = {basic.mark: BINARY_HEADER + token + b"\4" for token, basic in _MATRICES.items()}
_VECTOR_ENTRIES = {
    mark: re.compile(SPACED_KEY + re.escape(start) + rb"(....)", re.DOTALL)
    for mark, start in _VECTOR_STARTS.items()
}
"""The start of an entry that has a vector of each precision in binary form."""

_TYPES = {b"FP": _FLOAT, b"DP": _DOUBLE}
_SQUARE = 2  # dimensions


@dataclass(frozen=True, slots=True)
class VectorHolder:
    """Vectors of floats or doubles: arrays of shape (n,). Either precision is read, and converted."""

    name: str = "vector"
    basic: BasicType = _FLOAT
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> NDArray[Any]:
        """Return the next vector, and move past it."""
        head = cursor.ahead(_VECTOR_START.size)
        if len(head) == _VECTOR_START.size:
            start, size = _VECTOR_START.unpack(head)
            if size > 0 and start == _VECTOR_STARTS[self.basic.mark]:
                return cursor.array(self.basic.dtype, size, f"{size} elements", behind=_VECTOR_START.size)
        return read_vector(cursor, self.basic, binary=read_header(cursor))

    def read_run(self, data: bytes, start: int) -> Run:
        """Return the entries at `start`, as far as they are whole, of this precision and not empty."""
        dtype = self.basic.dtype
        entry = _VECTOR_ENTRIES[self.basic.mark]
        keys, vectors = [], []
        while (found := entry.match(data, start)) is not None:
            size, end = int.from_bytes(found[2], "little", signed=True), found.end()
            if not 0 < size <= (len(data) - end) // dtype.itemsize:
                break
            keys.append(decoded(found[1]))
            vectors.append(np.frombuffer(data, dtype, size, end).copy())
            start = end + dtype.itemsize * size
        return Run(keys, vectors, start)

    def read_range(self, cursor: Cursor, part: Range) -> NDArray[Any]:
        """Return some elements of the next vector."""
        part = part.without_columns("vector")
        if not read_header(cursor):
            vector = read_vector_text(cursor, self.basic)
            return vector[part.row_slice(len(vector), cursor.name)]
        basic, size = _vector_header(cursor)
        rows, width = part.row_slice(size, cursor.name), basic.dtype.itemsize
        cursor.skip(width * rows.start, "the elements before the range")
        found = cursor.array(basic.dtype, rows.stop - rows.start, "the elements of the range")
        cursor.skip(width * (size - rows.stop), "the elements after the range")
        return _converted(found, self.basic)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a vector, in binary form or as text."""
        array = self.basic.checked_array("value", value)
        if array.ndim != 1:
            raise InvalidArgument(f"value must have one dimension (got the shape {array.shape})")
        file.write(BINARY_HEADER + vector_bytes(array) if binary else vector_text(array, self.precision))

    def skip(self, cursor: Cursor) -> None:
        """Move past the next vector."""
        if read_header(cursor):
            skip_vector(cursor)
        else:
            skip_brackets(cursor, "a vector")

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (n,) of the next vector."""
        if read_header(cursor):
            return (skip_vector(cursor),)
        return (len(read_vector_text(cursor, self.basic)),)


@dataclass(frozen=True, slots=True)
class MatrixHolder:
    """Matrices of floats or doubles: arrays of shape (rows, columns). Compressed ones are read too."""

    name: str = "matrix"
    basic: BasicType = _FLOAT
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> NDArray[Any]:
        """Return the next matrix, and move past it."""
        head = cursor.ahead(compressed_matrix.HEAD_BYTES)
        if len(head) >= _MATRIX_START.size:
            start, rows, mark, columns = _MATRIX_START.unpack_from(head)
            if mark == _INT_MARK and rows > 0 < columns and start == _MATRIX_STARTS[self.basic.mark]:
                array = cursor.array(
                    self.basic.dtype,
                    rows * columns,
                    f"{rows} x {columns} elements",
                    behind=_MATRIX_START.size,
                )
                return array.reshape(rows, columns)
            if (values := compressed_matrix.read_with_header(cursor, head)) is not None:
                return values.astype(self.basic.dtype, copy=False)
        return _read_matrix(cursor, self.basic, binary=read_header(cursor))

    def read_range(self, cursor: Cursor, part: Range) -> NDArray[Any]:
        """Return some rows and columns of the next matrix; other rows are not touched."""
        return _read_matrix_part(cursor, self.basic, part, binary=read_header(cursor))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a matrix, in binary form or as text."""
        array = checked_matrix(value, self.basic)
        if not binary:
            file.write(matrix_text(array, self.precision))
            return
        file.write(BINARY_HEADER + _matrix_start(array))
        if array.size:
            file.write(array.data)

    def skip(self, cursor: Cursor) -> None:
        """Move past the next matrix."""
        _skip_matrix(cursor, binary=read_header(cursor))

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (rows, columns) of the next matrix."""
        return _matrix_shape(cursor, self.basic, binary=read_header(cursor))


def checked_matrix(value: Any, basic: BasicType) -> NDArray[Any]:
    """Return a value as a matrix; without elements, of the shape (0, 0), the one that Kaldi has.

    Raises:
        WrongType: the elements are not numbers.
        InvalidArgument: it has not two dimensions, or an element is too large.
    """
    array = basic.checked_array("value", value)
    if not array.size and array.ndim in {1, 2}:
        return array.reshape(0, 0)
    if array.ndim != 2:  # noqa: PLR2004 - rows and columns
        raise InvalidArgument(f"value must have two dimensions (got the shape {array.shape})")
    return array


def vector_bytes(array: NDArray[Any]) -> bytes:
    """Return a vector in binary form, without the binary header."""
    token = b"FV \4" if array.itemsize == _FLOAT.mark else b"DV \4"
    return token + len(array).to_bytes(4, "little") + array.tobytes()


def _matrix_start(array: NDArray[Any]) -> bytes:
    """Return the token and the shape of a matrix in binary form."""
    token = b"FM \4" if array.itemsize == _FLOAT.mark else b"DM \4"
    rows, columns = array.shape
    sizes: bytes = rows.to_bytes(4, "little") + b"\4" + columns.to_bytes(4, "little")
    return token + sizes


def read_vector(cursor: Cursor, wanted: BasicType, *, binary: bool) -> NDArray[Any]:
    """Return the vector after the binary header, or in text, converted to the wanted precision."""
    if not binary:
        return read_vector_text(cursor, wanted)
    basic, size = _vector_header(cursor)
    return _converted(cursor.array(basic.dtype, size, f"{size} elements"), wanted)


def skip_vector(cursor: Cursor) -> int:
    """Move past the vector after the binary header; return the number of its elements."""
    basic, size = _vector_header(cursor)
    cursor.skip(basic.dtype.itemsize * size, f"{size} elements")
    return size


def _matrix_header(cursor: Cursor) -> tuple[BasicType, int, int]:
    """Move past the token and the shape of a matrix in binary form; return its type, rows and columns."""
    start = cursor.position
    head = (
        cursor.take(_MATRIX_HEAD.size, "the header of a matrix") if cursor.peek() in _FIRST_LETTERS else b""
    )
    token, mark, rows, other, columns = _MATRIX_HEAD.unpack(head or bytes(_MATRIX_HEAD.size))
    if token not in _MATRICES or mark != other or mark != _INT_MARK:
        raise cursor.error("FM or DM (a matrix) and two int32", repr(bytes(head)) if head else None, at=start)
    if rows < 0 or columns < 0 or (rows == 0) != (columns == 0):
        found = f"{rows} x {columns}"
        raise cursor.error("a matrix with both rows and columns, or neither", found, at=start + len(token))
    return _MATRICES[token], rows, columns


def _read_matrix(cursor: Cursor, wanted: BasicType, *, binary: bool) -> NDArray[Any]:
    """Return the matrix after the binary header (also a compressed one), or in text, in a precision."""
    if not binary:
        return read_matrix_text(cursor, wanted)
    if cursor.peek() == compressed_matrix.FIRST:
        return _converted(compressed_matrix.read_values(cursor), wanted)
    basic, rows, columns = _matrix_header(cursor)
    found = cursor.array(basic.dtype, rows * columns, f"{rows} x {columns} elements")
    return _converted(found.reshape(rows, columns), wanted)


def _read_matrix_part(cursor: Cursor, wanted: BasicType, part: Range, *, binary: bool) -> NDArray[Any]:
    """Return some rows and columns of the matrix after the binary header, or in text."""
    if not binary:
        matrix = read_matrix_text(cursor, wanted)
        return matrix[
            part.row_slice(len(matrix), cursor.name), part.column_slice(matrix.shape[1], cursor.name)
        ]
    if cursor.peek() == compressed_matrix.FIRST:
        return compressed_matrix.read_part(cursor, part).astype(wanted.dtype, copy=False)
    basic, height, width = _matrix_header(cursor)
    rows, columns = part.row_slice(height, cursor.name), part.column_slice(width, cursor.name)
    return _converted(read_rows_and_columns(cursor, basic.dtype, (height, width), rows, columns), wanted)


def _skip_matrix(cursor: Cursor, *, binary: bool) -> None:
    """Move past the matrix after the binary header, or in text, without decoding it."""
    if binary:
        _matrix_shape(cursor, _FLOAT, binary=True)
    else:
        skip_brackets(cursor, "a matrix")


def _matrix_shape(cursor: Cursor, basic: BasicType, *, binary: bool) -> tuple[int, int]:
    """Return the rows and columns of the matrix after the binary header, or in text, and move past it."""
    if not binary:
        rows, columns = read_matrix_text(cursor, basic).shape
        return rows, columns
    if cursor.peek() == compressed_matrix.FIRST:
        return compressed_matrix.skip_compressed(cursor)
    found, rows, columns = _matrix_header(cursor)
    cursor.skip(found.dtype.itemsize * rows * columns, f"{rows} x {columns} elements")
    return rows, columns


def _converted(array: NDArray[Any], wanted: BasicType) -> NDArray[Any]:
    """Return an array in a precision; doubles beyond the range of floats become infinite, as in Kaldi."""
    if array.dtype == wanted.dtype:
        return array
    with np.errstate(over="ignore"):
        return array.astype(wanted.dtype)


def _vector_header(cursor: Cursor) -> tuple[BasicType, int]:
    start = cursor.position
    head = (
        cursor.take(_VECTOR_HEAD.size, "the header of a vector") if cursor.peek() in _FIRST_LETTERS else b""
    )
    token, mark, size = _VECTOR_HEAD.unpack(head or bytes(_VECTOR_HEAD.size))
    if token not in _VECTORS or mark != _INT_MARK:
        raise cursor.error("FV or DV (a vector) and an int32", repr(bytes(head)) if head else None, at=start)
    if size < 0:
        raise cursor.error("the number of elements", str(size), at=start + len(token))
    return _VECTORS[token], size


_PLAIN = MatrixHolder()


@dataclass(frozen=True, slots=True)
class CompressedMatrixHolder:
    """Compressed matrices: read as float32 arrays of shape (rows, columns), written by `method`.

    A matrix that is not compressed is read as it is.
    """

    name: str = "compressed-matrix"
    method: int = 1
    precision: int = DIGITS

    def __post_init__(self) -> None:
        checked_method(self.method)

    def read(self, cursor: Cursor) -> NDArray[np.float32]:
        """Return the next matrix, decoded."""
        values = compressed_matrix.read_with_header(cursor, cursor.ahead(compressed_matrix.HEAD_BYTES))
        return _PLAIN.read(cursor) if values is None else values

    def read_range(self, cursor: Cursor, part: Range) -> NDArray[np.float32]:
        """Return some rows and columns of the next matrix."""
        return _PLAIN.read_range(cursor, part)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Compress and write a matrix (a `CompressedMatrix` as it is). Text has the decoded values."""
        matrix = value if isinstance(value, CompressedMatrix) else compress(value, self.method)
        file.write(
            BINARY_HEADER + compressed_bytes(matrix)
            if binary
            else matrix_text(matrix.decode(), self.precision)
        )

    def skip(self, cursor: Cursor) -> None:
        """Move past the next matrix."""
        _PLAIN.skip(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (rows, columns) of the next matrix."""
        return _PLAIN.shape(cursor)


@dataclass(frozen=True, slots=True)
class GeneralMatrixHolder:
    """Matrices in the form in which they are stored: an array, a `CompressedMatrix` or a `SparseMatrix`."""

    name: str = "general-matrix"
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> NDArray[np.float32] | CompressedMatrix | SparseMatrix:
        """Return the next matrix in its own form."""
        binary = read_header(cursor)
        if _is_sparse(cursor, binary=binary):
            return read_sparse_matrix(cursor, binary=binary)
        if binary and cursor.peek() == FIRST:
            return read_compressed(cursor)
        return _read_matrix(cursor, _FLOAT, binary=binary)

    def read_range(self, cursor: Cursor, part: Range) -> NDArray[np.float32] | SparseMatrix:
        """Return some rows and columns of the next matrix; of a compressed one, decoded."""
        binary = read_header(cursor)
        if _is_sparse(cursor, binary=binary):
            return read_sparse_matrix(cursor, binary=binary).part(part, cursor.name)
        return _read_matrix_part(cursor, _FLOAT, part, binary=binary)

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a matrix in its own form; in text, a compressed one as its values."""
        if isinstance(value, SparseMatrix) and value.rows:
            head = (
                BINARY_HEADER + sparse_matrix_bytes(value)
                if binary
                else sparse_matrix_text(value, self.precision)
            )
            file.write(head)
        elif isinstance(value, CompressedMatrix) and value.scale.rows and binary:
            file.write(BINARY_HEADER + compressed_bytes(value))
        else:
            plain = value.toarray() if isinstance(value, SparseMatrix) else value
            plain = plain.decode() if isinstance(plain, CompressedMatrix) else plain
            MatrixHolder(precision=self.precision).write(file, plain, binary=binary)

    def skip(self, cursor: Cursor) -> None:
        """Move past the next matrix."""
        binary = read_header(cursor)
        if _is_sparse(cursor, binary=binary):
            skip_sparse_matrix(cursor, binary=binary)
        else:
            _skip_matrix(cursor, binary=binary)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (rows, columns) of the next matrix."""
        binary = read_header(cursor)
        if _is_sparse(cursor, binary=binary):
            return skip_sparse_matrix(cursor, binary=binary)
        return _matrix_shape(cursor, _FLOAT, binary=binary)


def _is_sparse(cursor: Cursor, *, binary: bool) -> bool:
    first = cursor.peek() if binary else cursor.skip_spaces()
    return first == ord("S" if binary else "r")


@dataclass(frozen=True, slots=True)
class PackedMatrixHolder:
    """Packed matrices of n rows.

    Values of ``sp-matrix`` are symmetric arrays of shape (n, n), those of ``tp-matrix`` lower triangular
    ones. Values of ``packed-matrix`` are arrays of shape (n (n + 1) / 2,): the lower triangle, row by row.
    All three have one form in files, and ``packed-matrix`` reads and writes it without knowing what the other
    triangle is.
    """

    name: str = "packed-matrix"
    basic: BasicType = _FLOAT
    upper: str = "absent"
    """The elements above the diagonal: "absent", "mirrored" or "zero"."""
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> NDArray[Any]:
        """Return the next matrix, and move past it."""
        if not read_header(cursor):
            return self._unpacked(self._read_text(cursor))
        basic, size = self._header(cursor)
        packed = cursor.array(basic.dtype, _triangle(size), f"{_triangle(size)} elements")
        with np.errstate(over="ignore"):
            return self._unpacked(packed.astype(self.basic.dtype, copy=False))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a matrix; of a square one, the lower triangle, after a check of the upper one."""
        packed = self._packed(self.basic.checked_array("value", value))
        size = _rows(len(packed))
        if binary:
            token = b"FP " if self.basic.mark == _FLOAT.mark else b"DP "
            file.write(BINARY_HEADER + token + b"\4" + size.to_bytes(4, "little") + packed.tobytes())
            return
        words = [f"{self.basic.text(each, self.precision)} " for each in packed.tolist()]
        rows = ["".join(words[_triangle(row) : _triangle(row + 1)]) for row in range(size)]
        file.write(("[\n" + "\n".join(rows) + "]\n" if rows else "[ ]\n").encode())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next matrix."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        """Return the shape of the next value: (n, n), or (n (n + 1) / 2,) of a ``packed-matrix``."""
        if read_header(cursor):
            basic, size = self._header(cursor)
            cursor.skip(basic.dtype.itemsize * _triangle(size), f"{_triangle(size)} elements")
        else:
            size = _rows(len(self._read_text(cursor)))
        return (_triangle(size),) if self.upper == "absent" else (size, size)

    def _header(self, cursor: Cursor) -> tuple[BasicType, int]:
        start = cursor.position
        token = bytes(cursor.take(3, "FP or DP (a packed matrix)"))
        if token[:2] not in _TYPES or token[2:] != b" ":
            raise cursor.error("FP or DP (a packed matrix)", repr(token), at=start)
        return _TYPES[token[:2]], read_size(cursor, "the number of rows")

    def _read_text(self, cursor: Cursor) -> NDArray[Any]:
        cursor.skip_spaces()
        start = cursor.position
        word = token_bytes(cursor, "'[' of a packed matrix")
        if word in _TYPES:  # an older form: FP, the number of rows, the numbers
            return self._read_counted(cursor)
        if word != b"[":
            raise cursor.error("'[' of a packed matrix", repr(decoded(word[:60])), at=start)
        start = cursor.position
        body = cursor.through(b"]")
        if not body.endswith(b"]"):
            raise cursor.error("']' at the end of a packed matrix")
        words = body[:-1].split()
        if _triangle(_rows(len(words))) != len(words):
            raise cursor.error("n (n + 1) / 2 numbers", f"{len(words)} numbers", at=start)
        numbers = parse_words(cursor, words, self.basic, start)
        end_bracket(cursor)
        return numbers

    def _read_counted(self, cursor: Cursor) -> NDArray[Any]:
        start = cursor.position
        word = token_bytes(cursor, "the number of rows")
        size = int(parse_number(cursor, word, BASIC_TYPES["int32"], start))
        if size < 0:
            raise cursor.error("the number of rows", str(size), at=start)
        words = [token_bytes(cursor, "a number of a packed matrix") for _ in range(_triangle(size))]
        return parse_words(cursor, words, self.basic, start)

    def _unpacked(self, packed: NDArray[Any]) -> NDArray[Any]:
        if self.upper == "absent":
            return packed
        size = _rows(len(packed))
        square = np.zeros((size, size), packed.dtype)
        rows, columns = np.tril_indices(size)
        square[rows, columns] = packed
        if self.upper == "mirrored":
            square[columns, rows] = packed
        return square

    def _packed(self, array: NDArray[Any]) -> NDArray[Any]:
        if self.upper == "absent":
            if array.ndim != 1 or _triangle(_rows(len(array))) != len(array):
                raise InvalidArgument(f"value must have the shape (n (n + 1) / 2,) (got {array.shape})")
            return array
        if array.ndim != _SQUARE or array.shape[0] != array.shape[1]:
            raise InvalidArgument(f"value must be a square matrix (got the shape {array.shape})")
        if self.upper == "zero" and np.triu(array, 1).any():
            raise InvalidArgument("value must be lower triangular (elements above the diagonal are not 0)")
        if self.upper == "mirrored" and not np.array_equal(array, array.T, equal_nan=True):
            raise InvalidArgument("value must be symmetric; write (value + value.T) / 2 instead")
        return array[np.tril_indices(len(array))]


def _triangle(size: int) -> int:
    """Return how many elements the lower triangle of a square matrix has."""
    return size * (size + 1) // 2


def _rows(elements: int) -> int:
    """Return the most rows whose lower triangle has no more elements than these."""
    return (isqrt(8 * elements + 1) - 1) // 2
