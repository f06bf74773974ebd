"""What would be lost where values are put into a column of a given type.

pyarrow refuses most of what cannot be; here is what it would leave out without a word.
"""

from __future__ import annotations

import datetime as dt
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

__all__ = ["loss"]


def loss(values: Iterable[Any], kind: pa.DataType) -> str | None:
    """Return what of some values a column would not hold; None if nothing is known to be lost.

    Example:
        >>> import pyarrow as pa
        >>> loss([{"a": 1, "b": 2}], pa.struct({"a": pa.int64()}))
        "it has 'b', and the column's struct has no field of that name"
    """
    from pyarrow import types

    if types.is_struct(kind):
        return _of_dicts([value for value in values if isinstance(value, dict)], kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _of_lists(list(values), kind)
    if types.is_dictionary(kind):
        return loss(values, kind.value_type)
    return _of_plain(values, kind)


def _of_dicts(dicts: list[dict[Any, Any]], kind: pa.DataType) -> str | None:
    names = {field.name for field in kind}
    if more := set(chain.from_iterable(dicts)) - names:
        told = ", ".join(sorted(map(repr, more)))
        return f"it has {told}, and the column's struct has no field of that name"
    for field in kind:
        held = [one[field.name] for one in dicts if field.name in one]
        if lost := loss(held, field.type):
            return lost
    return None


def _of_lists(values: list[Any], kind: pa.DataType) -> str | None:
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    samples = [value.dtype.type(0) for value in arrays if value.dtype.kind in "fiub"]
    objects = [value.tolist() for value in arrays if value.dtype.kind == "O"]
    lists = [value for value in values if isinstance(value, list | tuple)]
    return loss([*samples, *chain.from_iterable([*objects, *lists])], kind.value_type)


def _of_plain(values: Iterable[Any], kind: pa.DataType) -> str | None:
    from pyarrow import types

    kinds = set(map(type, values))
    if types.is_integer(kind) and any(issubclass(each, float | np.floating) for each in kinds):
        return f"it has a float, and the column holds {kind}"
    if types.is_date(kind) and any(issubclass(each, dt.datetime) for each in kinds):
        return f"it has a datetime, and the column holds {kind}"
    if types.is_timestamp(kind):
        for value in values:
            if isinstance(value, dt.datetime) and (value.tzinfo is None) != (kind.tz is None):
                has = "no time zone" if value.tzinfo is None else f"the time zone {value.tzinfo}"
                return f"it has a datetime with {has}, and the column holds {kind}"
    return None
