"""What Parquet holds of a record comes back as it was, or an error names the record and the column."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.tables.arrow_table import RecordColumns
from seekable.nodes.columns.arrow_types import UnsupportedType, merged, type_of
from seekable.writing.preview import looked_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UTC = dt.UTC
PLUS_TWO = dt.timezone(dt.timedelta(hours=2))


def read_back(records: list[Any], folder: Path, **arguments: Any) -> list[Any]:
    written = sk.from_sequence(records).write_parquet(folder, jobs=1, **arguments)
    return [record for path in written.paths for record in pq.read_table(path).to_pylist()]


SCALARS: list[st.SearchStrategy[Any]] = [
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8")),
    st.binary(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, PLUS_TWO])),
    st.times(),
]


@st.composite
def columns(draw: st.DrawFn, depth: int = 2) -> st.SearchStrategy[Any]:
    """Draw what the values of a column are drawn from: scalars of one type, lists or dicts of columns."""
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 2:
        return st.none() | st.lists(draw(columns(depth=depth - 1)), max_size=3)
    if kind == 3:
        below = [draw(columns(depth=depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return st.none() | st.fixed_dictionaries({f"f{place}": each for place, each in enumerate(below)})
    scalars = SCALARS if depth < 2 else [*SCALARS, st.uuids()]
    scalar: st.SearchStrategy[Any] = draw(st.sampled_from(scalars))
    return st.none() | scalar


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    below = {f"c{place}": draw(columns()) for place in range(draw(st.integers(1, 4)))}
    return draw(st.lists(st.fixed_dictionaries(below), min_size=1, max_size=20))


@given(records=tables())
def test_values_come_back_as_they_were(records: list[dict[str, Any]]) -> None:
    schema = pa.schema([(name, type_of([record[name] for record in records])) for name in records[0]])
    table = RecordColumns(schema, inferred=True).table(records)
    assert table.to_pylist() == records
    assert table.schema == schema
    table.validate(full=True)


@given(records=tables(), cut=st.integers(0, 20))
def test_the_type_of_many_is_that_of_its_parts(records: list[dict[str, Any]], cut: int) -> None:
    for name in records[0]:
        values = [record[name] for record in records]
        assert merged(type_of(values[:cut]), type_of(values[cut:])) == type_of(values)


def test_a_file_holds_what_was_written(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {
            "none": None,
            "int": 2**62,
            "float": -0.0,
            "big": 2**64 - 1,
            "text": "ä\0",
            "bytes": b"\xff",
            "date": dt.date(1, 1, 1),
            "naive": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - that is the point
            "aware": dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=PLUS_TWO),
            "time": dt.time(23, 59, 59, 999999),
            "span": dt.timedelta(days=-3, microseconds=1),
            "decimal": decimal.Decimal("-123.45"),
            "uuid": uuid.UUID(int=5),
            "nested": {"list": [{"a": None}, {"a": 1}], "empty": []},
        },
        dict.fromkeys(("none", "int", "float", "text")),
    ]
    found = read_back(records, tmp_path)
    assert found[0] == records[0]
    assert math.copysign(1, found[0]["float"]) == -1
    assert set(found[1]) == set(records[0])
    assert set(found[1].values()) == {None}


def test_numbers_of_numpy_keep_their_types(tmp_path: Path) -> None:
    record = {
        "i8": np.int8(-5),
        "u64": np.uint64(2**64 - 1),
        "f32": np.float32(0.1),
        "bool": np.True_,
        "str": np.str_("a"),
        "array": np.array([1, 2], dtype=np.int16),
        "floats": np.array([0.5, 1.5], dtype=np.float32),
        "objects": np.array(["x", None], dtype=object),
        "time": np.datetime64("2024-05-06T07:08:09", "s"),
        "lists": [np.array([True]), np.array([], dtype=bool)],
    }
    (found,) = read_back([record], tmp_path)
    schema = pq.read_schema(tmp_path / "part-00000-of-00001.parquet")
    told = {field.name: str(field.type).replace("element", "item") for field in schema}
    assert told == {
        "i8": "int8",
        "u64": "uint64",
        "f32": "float",
        "bool": "bool",
        "str": "string",
        "array": "list<item: int16>",
        "floats": "list<item: float>",
        "objects": "list<item: string>",
        "time": "timestamp[ms]",
        "lists": "list<item: list<item: bool>>",
    }
    assert found["i8"] == -5
    assert found["u64"] == 2**64 - 1
    assert np.float32(found["f32"]) == np.float32(0.1)
    assert found["array"] == [1, 2]
    assert found["objects"] == ["x", None]
    assert found["time"] == dt.datetime(2024, 5, 6, 7, 8, 9)  # noqa: DTZ001 - as numpy's
    assert found["lists"] == [[True], []]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([None, 1, 2.5], "double"),
        ([1, 2**63], "uint64"),
        ([np.int8(1), 2], "int64"),
        ([np.float32(1), np.float64(2)], "double"),
        ([[], [None], [1]], "list<item: int64>"),
        ([{"a": 1}, {"b": "x"}, {}], "struct<a: int64, b: string>"),
        ([decimal.Decimal("1.5"), decimal.Decimal("100.25")], "decimal128(5, 2)"),
        ([(1, 2), [3]], "list<item: int64>"),
    ],
)
def test_what_fits_together_is_widened(values: list[Any], wanted: str) -> None:
    assert str(type_of(values)) == wanted
    whole = type_of([])
    for value in values:
        whole = merged(whole, type_of([value]))
    assert str(whole) == wanted


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        ["a", b"a"],
        [True, 1],
        [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)],  # noqa: DTZ001 - the pair is the point
        [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)],  # noqa: DTZ001 - the pair is the point
        [decimal.Decimal(1), 1],
        [[1], 1],
        [{"a": 1}, {"a": "x"}],
        [{1: 2}],
        [{1, 2}],
        [1j],
        [2**64],
        [-1, 2**63],
        [np.zeros((2, 2))],
        [np.datetime64("2024-01-01", "D")],
        [dt.time(1, tzinfo=UTC)],
        [decimal.Decimal("NaN")],
        [object()],
        [[uuid.UUID(int=1)]],
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_what_does_not_fit_together_is_refused(values: list[Any]) -> None:
    with pytest.raises(UnsupportedType):
        type_of(values)


def at(number: int, value: Any, *, of: int = 5000) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [{"n": each, "x": {"y": each}} for each in range(of)]
    records[number] = value
    return records


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"n": "text", "x": {"y": 1}}, "column 'n': string and int64 do not|column 'n': int64 and string"),
        ({"n": 1.5, "x": None}, "column 'n': it has double, and the column holds int64"),
        ({"n": 1, "x": {"y": 1, "z": 2}}, "column 'x': it has struct<y: int64, z: int64>, and the column"),
        ({"n": 1, "more": 1}, "it has 'more', and the schema has no column of that name"),
        ({"n": 2**63}, "column 'n': it has uint64"),
        (["n"], r"it is a list, and columns are made of dicts: .*map\(lambda record"),
        ({1: 1}, "the names of columns must be strings, and 1 is int"),
        ({"\udfff": 1}, "the name '.udfff' has a lone surrogate, which UTF-8 cannot encode"),
    ],
)
def test_a_later_record_that_does_not_fit_is_named(value: Any, says: str, tmp_path: Path) -> None:
    # Row 300 is none of those that are looked at.
    assert 300 not in looked_at(5000)
    ds = sk.from_sequence(at(300, value))
    with pytest.raises(sk.errors.WrongType, match=says) as caught:
        ds.write_parquet(tmp_path, rows_per_file=100, jobs=1)
    told = str(caught.value)
    assert told.startswith("row 300 (at Location(")
    assert "schema=" in told
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_a_record_among_those_looked_at_is_named_before_anything_is_made(tmp_path: Path) -> None:
    assert 4 in looked_at(5000)
    ds = sk.from_sequence(at(4, {"n": "text"}))
    with pytest.raises(
        sk.errors.WrongType, match=r"row 4 \(.*does not fit into columns with those before it.*'n'"
    ):
        ds.write_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_record_of_a_file_is_named_by_its_place(tmp_path: Path) -> None:
    lines = [f'{{"n": {number}}}\n' for number in range(2000)]
    lines[700] = '{"n": "seven hundred"}\n'
    (tmp_path / "a.jsonl").write_text("".join(lines))
    offset = len("".join(lines[:700]))
    with pytest.raises(
        sk.errors.WrongType, match=rf"row 700 \(record 700 of .*a\.jsonl, at byte {offset:,}\)"
    ):
        sk.open(tmp_path / "a.jsonl").write_parquet(tmp_path / "out", jobs=1)


def test_columns_come_in_the_order_in_which_they_are_met(tmp_path: Path) -> None:
    records = [{"b": 1}, {"a": 1.5, "b": None}, {"c": "x", "a": 2}]
    assert read_back(records, tmp_path) == [
        {"b": 1, "a": None, "c": None},
        {"b": None, "a": 1.5, "c": None},
        {"b": None, "a": 2.0, "c": "x"},
    ]
    assert pq.read_schema(tmp_path / "part-00000-of-00001.parquet").names == ["b", "a", "c"]


def test_rare_columns_are_seen_anywhere_in_the_dataset(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [{"n": number, "rare": None} for number in range(5000)]
    records[-1] = {"n": 0.5, "rare": "here", "new": True}
    written = sk.from_sequence(records).write_parquet(tmp_path, rows_per_file=1000, jobs=1)
    schemas = {str(pq.read_schema(path)) for path in written.paths}
    assert len(schemas) == 1
    assert pq.read_schema(written.paths[0]).types == [pa.float64(), pa.string(), pa.bool_()]
    assert sk.open(tmp_path)[-1] == records[-1]


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([{"a": {}}], "column 'a' would be of the type struct<>, which Parquet does not have"),
        ([{}, {}], "have no columns"),
    ],
)
def test_columns_that_parquet_lacks_are_refused(records: list[Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=says):
        read_back(records, tmp_path / "out")
    assert not (tmp_path / "out").exists()


SCHEMA = pa.schema(
    {
        "id": pa.int32(),
        "score": pa.float32(),
        "tags": pa.list_(pa.string()),
        "when": pa.timestamp("ms", "UTC"),
        "counts": pa.map_(pa.string(), pa.int64()),
        "lang": pa.dictionary(pa.int32(), pa.string()),
        "meta": pa.struct({"a": pa.int64()}),
    }
)
GOOD: dict[str, Any] = {
    "id": 7,
    "score": 0.5,
    "tags": ["x"],
    "when": dt.datetime(2024, 1, 2, tzinfo=UTC),
    "counts": [("a", 1)],
    "lang": "de",
    "meta": {"a": 1},
}


def test_a_schema_that_is_given_is_that_of_the_files(tmp_path: Path) -> None:
    records = [GOOD, {}, {"lang": "fr", "counts": {"b": 2}}]
    found = read_back(records, tmp_path, schema=SCHEMA)
    assert found[0] == GOOD
    assert found[1] == dict.fromkeys(SCHEMA.names)
    assert found[2]["counts"] == [("b", 2)]
    assert pq.read_schema(tmp_path / "part-00000-of-00001.parquet").field("id").type == pa.int32()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("id", 2**31, "column 'id': .*too large|column 'id': .*not in range"),
        ("id", 1.0, "column 'id': it has a float"),
        ("id", "1", "column 'id': "),
        ("tags", [1], "column 'tags': "),
        ("when", dt.datetime(2024, 1, 1), "it has a datetime with no time zone"),  # noqa: DTZ001 - the point
        ("when", dt.datetime(2024, 1, 1, 0, 0, 0, 5, tzinfo=UTC), "column 'when': .*would lose data"),
        ("meta", {"a": 1, "b": 2}, "column 'meta': it has 'b', and the column's struct has no field"),
        ("other", 1, "it has 'other', and the schema has no column"),
    ],
)
def test_nothing_is_lost_in_a_schema_that_is_given(name: str, value: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(sk.errors.WrongType, match=says) as caught:
        read_back([GOOD, {**GOOD, name: value}], tmp_path, schema=SCHEMA)
    assert str(caught.value).startswith("row 1 ")
    assert "the schema given says so" in str(caught.value)


def test_nulls_are_refused_where_the_schema_does(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    assert read_back([{"n": 1}], tmp_path / "good", schema=schema) == [{"n": 1}]
    with pytest.raises(sk.errors.WrongType, match=r"row 1 .*column 'n': it has none"):
        read_back([{"n": 1}, {"n": None}], tmp_path / "bad", schema=schema)


def test_a_schema_with_a_column_twice_or_one_that_parquet_lacks_is_refused(tmp_path: Path) -> None:
    twice = pa.schema([("a", pa.int64()), ("a", pa.string())])
    with pytest.raises(sk.errors.InvalidArgument, match="each column once"):
        read_back([], tmp_path, schema=twice)
    with pytest.raises(sk.errors.InvalidArgument, match="column 'a' would be of the type month_day_nano"):
        read_back([], tmp_path, schema=pa.schema({"a": pa.month_day_nano_interval()}))


def test_the_place_of_a_misfit_is_told_from_the_end() -> None:
    columns = RecordColumns(pa.schema({"n": pa.int64()}), inferred=True)
    with pytest.raises(UnwritableRecord) as caught:
        columns.table([{"n": 1}, {"n": "x"}, {"n": 3}])
    assert caught.value.back == 2


@given(records=st.integers(1, 10**12))
def test_rows_that_are_looked_at_are_distinct_and_reach_the_last(records: int) -> None:
    looked = looked_at(records)
    assert looked[0] == 0
    assert looked[-1] == records - 1
    assert len(looked) == min(records, 1024)
    assert (np.diff(looked) > 0).all()


@pytest.fixture
def source(tmp_path: Path) -> sk.Dataset:
    """Two Parquet files of different columns, by pyarrow."""
    folder = tmp_path / "source"
    folder.mkdir()
    days = [dt.date(2024, 1, 1), None] * 500
    one = pa.table({"n": pa.array(range(1000), pa.int16()), "day": days, "d": pa.array(["x"] * 1000)})
    two = pa.table({"n": pa.array(range(1000, 1500), pa.int64()), "e": [{"a": [1]}] * 500})
    pq.write_table(one, folder / "a.parquet", row_group_size=300)
    pq.write_table(two, folder / "b.parquet", row_group_size=300)
    return sk.open(folder)


WAYS: list[Callable[[sk.Dataset], sk.Dataset]] = [
    lambda ds: ds,
    lambda ds: ds.shuffle(seed=1),
    lambda ds: ds.shuffle(seed=1, window=2, lanes=3),
    lambda ds: sk.mix([ds, ds.skip(100)], seed=1),
    lambda ds: sk.concat([ds.take(3), ds]),
    lambda ds: ds.filter(lambda record: record["n"] % 2 == 0, jobs=1),
    lambda ds: ds.map(dict),
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_tables_are_written_again_as_they_are(way: int, source: sk.Dataset, tmp_path: Path) -> None:
    ds = WAYS[way](source)
    written = ds.write_parquet(tmp_path / "out", rows_per_file=400, row_group_rows=150, jobs=1)
    assert written.rows == len(ds)
    assert list(sk.open(tmp_path / "out")) == list(ds)
    if way < 6:
        assert pq.read_schema(written.paths[0]).types == source.to_arrow([0]).schema.types
