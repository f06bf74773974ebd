"""Ranges after a filename in a script, such as ``[0:51,89:100]``: rows and columns of an object."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seekable.errors import InvalidArgument, KaldiWarning, WrongType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor

_BOUNDS = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")
_TOLERATED_ROWS = 3
"""The rows by which a range may end after the last one; Kaldi clips it, as segments are rounded to frames."""

_MAX_PARTS = 2

_BLOCK_BYTES: Final = 1 << 20
"""The bytes that are read at a time of rows, where some of their columns are wanted."""

_LONG_BYTES: Final = 64 << 10
"""Of a longer row only the wanted columns are read."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a vector or matrix: first and last row, first and last column; None is all of them.

    Example:
        >>> part = parse_range("[2:5]")
        >>> part.row_slice(10, "feats.ark"), part.columns
        (slice(2, 6, None), None)
    """

    rows: tuple[int, int] | None
    columns: tuple[int, int] | None
    text: str

    def row_slice(self, rows: int, path: str) -> slice:
        """Return the rows of this range in an object of `rows` rows; warn where the range is clipped.

        Raises:
            InvalidArgument: the range begins after the last row, or ends 3 rows or more after it.
        """
        if self.rows is None:
            return slice(0, rows)
        first, last = self.rows
        if last >= rows + _TOLERATED_ROWS or first >= rows:
            raise InvalidArgument(f"{path}: the range {self.text} must lie in the {rows} rows of the object")
        if last >= rows:
            message = f"{path}: the range {self.text} was clipped to the {rows} rows of the object"
            warnings.warn(message, KaldiWarning, stacklevel=2)
        return slice(first, min(last, rows - 1) + 1)

    def column_slice(self, columns: int, path: str) -> slice:
        """Return the columns of this range in an object of `columns` columns.

        Raises:
            InvalidArgument: the range ends after the last column.
        """
        if self.columns is None:
            return slice(0, columns)
        first, last = self.columns
        if last >= columns:
            raise InvalidArgument(
                f"{path}: the range {self.text} must lie in the {columns} columns of the object"
            )
        return slice(first, last + 1)

    def without_columns(self, kind: str) -> Range:
        """Return this range, for an object that has no columns.

        Raises:
            InvalidArgument: the range names columns.
        """
        if self.columns is not None or "," in self.text:
            raise InvalidArgument(
                f"the range of a {kind} must have one part, such as [0:51] (got {self.text})"
            )
        return self


def parse_range(text: str) -> Range:
    """Return the range that a text describes: ``0:51``, ``0:51,89:100``, ``:,89:100`` or ``,89:100``.

    Bounds are inclusive and count from 0. Brackets around the text may be present.

    Raises:
        InvalidArgument: the text is not a range.
        WrongType: it is not a str.

    Example:
        >>> parse_range("[0:51,89:100]").columns
        (89, 100)
    """
    if not isinstance(text, str):
        raise WrongType(f"a range must be a str (got {text!r} of type {type(text).__name__})")
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    shown = f"[{inner}]"
    parts = inner.split(",")
    if not inner or len(parts) > _MAX_PARTS or not parts[-1]:
        raise InvalidArgument(f"a range must be of the form [0:51], [0:51,89:100] or [,89:100] (got {shown})")
    bounds = [None if part in {"", ":"} else _parse_bounds(part, shown) for part in parts]
    return Range(bounds[0], bounds[1] if len(bounds) == _MAX_PARTS else None, shown)


def _parse_bounds(part: str, shown: str) -> tuple[int, int]:
    found = _BOUNDS.fullmatch(part)
    if found is None or int(found[1]) > int(found[2]):
        raise InvalidArgument(
            f"each part of a range must be first:last, with first <= last (got {part!r} in {shown})"
        )
    return int(found[1]), int(found[2])


def read_rows_and_columns(
    cursor: Cursor, dtype: np.dtype[Any], shape: tuple[int, int], rows: slice, columns: slice
) -> NDArray[Any]:
    """Return some rows and columns of items that are stored row by row, and move past all of them.

    The memory is that of the part and of a block of rows.

    Args:
        cursor: it stands at the first item.
        dtype: the type of an item.
        shape: the number of rows and columns that are stored.
        rows: the rows that are wanted, with both bounds.
        columns: the columns that are wanted, with both bounds.

    Raises:
        CorruptObject: the file ends before the last item.
    """
    height, width = shape
    count, chosen = rows.stop - rows.start, columns.stop - columns.start
    row_bytes, what = width * dtype.itemsize, "the rows of the range"
    cursor.skip(rows.start * row_bytes, "the rows before the range")
    if count * row_bytes <= _BLOCK_BYTES or chosen == width:
        found = cursor.array(dtype, count * width, what).reshape(count, width)[:, columns]
    elif row_bytes > _LONG_BYTES:
        parts = []
        for _ in range(count):
            cursor.skip(columns.start * dtype.itemsize, what)
            parts.append(cursor.array(dtype, chosen, what))
            cursor.skip((width - columns.stop) * dtype.itemsize, what)
        found = np.stack(parts)
    else:
        step = _BLOCK_BYTES // row_bytes
        sizes = [min(step, count - first) for first in range(0, count, step)]
        blocks = (cursor.array(dtype, size * width, what).reshape(size, width) for size in sizes)
        found = np.concatenate([block[:, columns].copy() for block in blocks])
    cursor.skip((height - rows.stop) * row_bytes, "the rows after the range")
    return found
