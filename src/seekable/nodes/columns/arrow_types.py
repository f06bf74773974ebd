"""The inference of Arrow types: the type of a column that returns Python values unchanged.

The inference of pyarrow is not used, because it changes values of different types: it turns a date and a
datetime into two dates, and text and bytes into bytes.

The type of many values can be computed in parts: it is `merged` of the types of the parts, however they are
cut.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    TypeOf = Callable[[list[Any]], pa.DataType]

__all__ = ["UnsupportedType", "merged", "type_of"]

_LARGEST_SIGNED, _LARGEST = (1 << 63) - 1, (1 << 64) - 1
_UNITS = ("s", "ms", "us", "ns")
_DIGITS, _MORE_DIGITS = 38, 76


class UnsupportedType(Exception):
    """No column, or not the column at hand, can hold some values; the message has the reason."""


def type_of(values: Iterable[Any]) -> pa.DataType:
    """Return the type of a column that holds values exactly; None is a null.

    Raises:
        UnsupportedType: no type holds all of the values.

    Example:
        >>> str(type_of([1, None, 2.5])), str(type_of([{"a": [1]}, {"b": "x"}]))
        ('double', 'struct<a: list<item: int64>, b: string>')
    """
    import pyarrow as pa

    everything = values if isinstance(values, list) else list(values)
    kinds = list(dict.fromkeys(map(type, everything)))
    found = pa.null()
    for kind in kinds:
        if kind is not type(None):
            alike = everything if len(kinds) == 1 else [value for value in everything if type(value) is kind]
            found = merged(found, _rule(kind)(alike))
    return found


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of both types; fields of the first come first.

    Raises:
        UnsupportedType: no type holds the values of both.

    Example:
        >>> import pyarrow as pa
        >>> str(merged(pa.int64(), pa.null())), str(merged(pa.int8(), pa.float32()))
        ('int64', 'double')
    """
    from pyarrow import types

    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    for belongs, merge in _families():
        if belongs(one) and belongs(other):
            return merge(one, other)
    raise UnsupportedType(f"{one} and {other} do not fit into one column")


@cache
def _families() -> list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.DataType], Any]]]:
    from pyarrow import types

    def is_number(kind: pa.DataType) -> bool:
        return bool(types.is_integer(kind) or types.is_floating(kind))

    return [
        (types.is_struct, _structs),
        (types.is_list, _lists),
        (is_number, _numbers),
        (types.is_decimal, _decimals),
        (types.is_timestamp, _timestamps),
        (types.is_duration, _durations),
    ]


def _structs(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    fields = {field.name: field.type for field in one}
    for field in other:
        fields[field.name] = merged(fields.get(field.name, pa.null()), field.type)
    return pa.struct(list(fields.items()))


def _lists(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return pa.list_(merged(one.value_type, other.value_type))


def _numbers(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa
    from pyarrow import types

    floating = [types.is_floating(kind) for kind in (one, other)]
    if any(floating):
        return max(one, other, key=lambda kind: kind.bit_width) if all(floating) else pa.float64()
    signed = [types.is_signed_integer(kind) for kind in (one, other)]
    if signed[0] == signed[1]:
        return max(one, other, key=lambda kind: kind.bit_width)
    # Negative integers raise an error when the array is made.
    return pa.uint64() if pa.uint64() in (one, other) else pa.int64()


def _decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    scale = max(one.scale, other.scale)
    digits = max(one.precision - one.scale, other.precision - other.scale) + scale
    if digits > _MORE_DIGITS:
        raise UnsupportedType(
            f"a column of decimals has at most {_MORE_DIGITS} digits, and these need {digits}"
        )
    return pa.decimal128(digits, scale) if digits <= _DIGITS else pa.decimal256(digits, scale)


def _timestamps(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if one.tz != other.tz:
        raise UnsupportedType("datetimes with a time zone and without do not fit into one column")
    return pa.timestamp(max(one.unit, other.unit, key=_UNITS.index), one.tz)


def _durations(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return pa.duration(max(one.unit, other.unit, key=_UNITS.index))


@cache
def _rule(kind: type) -> TypeOf:
    """Return the function that infers the Arrow type of values of one class."""
    rules = _rules()
    for base in kind.__mro__:
        if base in rules:
            return rules[base]
    raise UnsupportedType(f"a column cannot hold values of the type {kind.__module__}.{kind.__qualname__}")


@cache
def _rules() -> dict[type, TypeOf]:
    import pyarrow as pa

    def always(kind: pa.DataType) -> TypeOf:
        return lambda _: kind

    numbers = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    dtypes = {kind: np.dtype(kind) for kind in (*numbers, np.float16, np.float32, np.float64, np.bool_)}
    return {
        bool: always(pa.bool_()),
        int: _integers,
        float: always(pa.float64()),
        str: always(pa.string()),
        bytes: always(pa.binary()),
        bytearray: always(pa.binary()),
        dt.datetime: _datetimes,
        dt.date: always(pa.date32()),
        dt.time: _times,
        dt.timedelta: always(pa.duration("us")),
        decimal.Decimal: _of_decimals,
        uuid.UUID: always(pa.uuid()),
        dict: _of_dicts,
        list: _of_lists,
        tuple: _of_lists,
        np.ndarray: _of_arrays,
        np.datetime64: _of_numpy_times,
        np.timedelta64: _of_numpy_times,
        **{kind: always(pa.from_numpy_dtype(dtype)) for kind, dtype in dtypes.items()},
    }


def _integers(values: list[int]) -> pa.DataType:
    import pyarrow as pa

    largest = max(values)
    if largest <= _LARGEST_SIGNED and min(values) >= -_LARGEST_SIGNED - 1:
        return pa.int64()
    if largest > _LARGEST or min(values) < 0:
        raise UnsupportedType("integers must fit into 64 bits")
    return pa.uint64()


def _datetimes(values: list[dt.datetime]) -> pa.DataType:
    import pyarrow as pa

    aware = {value.tzinfo is not None for value in values}
    if len(aware) > 1:
        raise UnsupportedType("datetimes with a time zone and without do not fit into one column")
    return pa.timestamp("us", "UTC" if aware.pop() else None)


def _times(values: list[dt.time]) -> pa.DataType:
    import pyarrow as pa

    if any(value.tzinfo is not None for value in values):
        raise UnsupportedType("a column cannot hold times with a time zone")
    return pa.time64("us")


def _of_decimals(values: list[decimal.Decimal]) -> pa.DataType:
    import pyarrow as pa

    try:
        return pa.array(values).type
    except pa.ArrowInvalid as error:
        raise UnsupportedType(str(error)) from None


def _within(values: list[Any]) -> pa.DataType:
    """Return the type of values in lists or dicts, where pyarrow can hold fewer types than in a column."""
    import pyarrow as pa

    kind = type_of(values)
    if isinstance(kind, pa.BaseExtensionType):
        raise UnsupportedType(
            f"{kind} can be in a column itself, and not in lists or dicts: make a str of it"
        )
    return kind


def _of_dicts(values: list[dict[Any, Any]]) -> pa.DataType:
    import pyarrow as pa

    names = dict.fromkeys(chain.from_iterable(values))
    for name in names:
        if not isinstance(name, str):
            raise UnsupportedType(
                f"the names in a dict must be strings, and {name!r} is {type(name).__name__}"
            )
    return pa.struct([(name, _within([value[name] for value in values if name in value])) for name in names])


def _of_lists(values: list[Any]) -> pa.DataType:
    import pyarrow as pa

    return pa.list_(_within(list(chain.from_iterable(values))))


def _of_arrays(values: list[np.ndarray[Any, Any]]) -> pa.DataType:
    import pyarrow as pa

    found = pa.null()
    for dtype, ndim in dict.fromkeys((value.dtype, value.ndim) for value in values):
        if ndim != 1:
            raise UnsupportedType(
                f"a column cannot hold arrays of {ndim} dimensions: make lists of them with tolist()"
            )
        if dtype.kind == "O":
            held = chain.from_iterable(value.tolist() for value in values if value.dtype == dtype)
            found = merged(found, type_of(held))
        else:
            found = merged(found, _of_dtype(dtype))
    return pa.list_(found)


def _of_numpy_times(values: list[Any]) -> pa.DataType:
    import pyarrow as pa

    found = pa.null()
    for dtype in dict.fromkeys(value.dtype for value in values):
        found = merged(found, _of_dtype(dtype))
    return found


def _of_dtype(dtype: np.dtype[Any]) -> pa.DataType:
    import pyarrow as pa

    if dtype.kind in "mM" and np.datetime_data(dtype)[0] not in _UNITS:
        raise UnsupportedType(f"a column cannot hold {dtype}: make it {dtype.kind}8[us] with astype()")
    try:
        return pa.from_numpy_dtype(dtype)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise UnsupportedType(f"a column cannot hold arrays of {dtype}") from None
