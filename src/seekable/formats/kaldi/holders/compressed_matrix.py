"""Compressed matrices (``CM``, ``CM2``, ``CM3``): their arithmetic, and their bytes in files.

Results are bit-identical to Kaldi's, so the mixture of single and double precision is Kaldi's too:

* format 1 (``CM``): four percentiles a column in 16 bits, and a byte an element on the three lines between
  them;
* format 2 (``CM2``): 16 bits an element on a line from the minimum over the span of the matrix;
* format 3 (``CM3``): 8 bits an element on that line.

A part of a matrix is read without the bytes of other rows (``CM2`` and ``CM3``), or of other columns (``CM``,
which is stored by columns).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import BASIC_TYPES, BINARY_HEADER
from seekable.formats.kaldi.holders.script_ranges import read_rows_and_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from seekable.formats.kaldi.cursor import Cursor
    from seekable.formats.kaldi.holders.script_ranges import Range

_BYTES_BY_COLUMN = 1
_AUTOMATIC = 1
_ROWS_FOR_PERCENTILES = 5
_STEPS = np.array([64, 128, 63], np.float32)
_FIRST_CODES = np.array([0, 64, 192, 255], np.int32)
_INT_LIMIT = 2.0**31
_NO_OVERFLOW = 1e38  # sums and products of values below it are finite in single precision
_COLUMNS_AT_A_TIME = 128  # their table of values, of 1 KiB a column, stays in the caches of a processor
_PLACES_AT_A_TIME = 8192  # of 8 bytes each: larger temporary arrays would be mapped and unmapped each time
_ROWS_FOR_COLUMNS = 8  # method 1 compresses a matrix of more rows by columns
FIRST = ord("C")
"""The first byte of every compressed matrix in binary form."""

_TOKENS = {b"CM ": 1, b"CM2 ": 2, b"CM3 ": 3}
_WHAT = "CM, CM2 or CM3 (a compressed matrix)"
_HEADER = struct.Struct("<ffii")
_CODES_NAME = "the codes"
_STARTS = {BINARY_HEADER + token: form for token, form in _TOKENS.items()}
HEAD_BYTES = max(map(len, _STARTS)) + _HEADER.size
"""The number of bytes before the codes, or before the headers of the columns, at most."""

_HEAD = np.dtype("<u2")
_NONE = np.empty((0, 4), _HEAD)
_FORMAT_FIELD = b"\0\0\0\0"
"""Kaldi writes a field too many in an empty matrix, and does not read it."""


class _Format(NamedTuple):
    dtype: np.dtype[Any]
    steps: int


_FORMATS = {
    1: _Format(np.dtype("u1"), 255),
    2: _Format(np.dtype("<u2"), 65535),
    3: _Format(np.dtype("u1"), 255),
}
"""The code type and the number of steps of each format."""

_CODES = {form: each.dtype for form, each in _FORMATS.items()}


class _Method(NamedTuple):
    form: int
    minimum: float | None
    """The value of code 0; None: the least element."""
    span: float


_METHODS = {
    2: _Method(1, None, 0),
    3: _Method(2, None, 0),
    4: _Method(2, -32768.0, 65535.0),
    5: _Method(3, None, 0),
    6: _Method(3, 0.0, 255.0),
    7: _Method(3, 0.0, 1.0),
}
"""Kaldi's methods by number; method 1 is 2 for matrices of more than 8 rows, and 3 for others."""


class _Scale(NamedTuple):
    """The header of a compressed matrix: its format (1, 2 or 3), least value, span of values, and shape."""

    form: int
    minimum: float
    span: float
    rows: int
    columns: int


@dataclass(frozen=True, slots=True, eq=False)
class CompressedMatrix:
    """A matrix in compressed form; `decode` returns the values.

    Attributes:
        scale: the header.
        heads: uint16 of shape (columns, 4) in format 1, the percentiles of each column; otherwise of shape
            (0, 4).
        codes: uint8 of shape (columns, rows) in format 1; otherwise uint8 or uint16 of shape (rows, columns).

    Example:
        >>> compress([[0.0, 1.0], [2.0, 255.0]], method=6).decode().tolist()
        [[0.0, 1.0], [2.0, 255.0]]
    """

    scale: _Scale
    heads: NDArray[np.uint16]
    codes: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return self.scale.rows, self.scale.columns

    def decode(self) -> NDArray[np.float32]:
        """Return the values, float32 of shape (rows, columns)."""
        if self.scale.form == _BYTES_BY_COLUMN:
            return _decode_columns(self.scale, self.heads, self.codes)
        return _decode_rows(self.scale, self.codes)


def checked_method(method: object) -> int:
    """Return a method of compression, checked.

    Raises:
        WrongType: it is not an integer.
        InvalidArgument: it is not in 1 to 7.
    """
    if not isinstance(method, int) or isinstance(method, bool):
        raise WrongType(f"method must be an integer (got {method!r})")
    if method != _AUTOMATIC and method not in _METHODS:
        raise InvalidArgument(f"method must be in 1 to 7 (got {method})")
    return method


def _decode_rows(scale: _Scale, codes: NDArray[Any]) -> NDArray[np.float32]:
    """Decode codes in format 2 or 3, in any shape."""
    # The step is rounded to single precision, as numpy does with a Python number beside a float32 array.
    step = scale.span * (1.0 / _FORMATS[scale.form].steps)
    # A copy is read from memory much faster than numpy casts.
    values = (codes if codes.base is None else codes.copy()).astype(np.float32)
    if abs(scale.minimum) + abs(scale.span) < _NO_OVERFLOW:
        values *= step
        values += scale.minimum
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        values *= step
        values += scale.minimum
    return values


def _decode_columns(
    scale: _Scale, heads: NDArray[np.uint16], codes: NDArray[np.uint8]
) -> NDArray[np.float32]:
    """Decode codes in format 1, shape (columns, rows); return values, shape (rows, columns)."""
    columns, rows = codes.shape
    values = np.empty((rows, columns), np.float32)
    for first in range(0, columns, _COLUMNS_AT_A_TIME):
        chosen = slice(first, first + _COLUMNS_AT_A_TIME)
        table = _value_table(_percentile_values(scale, heads[chosen])).ravel()
        starts = np.arange(0, table.size, 256)
        step = max(1, _PLACES_AT_A_TIME // len(starts))
        for row in range(0, rows, step):
            places = codes[chosen, row : row + step].T + starts
            values[row : row + step, chosen] = table.take(places)
    return values


def _percentile_values(scale: _Scale, heads: NDArray[np.uint16]) -> NDArray[np.float32]:
    step = np.float32(scale.span) * np.float32(1.52590218966964e-05)
    return np.float32(scale.minimum) + step * heads.astype(np.float32)


_LOW, _MIDDLE, _HIGH = np.arange(65, dtype="f4"), np.arange(1, 129, dtype="f4"), np.arange(1, 64, dtype="f4")


def _value_table(percentiles: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the value of each code in each column: float32, shape (columns, 256)."""
    table = np.empty((len(percentiles), 256), np.float32)
    p0, p25, p75, p100 = (percentiles[:, number : number + 1] for number in range(4))
    table[:, :65] = p0 + ((p25 - p0) * _LOW).astype(np.float64) * (1 / 64.0)
    table[:, 65:193] = p25 + ((p75 - p25) * _MIDDLE).astype(np.float64) * (1 / 128.0)
    table[:, 193:] = p75 + ((p100 - p75) * _HIGH).astype(np.float64) * (1 / 63.0)
    return table


def compress(matrix: ArrayLike, method: int = 1) -> CompressedMatrix:
    """Return a matrix in compressed form, with the codes that Kaldi chooses.

    Raises:
        InvalidArgument: it has not two dimensions, an element is not finite, or the method is unknown.
        WrongType: the elements are not numbers.
    """
    checked_method(method)
    values = BASIC_TYPES["float"].checked_array("value", matrix)
    if values.ndim != 2 and values.size:  # noqa: PLR2004 - rows and columns
        raise InvalidArgument(f"value must have two dimensions (got the shape {values.shape})")
    if not np.isfinite(values).all():
        raise InvalidArgument("value must be finite to be compressed (it holds nan or inf)")
    if not values.size:
        return CompressedMatrix(_Scale(1, 0.0, 0.0, 0, 0), np.empty((0, 4), "<u2"), np.empty((0, 0), "u1"))
    if method == _AUTOMATIC:
        method = 2 if len(values) > _ROWS_FOR_COLUMNS else 3
    scale = _scale(values, _METHODS[method])
    if scale.form != _BYTES_BY_COLUMN:
        return CompressedMatrix(scale, np.empty((0, 4), "<u2"), _codes(values, scale, _FORMATS[scale.form]))
    columns = np.ascontiguousarray(values.T)
    heads = _column_heads(columns, scale)
    return CompressedMatrix(scale, heads, _column_codes(columns, _percentile_values(scale, heads), scale))


def _scale(values: NDArray[np.float32], method: _Method) -> _Scale:
    rows, columns = values.shape
    if method.minimum is not None:
        return _Scale(method.form, method.minimum, method.span, rows, columns)
    least, most = values.min(), values.max()
    if least == 0:
        least = values.ravel()[np.argmax(values == 0)]  # the first zero decides on the sign, as in Kaldi
    if least == most:  # Kaldi's way out for a constant matrix
        most = np.float32(float(least) + (1.0 + abs(float(least))))
    with np.errstate(over="ignore"):
        span = most - least
    if not np.isfinite(span) or span <= 0:
        raise InvalidArgument(f"value must have a finite span to be compressed (got {least} to {most})")
    return _Scale(method.form, float(least), float(span), rows, columns)


def _codes(values: NDArray[np.float32], scale: _Scale, form: _Format) -> NDArray[Any]:
    """Return the codes of values on the line of the whole matrix, in Kaldi's rounding."""
    with np.errstate(over="ignore"):
        parts = (values - np.float32(scale.minimum)) / np.float32(scale.span)
    np.clip(parts, np.float32(0), np.float32(1), out=parts)
    return ((parts * np.float32(form.steps)).astype(np.float64) + 0.499).astype(form.dtype)


def _column_heads(columns: NDArray[np.float32], scale: _Scale) -> NDArray[np.uint16]:
    """Return the percentiles of columns, uint16, shape (columns, 4), for values in shape (columns, rows)."""
    rows = columns.shape[1]
    quarter = rows // 4
    order = (0, quarter, 3 * quarter, rows - 1) if rows >= _ROWS_FOR_PERCENTILES else tuple(range(rows))
    # Sorting takes a tenth of the time of np.partition, which is not vectorised for several places.
    chosen = np.sort(columns, axis=1)[:, list(order)].T
    codes = _codes(chosen, scale, _FORMATS[2]).astype(np.int64)
    heads = np.empty((4, len(columns)), np.int64)
    heads[0] = np.minimum(codes[0], 65532)
    for number in range(1, 4):
        heads[number] = heads[number - 1] + 1
        if number < len(codes):
            heads[number] = np.minimum(np.maximum(codes[number], heads[number]), 65532 + number)
    return np.ascontiguousarray(heads.T.astype("<u2"))


def _column_codes(
    columns: NDArray[np.float32], percentiles: NDArray[np.float32], scale: _Scale
) -> NDArray[np.uint8]:
    """Encode values, shape (columns, rows), on the three lines of each column; return uint8 codes."""
    step = scale.span / _FORMATS[2].steps
    if not (abs(scale.minimum) + scale.span < _NO_OVERFLOW and np.diff(percentiles).min() > step / 4):
        return _codes_of_close_percentiles(columns, percentiles)
    codes = np.empty(columns.shape, np.uint8)
    height = max(1, _PLACES_AT_A_TIME // columns.shape[1])
    for first in range(0, len(columns), height):
        chosen = slice(first, first + height)
        values, bounds = columns[chosen], percentiles[chosen]
        # A value on one line is at the end of the lines below it, and at the start of those above. So the sum
        # of its places on all lines is its code, rounded only at last, and in double precision, as in C++.
        total = np.full(values.shape, 0.5)
        for number, steps in enumerate(_STEPS):
            start = bounds[:, number : number + 1]
            places = values - start
            places /= bounds[:, number + 1 : number + 2] - start
            places *= steps
            np.maximum(places, np.float32(0), out=places)
            np.minimum(places, steps, out=places)
            total += places
        codes[chosen] = total
    return codes


def _codes_of_close_percentiles(
    columns: NDArray[np.float32], percentiles: NDArray[np.float32]
) -> NDArray[np.uint8]:
    """Return the codes where single precision does not separate the percentiles, with C++'s overflows."""
    p0, p25, p75, p100 = (percentiles[:, number : number + 1] for number in range(4))
    low, high = columns < p25, columns >= p75
    start, width = np.where(low, p0, p25), np.where(low, p25 - p0, p75 - p25)
    np.copyto(start, p75, where=high)
    np.copyto(width, p100 - p75, where=high)
    line = (~low).astype(np.intp)
    line += high
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        parts = ((columns - start) / width * _STEPS[line]).astype(np.float64)
        parts += 0.5
        # What C++ cannot cast to int becomes its least number there, and so the first code of the line.
        parts[~(np.abs(parts) < _INT_LIMIT)] = -1
    codes = parts.astype(np.int32)
    codes += _FIRST_CODES[line]
    return np.clip(codes, _FIRST_CODES[line], _FIRST_CODES[line + 1]).astype(np.uint8)


def read_compressed(cursor: Cursor) -> CompressedMatrix:
    """Return the compressed matrix after the binary header, without decoding it."""
    return _compressed(cursor, *_layout(cursor))


def read_values(cursor: Cursor) -> NDArray[np.float32]:
    """Return the values of the compressed matrix after the binary header."""
    return read_compressed(cursor).decode()


def read_with_header(cursor: Cursor, head: bytes) -> NDArray[np.float32] | None:
    """Return the values of the compressed matrix at a cursor, binary header included; None of others.

    Args:
        cursor: it is moved only past a matrix that is returned.
        head: the next bytes, `HEAD_BYTES` of them.
    """
    token = head[: head.find(b" ") + 1]
    form = _STARTS.get(token)
    if form is None or len(head) < HEAD_BYTES:
        return None
    minimum, span, rows, columns = _HEADER.unpack_from(head, len(token))
    if rows <= 0 or columns <= 0:
        return None
    scale = _Scale(form, minimum, span, rows, columns)
    behind = len(token) + _HEADER.size
    if form == _BYTES_BY_COLUMN:
        heads = cursor.array(_HEAD, 4 * columns, "the headers of the columns", behind=behind)
        codes = cursor.array(_CODES[form], rows * columns, _CODES_NAME)
        return _decode_columns(scale, heads.reshape(columns, 4), codes.reshape(columns, rows))
    codes = cursor.array(_CODES[form], rows * columns, _CODES_NAME, behind=behind)
    return _decode_rows(scale, codes).reshape(rows, columns)


def skip_compressed(cursor: Cursor) -> tuple[int, int]:
    """Move past the compressed matrix after the binary header; return its rows and columns."""
    scale, columns, codes = _layout(cursor)
    cursor.skip(8 * columns + _FORMATS[scale.form].dtype.itemsize * codes, f"{codes} codes")
    _skip_format_field(cursor, scale)
    return scale.rows, scale.columns


def read_part(cursor: Cursor, part: Range) -> NDArray[np.float32]:
    """Return some rows and columns of the compressed matrix after the binary header."""
    scale, heads, _ = _layout(cursor)
    rows, columns = part.row_slice(scale.rows, cursor.name), part.column_slice(scale.columns, cursor.name)
    if scale.form == _BYTES_BY_COLUMN:
        table = cursor.array(_HEAD, 4 * heads, "the headers of the columns").reshape(-1, 4)[columns]
        data = read_rows_and_columns(cursor, np.dtype("u1"), (scale.columns, scale.rows), columns, rows)
        return _decode_columns(scale, table, data)
    dtype = _FORMATS[scale.form].dtype
    return _decode_rows(
        scale, read_rows_and_columns(cursor, dtype, (scale.rows, scale.columns), rows, columns)
    )


def compressed_bytes(matrix: CompressedMatrix) -> bytes:
    """Return a compressed matrix in binary form, without the binary header."""
    scale = matrix.scale
    token = next(token for token, form in _TOKENS.items() if form == scale.form)
    header = _HEADER.pack(scale.minimum, scale.span, scale.rows, scale.columns)
    return token + header + matrix.heads.tobytes() + matrix.codes.tobytes()


def _compressed(cursor: Cursor, scale: _Scale, columns: int, codes: int) -> CompressedMatrix:
    """Return the compressed matrix after its header, which is `scale`."""
    heads = _NONE
    if columns:
        heads = cursor.array(_HEAD, 4 * columns, "the headers of the columns").reshape(columns, 4)
    data = cursor.array(_CODES[scale.form], codes, _CODES_NAME)
    _skip_format_field(cursor, scale)
    shape = (scale.columns, scale.rows) if scale.form == _BYTES_BY_COLUMN else (scale.rows, scale.columns)
    return CompressedMatrix(scale, heads, data.reshape(shape))


def _layout(cursor: Cursor) -> tuple[_Scale, int, int]:
    """Return the header at a cursor, the number of column headers that follow, and the number of codes."""
    start = cursor.position
    token = bytes(cursor.take(3, _WHAT))
    if token != b"CM ":
        token += bytes(cursor.take(1, _WHAT))
    form = _TOKENS.get(token)
    if form is None:
        raise cursor.error(_WHAT, repr(token), at=start)
    start = cursor.position
    minimum, span, rows, columns = _HEADER.unpack(
        cursor.take(_HEADER.size, "the header of a compressed matrix")
    )
    if rows < 0 or columns < 0 or (rows == 0) != (columns == 0):
        found = f"{rows} x {columns}"
        raise cursor.error("a matrix with both rows and columns, or neither", found, at=start + 8)
    scale = _Scale(form, minimum, span, rows, columns)
    return scale, columns if form == _BYTES_BY_COLUMN else 0, rows * columns


def _skip_format_field(cursor: Cursor, scale: _Scale) -> None:
    """Move past the four null bytes that Kaldi writes after an empty matrix; a key contains no null byte."""
    if scale.rows == 0 and cursor.peek() == 0:
        start = cursor.position
        field = bytes(cursor.take(len(_FORMAT_FIELD), "four null bytes after an empty matrix"))
        if field != _FORMAT_FIELD:
            raise cursor.error("four null bytes after an empty matrix", repr(field), at=start)
