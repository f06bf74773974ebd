"""Folders key=value as columns, as pyarrow.dataset reads them; what they rule out is not opened."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pad
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.index.fileset import FileSet
from seekable.nodes.columns.partitions import keys_of
from seekable.resume.from_description import rebuild

if TYPE_CHECKING:
    from pathlib import Path

Record = dict[str, Any]

FORMATS = ["parquet", "arrow", "jsonl", "csv"]


def put(folder: Path, form: str, rows: list[Record]) -> None:
    """Write a file of some rows into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"a.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    elif form == "arrow":
        pyarrow.feather.write_feather(pa.Table.from_pylist(rows), path)
    elif form == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def hive(form: str) -> sk.formats.Format:
    """The format with folders as columns."""
    if form == "csv":
        return sk.formats.Csv(partitions="hive")
    return sk.formats.Jsonl(partitions="hive") if form == "jsonl" else sk.formats.Tables(partitions="hive")


def corpus(root: Path, form: str) -> sk.Dataset:
    """Six files of three rows in folders of two keys."""
    for year in (2023, 2024):
        for lang in ("de", "a%2Fb", "__HIVE_DEFAULT_PARTITION__"):
            put(root / f"year={year}" / f"lang={lang}", form, [{"id": str(row)} for row in range(3)])
    return sk.open(root, format=hive(form), progress=lambda _: None)


@pytest.fixture(scope="module", params=FORMATS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return pickle.dumps(corpus(tmp_path_factory.mktemp("data"), request.param))


@pytest.fixture
def ds(made: bytes) -> sk.Dataset:
    """A dataset that has opened no file yet."""
    found: sk.Dataset = pickle.loads(made)
    return found


LANGS = {"lang=a%2Fb": "a/b", "lang=de": "de", "lang=__HIVE_DEFAULT_PARTITION__": None}


def expected(ds: sk.Dataset) -> list[Record]:
    """Return the records, made of the paths of their files."""
    return [
        {"id": str(place.row), "year": int(folders[-3][5:]), "lang": LANGS[folders[-2]]}
        for place in ds.locate(list(range(len(ds))))
        for folders in [place.path.split("/")]
    ]


class Opened:
    """Counts the files that are mapped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        for method in ("mapped", "bytes_of", "source"):
            monkeypatch.setattr(FileSet, method, self._noting(getattr(FileSet, method)))

    def _noting(self, method: Any) -> Any:
        def noting(files: FileSet, file: int, *more: Any) -> Any:
            self.names.add(files.name(file))
            return method(files, file, *more)

        return noting


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    return Opened(monkeypatch)


def test_folders_are_columns(ds: sk.Dataset) -> None:
    assert list(ds) == expected(ds)
    assert [ds[row] for row in range(len(ds))] == expected(ds)
    assert ds.schema.names == ["id", "year", "lang"]
    assert ds.schema.types == [pa.string(), pa.int64(), pa.string()]
    assert ds.to_arrow().to_pylist() == list(ds)
    assert ds.to_arrow([7, 2]).to_pylist() == ds[[7, 2]]
    assert (
        sorted(record["lang"] or "" for record in ds.shuffle(seed=1)) == [""] * 6 + ["a/b"] * 6 + ["de"] * 6
    )


def test_without_partitions_nothing_changes(tmp_path: Path) -> None:
    corpus(tmp_path, "jsonl")
    assert sk.open(tmp_path)[0] == {"id": "0"}


def test_it_is_a_dataset_as_any_other(ds: sk.Dataset, tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(ds))
    assert list(again) == list(ds)
    assert again.fingerprint == ds.fingerprint != sk.Dataset(ds._node.children[0]).fingerprint
    assert rebuild(ds._node.describe(None)).fingerprint == ds.fingerprint
    assert ds.find(ds.locate(5).path, 2) == [5]
    assert [column.name for column in ds.info().columns] == ["id", "year", "lang"]
    assert "partitions='hive'" in repr(ds)
    ds.write_parquet(tmp_path / "out", progress=lambda _: None)
    assert list(sk.open(tmp_path / "out", progress=lambda _: None)) == list(ds)
    batches = sk.Loader(ds.fill({"lang": "?"}), batch_size=6)
    assert [batch["year"].tolist() for batch in batches] == [[2023] * 6, [2023] * 3 + [2024] * 3, [2024] * 6]


WHERES: list[Any] = [
    [("year", "==", 2024)],
    [("year", ">", 2024)],
    [("lang", "is null")],
    [("lang", "in", ["de", "fr"]), ("year", "<", 2024)],
    [("id", ">", "0"), ("lang", "==", "a/b")],
    [[("year", "==", 2023), ("id", "==", "0")], [("lang", "==", "de")]],
    [("id", "==", "1")],
]


@pytest.mark.parametrize("where", WHERES)
def test_filters_keep_what_a_function_keeps(ds: sk.Dataset, where: Any) -> None:
    records = [{**record, "row": row} for row, record in enumerate(expected(ds))]
    rows = [record["row"] for record in sk.from_sequence(records).filter(where=where)]
    kept = ds.filter(where=where, jobs=1)
    assert list(kept) == ds[rows]
    assert len(ds.shuffle(seed=2, fixed=True).filter(where=where, jobs=1)) == len(rows)


@pytest.mark.parametrize("where", WHERES[:4])
def test_conditions_on_folders_open_no_file(ds: sk.Dataset, where: Any, opened: Opened) -> None:
    kept = ds.filter(where=where, jobs=1)
    assert not opened.names
    assert len(kept) in (9, 0, 6, 3)
    assert len({record["year"] for record in ds.select_columns(["year"])}) == 2
    assert ds.select_columns(["lang", "year"])[0].keys() == {"lang", "year"}
    assert not opened.names


def test_a_condition_of_another_kind_is_named(ds: sk.Dataset) -> None:
    with pytest.raises(sk.errors.WrongType, match=r"a\.\w+ row 0: the column 'year' has 2023, a number"):
        ds.filter(where=[("year", "==", "2024")], jobs=1)
    with pytest.raises(sk.errors.MissingColumn, match="yaer"):
        ds.filter(where=[("yaer", "==", 2024)], jobs=1)


def test_other_conditions_open_the_files_that_remain(ds: sk.Dataset, opened: Opened) -> None:
    kept = ds.filter(where=[("id", ">", "0"), ("lang", "==", "a/b")], jobs=1)
    assert len(kept) == 4
    assert {name.split("/")[1] for name in opened.names} == {"lang=a%2Fb"}


def test_lines_need_no_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path, "jsonl")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ds = sk.open(tmp_path, format=sk.formats.Jsonl(partitions="hive"))
    kept = ds.filter(where=[("year", "==", 2024), ("lang", "==", "de")], jobs=1)
    assert list(kept) == [{"id": str(row), "year": 2024, "lang": "de"} for row in range(3)]
    assert ds.select_columns(["year"])[0] == {"year": 2023}


def test_files_that_are_ruled_out_may_be_gone(tmp_path: Path) -> None:
    ds = corpus(tmp_path, "parquet")
    shutil.rmtree(tmp_path / "year=2023")
    kept = ds.filter(where=[("year", "==", 2024), ("id", "!=", "1")], jobs=1)
    assert [record["id"] for record in kept] == ["0", "2"] * 3
    with pytest.raises(sk.IndexStale):
        ds.filter(where=[("id", "!=", "1")], jobs=1)


def of_arrow(root: Path) -> Any:
    return pad.dataset(root, partitioning="hive", format="parquet", exclude_invalid_files=False)


def in_order(rows: list[Record]) -> list[Any]:
    return sorted(sorted((key, str(value)) for key, value in row.items()) for row in rows)


texts = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(
        ["01", "-0", "+1", "1.5", "true", "2024-01-01", "a b", "a=b", "ä", "a%2Fb", "%C3%A4", "1_0", " 1"]
    ),
    st.just("__HIVE_DEFAULT_PARTITION__"),
)


@given(
    folders=st.dictionaries(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "k k"]), texts), max_size=3, unique_by=lambda pair: pair[0]
        ).map(lambda pairs: "/".join(f"{key}={text}" for key, text in pairs)),
        st.integers(0, 9),
        min_size=1,
        max_size=4,
    )
)
def test_values_and_types_are_those_of_pyarrow(
    folders: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("hive")
    for folder, number in folders.items():
        put(root / folder, "parquet", [{"id": number}])
    ds = sk.open(
        root,
        format=sk.formats.Tables(partitions="hive"),
        progress=lambda _: None,
        index=sk.Index(folder=root / ".index"),
    )
    values = [pair.split("=", 1) for folder in folders for pair in folder.split("/") if pair]
    if {key for key, _ in values} != {key for key, text in values if not text.startswith("__")}:
        with pytest.raises(pa.ArrowInvalid, match="No non-null segments"):
            of_arrow(root)
        return
    theirs = of_arrow(root)
    assert in_order(list(ds)) == in_order(theirs.to_table().to_pylist())
    short = {pa.int32(): pa.int64()}
    assert {field.name: field.type for field in ds.schema} == {
        field.name: short.get(field.type, field.type) for field in theirs.schema
    }
    shutil.rmtree(root)


def test_any_way_to_name_a_file_gives_the_same_columns(tmp_path: Path) -> None:
    corpus(tmp_path, "jsonl")
    folder = tmp_path / "year=2024" / "lang=de"
    record = {"id": "0", "year": 2024, "lang": "de"}
    ways: list[Any] = [
        folder,
        folder / "a.jsonl",
        [folder / "a.jsonl"],
        tmp_path / "year=*" / "lang=de" / "*.jsonl",
        tmp_path / "year=2024" / "l*" / "*.jsonl",
        [folder / "a.jsonl", tmp_path / "year=2023" / "lang=de" / "a.jsonl"],
    ]
    for way in ways:
        asked = [str(each) for each in way] if isinstance(way, list) else str(way)
        assert record in list(sk.open(asked, format=sk.formats.Jsonl(partitions="hive")))
    moved = tmp_path / "year=2025"
    shutil.copytree(folder, moved / "lang=de")
    fingerprints = {
        sk.open(each / "lang=de", format=sk.formats.Jsonl(partitions="hive")).fingerprint
        for each in (folder.parent, moved)
    }
    assert len(fingerprints) == 2


def test_only_the_last_folders_of_the_opened_path_count() -> None:
    assert keys_of("/runs/lr=0.1/data/year=2024", "x/lang=de/a=b.parquet") == {"year": "2024", "lang": "de"}
    assert keys_of("/", "=3/y=/a%20b=1/x.jsonl") == {"y": "", "a b": "1"}
    with pytest.raises(sk.errors.InvalidArgument, match="lies in two folders of 'y'"):
        keys_of("/d/y=1", "y=2/a.jsonl")


def test_depths_may_differ_and_types_hold_for_all_files(tmp_path: Path) -> None:
    for place in ("year=2024/lang=de", "year=x", "."):
        put(tmp_path / place, "jsonl", [{"id": 1}])
    assert {
        tuple(record.values()) for record in sk.open(tmp_path, format=sk.formats.Jsonl(partitions="hive"))
    } == {
        (1, "2024", "de"),
        (1, "x", None),
        (1, None, None),
    }
    (tmp_path / "flat").mkdir()
    put(tmp_path / "flat", "jsonl", [{"id": 1}])
    assert list(sk.open(tmp_path / "flat", format=sk.formats.Jsonl(partitions="hive"))) == [{"id": 1}]


def test_hidden_names_are_skipped(tmp_path: Path) -> None:
    for place in ("_temporary/year=1", ".year=2", "year=3"):
        put(tmp_path / place, "jsonl", [{"id": 1}])
    assert list(sk.open(tmp_path, format=sk.formats.Jsonl(partitions="hive"))) == [{"id": 1, "year": 3}]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_may_be_chosen(form: str, tmp_path: Path) -> None:
    corpus(tmp_path, form)
    for columns in (["lang", "id"], ["year"], ["id"], ["id", "lang", "year"]):
        ds = sk.open(tmp_path, format=hive(form), columns=columns)
        assert list(ds[0]) == columns
        assert ds.schema.names == columns
        assert ds.to_arrow([3]).schema.names == columns
        assert ds.to_arrow().to_pylist() == list(ds)
        assert f"columns={columns}" in repr(ds)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"'yaer', and no folder is one; there are 'id', 'year', 'lang'"
    ):
        sk.open(tmp_path, format=hive(form), columns=["yaer"])


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_tables_may_be_decoded_otherwise(form: str, tmp_path: Path) -> None:
    corpus(tmp_path, "parquet")
    ds = sk.open(tmp_path, format=sk.formats.Tables(partitions="hive"), decode=form)
    batch, record = ds[[0, 9]], ds[9]
    if form == "arrow":
        assert batch.schema == ds.schema
        assert batch.to_pylist() == [
            sk.open(tmp_path, format=sk.formats.Tables(partitions="hive"))[row] for row in (0, 9)
        ]
        assert record.to_pylist() == batch.to_pylist()[1:]
        assert [each.num_rows for each in ds] == [1] * 18
    else:
        assert batch["year"].tolist() == [2023, 2024]
        assert batch["year"].dtype == np.int64
        assert record == {"id": "0", "year": 2024, "lang": None}


def clashing(root: Path, form: str, own: Any) -> sk.Dataset:
    put(root / "y=1", form, [{"id": 0, "y": own}, {"id": 1, "y": own}])
    put(root / "y=2", form, [{"id": 2}])
    return sk.open(root, format=hive(form))


@pytest.mark.parametrize(
    ("form", "own"),
    [("parquet", 1), ("jsonl", 1), pytest.param("jsonl", "1", id="jsonl-text"), ("csv", 1), ("jsonl", None)],
)
def test_a_column_of_the_same_values_may_be_there(form: str, own: Any, tmp_path: Path) -> None:
    ds = clashing(tmp_path, form, own)
    assert [record["y"] for record in ds] == [1, 1, 2]
    assert ds.to_arrow()["y"].to_pylist() == [1, 1, 2]
    assert [ds[row]["y"] for row in range(3)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("form", "own"), [("parquet", 3), ("jsonl", 3), ("jsonl", "x"), ("csv", 3), ("arrow", 3)]
)
def test_other_values_are_refused_by_name(form: str, own: Any, tmp_path: Path) -> None:
    ds = clashing(tmp_path, form, own)
    assert len(ds.filter(where=[("y", "==", 1)])) == 2
    for read in (
        lambda: ds[1],
        lambda: list(ds),
        lambda: ds.to_arrow([1]),
        lambda: ds.select_columns(["id", "y"])[1],
    ):
        with pytest.raises(
            sk.errors.BadValue, match=r"a\.\w+ row [01]: .*folder says y=1, and the record has '?[3x]"
        ):
            read()
    assert ds[2]["y"] == 2


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_without_a_folder_a_record_has_its_own_value(form: str, tmp_path: Path, opened: Opened) -> None:
    put(tmp_path / "y=1", form, [{"id": 0}])
    put(tmp_path / "y=2" / "z=3", form, [{"id": 1}])
    put(tmp_path / "other", form, [{"id": 2, "y": 7}, {"id": 3, "y": None}])
    ds = sk.open(tmp_path, format=hive(form))
    records = {record["id"]: (record["y"], record["z"]) for record in ds}
    assert records == {0: (1, None), 1: (2, 3), 2: (7, None), 3: (None, None)}
    assert {record["id"]: (record["y"], record["z"]) for record in ds.to_arrow().to_pylist()} == records
    opened.names.clear()
    for where in ([("y", "==", 7)], [("y", ">", 0)], [("y", "is null")], [("y", "==", 2), ("id", "==", 1)]):
        kept = [
            row
            for row in records
            if sk.from_sequence([{"y": records[row][0], "id": row}]).filter(where=where)
        ]
        assert sorted(record["id"] for record in ds.filter(where=where, jobs=1)) == sorted(kept)
    assert sorted(record["y"] or 0 for record in ds.select_columns(["y"])) == [0, 1, 2, 7]
    if form == "parquet":
        opened.names.clear()
        assert len(ds.filter(where=[("z", "is null")], jobs=1)) == 3
        assert not opened.names


def test_other_types_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"column 'y' of the type int64, .* of the type double.*columns="
    ):
        clashing(tmp_path, "parquet", 1.0)
    assert sk.open(tmp_path, format=sk.formats.Tables(partitions="hive"), columns=["id"])[0] == {"id": 0}


def test_texts_of_files_decide_the_type(tmp_path: Path) -> None:
    put(tmp_path / "zip=0123", "parquet", [{"zip": "0123"}])
    put(tmp_path / "zip=0456", "parquet", [{"zip": "0456"}])
    ds = sk.open(tmp_path, format=sk.formats.Tables(partitions="hive"))
    assert list(ds) == [{"zip": "0123"}, {"zip": "0456"}]
    assert ds.schema.types == [pa.string()]


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    put(tmp_path / "y=1", "jsonl", [{"id": 1}])
    with pytest.raises(sk.errors.InvalidArgument, match="partitions must be 'hive'"):
        sk.open(tmp_path, format=sk.formats.Tables(partitions="year"))  # type: ignore[arg-type]
    (tmp_path / "y=1" / "a.txt").write_text("a\n", encoding="utf-8")
    texts = str(tmp_path / "*" / "*.txt")
    with pytest.raises(sk.errors.InvalidArgument, match=r"records must be dicts.*txt:PATH:COLUMN"):
        sk.open(texts, format=sk.formats.Text(partitions="hive"))
    assert list(sk.open(f"txt:{texts}:text", format=sk.formats.Text(partitions="hive"))) == [
        {"text": "a", "y": 1}
    ]
    with pytest.raises(sk.errors.InvalidArgument, match="columns= is for tables"):
        sk.open(str(tmp_path / "*" / "*.jsonl"), format=sk.formats.Jsonl(partitions="hive"), columns=["id"])


def test_holes_stay_where_they_are(tmp_path: Path) -> None:
    put(tmp_path / "y=1", "jsonl", [{"id": 1}])
    with (tmp_path / "y=1" / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write("{\n")
    ds = sk.open(tmp_path, format=sk.formats.Jsonl(partitions="hive"), errors=lambda _: sk.HOLE)
    assert list(ds) == [{"id": 1, "y": 1}, sk.HOLE]
    assert list(ds.select_columns(["y"])) == [{"y": 1}, sk.HOLE]
    assert list(ds.filter(where=[("y", "==", 1)])) == list(ds)


def test_keys_and_unions_work_over_folders(tmp_path: Path) -> None:
    put(tmp_path / "y=1", "jsonl", [{"id": 1}])
    put(tmp_path / "y=2", "jsonl", [{"id": 2}])
    ds = sk.open(tmp_path, format=sk.formats.Jsonl(partitions="hive"), key="id")
    assert ds.key(2) == {"id": 2, "y": 2}
    both = sk.concat([ds, sk.from_sequence([{"id": 0.5, "z": 1}])], columns="union")
    assert list(both)[1:] == [{"id": 2.0, "y": 2, "z": None}, {"id": 0.5, "y": None, "z": 1}]
    assert sk.mix([ds, ds], seed=1).select_columns(["y"])[0].keys() == {"y"}


def test_several_are_read_together(tmp_path: Path) -> None:
    whole = corpus(tmp_path, "jsonl")
    bare = whole.select_columns(["year"])
    both = sk.concat([bare, whole]).shuffle(seed=5)
    positions = list(range(len(both)))
    assert both[positions] == [both[row] for row in positions]
    assert sorted(len(record) for record in both) == [1] * 18 + [3] * 18
