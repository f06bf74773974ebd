"""Datasets of different columns, united: the columns of all, None where one is missing, in common types."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seekable as sk
from seekable.formats.tables.tables import TableSource
from seekable.nodes.columns.cast import UnifyColumns
from seekable.nodes.conditions import checked_where
from seekable.resume.from_description import rebuild

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OLD = {"id": pa.array([1, 2], pa.int32()), "score": pa.array([3, None], pa.int64())}
NEW = {"id": pa.array([3, 4, 5], pa.int64()), "score": [1.5, 2.0, None], "lang": ["de", None, "fr"]}
ROWS = [
    {"id": 1, "score": 3.0, "lang": None},
    {"id": 2, "score": None, "lang": None},
    {"id": 3, "score": 1.5, "lang": "de"},
    {"id": 4, "score": 2.0, "lang": None},
    {"id": 5, "score": None, "lang": "fr"},
]
SCHEMA = pa.schema({"id": pa.int64(), "score": pa.float64(), "lang": pa.string()})


@pytest.fixture
def parts(tmp_path: Path) -> list[sk.Dataset]:
    return tables(tmp_path)


def tables(folder: Path, **options: Any) -> list[sk.Dataset]:
    pq.write_table(pa.table(OLD), folder / "old.parquet")
    pq.write_table(pa.table(NEW), folder / "new.parquet", row_group_size=2)
    return [sk.open(folder / f"{name}.parquet", **options) for name in ("old", "new")]


def lines(path: Path, *records: dict[str, Any]) -> sk.Dataset:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return sk.open(path)


def united(*parts: sk.Dataset) -> sk.Dataset:
    return sk.concat(parts, columns="union")


def types_of(records: list[Any]) -> list[list[type]]:
    return [[type(value) for value in record.values()] for record in records]


def test_records_have_all_columns_in_common_types(parts: list[sk.Dataset]) -> None:
    ds = united(*parts)
    assert list(ds) == ROWS
    assert types_of(list(ds)) == types_of(ROWS)
    assert [ds[row] for row in range(len(ds))] == ROWS
    assert [list(record) for record in ds] == [["id", "score", "lang"]] * 5
    assert ds.schema == SCHEMA


@pytest.mark.frameworks(name="torch")
def test_it_is_what_opening_the_files_together_gives(parts: list[sk.Dataset], tmp_path: Path) -> None:
    from indexed_parquet_dataset import IndexedParquetDataset

    together = sk.open([tmp_path / "old.parquet", tmp_path / "new.parquet"])
    ds = united(*parts)
    assert list(ds) == list(together)
    assert ds.schema == together.schema
    assert ds.to_arrow().equals(together.to_arrow())
    peer = IndexedParquetDataset.from_folder(str(tmp_path))
    theirs = {record["id"]: record for record in peer}
    assert {record["id"]: record for record in ds} == theirs


def test_parts_of_one_schema_stay_as_they_are(parts: list[sk.Dataset]) -> None:
    assert united(parts[1], parts[1]).fingerprint == sk.concat([parts[1], parts[1]]).fingerprint
    assert united(*parts).fingerprint != sk.concat(parts).fingerprint
    assert (united(parts[1])._node.children) == (parts[1]._node,)


def test_batches_have_the_schema(parts: list[sk.Dataset]) -> None:
    ds = united(*parts)
    assert all(batch.schema == SCHEMA for batch in ds.batches("arrow", size=2))
    assert pa.Table.from_batches(ds.batches("arrow", size=2)).to_pylist() == ROWS
    (batch,) = ds.batches("numpy", size=9)
    assert batch["id"].dtype == np.int64
    assert batch["score"] == [3.0, None, 1.5, 2.0, None]
    some = ds.shuffle(seed=1).select([4, 0, 4])
    assert some.to_arrow().to_pylist() == list(some)
    assert some.to_arrow([]).schema == SCHEMA
    assert some.to_arrow().schema == SCHEMA


def test_types_hold_where_no_value_shows_them(tmp_path: Path) -> None:
    """Two parts are read as they are, and one is not."""
    for name, columns in (("a", {"x": pa.nulls(1)}), ("b", {"x": pa.nulls(1, pa.int8()), "y": pa.nulls(1)})):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    one, other = (sk.open(tmp_path / f"{name}.parquet") for name in "ab")
    ds = united(one, other, sk.open(tmp_path / "b.parquet"))
    assert [type(part) for part in ds._node.children] == [UnifyColumns, TableSource, TableSource]
    assert ds.to_arrow().schema == ds.schema == pa.schema({"x": pa.int8(), "y": pa.null()})


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_parts_may_be_decoded_otherwise(form: str, tmp_path: Path) -> None:
    ds = united(*tables(tmp_path, decode=form))
    batch = ds[[3, 0]]
    if form == "arrow":
        assert batch.schema == SCHEMA
        assert batch.to_pylist() == [ROWS[3], ROWS[0]]
        assert [record.to_pylist() for record in ds] == [[row] for row in ROWS]
        assert ds[0].to_pylist() == [ROWS[0]]
    else:
        assert batch["id"].dtype == np.int64
        assert batch["id"].tolist() == [4, 1]
        assert batch["score"].dtype == np.float64
        assert ds[0] == ROWS[0]
        assert type(ds[2]["id"]) is np.int64
    (loaded,) = sk.Loader(ds.select_columns(["id"]) if form == "numpy" else ds, batch_size=5)
    assert list(loaded["id"].tolist() if form == "numpy" else loaded["id"].to_pylist()) == [1, 2, 3, 4, 5]


def test_a_part_of_another_form_is_told_apart(tmp_path: Path) -> None:
    _, other = tables(tmp_path)
    one = sk.open(tmp_path / "old.parquet", decode="arrow")
    ds = united(one, other)
    assert ds[0].to_pylist() == [ROWS[0]]
    assert [type(record) for record in ds] == [pa.RecordBatch] * 2 + [dict] * 3


def test_it_collates_and_is_written(parts: list[sk.Dataset], tmp_path: Path) -> None:
    ds = united(*parts)
    (batch,) = sk.Loader(ds.fill({"score": 0.0, "lang": "?"}), batch_size=5)
    assert batch["score"].dtype == np.float64
    ds.write_parquet(tmp_path / "out", progress=lambda _: None)
    assert pq.read_schema(next((tmp_path / "out").glob("*.parquet"))).equals(SCHEMA)
    assert list(sk.open(tmp_path / "out")) == ROWS


def test_only_needed_columns_are_read(parts: list[sk.Dataset]) -> None:
    ds = united(*parts).select_columns(["lang", "id"])
    (concat,) = ds._node.children
    old, new = concat.children
    needed = [source.needed for source in (*old.children, new) if isinstance(source, TableSource)]
    assert needed == [frozenset({"id"}), frozenset({"id", "lang"})]
    assert list(ds)[2] == {"lang": "de", "id": 3}
    assert ds.fingerprint == united(*parts).select_columns(["lang", "id"]).fingerprint


def test_conditions_see_the_common_values(parts: list[sk.Dataset]) -> None:
    ds = united(*parts)
    for where in ([("lang", "is null")], [("score", ">", 1.9)], [("id", ">", 1), ("lang", "==", "de")]):
        kept = [row for row in ROWS if sk.from_sequence([row]).filter(where=where)]
        assert list(ds.filter(where=where)) == kept


def test_a_part_without_the_column_is_ruled_out(parts: list[sk.Dataset]) -> None:
    ds = united(*parts)
    assert ds._node.may_match(checked_where([("lang", "==", "de")])).tolist() == [[2, 4]]
    assert ds._node.may_match(checked_where([("id", "==", 1)])).tolist() == [[0, 2]]


def test_nodes_above_and_below(parts: list[sk.Dataset]) -> None:
    inner = united(parts[0].rename({"score": "points"}), parts[1].shuffle(seed=3))
    outer = united(inner, sk.from_sequence([{"id": 9, "extra": [1, None]}]).repeat(2))
    assert sorted(outer.schema.names) == ["extra", "id", "lang", "points", "score"]
    assert list(outer)[-1] == {"id": 9, "points": None, "score": None, "lang": None, "extra": [1, None]}
    mixed = sk.mix([outer, united(outer, inner)], seed=0)
    assert all(list(record) == outer.schema.names for record in mixed)
    assert outer.locate(0).path.endswith("old.parquet")
    assert outer.find(outer.locate(1).path, 1) == [1]


def test_pickling_fingerprint_and_description(parts: list[sk.Dataset]) -> None:
    ds = united(*parts, sk.from_sequence([{"id": 9}], version=1))
    again = pickle.loads(pickle.dumps(ds))
    assert list(again) == list(ds)
    assert again.fingerprint == ds.fingerprint
    assert rebuild(json.loads(json.dumps(ds._node.describe(None)))).fingerprint == ds.fingerprint
    other = united(*parts, sk.from_sequence([{"id": 9.5}], version=1))
    assert other.fingerprint != ds.fingerprint


def test_lines_and_tables_together(parts: list[sk.Dataset], tmp_path: Path) -> None:
    ds = united(*parts, lines(tmp_path / "a.jsonl", {"id": 6, "tags": ["x"]}, {"score": 1, "id": 7}))
    assert list(ds)[5:] == [
        {"id": 6, "score": None, "lang": None, "tags": ["x"]},
        {"id": 7, "score": 1.0, "lang": None, "tags": None},
    ]
    assert type(ds[6]["score"]) is float
    assert ds.schema == SCHEMA.append(pa.field("tags", pa.list_(pa.string())))
    assert ds.to_arrow().schema == ds.schema
    assert ds.to_arrow().to_pylist() == list(ds)
    assert dict.fromkeys(ds.info().columns[0].type) == dict.fromkeys("int64")


def test_csv_is_text(parts: list[sk.Dataset], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,lang\n7,de\n", encoding="utf-8")
    rows = sk.open(tmp_path / "a.csv")
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"'id' is int32 in .*old\.parquet and string in .*a\.csv, .*cast\("
    ):
        united(*parts, rows)
    assert list(united(*parts, rows.cast({"id": int})))[5] == {"id": 7, "score": None, "lang": "de"}


def test_files_of_lines_may_differ_among_themselves(tmp_path: Path) -> None:
    for number in range(600):
        name = f"c{number}" if number % 250 == 1 else "c"
        count = 40 if number < 250 else 1
        (tmp_path / f"{number}.jsonl").write_text(f'{{"{name}": {number}}}\n' * count, encoding="utf-8")
    ds = united(sk.open([tmp_path / f"{number}.jsonl" for number in range(1, 600, 2)]))
    assert ds.schema.names == ["c1", "c", "c251", "c501"]


def test_a_column_that_was_not_seen_is_named(tmp_path: Path) -> None:
    records = [{"id": row} | ({"late": 1} if row == 1502 else {}) for row in range(3000)]
    late = lines(tmp_path / "a.jsonl", *records)
    ds = united(late, sk.from_sequence([{"text": "a"}]))
    assert ds[1500] == {"id": 1500, "text": None}
    message = r"a\.jsonl row 1502: .*no column 'late'.*select_columns\("
    for read in (lambda: ds[1502], lambda: list(ds), ds.to_arrow):
        with pytest.raises(sk.errors.BadValue, match=message):
            read()
    named = united(late.select_columns(["id", "late"], missing="none"), sk.from_sequence([{"text": "a"}]))
    assert named[1502] == {"id": 1502, "late": 1, "text": None}
    assert ds.select_columns(["id"])[1502] == {"id": 1502}


def test_a_value_that_does_not_fit_is_named(tmp_path: Path) -> None:
    values = [0.5 if row == 1502 else row for row in range(3000)]
    late = lines(tmp_path / "a.jsonl", *({"n": value} for value in values))
    ds = united(late, sk.from_sequence([{"text": "a"}]))
    message = r"a\.jsonl row 1502: .*'n' is int64 .* 0\.5: a float is no int64.*cast\("
    for read in (lambda: ds[1502], lambda: list(ds), ds.to_arrow):
        with pytest.raises(sk.errors.BadValue, match=message):
            read()
    assert united(late.cast({"n": float}), sk.from_sequence([{"text": "a"}]))[1502] == {
        "n": 0.5,
        "text": None,
    }


def test_a_number_too_long_for_a_float_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, (1 << 60) + 1]}), tmp_path / "a.parquet")
    ds = united(sk.open(tmp_path / "a.parquet"), sk.from_sequence([{"n": 0.5}]))
    assert ds[0] == {"n": 1.0}
    readers: list[Callable[[], Any]] = [lambda: ds[1], ds.to_arrow, lambda: next(ds.batches("arrow", size=3))]
    for read in readers:
        with pytest.raises(
            sk.errors.BadValue, match=r"a\.parquet row 1: .*'n' is double .*all of its digits"
        ):
            read()


CLASHES = [
    ([{"x": 1}], [{"x": "a"}], "'x' is int64 in .* and string in"),
    ([{"x": True}], [{"x": 1}], "'x' is bool in .* and int64 in"),
    ([{"x": "a"}], [{"x": b"a"}], "'x' is string in .* and binary in"),
    ([{"x": decimal.Decimal("1.5")}], [{"x": 1.5}], "'x' is decimal"),
    ([{"x": dt.date(2024, 1, 1)}], [{"x": dt.datetime(2024, 1, 1)}], "'x' is date32"),  # noqa: DTZ001
    ([{"x": {"a": 1}}], [{"x": {"a": "b"}}], "'x', in its field 'a', is struct"),
    ([{"x": [1]}], [{"x": 1}], "'x' is list"),
    ([{"x": 1}, {"x": "a"}], [{"y": 1}], "'x' of .* have no common type"),
]


@pytest.mark.parametrize(("one", "other", "message"), CLASHES)
def test_types_without_a_common_one_are_refused(one: Any, other: Any, message: str) -> None:
    for parts in ([one, other], [one, [{"z": 1}], other]):
        with pytest.raises(sk.errors.InvalidArgument, match=message):
            united(*map(sk.from_sequence, parts))


def test_the_pair_that_clashes_is_named(tmp_path: Path) -> None:
    for name, kind in (("a", pa.null()), ("b", pa.int64()), ("c", pa.string())):
        pq.write_table(pa.table({"x": pa.nulls(1, kind)}), tmp_path / f"{name}.parquet")
    parts = [sk.open(tmp_path / f"{name}.parquet") for name in "abc"]
    with pytest.raises(sk.errors.InvalidArgument, match=r"int64 in .*b\.parquet and string in .*c\.parquet"):
        united(*parts)


def test_what_has_no_columns_is_refused() -> None:
    with pytest.raises(sk.errors.WrongType, match=r"records must be dicts.*got a str"):
        united(sk.from_sequence("ab"))
    with pytest.raises(sk.errors.InvalidArgument, match='takes columns="union"'):
        sk.concat([sk.from_sequence("ab")], columns="all")  # type: ignore[call-overload]
    with pytest.raises(sk.errors.InvalidArgument, match="is for datasets"):
        sk.concat([sk.from_sequence("ab").stream()], columns="union")  # type: ignore[call-overload]
    with pytest.raises(sk.errors.InvalidArgument, match="takes columns"):
        sk.concat([sk.from_sequence("ab"), sk.from_sequence("ab")], columns="all", distinct=True)  # type: ignore[call-overload]


def test_values_without_a_type_of_arrow_pass() -> None:
    shape = np.zeros((2, 3))
    ds = united(sk.from_sequence([{"image": shape, "n": None}]), sk.from_sequence([{"n": 1}]))
    assert ds[0]["image"] is shape
    assert ds[0]["n"] is None
    assert ds[1] == {"image": None, "n": 1}


def test_holes_stay_and_empty_parts_count(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": \n', encoding="utf-8")
    holed = sk.open(tmp_path / "a.jsonl", errors=lambda _: sk.HOLE)
    pq.write_table(pa.table({"text": pa.nulls(0, pa.string())}), tmp_path / "b.parquet")
    ds = united(holed, sk.open(tmp_path / "b.parquet"), sk.from_sequence([]))
    assert list(ds) == [{"id": 1, "text": None}, sk.HOLE]
    assert len(united(sk.from_sequence([]))) == 0


def test_merge(parts: list[sk.Dataset]) -> None:
    one, other = parts
    assert list(sk.concat([one, other], columns="union", distinct=True)) == ROWS
    again = sk.concat([other, other[:1]], columns="union", distinct=True)
    assert again._node is other._node
    both = sk.concat([united(*parts)[:3], united(*parts)[1:]], columns="union", distinct=True)
    assert list(both) == ROWS


def test_merge_with_rows_that_are_there_gives_all_columns(parts: list[sk.Dataset], tmp_path: Path) -> None:
    pq.write_table(pa.table({"more": pa.nulls(0, pa.string())}), tmp_path / "none.parquet")
    ds = sk.concat([parts[0], sk.open(tmp_path / "none.parquet")], columns="union", distinct=True)
    assert isinstance(ds._node, UnifyColumns)
    assert ds[0] == {"id": 1, "score": 3, "more": None}


RENAMES = {"old*": {"content": "text"}}


def ragged(folder: Path, suffix: str) -> sk.Dataset:
    """Two files with other names for one column, and one with a column of its own."""
    files: dict[str, list[dict[str, Any]]] = {
        "old": [{"id": 1, "content": "a"}],
        "new": [{"id": 2, "text": "b", "n": 1}],
        "newer": [{"id": 3, "text": None, "n": 0.5}],
    }
    for name, records in files.items():
        if suffix == "parquet":
            pq.write_table(pa.Table.from_pylist(records), folder / f"{name}.parquet")
        else:
            lines(folder / f"{name}.jsonl", *records)
    return sk.open([folder / f"{name}.{suffix}" for name in files])


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_map_columns(suffix: str, tmp_path: Path) -> None:
    ds = ragged(tmp_path, suffix).rename(RENAMES, columns="union")
    assert list(ds) == [
        {"id": 1, "text": "a", "n": None},
        {"id": 2, "text": "b", "n": 1.0},
        {"id": 3, "text": None, "n": 0.5},
    ]
    assert {field.name: field.type for field in ds.schema} == {
        "id": pa.int64(),
        "text": pa.string(),
        "n": pa.float64(),
    }
    assert ds.to_arrow().schema.names == ds.schema.names
    assert type(ds[1]["n"]) is float
    ds.write_parquet(tmp_path / "out", progress=lambda _: None)
    assert list(sk.open(tmp_path / "out")) == list(ds)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_map_columns_over_other_nodes(suffix: str, tmp_path: Path) -> None:
    ds = ragged(tmp_path, suffix).shuffle(seed=1).rename({"id": "key"}).rename(RENAMES, columns="union")
    assert sorted(record["key"] for record in ds) == [1, 2, 3]
    assert all(record.keys() == {"key", "text", "n"} for record in ds)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_renaming_by_file_names_what_is_wrong(suffix: str, tmp_path: Path) -> None:
    ds = ragged(tmp_path, suffix)
    with pytest.raises(
        sk.errors.MissingColumn, match=r"files of 'old\*' there is no column 'contnet', did you mean"
    ):
        ds.rename({"old*": {"contnet": "text"}}, columns="union")
    lenient = ds.rename({"old*": {"contnet": "text"}}, missing="none", columns="union")
    assert lenient[0] == {"id": 1, "content": "a", "text": None, "n": None}
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"'text' is int64 in .*old\..* and string in .*new\."
    ):
        ds.rename({"old*": {"id": "text", "content": "c"}}, columns="union")
    with pytest.raises(sk.errors.InvalidArgument, match=r"old\..* would have two columns 'id'"):
        ds.rename({"old*": {"content": "id"}}, columns="union")
    with pytest.raises(sk.errors.InvalidArgument, match=r"rename\(\) takes columns="):
        ds.rename(RENAMES, columns="all")  # type: ignore[arg-type]


def test_a_name_that_some_files_keep_is_a_column(tmp_path: Path) -> None:
    for name, columns in (("a", {"x": [1]}), ("b", {"x": [2]}), ("c", {"y": [3]})):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    ds = sk.open(tmp_path).rename({"a*": {"x": "y"}}, columns="union")
    assert list(ds) == [{"y": 1, "x": None}, {"y": None, "x": 2}, {"y": 3, "x": None}]


@pytest.mark.frameworks(name="torch")
def test_their_file_mapping_has_the_same_columns(tmp_path: Path) -> None:
    from indexed_parquet_dataset import IndexedParquetDataset

    ours = ragged(tmp_path, "parquet")
    peer = IndexedParquetDataset.from_folder(str(tmp_path))
    peer = peer.set_file_mapping(str(tmp_path / "old.parquet"), {"content": "text"})
    ds = ours.rename(RENAMES, columns="union")
    assert sorted(ds.schema.names) == peer.schema
    theirs = {record["id"]: record for record in peer}
    # Theirs loses the value of the renamed column where another file has a column of the new name.
    assert theirs[1] == {"id": 1, "text": None, "n": None}
    assert {record["id"]: record for record in ds} == {**theirs, 1: {"id": 1, "text": "a", "n": None}}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_map_columns_of_what_is_united(suffix: str, tmp_path: Path) -> None:
    ragged(tmp_path, suffix)
    parts = [sk.open(tmp_path / f"{name}.{suffix}") for name in ("old", "new", "newer")]
    ds = united(*parts).rename(RENAMES, columns="union")
    same = sk.open([tmp_path / f"{name}.{suffix}" for name in ("old", "new", "newer")])
    assert list(ds) == list(same.rename(RENAMES, columns="union"))
