"""Columns and their types, as the files tell or as the first records have them; and `info`."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.dataset.common import endless

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def tables(tmp_path: Path) -> sk.Dataset:
    """Return two files whose columns differ."""
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "text": ["a", "b"]}), tmp_path / "a.parquet")
    late = {"id": pa.array([3], pa.int64()), "score": [0.5], "day": pa.array([1], pa.date32())}
    pq.write_table(pa.table(late), tmp_path / "b.parquet")
    return sk.open(str(tmp_path / "*.parquet"))


WHOLE = {"id": pa.int64(), "text": pa.string(), "score": pa.float64(), "day": pa.date32()}


def length(record: dict[str, Any]) -> int:
    return len(record["text"] or "")


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda ds: ds, WHOLE),
        (lambda ds: ds.shuffle(seed=1)[1:].repeat(2), WHOLE),
        (lambda ds: ds.select_columns(["day", "id"]), {"day": pa.date32(), "id": pa.int64()}),
        (lambda ds: ds.drop_columns(["day", "id"]), {"text": pa.string(), "score": pa.float64()}),
        (
            lambda ds: ds.rename({"id": "key"}).select_columns(["key"]).rename({"key": "again"}, keep=True),
            {"key": pa.int64(), "again": pa.int64()},
        ),
        (
            lambda ds: ds.cast({"id": pa.int8(), "score": str}).select_columns(["id", "score"]),
            {"id": pa.int8(), "score": pa.string()},
        ),
        (lambda ds: ds.map(length, column="n"), {**WHOLE, "n": pa.int64()}),
        (lambda ds: ds.fill({"more": 1.5}), {**WHOLE, "more": pa.float64()}),
        (lambda ds: ds.source_column("f", row="r"), {**WHOLE, "f": pa.string(), "r": pa.int64()}),
        (
            lambda ds: ds.rename({"a*": {"id": "key"}}, missing="none").select_columns(["key"]),
            {"key": pa.int64()},
        ),
        (
            lambda ds: sk.concat(
                [ds.select_columns(["id"]), ds.select_columns(["id"]).cast({"id": pa.float64()})]
            ),
            {"id": pa.float64()},
        ),
        (
            lambda ds: sk.join(ds, ds.select_columns(["id", "day"]).rename({"day": "d"}), on="id"),
            {**WHOLE, "d": pa.date32()},
        ),
        (
            lambda ds: sk.join(ds, ds.select_columns(["id", "day"]), on="id", suffix="_r"),
            {**WHOLE, "day_r": pa.date32()},
        ),
        (lambda ds: ds.map(dict).take(1).fill({"score": 1.5}), {"id": pa.int64(), "text": pa.string()}),
    ],
    ids=itertools.count(),
)
def test_types_of_tables_go_through_everything(
    tables: sk.Dataset, make: Callable[[sk.Dataset], sk.Dataset], wanted: dict[str, Any]
) -> None:
    found = {field.name: field.type for field in make(tables).schema}
    assert {name: found[name] for name in wanted} == wanted
    assert list(make(tables)[0]) == list(found)


def test_what_was_looked_at_is_told(tmp_path: Path, tables: sk.Dataset) -> None:
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"n": row, "x": None}) + "\n" for row in range(5000))
    )
    schema = sk.open(str(tmp_path / "*.jsonl")).schema
    assert schema.metadata == {b"seekable.inferred_from": b"the first 1,000 records"}
    assert {field.name: field.type for field in schema} == {"n": pa.int64(), "x": pa.null()}
    assert tables.schema.metadata is None
    told = tables.map(length, column="n").schema
    assert told.field("n").metadata == {b"seekable.inferred_from": b"the first 3 records"}
    assert told.field("id").metadata is None


def test_other_records_have_no_schema() -> None:
    with pytest.raises(sk.errors.BadValue, match=r"'a' has values of no one type \(int, str\)"):
        _ = sk.from_sequence([{"a": 1}, {"a": "x"}]).schema
    with pytest.raises(sk.errors.WrongType, match="only records that are dicts"):
        _ = sk.from_sequence("ab").schema
    assert sk.from_sequence([sk.HOLE, {"a": 1}]).schema.names == ["a"]
    assert sk.from_sequence([]).schema.names == []


@pytest.mark.parametrize(
    "record", [{"a": "x\ud800"}, {"\udfff": "x"}, {"a": [{"b": "\ud800"}]}, {"a": {"\ud800": 1}}]
)
def test_a_lone_surrogate_has_no_type(record: dict[str, object]) -> None:
    ds = sk.from_sequence([{"z": 1, **record, "b": 2}])
    with pytest.raises(sk.errors.BadValue, match=r"has the text \".*\\ud.*\" with a lone surrogate"):
        _ = ds.schema
    found = [(column.name, column.type, column.present) for column in ds.info().columns]
    assert found == [("z", "?", 1), (next(iter(record)), "?", 1), ("b", "?", 1)]


def test_info_counts_rows_of_files_and_columns(tmp_path: Path, tables: sk.Dataset) -> None:
    info = tables.shuffle(seed=1)[:2].info()
    assert [(file.name, file.rows) for file in info.files] == [("a.parquet", 2), ("b.parquet", 1)]
    assert sum(file.visible for file in info.files) == info.rows == 2
    assert sum(file.bytes for file in info.files) == sum(p.stat().st_size for p in tmp_path.glob("*.parquet"))
    whole = tables.info()
    assert [(column.name, column.type, column.present) for column in whole.columns] == [
        ("id", "int64", 3),
        ("text", "string", 2),
        ("score", "double", 1),
        ("day", "date32[day]", 1),
    ]
    assert "id      int64        3" in str(whole)
    assert "a.parquet  2        2" in str(whole)


def test_info_of_anything(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a\nb\n")
    text = sk.open(tmp_path).info()
    assert (text.columns, text.rows) == ((), 2)
    assert sk.from_sequence([]).info().rows == 0
    assert [c.type for c in sk.from_sequence([{"a": 1}, {"a": "x"}]).info().columns] == ["?"]
    assert sk.from_sequence(range(4)).batch(2).info().files == ()
    many = sk.concat([sk.from_sequence("ab", version=i) for i in range(30)]).info()
    assert "and 10 more files" in str(many)
    with pytest.raises(sk.errors.EndlessDataset):
        endless().info()


def test_columns_are_those_of_the_files_and_else_those_of_the_first_records(tmp_path: Path) -> None:
    pq.write_table(pa.table({"b": [1], "a": [2]}), tmp_path / "x.parquet")

    assert sk.open(tmp_path).columns == ["b", "a"]
    assert sk.open(tmp_path, columns=["a"]).columns == ["a"]
    assert sk.open(tmp_path).rename({"b": "c"}).columns == ["c", "a"]
    assert sk.from_sequence([sk.HOLE, {"a": 1}, {"b": 1, "a": 2}]).columns == ["a", "b"]
    assert sk.from_sequence([{"a": 1}] * 3).shuffle(seed=1).columns == ["a"]
    with pytest.raises(sk.errors.WrongType, match="only records that are dicts have columns"):
        _ = sk.from_sequence(["a"]).columns
