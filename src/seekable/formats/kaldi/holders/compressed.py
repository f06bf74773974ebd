"""Compressed matrices as objects (``CM``, ``CM2``, ``CM3``): their bytes in files, and parts of them.

`matrix_coding.py` has the arithmetic. A part of a matrix is read without the bytes of other rows (``CM2`` and
``CM3``), or of other columns (``CM``, which is stored by columns).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from seekable.formats.kaldi.holders.matrix_coding import (
    BYTES_BY_COLUMN,
    FORMATS,
    CompressedMatrix,
    Scale,
    decode_columns,
    decode_rows,
)
from seekable.formats.kaldi.holders.ranges import read_rows_and_columns
from seekable.formats.kaldi.objects.header import BINARY_HEADER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.holders.ranges import Range
    from seekable.formats.kaldi.objects.cursor import Cursor

__all__ = [
    "FIRST",
    "HEAD_BYTES",
    "compressed_bytes",
    "read_compressed",
    "read_part",
    "read_values",
    "read_with_header",
    "skip_compressed",
]

FIRST = ord("C")
"""The first byte of every compressed matrix in binary form."""

_TOKENS = {b"CM ": 1, b"CM2 ": 2, b"CM3 ": 3}
_WHAT = "CM, CM2 or CM3 (a compressed matrix)"
_HEADER = struct.Struct("<ffii")
_CODES = {form: each.dtype for form, each in FORMATS.items()}
_CODES_NAME = "the codes"
_STARTS = {BINARY_HEADER + token: form for token, form in _TOKENS.items()}
HEAD_BYTES = max(map(len, _STARTS)) + _HEADER.size
"""The number of bytes before the codes, or before the headers of the columns, at most."""

_HEAD = np.dtype("<u2")
_NONE = np.empty((0, 4), _HEAD)
_FORMAT_FIELD = b"\0\0\0\0"
"""Kaldi writes a field too many in an empty matrix, and does not read it."""


def read_compressed(cursor: Cursor) -> CompressedMatrix:
    """Return the compressed matrix behind the binary header, without decoding it."""
    return _compressed(cursor, *_layout(cursor))


def read_values(cursor: Cursor) -> NDArray[np.float32]:
    """Return the values of the compressed matrix behind the binary header."""
    return read_compressed(cursor).decode()


def read_with_header(cursor: Cursor, head: bytes) -> NDArray[np.float32] | None:
    """Return the values of the compressed matrix at a cursor, binary header included; None of others.

    Args:
        cursor: it is moved only past a matrix that is returned.
        head: the next bytes, `HEAD_BYTES` of them.
    """
    token = next((token for token in _STARTS if head.startswith(token)), None)
    if token is None or len(head) < HEAD_BYTES:
        return None
    minimum, span, rows, columns = _HEADER.unpack_from(head, len(token))
    if rows <= 0 or columns <= 0:
        return None
    scale = Scale(_STARTS[token], minimum, span, rows, columns)
    behind = len(token) + _HEADER.size
    if scale.form == BYTES_BY_COLUMN:
        heads = cursor.array(_HEAD, 4 * columns, "the headers of the columns", behind=behind)
        codes = cursor.array(_CODES[scale.form], rows * columns, _CODES_NAME)
        return decode_columns(scale, heads.reshape(columns, 4), codes.reshape(columns, rows))
    codes = cursor.array(_CODES[scale.form], rows * columns, _CODES_NAME, behind=behind)
    return decode_rows(scale, codes).reshape(rows, columns)


def skip_compressed(cursor: Cursor) -> tuple[int, int]:
    """Move past the compressed matrix behind the binary header; return its rows and columns."""
    scale, columns, codes = _layout(cursor)
    cursor.skip(8 * columns + FORMATS[scale.form].dtype.itemsize * codes, f"{codes} codes")
    _skip_format_field(cursor, scale)
    return scale.rows, scale.columns


def read_part(cursor: Cursor, part: Range) -> NDArray[np.float32]:
    """Return some rows and columns of the compressed matrix behind the binary header."""
    scale, heads, _ = _layout(cursor)
    rows, columns = part.row_slice(scale.rows, cursor.name), part.column_slice(scale.columns, cursor.name)
    if scale.form == BYTES_BY_COLUMN:
        table = cursor.array(_HEAD, 4 * heads, "the headers of the columns").reshape(-1, 4)[columns]
        data = read_rows_and_columns(cursor, np.dtype("u1"), (scale.columns, scale.rows), columns, rows)
        return decode_columns(scale, table, data)
    dtype = FORMATS[scale.form].dtype
    return decode_rows(
        scale, read_rows_and_columns(cursor, dtype, (scale.rows, scale.columns), rows, columns)
    )


def compressed_bytes(matrix: CompressedMatrix) -> bytes:
    """Return a compressed matrix in binary form, without the binary header."""
    scale = matrix.scale
    token = next(token for token, form in _TOKENS.items() if form == scale.form)
    header = _HEADER.pack(scale.minimum, scale.span, scale.rows, scale.columns)
    return token + header + matrix.heads.tobytes() + matrix.codes.tobytes()


def _compressed(cursor: Cursor, scale: Scale, columns: int, codes: int) -> CompressedMatrix:
    """Return the compressed matrix behind its header, which is `scale`."""
    heads = _NONE
    if columns:
        heads = cursor.array(_HEAD, 4 * columns, "the headers of the columns").reshape(columns, 4)
    data = cursor.array(_CODES[scale.form], codes, _CODES_NAME)
    _skip_format_field(cursor, scale)
    shape = (scale.columns, scale.rows) if scale.form == BYTES_BY_COLUMN else (scale.rows, scale.columns)
    return CompressedMatrix(scale, heads, data.reshape(shape))


def _layout(cursor: Cursor) -> tuple[Scale, int, int]:
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
    scale = Scale(form, minimum, span, rows, columns)
    return scale, columns if form == BYTES_BY_COLUMN else 0, rows * columns


def _skip_format_field(cursor: Cursor, scale: Scale) -> None:
    """Move past the four null bytes that Kaldi writes behind an empty matrix; a key contains no null byte."""
    if scale.rows == 0 and cursor.peek() == 0:
        start = cursor.position
        field = bytes(cursor.take(len(_FORMAT_FIELD), "four null bytes behind an empty matrix"))
        if field != _FORMAT_FIELD:
            raise cursor.error("four null bytes behind an empty matrix", repr(field), at=start)
