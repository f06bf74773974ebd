"""The Arrow type that holds the values of two types unchanged; or none, which is an error that names both.

The rules do not depend on the order of the types, nor on how many are joined at a time. They are stricter
than ``pyarrow.unify_schemas``: text and bytes, or decimals and floats, have no common type, because values
would change. They also join a dictionary, or runs, with the type of its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._optional import optional

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["NoCommonType", "unified_type"]

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
