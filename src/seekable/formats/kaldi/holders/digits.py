"""Floating-point numbers as text of so many significant digits, as ``%.7g`` of C writes them.

Most numbers are rounded to these digits in whole arrays: such a number is a decimal fraction of few digits,
and the shortest text of it, which msgspec writes, is the text of ``%g``. What ``%g`` writes with an exponent,
what lies close to a tie, infinities and nan are written one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["lines_of_numbers"]

_MOST_DIGITS = 9
"""With more digits, a product in double precision does not show which way a number is rounded."""

_LEAST = 1e-4
"""The least number that ``%g`` writes without an exponent."""

_POWERS = 10.0 ** np.arange(16)
_CLOSE = 1e-6
"""Numbers so close to a tie are not rounded in arrays; the error of a product is less than a tenth of it."""

_NUMBERS_AT_A_TIME = 1 << 10
"""So few that Python objects of all of them fit into memory that is used again."""


def lines_of_numbers(values: NDArray[Any], precision: int, between: bytes) -> bytes:
    r"""Return rows of numbers, each number with a space behind it.

    Args:
        values: float32 or float64 of shape (rows, columns), with at least one row.
        precision: the number of significant digits.
        between: the bytes between rows; they have no comma.

    Example:
        >>> lines_of_numbers(np.array([[0.1, 2], [-1e-7, 1 / 3]]), 7, b"\n")
        b'0.1 2 \n-1e-07 0.3333333 '
    """
    step = max(1, _NUMBERS_AT_A_TIME // max(1, values.shape[1]))
    form = f"%.{precision}g "
    if not 1 <= precision <= _MOST_DIGITS:
        return between.join(((form * len(row)) % tuple(row.tolist())).encode() for row in values)
    with np.errstate(invalid="ignore"):  # signals of nan
        starts = range(0, len(values), step)
        return between.join(_few_lines(values[first : first + step], precision, between) for first in starts)


def _few_lines(values: NDArray[Any], precision: int, between: bytes) -> bytes:
    sizes = np.abs(values, dtype=np.float64)
    is_rare = ~((sizes >= _LEAST) & (sizes < _POWERS[precision]))  # also nan
    sizes[is_rare] = 1
    scales = _POWERS[precision - 1 - np.floor(np.log10(sizes)).astype(np.intp)]
    sizes *= scales
    rounded = np.rint(sizes)
    sizes -= rounded
    np.abs(sizes, out=sizes)
    is_rare |= np.abs(sizes - 0.5) < _CLOSE
    rounded /= scales
    is_rare |= rounded >= _POWERS[precision]
    is_rare &= values != 0
    rounded[values == 0] = 0
    np.copysign(rounded, values, out=rounded)
    lines: list[list[Any]] = rounded.tolist()
    for row, column in zip(*(places.tolist() for places in is_rare.nonzero()), strict=True):
        lines[row][column] = msgspec.Raw(b"%.*g" % (precision, float(values[row, column])))
    text = msgspec.json.encode(lines)[2:-2].replace(b"],[", b"," + between) + b","
    return text.replace(b".0,", b",").replace(b",", b" ")
