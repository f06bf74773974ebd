"""What is missing is filled: by name, by type, automatically, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import seekable as sk
from seekable.nodes.columns.arrow_types import fill_values

RECORDS: list[dict[str, Any]] = [
    {"n": 1, "x": None, "s": "a", "flag": True, "tags": [1, None], "meta": {"a": None}, "at": None},
    {"n": None, "x": 1.5, "s": None, "flag": None, "tags": None, "meta": {"a": "b"}},
]


def test_by_name_and_by_type_and_automatically() -> None:
    ds = sk.from_sequence(RECORDS)
    assert ds.fill({"n": 7, "new": "?"})[1] == {**RECORDS[1], "n": 7, "new": "?"}
    auto = ds.fill({"n": 7}, types={float: -1.0, "string": "-"}, auto=True)
    assert auto[0] == {**RECORDS[0], "x": -1.0}
    assert auto[1] == {**RECORDS[1], "n": 7, "s": "-", "flag": False}
    assert ds.fill(types={list: []}, default="none")[1] == {
        **RECORDS[1],
        "n": "none",
        "s": "none",
        "flag": "none",
        "tags": [],
        "at": "none",
    }


def test_nested_values_are_filled_where_that_is_asked() -> None:
    ds = sk.from_sequence(RECORDS)
    assert ds.fill({"tags": 0, "meta": ""})[0] == RECORDS[0]
    assert ds.fill({"tags": 0, "meta": ""}, nested=True)[0] == {
        **RECORDS[0],
        "tags": [1, 0],
        "meta": {"a": ""},
    }


def test_false_values_are_no_missing_ones() -> None:
    record = {"n": 0, "s": "", "tags": [], "flag": False}
    assert sk.from_sequence([record]).fill(dict.fromkeys(record, "filled"))[0] == record


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int8(), 0),
        (pa.uint64(), 0),
        (pa.float16(), 0.0),
        (pa.float32(), 0.0),
        (pa.float64(), 0.0),
        (pa.string(), ""),
        (pa.large_string(), ""),
        (pa.string_view(), ""),
        (pa.bool_(), False),
        (pa.dictionary(pa.int32(), pa.string()), ""),
    ],
)
def test_automatic_values(kind: Any, value: Any) -> None:
    found = fill_values(pa.schema({"c": kind}), types=None, auto=True, default=None, columns={})
    assert found == {"c": value}
    assert type(found["c"]) is type(value)


def test_types_without_an_automatic_value_stay_empty() -> None:
    kinds = [pa.binary(), pa.list_(pa.int64()), pa.struct({"a": pa.int8()}), pa.date32(), pa.null()]
    schema = pa.schema([(str(i), kind) for i, kind in enumerate(kinds)])
    assert fill_values(schema, types=None, auto=True, default=None, columns={}) == {}
    named = {bytes: b"", list: [], dict: {}, pa.date32(): 1, "null": 2}
    found = fill_values(schema, types=named, auto=False, default=None, columns={})
    assert list(found.values()) == [b"", [], {}, 1, 2]
    with pytest.raises(sk.errors.WrongType, match="a type is int, float"):
        fill_values(schema, types={3: 1}, auto=False, default=None, columns={})
