"""Ranges behind a filename in a script, such as ``[0:51,89:100]``: rows and columns of an object."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from seekable.errors import InvalidArgument, KaldiWarning

__all__ = ["Range", "parse_range"]

_BOUNDS = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")
_TOLERATED_ROWS = 3
"""Kaldi clips a range that ends so many rows behind the last one: segments are rounded to frames."""
_MAX_PARTS = 2


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
            InvalidArgument: the range begins behind the last row, or ends 3 rows or more behind it.
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
            InvalidArgument: the range ends behind the last column.
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
        InvalidArgument: the text is no range.

    Example:
        >>> parse_range("[0:51,89:100]").columns
        (89, 100)
    """
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
