"""The Arrow type that holds the values of two types unchanged, and values fitted into it without loss.

The rules do not depend on the order of the types, nor on how many are joined at a time. They are stricter
than ``pyarrow.unify_schemas``: text and bytes, or decimals and floats, have no common type, because values
would change. They also join a dictionary, or runs, with the type of its values.

A type is wider than another one if it is `unified_type` of it and of a third one. ``fitting`` returns a
function of Python values, and ``fitted_array`` converts an array; both give the same values.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    Fit = Callable[[Any], Any]
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["NoCommonType", "fitted_array", "fitting", "is_unchanged", "unified_type"]

_UNITS = ("s", "ms", "us", "ns")
_LONGEST = 64
_INTEGER_DIGITS = 20
"""The digits of the longest integer of 64 bits."""

_DIGITS, _MORE_DIGITS = 38, 76


class NoCommonType(Exception):
    """No type holds the values of two types.

    Attributes:
        one: the first type.
        other: the second type.
        within: the field of structs in which they differ, ``"a.b"``; empty for the column itself.
    """

    def __init__(self, one: Any, other: Any, within: str = "") -> None:
        self.one = one
        self.other = other
        self.within = within
        super().__init__(f"{one} and {other}")


def unified_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of both types; fields of the first come first.

    Raises:
        NoCommonType: no type does.

    Example:
        >>> import pyarrow as pa
        >>> str(unified_type(pa.int32(), pa.int64())), str(unified_type(pa.int64(), pa.float32()))
        ('int64', 'double')
        >>> str(unified_type(pa.struct({"a": pa.int8()}), pa.struct({"b": pa.string()})))
        'struct<a: int8, b: string>'
    """
    types = pa.types
    if one.equals(other) or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_dictionary(one) and types.is_dictionary(other):
        return _dictionaries(one, other)
    if _is_encoded(one) or _is_encoded(other):
        return unified_type(*(kind.value_type if _is_encoded(kind) else kind for kind in (one, other)))
    for belongs, join in _FAMILIES:
        if belongs(one) and belongs(other):
            return join(one, other)
    raise NoCommonType(one, other)


def _is_encoded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind))


def _dictionaries(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one.value_type != other.value_type or one.ordered != other.ordered:
        return unified_type(one.value_type, other.value_type)
    index = _integers(one.index_type, other.index_type)
    return pa.dictionary(index, one.value_type, ordered=one.ordered)


def _integers(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the shortest type for both; int64 for uint64 and a signed one, where no type is long enough."""
    signed = [kind for kind in (one, other) if pa.types.is_signed_integer(kind)]
    if len(signed) != 1:
        return max(one, other, key=lambda kind: kind.bit_width)
    unsigned = other if signed[0] is one else one
    bits = min(_LONGEST, max(signed[0].bit_width, 2 * unsigned.bit_width))
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]


def _numbers(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    decimals = [types.is_decimal(kind) for kind in (one, other)]
    floating = [types.is_floating(kind) for kind in (one, other)]
    if any(decimals):
        if any(floating):
            raise NoCommonType(one, other)
        return _decimals(one, other)
    if any(floating):
        return max(one, other, key=lambda kind: kind.bit_width) if all(floating) else pa.float64()
    return _integers(one, other)


def _decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scales = [kind.scale if pa.types.is_decimal(kind) else 0 for kind in (one, other)]
    whole = [
        kind.precision - kind.scale if pa.types.is_decimal(kind) else _INTEGER_DIGITS for kind in (one, other)
    ]
    digits = max(whole) + max(scales)
    if digits > _MORE_DIGITS:
        raise NoCommonType(one, other)
    is_long = digits > _DIGITS or pa.decimal256(_MORE_DIGITS).id in (one.id, other.id)
    return pa.decimal256(digits, max(scales)) if is_long else pa.decimal128(digits, max(scales))


def _texts(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return (
        pa.large_string() if pa.types.is_large_string(one) or pa.types.is_large_string(other) else pa.string()
    )


def _binaries(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return (
        pa.large_binary() if pa.types.is_large_binary(one) or pa.types.is_large_binary(other) else pa.binary()
    )


def _times(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    unit = _finest(one, other)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _timestamps(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one.tz != other.tz:
        raise NoCommonType(one, other)
    return pa.timestamp(_finest(one, other), one.tz)


def _finest(one: pa.DataType, other: pa.DataType) -> Any:
    return max(one.unit, other.unit, key=_UNITS.index)


def _lists(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    value = pa.field(one.value_field.name, unified_type(one.value_type, other.value_type))
    if types.is_fixed_size_list(one) and types.is_fixed_size_list(other) and one.list_size == other.list_size:
        return pa.list_(value, one.list_size)
    is_large = types.is_large_list(one) or types.is_large_list(other)
    return pa.large_list(value) if is_large else pa.list_(value)


def _structs(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    fields = {field.name: field.type for field in one}
    for field in other:
        try:
            fields[field.name] = unified_type(fields.get(field.name, pa.null()), field.type)
        except NoCommonType as error:
            within = f"{field.name}.{error.within}" if error.within else field.name
            raise NoCommonType(error.one, error.other, within) from None
    return pa.struct(list(fields.items()))


def _maps(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    key = unified_type(one.key_type, other.key_type)
    return pa.map_(key, unified_type(one.item_type, other.item_type))


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    # No views of lists: pyarrow 26 casts slices of them to other values.
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


_FAMILIES: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]], ...] = (
    (_is_number, _numbers),
    (_is_text, _texts),
    (_is_binary, _binaries),
    (lambda kind: bool(pa.types.is_date(kind)), lambda *_: pa.date64()),
    (lambda kind: bool(pa.types.is_time(kind)), _times),
    (lambda kind: bool(pa.types.is_timestamp(kind)), _timestamps),
    (lambda kind: bool(pa.types.is_duration(kind)), lambda one, other: pa.duration(_finest(one, other))),
    (_is_list, _lists),
    (lambda kind: bool(pa.types.is_struct(kind)), _structs),
    (lambda kind: bool(pa.types.is_map(kind)), _maps),
)
"""A test of a type, and the function that joins two types that pass it."""


_EXACTLY = decimal.Context(prec=100, traps=[decimal.InvalidOperation, decimal.Inexact])


def is_unchanged(source: pa.DataType, wider: pa.DataType) -> bool:
    """Return True if the Python values of a type are those of a wider type too, as they are.

    Example:
        >>> import pyarrow as pa
        >>> is_unchanged(pa.int8(), pa.int64()), is_unchanged(pa.int8(), pa.float64())
        (True, False)
    """
    types = pa.types
    if types.is_dictionary(source) or types.is_dictionary(wider):
        values = [kind.value_type if types.is_dictionary(kind) else kind for kind in (source, wider)]
        return is_unchanged(*values)
    if source.equals(wider):
        return True
    if types.is_integer(source) and types.is_integer(wider):
        return bool(source != pa.uint64())
    if types.is_nested(source) and types.is_nested(wider):
        return _is_unchanged_within(source, wider)
    families = (types.is_floating, _is_text, _is_binary, types.is_date, types.is_time, types.is_duration)
    return any(belongs(source) and belongs(wider) for belongs in (*families, types.is_timestamp))


def _is_unchanged_within(source: pa.DataType, wider: pa.DataType) -> bool:
    """Return what ``is_unchanged`` does, of two structs, maps or lists."""
    types = pa.types
    if types.is_struct(source):
        pairs = [(one.type, other.type) for one, other in zip(source, wider, strict=False)]
        same_names = [field.name for field in source] == [field.name for field in wider]
        return same_names and all(is_unchanged(*pair) for pair in pairs)
    if types.is_map(source):
        pairs = [(source.key_type, wider.key_type), (source.item_type, wider.item_type)]
        return all(is_unchanged(*pair) for pair in pairs)
    return is_unchanged(source.value_type, wider.value_type)


def fitted_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array as one of a wider type.

    Raises:
        ValueError, TypeError, OverflowError: a value does not fit the type.
    """
    if array.type.equals(kind):
        return array
    try:
        is_plain = pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(kind)
        return (array.dictionary_decode() if is_plain else array).cast(kind)
    except pa.ArrowException:  # pyarrow cannot cast it, or refuses integers that a float would hold
        fit = fitting(kind)
        return pa.array([None if value is None else fit(value) for value in array.to_pylist()], kind)


def fitting(kind: pa.DataType) -> Fit:
    """Return a function that returns a value, which is not None, as a value of a type.

    The function raises ValueError, TypeError or OverflowError for a value that the type does not hold.

    Example:
        >>> import pyarrow as pa
        >>> fitting(pa.float64())(1), fitting(pa.struct({"a": pa.int64(), "b": pa.string()}))({"a": 1})
        (1.0, {'a': 1, 'b': None})
        >>> fitting(pa.int64())(1.5)
        Traceback (most recent call last):
        ...
        TypeError: a float is no int64
    """
    if pa.types.is_dictionary(kind):
        return fitting(kind.value_type)
    for belongs, make in _MAKERS:
        if belongs(kind):
            return make(kind)
    return lambda value: value


def _refused(value: object, kind: pa.DataType) -> TypeError:
    return TypeError(f"a {type(value).__name__} is no {kind}")


def _of_classes(*classes: type) -> Callable[[pa.DataType], Fit]:
    def make(kind: pa.DataType) -> Fit:
        is_date = pa.types.is_date(kind)

        def fit(value: Any) -> Any:
            if isinstance(value, classes) and not (is_date and isinstance(value, dt.datetime)):
                return value
            raise _refused(value, kind)

        return fit

    return make


def _integer(kind: pa.DataType) -> Fit:
    bounds = np.iinfo(str(kind))
    least, greatest = int(bounds.min), int(bounds.max)

    def fit(value: Any) -> Any:
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise _refused(value, kind)
        if not least <= value <= greatest:
            raise OverflowError(f"it is not between {least} and {greatest}, as every {kind} is")
        return value

    return fit


def _floating(kind: pa.DataType) -> Fit:
    def fit(value: Any) -> Any:
        if isinstance(value, float | np.floating):
            return value
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise _refused(value, kind)
        made = float(value)
        if int(made) != value:
            raise ValueError(f"a {kind} does not hold all of its digits")
        return np.float64(made) if isinstance(value, np.integer) else made

    return fit


def _decimal(kind: pa.DataType) -> Fit:
    step, most = decimal.Decimal(1).scaleb(-kind.scale), decimal.Decimal(10) ** (kind.precision - kind.scale)

    def fit(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, decimal.Decimal | int | np.integer):
            raise _refused(value, kind)
        exact = value if isinstance(value, decimal.Decimal) else decimal.Decimal(int(value))
        try:
            made = exact.quantize(step, context=_EXACTLY)
        except (decimal.Inexact, decimal.InvalidOperation):
            raise ValueError(f"it has more digits than {kind}") from None
        if abs(made) >= most:
            raise OverflowError(f"it has more digits than {kind}")
        return made

    return fit


def _timestamp(kind: pa.DataType) -> Fit:
    def fit(value: Any) -> Any:
        if isinstance(value, np.datetime64):
            return value
        if not isinstance(value, dt.datetime):
            raise _refused(value, kind)
        if (value.tzinfo is None) != (kind.tz is None):
            zone = "no time zone" if value.tzinfo is None else f"the time zone {value.tzinfo}"
            raise ValueError(f"it has {zone}, and the type is {kind}")
        return value

    return fit


def _struct(kind: pa.DataType) -> Fit:
    fields = {field.name: fitting(field.type) for field in kind}

    def fit(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"a {type(value).__name__} has no fields")
        if more := value.keys() - fields.keys():
            raise ValueError(f"it has the field {min(more, key=repr)!r} more than the type")
        return {
            name: None if (held := value.get(name)) is None else each(held) for name, each in fields.items()
        }

    return fit


def _map(kind: pa.DataType) -> Fit:
    key, item = fitting(kind.key_type), fitting(kind.item_type)

    def fit(value: Any) -> Any:
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(key(name), None if held is None else item(held)) for name, held in pairs]

    return fit


def _list(kind: pa.DataType) -> Fit:
    each, size = fitting(kind.value_type), kind.list_size if pa.types.is_fixed_size_list(kind) else None

    def fit(value: Any) -> Any:
        if not isinstance(value, list | tuple | np.ndarray):
            raise TypeError(f"a {type(value).__name__} is no list")
        if size is not None and len(value) != size:
            raise ValueError(f"it has {len(value)} values, and the type {size}")
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            return _fitted_numbers(value, kind.value_type)
        return [None if held is None else each(held) for held in value]

    return fit


def _fitted_numbers(values: np.ndarray[Any, Any], kind: pa.DataType) -> np.ndarray[Any, Any]:
    """Return an array of numbers or times, converted to a type's dtype."""
    dtype = pa.array([], kind).to_numpy(zero_copy_only=False).dtype
    made = values.astype(dtype)
    if not np.array_equal(made, values, equal_nan=values.dtype.kind == "f"):
        raise ValueError(f"an array of {values.dtype} does not fit {kind}")
    return made


_MAKERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Fit]], ...] = (
    (lambda kind: bool(pa.types.is_struct(kind)), _struct),
    (lambda kind: bool(pa.types.is_map(kind)), _map),
    (_is_list, _list),
    (lambda kind: bool(pa.types.is_integer(kind)), _integer),
    (lambda kind: bool(pa.types.is_floating(kind)), _floating),
    (lambda kind: bool(pa.types.is_decimal(kind)), _decimal),
    (lambda kind: bool(pa.types.is_timestamp(kind)), _timestamp),
    (lambda kind: bool(pa.types.is_boolean(kind)), _of_classes(bool, np.bool_)),
    (_is_text, _of_classes(str)),
    (_is_binary, _of_classes(bytes, bytearray, memoryview)),
    (lambda kind: bool(pa.types.is_date(kind)), _of_classes(dt.date, np.datetime64)),
    (lambda kind: bool(pa.types.is_time(kind)), _of_classes(dt.time)),
    (lambda kind: bool(pa.types.is_duration(kind)), _of_classes(dt.timedelta, np.timedelta64)),
    (lambda kind: bool(pa.types.is_null(kind)), _of_classes()),
)
"""A test of a type, and the function that makes the conversion to a type that passes it."""
