"""Holders of compressed matrices, and of matrices that keep the form in which they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.formats.kaldi.holders.compressed import FIRST, compressed_bytes, read_compressed
from seekable.formats.kaldi.holders.dense import (
    MatrixHolder,
    matrix_shape,
    read_matrix,
    read_matrix_part,
    skip_matrix,
)
from seekable.formats.kaldi.holders.matrix_coding import CompressedMatrix, checked_method, compress
from seekable.formats.kaldi.holders.number_text import matrix_text
from seekable.formats.kaldi.holders.sparse import (
    SparseMatrix,
    read_sparse_matrix,
    skip_sparse_matrix,
    sparse_matrix_bytes,
    sparse_matrix_text,
)
from seekable.formats.kaldi.objects.basic_types import BASIC_TYPES, DIGITS
from seekable.formats.kaldi.objects.header import BINARY_HEADER, read_header

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.kaldi.holders.ranges import Range
    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["CompressedMatrixHolder", "GeneralMatrixHolder"]

_PLAIN = MatrixHolder()
_FLOAT = BASIC_TYPES["float"]


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
        return _PLAIN.read(cursor)

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
        return read_matrix(cursor, _FLOAT, binary=binary)

    def read_range(self, cursor: Cursor, part: Range) -> NDArray[np.float32] | SparseMatrix:
        """Return some rows and columns of the next matrix; of a compressed one, decoded."""
        binary = read_header(cursor)
        if _is_sparse(cursor, binary=binary):
            return read_sparse_matrix(cursor, binary=binary).part(part, cursor.name)
        return read_matrix_part(cursor, _FLOAT, part, binary=binary)

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
            skip_matrix(cursor, binary=binary)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (rows, columns) of the next matrix."""
        binary = read_header(cursor)
        if _is_sparse(cursor, binary=binary):
            return skip_sparse_matrix(cursor, binary=binary)
        return matrix_shape(cursor, _FLOAT, binary=binary)


def _is_sparse(cursor: Cursor, *, binary: bool) -> bool:
    first = cursor.peek() if binary else cursor.skip_spaces()
    return first == ord("S" if binary else "r")
