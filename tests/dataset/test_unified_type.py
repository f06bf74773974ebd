"""The common type of two types: independent of order and grouping, and every value stays what it is."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.nodes.columns.unified_type import (
    NoCommonType,
    fitted_array,
    fitting,
    is_unchanged,
    unified_type,
)

PLAIN = [
    pa.null(),
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3)),
    *(pa.date32(), pa.date64()),
    *(pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.duration("s"), pa.duration("us")),
    *(pa.decimal128(5, 2), pa.decimal128(20, 4), pa.decimal256(50, 10)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string())),
    pa.dictionary(pa.int8(), pa.int64()),
]


def nested(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        below.map(pa.list_),
        below.map(pa.large_list),
        below.map(lambda kind: pa.list_(kind, 2)),
        st.dictionaries(st.sampled_from("abc"), below, max_size=3).map(pa.struct),
        below.map(lambda kind: pa.map_(pa.string(), kind)),
    )


types = st.recursive(st.sampled_from(PLAIN), nested, max_leaves=4)


def joined(one: Any, other: Any) -> Any:
    """Return the common type; None if there is none."""
    if one is None or other is None:
        return None
    try:
        return unified_type(one, other)
    except NoCommonType:
        return None


def same(one: Any, other: Any) -> bool:
    """Return True if two types are the same but for the order of the fields of structs."""
    if one is None or other is None:
        return one is other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in other}
        return {field.name for field in one} == fields.keys() and all(
            same(field.type, fields[field.name]) for field in one
        )
    if pa.types.is_map(one) and pa.types.is_map(other):
        return same(one.key_type, other.key_type) and same(one.item_type, other.item_type)
    if pa.types.is_nested(one) and pa.types.is_nested(other):
        sizes = [getattr(kind, "list_size", None) for kind in (one, other)]
        return one.id == other.id and sizes[0] == sizes[1] and same(one.value_type, other.value_type)
    return bool(one == other)


@given(one=types, other=types)
def test_the_order_of_types_does_not_matter(one: Any, other: Any) -> None:
    assert same(joined(one, other), joined(other, one))
    assert same(joined(one, one), one)
    assert same(joined(one, pa.null()), one)
    common = joined(one, other)
    assert common is None or (same(joined(common, one), common) and same(joined(other, common), common))


@given(one=types, other=types, third=types)
def test_the_grouping_of_types_does_not_matter(one: Any, other: Any, third: Any) -> None:
    assert same(joined(joined(one, other), third), joined(one, joined(other, third)))


def test_plain_types_in_any_grouping() -> None:
    table = {(one, other): joined(one, other) for one in PLAIN for other in PLAIN}
    for one in PLAIN:
        for other in PLAIN:
            left = table[one, other]
            for third in PLAIN:
                right = table[other, third]
                assert joined(left, third) == joined(one, right)


def of_arrow(one: Any, other: Any) -> Any:
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def test_plain_types_are_those_of_arrow_but_for_what_is_listed() -> None:
    t = pa.types
    for one in PLAIN:
        for other in PLAIN:
            kinds = one, other
            texts = [t.is_string(kind) or t.is_large_string(kind) for kind in kinds]
            binaries = [t.is_binary(k) or t.is_large_binary(k) or t.is_fixed_size_binary(k) for k in kinds]
            decimals, floats = [t.is_decimal(k) for k in kinds], [t.is_floating(k) for k in kinds]
            whole = [t.is_integer(kind) for kind in kinds]
            if (any(texts) and any(binaries)) or (any(decimals) and any(floats)):
                assert joined(one, other) is None  # Arrow changes the values
            elif any(floats) and any(whole):
                assert joined(one, other) == pa.float64()  # Arrow keeps floats short beside short integers
            elif any(decimals) and any(whole):
                assert joined(one, other).precision >= of_arrow(one, other).precision
            elif any(map(t.is_dictionary, kinds)) and of_arrow(one, other) is None:
                plain = [kind.value_type if t.is_dictionary(kind) else kind for kind in kinds]
                assert joined(one, other) == joined(*plain)  # Arrow does not decode
            else:
                assert joined(one, other) == of_arrow(one, other)


WIDE = [
    (pa.int32(), pa.int64(), pa.int64()),
    (pa.int8(), pa.uint8(), pa.int16()),
    (pa.int64(), pa.float32(), pa.float64()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.string(), pa.large_string(), pa.large_string()),
    (pa.string_view(), pa.string(), pa.string()),
    (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
    (pa.null(), pa.list_(pa.int8()), pa.list_(pa.int8())),
    (pa.list_(pa.int32()), pa.list_(pa.float64(), 3), pa.list_(pa.float64())),
    (pa.list_(pa.float32(), 3), pa.list_(pa.float64(), 3), pa.list_(pa.float64(), 3)),
    (
        pa.struct({"a": pa.int32()}),
        pa.struct({"b": pa.string(), "a": pa.int64()}),
        pa.struct({"a": pa.int64(), "b": pa.string()}),
    ),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int16()), pa.map_(pa.string(), pa.int16())),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
    (pa.decimal128(5, 2), pa.decimal128(20, 4), pa.decimal128(20, 4)),
    (pa.int64(), pa.decimal128(5, 2), pa.decimal128(22, 2)),
]


@pytest.mark.parametrize(("one", "other", "common"), WIDE)
def test_common_types(one: Any, other: Any, common: Any) -> None:
    assert unified_type(one, other) == common
    assert same(unified_type(other, one), common)


def test_the_field_that_differs_is_named() -> None:
    one = pa.struct({"a": pa.struct({"b": pa.int8(), "c": pa.int8()})})
    with pytest.raises(NoCommonType) as raised:
        unified_type(one, pa.struct({"a": pa.struct({"c": pa.string()})}))
    assert raised.value.within == "a.c"
    with pytest.raises(NoCommonType):
        unified_type(pa.decimal256(76, 0), pa.decimal256(76, 76))


def partners(kind: Any) -> st.SearchStrategy[Any]:
    """Return types that have a common type with a type."""
    t = pa.types
    if t.is_struct(kind):
        fields = {field.name: partners(field.type) for field in kind}
        more = st.dictionaries(st.sampled_from("cde"), st.sampled_from(PLAIN), max_size=2)
        return st.tuples(more, st.fixed_dictionaries(fields)).map(
            lambda parts: pa.struct(parts[0] | parts[1])
        )
    if t.is_map(kind):
        return partners(kind.item_type).map(lambda item: pa.map_(pa.string(), item))
    if t.is_nested(kind):
        return partners(kind.value_type).flatmap(
            lambda value: st.sampled_from([pa.list_(value), pa.large_list(value), pa.list_(value, 2)])
        )
    return st.sampled_from([other for other in PLAIN if joined(kind, other) is not None])


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return values, which are not None, of a type."""
    t = pa.types
    if t.is_dictionary(kind):
        return values_of(kind.value_type)
    return _within(kind) if t.is_nested(kind) else _plain(kind)


def _within(kind: Any) -> st.SearchStrategy[Any]:
    t = pa.types
    if t.is_struct(kind):
        return st.fixed_dictionaries({field.name: maybe(field.type) for field in kind})
    if t.is_map(kind):
        return st.dictionaries(st.text("ab", max_size=2), maybe(kind.item_type), max_size=2).map(
            lambda pairs: list(pairs.items())
        )
    size = getattr(kind, "list_size", None)
    return st.lists(maybe(kind.value_type), min_size=size or 0, max_size=2 if size is None else size)


def _plain(kind: Any) -> st.SearchStrategy[Any]:
    t = pa.types
    if t.is_integer(kind):
        bounds = np.iinfo(str(kind))
        return st.integers(int(bounds.min), int(bounds.max))
    if t.is_floating(kind):
        floats = st.floats(width=kind.bit_width, allow_nan=False)
        # Older versions of pyarrow take no other values for 16 bits.
        return floats.map(np.float16) if kind == pa.float16() else floats
    if t.is_decimal(kind):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(
            lambda digits: decimal.Decimal(digits).scaleb(-kind.scale, decimal.Context(prec=99))
        )
    return _others(kind)


def _others(kind: Any) -> st.SearchStrategy[Any]:
    t = pa.types
    days = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
    whole = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(  # noqa: DTZ001 - of no zone
        lambda value: value.replace(microsecond=0)
    )
    families: list[tuple[Any, st.SearchStrategy[Any]]] = [
        (t.is_boolean, st.booleans()),
        (t.is_fixed_size_binary, st.binary(min_size=3, max_size=3)),
        (lambda kind: t.is_binary(kind) or t.is_large_binary(kind), st.binary(max_size=4)),
        (lambda kind: t.is_string(kind) or t.is_large_string(kind), st.text("aé", max_size=4)),
        (t.is_date, days),
        (
            t.is_timestamp,
            whole.map(lambda value: value.replace(tzinfo=dt.UTC) if kind_has_zone(kind) else value),
        ),
        (t.is_time, whole.map(dt.datetime.time)),
        (t.is_duration, st.integers(-1000, 1000).map(lambda seconds: dt.timedelta(seconds=seconds))),
    ]
    return next((values for belongs, values in families if belongs(kind)), st.none())


def kind_has_zone(kind: Any) -> bool:
    return kind.tz is not None


@functools.cache
def maybe(kind: Any) -> st.SearchStrategy[Any]:
    return st.none() | values_of(kind)


def equal(value: Any, wide: Any) -> bool:
    """Return True if a value of a wider type is a value: fields that were added are None."""
    if isinstance(value, dict):
        more = wide.keys() - value.keys()
        return all(wide[name] is None for name in more) and all(equal(value[key], wide[key]) for key in value)
    if isinstance(value, list):
        return len(value) == len(wide) and all(map(equal, value, wide))
    if isinstance(value, tuple):
        return all(map(equal, value, wide))
    if isinstance(value, float) and math.isinf(value):
        return bool(value == wide)
    return bool(value == wide) and isinstance(value, bool) == isinstance(wide, bool)


@given(data=st.data(), one=types)
def test_values_are_kept_and_arrays_agree(data: st.DataObject, one: Any) -> None:
    other = data.draw(partners(one))
    common = unified_type(one, other)
    values = data.draw(st.lists(maybe(one), max_size=3))
    array = pa.array(values, one)
    fit = fitting(common)
    try:
        made = [None if value is None else fit(value) for value in array.to_pylist()]
    except (ValueError, OverflowError):
        # Only numbers that are too long for the common type do not fit.
        assert "int64" in str(one) or "int64" in str(other)
        with pytest.raises((ValueError, OverflowError)):
            fitted_array(array, common)
        return
    assert all(
        value is wide if value is None else equal(value, wide)
        for value, wide in zip(array.to_pylist(), made, strict=True)
    )
    wide = fitted_array(array, common)
    assert wide.type == common
    assert wide.to_pylist() == made
    if is_unchanged(one, common):
        assert array.to_pylist() == made


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (pa.int8(), 300, OverflowError),
        (pa.int8(), True, TypeError),
        (pa.int64(), 1.0, TypeError),
        (pa.float64(), (1 << 60) + 1, ValueError),
        (pa.float64(), "1", TypeError),
        (pa.string(), b"a", TypeError),
        (pa.binary(), "a", TypeError),
        (pa.bool_(), 1, TypeError),
        (pa.date32(), dt.datetime(2024, 1, 1), TypeError),  # noqa: DTZ001
        (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1), ValueError),  # noqa: DTZ001
        (pa.timestamp("us"), dt.date(2024, 1, 1), TypeError),
        (pa.decimal128(5, 2), decimal.Decimal("1.234"), ValueError),
        (pa.decimal128(5, 2), decimal.Decimal(1234), OverflowError),
        (pa.decimal128(5, 2), 1.5, TypeError),
        (pa.list_(pa.int64()), "ab", TypeError),
        (pa.list_(pa.int64(), 2), [1], ValueError),
        (pa.list_(pa.int8()), np.array([300]), ValueError),
        (pa.struct({"a": pa.int64()}), {"b": 1}, ValueError),
        (pa.struct({"a": pa.int64()}), [1], TypeError),
        (pa.null(), 1, TypeError),
    ],
)
def test_what_does_not_fit_is_refused(kind: Any, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fitting(kind)(value)


def test_values_of_numpy_fit() -> None:
    assert fitting(pa.list_(pa.float64()))(np.array([1, 2])).dtype == np.float64
    assert type(fitting(pa.float64())(np.int8(3))) is np.float64
    assert fitting(pa.int64())(np.int8(3)) == 3
    assert fitting(pa.list_(pa.list_(pa.int64())))([[1], None]) == [[1], None]
    assert fitting(pa.map_(pa.string(), pa.float64()))({"a": 1}) == [("a", 1.0)]
    assert fitting(pa.uuid())("anything") == "anything"


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 3))
    columns = {}
    for name in draw(st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3)):
        plain = st.sampled_from([pa.int64(), pa.string(), *PLAIN])
        kind = draw(plain | types.filter(lambda kind: "dictionary" not in str(kind)))
        columns[name] = pa.array(draw(st.lists(maybe(kind), min_size=rows, max_size=rows)), kind)
    return pa.table(columns)


def records_of(ds: sk.Dataset) -> list[Any] | None:
    """Return the records; None if a value does not fit its column."""
    try:
        return list(ds)
    except sk.errors.BadValue:
        return None


@given(parts=st.lists(tables(), min_size=2, max_size=3))
def test_any_tables_are_united(parts: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("united")
    sources = []
    for number, part in enumerate(parts):
        path = folder / f"{number}.arrow"
        pyarrow.feather.write_feather(part, path, compression="uncompressed")
        sources.append(sk.open(path, progress=lambda _: None))
    common = {
        name: functools.reduce(
            joined, [part.schema.field(name).type for part in parts if name in part.schema.names]
        )
        for name in dict.fromkeys(name for part in parts for name in part.schema.names)
    }
    if None in common.values():
        with pytest.raises(sk.errors.InvalidArgument, match="no type holds the values of both"):
            sk.concat(sources, columns="union")
        return
    ds = sk.concat(sources, columns="union")
    assert {field.name: field.type for field in ds.schema} == common
    records = records_of(ds)
    if records is None:
        return  # an integer is too long for a float
    assert records == [ds[row] for row in range(len(ds))] == ds.to_arrow().to_pylist()
    assert ds.to_arrow().schema == ds.schema
    whole = [record for part in parts for record in part.to_pylist()]
    assert all(equal(record, wide) for record, wide in zip(whole, records, strict=True))
