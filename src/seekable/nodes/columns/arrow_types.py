"""Arrow types of columns: inferred from values, or common to several datasets.

``type_of`` infers a type that returns Python values unchanged. The inference of pyarrow changes values of
different types: it turns a date and a datetime into two dates, and text and bytes into bytes. The type of
many values can be inferred in parts: it is `merged` of the types of the parts, however they are cut.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.errors import WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    TypeOf = Callable[[list[Any]], pa.DataType]
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["UnsupportedType", "check_name", "common_types", "fill_values", "merged", "type_of"]

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
    types = pa.types
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
    types = pa.types

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
    fields = {field.name: field.type for field in one}
    for field in other:
        fields[field.name] = merged(fields.get(field.name, pa.null()), field.type)
    return pa.struct(list(fields.items()))


def _lists(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return pa.list_(merged(one.value_type, other.value_type))


def _numbers(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    floating = [types.is_floating(kind) for kind in (one, other)]
    if any(floating):
        return max(one, other, key=lambda kind: kind.bit_width) if all(floating) else pa.float64()
    signed = [types.is_signed_integer(kind) for kind in (one, other)]
    if signed[0] == signed[1]:
        return max(one, other, key=lambda kind: kind.bit_width)
    # Negative integers raise an error when the array is made.
    return pa.uint64() if pa.uint64() in (one, other) else pa.int64()


def _decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scale = max(one.scale, other.scale)
    digits = max(one.precision - one.scale, other.precision - other.scale) + scale
    if digits > _MORE_DIGITS:
        raise UnsupportedType(
            f"a column of decimals has at most {_MORE_DIGITS} digits, and these need {digits}"
        )
    return pa.decimal128(digits, scale) if digits <= _DIGITS else pa.decimal256(digits, scale)


def _timestamps(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one.tz != other.tz:
        raise UnsupportedType("datetimes with a time zone and without do not fit into one column")
    return pa.timestamp(max(one.unit, other.unit, key=_UNITS.index), one.tz)


def _durations(one: pa.DataType, other: pa.DataType) -> pa.DataType:
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
    largest = max(values)
    if largest <= _LARGEST_SIGNED and min(values) >= -_LARGEST_SIGNED - 1:
        return pa.int64()
    if largest > _LARGEST or min(values) < 0:
        raise UnsupportedType("integers must fit into 64 bits")
    return pa.uint64()


def _datetimes(values: list[dt.datetime]) -> pa.DataType:
    aware = {value.tzinfo is not None for value in values}
    if len(aware) > 1:
        raise UnsupportedType("datetimes with a time zone and without do not fit into one column")
    return pa.timestamp("us", "UTC" if aware.pop() else None)


def _times(values: list[dt.time]) -> pa.DataType:
    if any(value.tzinfo is not None for value in values):
        raise UnsupportedType("a column cannot hold times with a time zone")
    return pa.time64("us")


def _of_decimals(values: list[decimal.Decimal]) -> pa.DataType:
    try:
        return pa.array(values).type
    except pa.ArrowInvalid as error:
        raise UnsupportedType(str(error)) from None


def _within(values: list[Any]) -> pa.DataType:
    """Return the type of values in lists or dicts, where pyarrow can hold fewer types than in a column."""
    kind = type_of(values)
    if isinstance(kind, pa.BaseExtensionType):
        raise UnsupportedType(
            f"{kind} can be in a column itself, and not in lists or dicts: make a str of it"
        )
    return kind


def _of_dicts(values: list[dict[Any, Any]]) -> pa.DataType:
    names = dict.fromkeys(chain.from_iterable(values))
    for name in names:
        check_name(name)
    return pa.struct([(name, _within([value[name] for value in values if name in value])) for name in names])


def check_name(name: Any) -> None:
    """Check that a column, or a field of one, can have a name.

    Raises:
        UnsupportedType: it is not a string, or is one that UTF-8 cannot encode.
    """
    if not isinstance(name, str):
        raise UnsupportedType(f"the names of columns must be strings, and {name!r} is {type(name).__name__}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UnsupportedType(f"the name {name!r} has a lone surrogate, which UTF-8 cannot encode") from None


def _of_lists(values: list[Any]) -> pa.DataType:
    return pa.list_(_within(list(chain.from_iterable(values))))


def _of_arrays(values: list[np.ndarray[Any, Any]]) -> pa.DataType:
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
    found = pa.null()
    for dtype in dict.fromkeys(value.dtype for value in values):
        found = merged(found, _of_dtype(dtype))
    return found


def _of_dtype(dtype: np.dtype[Any]) -> pa.DataType:
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] not in _UNITS:
        raise UnsupportedType(f"a column cannot hold {dtype}: make it {dtype.kind}8[us] with astype()")
    try:
        return pa.from_numpy_dtype(dtype)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise UnsupportedType(f"a column cannot hold arrays of {dtype}") from None


def common_types(declared: Sequence[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """Return the columns of all datasets, each with a type that holds its values in all of them.

    Args:
        declared: for each dataset the Arrow types of its columns; None if they are unknown.

    Returns:
        The types by column; None as the type of a column whose types have no common one. None instead of the
        dict if the columns of a dataset are unknown.

    Example:
        >>> import pyarrow as pa
        >>> dict(common_types([{"n": pa.int8()}, {"n": pa.int64(), "text": pa.string()}]))
        {'n': DataType(int64), 'text': DataType(string)}
    """
    first = declared[0]
    if first is None or len(declared) == 1 or all(other is first for other in declared):
        return first
    found: dict[str, Any] = {}
    for columns in declared:
        if columns is None:
            return None
        for name, kind in columns.items():
            found[name] = kind if name not in found else _common(found[name], kind)
    return found


def _common(one: Any, other: Any) -> Any:
    if one is None or other is None or one.equals(other):
        return one if other is not None else None
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None


_NAMES: dict[str, tuple[str, ...]] = {
    "int": ("int", "uint"),
    "float": ("float", "double", "halffloat"),
    "str": ("string", "large_string", "string_view"),
    "bool": ("bool",),
    "bytes": ("binary", "large_binary"),
    "list": ("list", "large_list", "fixed_size_list"),
    "dict": ("struct",),
}

_ZEROS: dict[str, Any] = {"int": 0, "float": 0.0, "str": "", "bool": False}


def fill_values(
    schema: pa.Schema,
    *,
    types: Mapping[Any, Any] | None,
    auto: bool,
    default: Any,
    columns: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a value for each column that has one: by its name, else its type, else the default.

    Args:
        schema: the columns and their types.
        types: values by type: int, float, str, bool, bytes, list, dict, or the name that Arrow has for one
            (``"int64"``, ``"string"``).
        auto: True to fill numbers with 0, texts with ``""`` and bools with False.
        default: the value for columns of any other type; None to leave them out.
        columns: values by name.

    Raises:
        WrongType: a key of ``types`` is none of these.

    Example:
        >>> import pyarrow as pa
        >>> schema = pa.schema({"n": pa.int64(), "text": pa.string(), "at": pa.date32()})
        >>> fill_values(schema, types={str: "?"}, auto=True, default=None, columns={})
        {'n': 0, 'text': '?'}
    """
    by_type = {_name(kind): value for kind, value in (types or {}).items()}
    found: dict[str, Any] = {}
    for field in schema:
        kind = field.type
        dictionary = getattr(kind, "value_type", None) if str(kind).startswith("dictionary") else None
        exact = str(dictionary or kind)
        family = _family(exact)
        if exact in by_type:
            found[field.name] = by_type[exact]
        elif family in by_type:
            found[field.name] = by_type[family]
        elif auto and family in _ZEROS:
            found[field.name] = _ZEROS[family]
        elif default is not None:
            found[field.name] = default
    return {**found, **columns}


def _family(exact: str) -> str | None:
    """Return the name of the Python type for an Arrow type's values; None if there is none."""
    bare = exact.partition("<")[0].partition("[")[0].rstrip("0123456789")
    return next((family for family, names in _NAMES.items() if bare in names), None)


def _name(kind: object) -> str:
    if isinstance(kind, type) and kind.__name__ in _NAMES:
        return kind.__name__
    if isinstance(kind, str) or type(kind).__module__.startswith("pyarrow"):
        return str(kind)
    message = f"a type is {', '.join(_NAMES)} or one of Arrow's, such as 'int64' (got {kind!r})"
    raise WrongType(message)
