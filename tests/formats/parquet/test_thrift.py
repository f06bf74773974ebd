"""The compact protocol: what is written is read, skipped alike, and refused where it is cut off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.formats.tables.parquet import thrift
from seekable.formats.tables.parquet.thrift import ThriftError, Truncated, read_struct, skip

NUMBERS = st.integers(-(2**62), 2**62)
STOP = b"\0"


@st.composite
def structs(draw: st.DrawFn, depth: int = 0) -> tuple[bytes, dict[int, Any]]:
    """Draw a struct as bytes and as what they mean."""
    data, fields, field = b"", {}, 0
    for _ in range(draw(st.integers(0, 4))):
        gap = draw(st.integers(1, 15))
        field += gap
        kind = draw(
            st.sampled_from(["number", "short", "string", "strings", "shorts", "nested", "structs", "bool"])
        )
        if kind in {"nested", "structs"} and depth > 2:
            kind = "number"
        if kind == "number":
            value: Any = draw(NUMBERS)
            data += thrift.number(gap, value)
        elif kind == "short":
            value = draw(st.integers(-(2**31), 2**31 - 1))
            data += thrift.short(gap, value)
        elif kind == "string":
            value = draw(st.binary(max_size=300))
            data += thrift.string(gap, value)
        elif kind == "strings":
            value = draw(st.lists(st.binary(max_size=5), max_size=20))
            data += thrift.strings(gap, value)
        elif kind == "shorts":
            value = draw(st.lists(st.integers(0, 2**30), max_size=20))
            data += thrift.shorts(gap, value)
        elif kind == "bool":
            value = draw(st.booleans())
            data += bytes([gap << 4 | (1 if value else 2)])
        elif kind == "nested":
            inner, value = draw(structs(depth + 1))
            data += thrift.nested(gap, inner)
        else:
            some = draw(st.lists(structs(depth + 1), max_size=3))
            data += thrift.structs(gap, [inner for inner, _ in some])
            value = [meant for _, meant in some]
        fields[field] = value
    return data + STOP, fields


@given(structs(), st.binary(max_size=20))
def test_what_is_written_is_read(drawn: tuple[bytes, dict[int, Any]], more: bytes) -> None:
    data, fields = drawn
    assert read_struct(data + more) == (fields, len(data))
    assert read_struct(memoryview(data + more)) == (fields, len(data))
    assert skip(data + more, 0) == len(data)
    ids = [field for field, _, _ in thrift.fields(data + more, 0)]
    assert ids == list(fields)


@given(structs(), st.data())
def test_what_is_cut_off_is_told_from_what_is_wrong(
    drawn: tuple[bytes, dict[int, Any]], data: st.DataObject
) -> None:
    whole, _ = drawn
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(Truncated):
        read_struct(cut)
    with pytest.raises(Truncated):
        skip(cut, 0)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_struct, lambda some: skip(some, 0), lambda some: list(thrift.fields(some, 0))):
        try:
            read(data)
        except ThriftError:
            continue


@pytest.mark.parametrize("times", [40, 100_000])
def test_structs_too_deep_are_refused(times: int) -> None:
    for data in (b"\x1c" * times, b"\x19\x1c" * times, b"\x19\x19" * times):
        with pytest.raises(ThriftError):
            read_struct(data)
        with pytest.raises(ThriftError):
            skip(data, 0)


def test_a_list_of_more_elements_than_bytes_is_refused() -> None:
    data = b"\x19\xf8" + thrift.unsigned(2**60) + b"\0" * 50
    with pytest.raises(ThriftError, match="elements in"):
        read_struct(data)
    with pytest.raises(ThriftError, match="elements in"):
        skip(data, 0)
