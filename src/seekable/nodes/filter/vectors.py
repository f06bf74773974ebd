"""Conditions asked of whole columns of a table, without an object for each value.

Only where Arrow is sure to give the answer that `Condition.holds` gives for each value; elsewhere the records
are asked one by one, which also finds out what cannot be compared.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from seekable.nodes.conditions import Condition, Where

    Bools = NDArray[np.bool_]

__all__ = ["passing"]

_EXACT = 1 << 53
"""Integers up to this are floats without loss."""

_COMPARE = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def passing(where: Where, batch: pa.RecordBatch) -> Bools | None:
    """Return which rows of a batch pass; None if that has to be asked record by record.

    Example:
        >>> import pyarrow as pa
        >>> from seekable.nodes.conditions import checked_where
        >>> batch = pa.RecordBatch.from_pydict({"n": [1, None, 3]})
        >>> passing(checked_where([("n", "<", 3)]), batch).tolist()
        [True, False, False]
        >>> passing(checked_where([("n", "<", "3")]), batch) is None
        True
    """
    whole = np.zeros(batch.num_rows, dtype=np.bool_)
    for conditions in where.any_of:
        every = np.ones(batch.num_rows, dtype=np.bool_)
        for condition in conditions:
            if condition.column not in batch.schema.names:
                return None
            one = _holding(condition, batch.column(condition.column))
            if one is None:
                return None
            every &= one
        whole |= every
    return whole


def _holding(condition: Condition, column: pa.Array) -> Bools | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    there: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    if condition.operator in ("is null", "is not null"):
        return there if condition.operator == "is not null" else ~there
    values = condition.value if condition.operator in ("in", "not in") else (condition.value,)
    if not all(_is_exact(value, column.type) for value in values):
        return None
    if not values:
        return np.zeros_like(there) if condition.operator == "in" else there
    if condition.operator in ("in", "not in"):
        if pa.types.is_floating(column.type) and 0 in values:
            return None  # Zeros have two signs, and Arrow's look-ups may tell them apart.
        among: Bools = pc.is_in(column, value_set=pa.array(values, type=column.type)).to_numpy(
            zero_copy_only=False
        )
        return (among if condition.operator == "in" else ~among) & there
    compared = pc.call_function(_COMPARE[condition.operator], [column, pa.scalar(values[0], column.type)])
    held: Bools = pc.fill_null(compared, False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's own
    return held


def _is_exact(value: Any, kind: pa.DataType) -> bool:
    """Tell whether a value is one of a column's type, and compares there as it does in Python."""
    import pyarrow as pa

    types = pa.types
    if types.is_integer(kind):
        low, high = _bounds(kind)
        return type(value) is int and low <= value <= high
    if types.is_float64(kind):
        number = type(value) is float or (type(value) is int and abs(value) <= _EXACT)
        return number and not math.isnan(value)
    if types.is_string(kind) or types.is_large_string(kind):
        return type(value) is str and _is_unicode(value)
    return types.is_date32(kind) and type(value) is dt.date


def _is_unicode(text: str) -> bool:
    """Tell whether a text has an encoding, whose order then is that of Python."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    bounds = np.iinfo(kind.to_pandas_dtype())
    return int(bounds.min), int(bounds.max)
