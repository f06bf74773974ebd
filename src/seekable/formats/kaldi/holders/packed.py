"""Packed matrices (``FP``, ``DP``): the lower triangle of a symmetric or triangular matrix, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.holders.number_text import end_bracket, parse_words
from seekable.formats.kaldi.objects.basic_types import BASIC_TYPES, DIGITS, BasicType, parse_number, read_size
from seekable.formats.kaldi.objects.header import BINARY_HEADER, read_header
from seekable.formats.kaldi.objects.tokens import decoded, token_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["PackedMatrixHolder"]

_FLOAT, _DOUBLE = BASIC_TYPES["float"], BASIC_TYPES["double"]
_TYPES = {b"FP": _FLOAT, b"DP": _DOUBLE}
_SQUARE = 2  # dimensions


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
    """Return the number of elements of the lower triangle of a square matrix."""
    return size * (size + 1) // 2


def _rows(elements: int) -> int:
    """Return the most rows whose lower triangle has no more elements than these."""
    return (isqrt(8 * elements + 1) - 1) // 2
