"""What indexed-parquet-dataset does with a folder of tables, seekable does with the same folder."""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def peers() -> Any:
    """Return the module with what is compared: it imports torch."""
    return importlib.import_module("indexed_parquet_dataset.dataset")


Record = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files: one lacks a column, one has another name for it, one has a column more."""
    root = tmp_path_factory.mktemp("tables")
    (root / "2024").mkdir()
    draw = np.random.default_rng(5)
    for number, name in enumerate(["2024/a", "2024/b", "c", "d"]):
        rows = 40 + 10 * number
        ids = list(range(100 * number, 100 * number + rows))
        texts = [None if row % 7 == 0 else f"text {row}" for row in ids]
        columns: dict[str, Any] = {"id": ids, "lang": [("de", "fr", "en")[row % 3] for row in ids]}
        if name == "c":
            columns["content"] = texts
        elif name != "d":
            columns["text"] = texts
        if name == "d":
            columns["score"] = [None if row % 2 else float(draw.random()) for row in ids]
        pq.write_table(pa.table(columns), root / f"{name}.parquet", row_group_size=16)
    return root


@pytest.fixture
def peer(folder: Path) -> Any:
    return peers().IndexedParquetDataset.from_folder(str(folder))


@pytest.fixture
def ours(folder: Path) -> sk.Dataset:
    return sk.open(folder)


def same(peer: Any, ours: sk.Dataset) -> None:
    """The same rows with the same values; columns in any order."""
    assert len(peer) == len(ours)
    assert list(ours) == list(peer)
    some = [len(ours) - 1, 0, len(ours) // 2] if len(ours) else []
    assert ours[some] == peer[some]


def test_rows_and_schema(peer: Any, ours: sk.Dataset) -> None:
    same(peer, ours)
    assert sorted(ours.schema.names) == peer.schema
    assert {field.name: str(field.type) for field in ours.schema} == {
        field.name: str(field.type) for field in peer.get_arrow_schema()
    }
    assert ours[-1] == peer[-1]
    same(peer[10:90], ours[10:90])
    same(peer.limit(7), ours.take(7))
    same(peer.select([5, 3, 3]), ours.select([5, 3, 3]))
    assert list(peer.iter_batches(50))[-1][0] == ours.batch(50)[-1][0]


def test_columns(peer: Any, ours: sk.Dataset) -> None:
    same(peer.select_columns(["lang", "id"]), ours.select_columns(["lang", "id"]))
    same(peer.rename("lang", "language"), ours.rename({"lang": "language"}))
    same(peer.cast("id", str), ours.cast({"id": str}))
    same(peer.cast("id", "float"), ours.cast({"id": "float"}))
    computed = "size", lambda record: len(record["text"] or "")
    same(peer.alias(*computed), ours.map(computed[1], column=computed[0]))
    together = "size", lambda records: [len(record["text"] or "") for record in records]
    same(peer.alias(*together, is_batch=True), ours.map_batches(together[1], column=together[0]))

    def shouted(record: Record) -> Record:
        return {**record, "lang": record["lang"].upper()}

    same(peer.map(shouted, remove_columns=["id"]), ours.map(shouted).drop_columns(["id"]))

    def all_shouted(records: list[Record]) -> list[Record]:
        return [shouted(record) for record in records]

    same(peer.map_batches(all_shouted), ours.map_batches(all_shouted))


def test_filling(folder: Path) -> None:
    filled = peers().IndexedParquetDataset.from_folder(str(folder), auto_fill=True)
    same(filled, sk.open(folder).fill(auto=True))
    by_column = peers().IndexedParquetDataset.from_folder(
        str(folder), fill_values_by_column={"text": "?"}, fill_values_by_type={"double": -1.0}
    )
    same(by_column, sk.open(folder).fill({"text": "?"}, types={"double": -1.0}))
    default = peers().IndexedParquetDataset.from_folder(str(folder), default_fill_value="none")
    same(default, sk.open(folder).fill(default="none"))


def test_sources(folder: Path) -> None:
    with_source = peers().IndexedParquetDataset.from_folder(str(folder), include_source_column=True)
    assert [record["__source_file__"] for record in with_source] == [
        record["__source_file__"] for record in sk.open(folder).source_column()
    ]
    mapped = (
        peers()
        .IndexedParquetDataset.from_folder(str(folder))
        .set_file_mapping(str(folder / "c.parquet"), {"content": "body"})
    )
    ours = sk.open(folder).rename({str(folder / "c.parquet"): {"content": "body"}}, missing="none")
    same(mapped, ours)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"column_conditions": {"lang": "de"}}, {"where": [("lang", "==", "de")]}),
        ({"column_conditions": {"id": (">", 110)}}, {"where": [("id", ">", 110)]}),
        (
            {"column_conditions": {"id": ("<=", 310), "lang": "fr"}},
            {"where": [("id", "<=", 310), ("lang", "==", "fr")]},
        ),
        (
            {"column_conditions": {"score": (">=", 0.5)}, "path_filter": "*/d.parquet"},
            {"where": [("score", ">=", 0.5)], "files": "d.parquet"},
        ),
        ({"path_filter": "*2024*"}, {"files": "2024/*"}),
        ({"path_filter": ["*/c.parquet", "*/d.parquet"]}, {"files": ["c.parquet", "d.parquet"]}),
        ({"path_pattern": "2024"}, {"files": "*2024*"}),
        ({"filter_row": lambda r: r["id"] % 5 == 0}, {"fn": lambda r: r["id"] % 5 == 0}),
        (
            {"filter_row": lambda r: r["id"] % 5 == 0, "limit": 4},
            {"fn": lambda r: r["id"] % 5 == 0, "limit": 4},
        ),
        (
            {
                "path_filter": "*2024*",
                "column_conditions": {"lang": "en"},
                "filter_row": lambda r: r["id"] > 9,
            },
            {"files": "2024/*", "where": [("lang", "==", "en")], "fn": lambda r: r["id"] > 9},
        ),
    ],
    ids=range(10),
)
def test_filters(peer: Any, folder: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    same(peer.filter(**theirs), sk.open(folder).filter(**ours))


def test_conditions_on_a_column_that_some_files_lack(peer: Any, ours: sk.Dataset) -> None:
    with pytest.raises(AttributeError, match="BooleanScalar"):
        len(peer.filter(column_conditions={"score": (">=", 0.5)}))
    wanted = [record for record in ours if record["score"] is not None and record["score"] >= 0.5]
    assert list(ours.filter(where=[("score", ">=", 0.5)])) == wanted
    assert wanted


def test_filters_of_lists(peer: Any, ours: sk.Dataset) -> None:
    def odd(records: list[Record]) -> list[bool]:
        return [record["id"] % 2 == 1 for record in records]

    same(peer.filter_batches(odd), ours.filter(odd, size=256))


def test_random_orders_hold_the_same_rows(peer: Any, ours: sk.Dataset) -> None:
    """Their generators are others, so the orders are; what is in them is not."""

    def ids(dataset: Any) -> Counter[int]:
        return Counter(record["id"] for record in dataset)

    assert ids(peer.shuffle(seed=1)) == ids(ours.shuffle(seed=1))
    assert ids(peer.shuffle(seed=1, rg_buffer=2)) == ids(ours.shuffle(seed=1, window=2))
    assert len(peer.sample(30, seed=1)) == len(ours.sample(30, seed=1)) == len(ids(ours.sample(30, seed=1)))
    train, test = peer.train_test_split(0.25, seed=1)
    parts = ours.split({"train": 0.75, "test": 0.25}, seed=1)
    assert ids(train) + ids(test) == ids(parts["train"]) + ids(parts["test"])
    train, test = peer.train_test_split(0.25, seed=1, stratify_by="lang")
    parts = ours.split({"train": 0.75, "test": 0.25}, seed=1, by="lang")
    assert ids(train) + ids(test) == ids(parts["train"]) + ids(parts["test"])
    for part, other in ((train, parts["train"]), (test, parts["test"])):
        theirs, mine = (Counter(record["lang"] for record in some) for some in (part, other))
        assert all(abs(theirs[lang] - mine[lang]) < 12 for lang in theirs | mine)
    shards = [peer.shard(3, i) for i in range(3)]
    assert sum((ids(shard) for shard in shards), Counter()) == sum(
        (ids(ours.shard(i, of=3)) for i in range(3)), Counter()
    )


def test_merging(peer: Any, ours: sk.Dataset) -> None:
    some, others = list(range(50, 10, -1)), list(range(30, 70))
    both = sk.concat([ours.select(some), ours.select(others)], distinct=True)
    same(peer.select(some).merge(peer.select(others)), both)


@pytest.mark.frameworks(name="torch")
@pytest.mark.parametrize("none", ["drop", "fill", "raise"])
def test_collating(ours: sk.Dataset, none: str) -> None:
    import torch
    from torch.utils.data import default_collate

    batch = ours.select_columns(["id", "text"])[list(range(10))]
    values = {"text": "?"}
    own = sk.FillCollate(none="error" if none == "raise" else none, values=values, then=default_collate)  # type: ignore[arg-type]  # one of the three
    if none == "raise":
        with pytest.raises(TypeError, match="contains None"):
            peers().CollateHandler(values, none)(batch)
        with pytest.raises(sk.errors.BadValue, match="is None"):
            own(batch)
        return
    theirs, mine = peers().CollateHandler(values, none)(batch), own(batch)
    assert torch.equal(theirs["id"], mine["id"])
    assert theirs["text"] == mine["text"]


def test_what_they_do_quietly_is_an_error_here(peer: Any, ours: sk.Dataset) -> None:
    """A value that cannot be cast, a column that is not there, a filter that cannot compare."""
    assert peer.cast("text", int)[1]["text"] == "text 1"
    with pytest.raises(sk.errors.BadValue, match="cannot be cast to int"):
        ours.cast({"text": int})[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert peer.select_columns(["idd"])[0] == {"idd": None}
    with pytest.raises(sk.errors.MissingColumn, match="did you mean 'id'"):
        ours.select_columns(["idd"])
    assert peer.alias("size", lambda record: record["no such column"])[0]["size"] is None
    with pytest.raises(KeyError, match="no such column"):
        ours.map(lambda record: record["no such column"], column="size")[0]
