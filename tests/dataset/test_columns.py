"""Columns are changed as a model over plain dicts says, and only what is needed is read."""

from __future__ import annotations

import itertools
import json
import pickle
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dataset.common import flow
from tests.thrift import some

import seekable as sk
from seekable.formats.tables.tables import TableSource
from seekable.nodes.node import LeafNode, Node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Record = dict[str, Any]
COLUMNS = ("a", "b", "c", "d")
ROWS = 60
RECORDS: list[Record] = [
    {"a": row, "b": f"b{row}", "c": None if row % 3 else row / 2, "d": [row, None]} for row in range(ROWS)
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sk.Dataset]:
    """The same records in memory, in lines of JSON and in Parquet; each of two files but the first."""
    folder = tmp_path_factory.mktemp("columns")
    for name, part in (("one", RECORDS[:25]), ("two", RECORDS[25:])):
        pq.write_table(pa.Table.from_pylist(part), folder / f"{name}.parquet", row_group_size=10)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in part))
    return {
        "list": sk.from_sequence(RECORDS),
        "jsonl": sk.open(str(folder / "*.jsonl")),
        "parquet": sk.open(str(folder / "*.parquet")),
    }


@dataclass(frozen=True)
class Step:
    """What is done to a dataset, and to one record of it; the columns that records have then."""

    text: str
    to: Callable[[sk.Dataset], sk.Dataset]
    model: Callable[[Record], Record]
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        return self.text


def sorted_text(record: Record) -> str:
    return repr(sorted(record.items()))


def sorted_texts(records: list[Record]) -> list[str]:
    return [sorted_text(record) for record in records]


def as_text(value: Any) -> str:
    return f"<{value}>"


@st.composite
def steps(draw: st.DrawFn, columns: tuple[str, ...]) -> Step:  # noqa: PLR0911 - one for each kind of step
    one = st.sampled_from(columns)
    name = draw(st.sampled_from([*"abcdefg"]))
    match draw(st.integers(0, 8)):
        case 0:
            names = tuple(draw(st.permutations(columns)))[: draw(st.integers(1, len(columns)))]
            return Step(
                f"select {names}",
                lambda ds: ds.select_columns(names),
                lambda r: {n: r[n] for n in names},
                names,
            )
        case 1 if len(columns) > 1:
            gone = draw(one)
            left = tuple(column for column in columns if column != gone)
            return Step(
                f"drop {gone}", lambda ds: ds.drop_columns([gone]), lambda r: {n: r[n] for n in left}, left
            )
        case 2:
            olds = draw(st.lists(one, unique=True, max_size=3))
            free = [n for n in "abcdefghij" if n not in columns or n in olds]
            news = dict(zip(olds, draw(st.permutations(free)), strict=False))
            called = tuple(news.get(column, column) for column in columns)
            return Step(
                f"rename {news}",
                lambda ds: ds.rename(news),
                lambda r: {news.get(n, n): v for n, v in r.items()},
                called,
            )
        case 3:
            old = draw(one)
            grown = columns if name in columns else (*columns, name)
            return Step(
                f"second name {name} of {old}",
                lambda ds: ds.rename({old: name}, keep=True),
                lambda r: {**r, name: r[old]},
                grown,
            )
        case 4:
            grown = columns if name in columns else (*columns, name)
            size = draw(st.sampled_from([None, 3]))
            return Step(
                f"computed {name} {size}",
                lambda ds: (
                    ds.map(sorted_text, column=name)
                    if size is None
                    else ds.map_batches(sorted_texts, size=size, column=name)
                ),
                lambda r: {**r, name: sorted_text(r)},
                grown,
            )
        case 5:
            value = draw(st.sampled_from([0, "?", [1]]))
            grown = columns if name in columns else (*columns, name)
            return Step(
                f"fill {name}",
                lambda ds: ds.fill({name: value}),
                lambda r: {**r, name: value if r.get(name) is None else r[name]},
                grown,
            )
        case 6:
            column = draw(one)
            return Step(
                f"cast {column}",
                lambda ds: ds.cast({column: as_text}),
                lambda r: {**r, column: None if r[column] is None else as_text(r[column])},
                columns,
            )
        case _:
            return Step("as it is", lambda ds: ds.rename({"nothing": {"a": "z"}}), dict, columns)


@st.composite
def pipelines(draw: st.DrawFn) -> list[Step]:
    """Draw steps that fit each other."""
    columns: tuple[str, ...] = COLUMNS
    drawn: list[Step] = []
    for _ in range(draw(st.integers(1, 6))):
        step = draw(steps(columns))
        drawn.append(step)
        columns = step.columns
    return drawn


def leaves(node: Node) -> list[LeafNode]:
    return (
        [node] if isinstance(node, LeafNode) else [leaf for child in node.children for leaf in leaves(child)]
    )


@pytest.mark.parametrize("kind", ["list", "jsonl", "parquet"])
@settings(max_examples=some(25, of=2))
@given(pipeline=pipelines(), data=st.data())
def test_any_pipeline_makes_what_the_model_makes(
    sources: dict[str, sk.Dataset], kind: str, pipeline: list[Step], data: st.DataObject
) -> None:
    dataset, model = sources[kind], RECORDS
    for step in pipeline:
        dataset = step.to(dataset)
        model = [step.model(record) for record in model]
        if data.draw(st.integers(0, 3)) == 0:  # order nodes in between pass everything on
            rows = [(7 * row + 3) % len(model) for row in range(len(model) - 5)]
            dataset, model = dataset.select(rows), [model[row] for row in rows]
    columns = pipeline[-1].columns
    assert list(dataset) == model
    assert [dataset[row] for row in range(len(model))] == model
    assert [tuple(record) for record in dataset] == [tuple(record) for record in model]
    only = frozenset(data.draw(st.sets(st.sampled_from(columns))))
    narrowed = sk.Dataset(dataset._node.narrowed(only))
    assert narrowed.fingerprint == dataset.fingerprint
    assert narrowed._node.describe(None) == dataset._node.describe(None)
    wanted = [{name: record[name] for name in only} for record in model]
    assert [{name: record[name] for name in only} for record in narrowed] == wanted
    assert [{name: narrowed[row][name] for name in only} for row in range(len(model))] == wanted
    assert list(dataset.select_columns(sorted(only))) == [
        {name: record[name] for name in sorted(only)} for record in model
    ]
    assert list(pickle.loads(pickle.dumps(narrowed))) == list(narrowed)
    assert RECORDS[3] == {"a": 3, "b": "b3", "c": 1.5, "d": [3, None]}


@pytest.mark.parametrize("kind", ["list", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("where", "passes"),
    [
        ([("key", "<", 9)], lambda r: r["a"] < 9),
        ([("key", "in", [3, 70, 59]), ("text", ">", "b4")], lambda r: r["a"] == 59),
        ([("half", ">", 0)], lambda r: r["c"] is not None and r["c"] > 0),
        (
            [[("half", "is null"), ("key", ">=", 50)], [("key", "==", 3)]],
            lambda r: r["a"] in {3, 50, 52, 53, 55, 56, 58, 59},
        ),
    ],
    ids=itertools.count(),
)
def test_conditions_see_the_columns_as_they_are_called_now(
    sources: dict[str, sk.Dataset], kind: str, where: Any, passes: Callable[[Record], bool]
) -> None:
    ds = sources[kind].rename({"a": "key", "b": "text"}).rename({"c": "half"}, keep=True).drop_columns(["d"])
    found = [record["key"] for record in ds.filter(where=where)]
    assert found == [record["a"] for record in RECORDS if passes(record)]
    assert [record["key"] for record in ds.map(dict).filter(where=where)] == found
    assert [record["key"] for record in ds[::-1].filter(where=where)] == found[::-1]


def test_keys_find_records_through_columns_and_joins(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": "r{row}", "n": {row}}}\n' for row in range(20)))
    ds = sk.open(tmp_path, key="id").rename({"id": "name"}).fill({"m": 1})
    assert ds.key("r7") == {"name": "r7", "n": 7, "m": 1}
    right = sk.from_sequence([{"name": f"r{row}", "x": row} for row in range(5, 30)])
    joined = sk.join(ds, right, on="name").select_columns(["x"])
    assert joined.key(["r9", "r5"]) == [{"x": 9}, {"x": 5}]
    with pytest.raises(sk.errors.KeyNotFound, match="not among the rows"):
        joined.key("r3")
    sampled = ds.sample(5, seed=1)
    assert sampled.key(sampled[2]["name"]) == sampled[2]


def needed(dataset: sk.Dataset) -> set[frozenset[str] | None]:
    return {leaf.needed for leaf in leaves(dataset._node) if isinstance(leaf, TableSource)}


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (lambda ds: ds.select_columns(["b"]), {"b"}),
        (lambda ds: ds.drop_columns(["d", "c"]), {"a", "b"}),
        (lambda ds: ds.rename({"b": "text"}).select_columns(["text"]), {"b"}),
        (lambda ds: ds.rename({"a": "b", "b": "a"}).select_columns(["a"]), {"b"}),
        (lambda ds: ds.rename({"c": "e"}, keep=True).cast({"a": str}).select_columns(["e"]), {"c"}),
        (lambda ds: ds.map(sorted_text, column="e").select_columns(["a"]), {"a"}),
        (lambda ds: ds.fill({"c": 0}).shuffle(seed=1).select_columns(["c"]), {"c"}),
        (lambda ds: sk.concat([ds, ds[:3]]).select_columns(["a"]), {"a"}),
        (lambda ds: sk.mix([ds, ds], weights=[1, 2], seed=1).select_columns(["a"]), {"a"}),
        (lambda ds: ds.source_column("file").select_columns(["file", "d"]), {"d"}),
        (lambda ds: ds.rename({"one*": {"a": "z"}}, missing="none").select_columns(["z"]), {"a"}),
        (lambda ds: ds.filter(where=[("a", "<", 9)]).sample(3, seed=1).select_columns(["b"]), {"b"}),
        (lambda ds: sk.join(ds, ds.select_columns(["a"]), on="a").select_columns(["b"]), {"a", "b"}),
        (lambda ds: ds.select_columns(["a", "b"]).select_columns(["b"]), {"b"}),
    ],
    ids=itertools.count(),
)
def test_files_are_asked_for_what_comes_out_and_no_more(
    sources: dict[str, sk.Dataset], make: Callable[[sk.Dataset], sk.Dataset], read: set[str]
) -> None:
    made = make(sources["parquet"])
    assert {name for some in needed(made) for name in (some or COLUMNS) if name in COLUMNS} == read


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds.map(sorted_text),
        lambda ds: ds.map(sorted_text, column="e").select_columns(["e"]),
        lambda ds: ds.map(dict).select_columns(["a"]),
        lambda ds: ds.batch(2),
    ],
    ids=itertools.count(),
)
def test_functions_are_given_all_columns(
    sources: dict[str, sk.Dataset], make: Callable[[sk.Dataset], sk.Dataset]
) -> None:
    assert needed(make(sources["parquet"])) == {None}


def test_records_of_the_user_stay_as_they_are() -> None:
    mine = [{"a": 1, "tags": None}]
    ds = sk.from_sequence(mine)
    for made in (
        ds.rename({"a": "b"}),
        ds.cast({"a": str}),
        ds.fill({"tags": []}),
        ds.rename({"a": "b"}, keep=True),
        ds.drop_columns(["a"]),
        ds.source_column("f"),
    ):
        made[0].clear()
        made._node.fetch(np.array([0]))[0].clear()
    assert mine == [{"a": 1, "tags": None}]


def test_lists_that_fill_are_not_shared() -> None:
    ds = sk.from_sequence([{}, {}]).fill({"tags": ["x"]})
    first, second = ds[0], ds[1]
    first["tags"].append("y")
    assert (second, ds[0]) == ({"tags": ["x"]}, {"tags": ["x"]})


def test_holes_stay_holes() -> None:
    ds = sk.from_sequence([sk.HOLE, {"a": 1}])
    for made in (
        ds.select_columns(["a"]),
        ds.drop_columns(["b"]),
        ds.rename({"a": "b"}),
        ds.cast({"a": str}),
        ds.fill({"a": 0}),
        ds.rename({"a": "b"}, keep=True),
        ds.map(sorted_text, column="b"),
        ds.map_batches(sorted_texts, size=5, column="b"),
        ds.source_column(),
        ds.rename({"*": {"a": "b"}}),
    ):
        assert made[0] is sk.HOLE
        assert list(made)[0] is sk.HOLE  # noqa: RUF015 - by the batched way
        assert isinstance(list(made)[1], dict)


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (
            lambda ds: ds.select_columns(["a", "z"]),
            sk.errors.MissingColumn,
            r"no column 'z'; the record has 'a', 'b'",
        ),
        (lambda ds: ds.rename({"z": "y"}), sk.errors.MissingColumn, "no column 'z'"),
        (
            lambda ds: ds.rename({"a": "b"}),
            sk.errors.BadValue,
            "'a' cannot be called 'b', because there is such a",
        ),
        (lambda ds: ds.cast({"z": int}), sk.errors.MissingColumn, "no column 'z'"),
        (
            lambda ds: ds.cast({"b": int}),
            sk.errors.BadValue,
            r"'b' has 'x' \(str\), which cannot be cast to int",
        ),
        (lambda ds: ds.rename({"z": "y"}, keep=True), sk.errors.MissingColumn, "no column 'z'"),
        (lambda ds: ds.source_column("a"), sk.errors.BadValue, "there is a column 'a' already"),
        (lambda ds: ds.rename({"a.*": {"z": "y"}}), sk.errors.MissingColumn, "no column 'z'"),
        (lambda ds: ds.rename({"a.*": {"a": "b"}}), sk.errors.BadValue, "cannot be called 'b'"),
        (lambda ds: ds.map(str).select_columns(["a"]), sk.errors.WrongType, r"is a dict \(got a str\)"),
        (lambda ds: ds.map(str).fill({"a": 1}), sk.errors.WrongType, r"is a dict \(got a str\)"),
    ],
    ids=itertools.count(),
)
def test_an_error_names_the_file_the_row_and_what_is_wrong(
    tmp_path: Path, make: Callable[[sk.Dataset], sk.Dataset], error: type[Exception], why: str
) -> None:
    (tmp_path / "a.jsonl").write_text('\n{"a": 1, "b": "x"}\n'.lstrip() * 3)
    made = make(sk.open(tmp_path))
    for read in (lambda: made[2], lambda: made._node.fetch(np.array([2]))):
        with pytest.raises(error, match=rf"^{tmp_path}/a.jsonl row 2: \w+: .*{why}"):
            read()


def test_a_users_function_fails_as_itself_and_tells_where(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 0}\n')
    ds = sk.open(tmp_path)
    for made in (
        ds.map(lambda record: 1 / record["a"], column="b"),
        ds.map_batches(lambda records: [1 / record["a"] for record in records], size=1, column="b"),
        ds.cast({"a": lambda value: 1 / value}),
    ):
        for read in (lambda: made[1], lambda: list(made)):  # noqa: B023 - used at once
            with pytest.raises(ZeroDivisionError) as caught:
                read()
            assert "a.jsonl', row=1" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "values",
    [lambda _: [1], lambda _: [1] * 9, lambda _: 3, lambda _: "abc", lambda _: {"a": 1}, lambda _: None],
    ids=itertools.count(),
)
def test_a_function_of_lists_must_return_as_many_values(values: Callable[[list[Record]], Any]) -> None:
    ds = sk.from_sequence([{"a": 1}] * 3).map_batches(values, size=3, column="b")
    with pytest.raises(
        (sk.errors.InvalidArgument, sk.errors.WrongType), match=r"must return (a list of|as many) values"
    ):
        list(ds)


def test_missing_columns_are_none_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    ds = sk.open(tmp_path)
    assert list(ds.select_columns(["a"], missing="none")) == [{"a": 1}, {"a": None}]
    assert list(ds.rename({"a": "c"}, missing="none")) == [{"c": 1}, {"b": 2, "c": None}]
    assert list(ds.cast({"a": str}, missing="none")) == [{"a": "1"}, {"b": 2, "a": None}]
    assert list(ds.rename({"a": "c"}, keep=True, missing="none")) == [{"a": 1, "c": 1}, {"b": 2, "c": None}]
    assert list(ds.rename({"*": {"a": "c"}}, missing="none")) == [{"c": 1}, {"b": 2, "c": None}]
    assert list(ds.drop_columns(["a"])) == [{}, {"b": 2}]
    with pytest.raises(sk.errors.BadValue, match="'a' cannot be called 'b'"):
        ds.rename({"a": "b"}, missing="none")[1]


def test_tables_refuse_what_they_do_not_have_at_once(sources: dict[str, sk.Dataset]) -> None:
    ds = sources["parquet"]
    makes: tuple[Callable[[], Any], ...] = (
        lambda: ds.select_columns(["aa"]),
        lambda: ds.drop_columns(["aa"]),
        lambda: ds.rename({"aa": "b"}),
        lambda: ds.cast({"aa": int}),
        lambda: ds.rename({"aa": "x"}, keep=True),
        lambda: ds.filter(where=[("aa", "==", 1)]),
        lambda: ds.rename({"a": "x"}).shuffle(seed=1).select_columns(["aa"]),
        lambda: sk.join(ds, ds, on="aa"),
    )
    for make in makes:
        with pytest.raises(sk.errors.MissingColumn, match="there is no column 'aa'"):
            make()


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (
            lambda ds: ds.select_columns("a"),
            sk.errors.WrongType,
            r"takes a list of names of columns \(got 'a'\)",
        ),
        (lambda ds: ds.select_columns(["a", "a"]), sk.errors.InvalidArgument, "each column once"),
        (lambda ds: ds.select_columns([1]), sk.errors.WrongType, "is a string"),
        (lambda ds: ds.select_columns(["a"], missing="x"), sk.errors.InvalidArgument, "'error' or 'none'"),
        (lambda ds: ds.rename(["a"]), sk.errors.WrongType, "old and new names"),
        (
            lambda ds: ds.rename({"a": "c", "b": "c"}),
            sk.errors.InvalidArgument,
            "several columns the name 'c'",
        ),
        (lambda ds: ds.cast({"a": "integer"}), sk.errors.WrongType, "no type 'integer'"),
        (lambda ds: ds.cast({"a": 3}), sk.errors.WrongType, "cast to a type or by a function"),
        (lambda ds: ds.cast(int), sk.errors.WrongType, "a dict of columns and types"),
        (lambda ds: ds.map(3, column="b"), sk.errors.WrongType, "a function is needed"),
        (
            lambda ds: ds.rename({"a": "b", "b": "c"}, keep=True),
            sk.errors.InvalidArgument,
            "keeps 'b', which cannot be a new name",
        ),
        (lambda ds: ds.fill(3), sk.errors.WrongType, "dicts of values"),
        (lambda ds: ds.fill(auto=1), sk.errors.WrongType, "auto must be True or False"),
        (lambda ds: ds.source_column("a", row="a"), sk.errors.InvalidArgument, "two names"),
        (lambda ds: ds.rename({"*": {"a": 3}}), sk.errors.WrongType, "is a string"),
        (lambda ds: ds.rename({"*": {"a": "b"}, "c": "d"}), sk.errors.WrongType, "old and new names"),
    ],
    ids=itertools.count(),
)
def test_bad_arguments_are_named(make: Callable[[Any], Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        make(sk.from_sequence([{"a": 1}]))


def test_each_file_may_call_its_columns_otherwise(tmp_path: Path) -> None:
    for name, record in (
        ("new/a.jsonl", {"text": "1"}),
        ("old/a.jsonl", {"content": "2", "id": 1}),
        ("old/b.jsonl", {"body": "3"}),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(record))
    files = {"old/a*": {"content": "text"}, "b.jsonl": {"body": "text"}, "*": {}}
    ds = sk.open(tmp_path).rename(files).shuffle(seed=4)
    assert sorted(record["text"] for record in ds) == ["1", "2", "3"]
    assert sorted(record["text"] for record in flow(ds, 6)) == ["1", "1", "2", "2", "3", "3"]
    absolute = sk.open(tmp_path).rename({f"{tmp_path}/old/a.jsonl": {"content": "text"}})
    assert absolute[1] == {"text": "2", "id": 1}


def test_files_of_tables_may_call_their_columns_otherwise(tmp_path: Path) -> None:
    pq.write_table(pa.table({"content": ["a", None], "id": [1, 2]}), tmp_path / "old.parquet")
    pq.write_table(pa.table({"id": [3], "text": ["c"]}), tmp_path / "new.parquet")
    ds = sk.open(tmp_path)
    mapped = ds.rename({"old*": {"content": "text"}}, missing="none")
    wanted: list[Record] = [{"id": 3, "text": "c"}, {"id": 1, "text": "a"}, {"id": 2, "text": None}]
    assert list(mapped) == wanted
    assert list(mapped.select_columns(["text"])) == [{"text": record["text"]} for record in wanted]
    assert list(ds.rename({"old*": {"content": "text"}}).select_columns(["id", "text"])) == wanted
    with pytest.raises(
        sk.errors.BadValue, match="'id' cannot be called 'text', because there is such a column"
    ):
        ds.rename({"*": {"id": "text"}})[0]


def test_the_source_of_a_record_is_told_through_everything(tmp_path: Path) -> None:
    for name in ("x/a", "x/b", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"id": "{name}{row}"}}\n' for row in range(9)))
    ds = sk.open(tmp_path).map(dict).shuffle(seed=2)[3:20].repeat(2).source_column(row="line", relative=True)
    for record, place in zip(ds, ds.locate(list(range(len(ds)))), strict=True):
        assert record["__source_file__"] == place.path.removeprefix(f"{tmp_path}/")
        assert record["id"] == f"{record['__source_file__'].removesuffix('.jsonl')}{record['line']}"
    assert ds.source_column("path")[0]["path"] == ds.locate(0).path
    mixed = sk.concat([ds, sk.from_sequence([{"id": 1}])]).source_column("from")
    assert (mixed[0]["from"], mixed[-1]["from"]) == (ds.locate(0).path, "<builtins.list>")
    assert [record["from"] for record in mixed] == [
        place.path for place in mixed.locate(list(range(len(mixed))))
    ]
    with pytest.raises(sk.errors.InvalidArgument, match="made of several"):
        ds.batch(2).map(lambda records: {"n": len(records)}).source_column()[0]


def test_nodes_tell_what_makes_them() -> None:
    ds = sk.from_sequence([{"a": 1}])
    made = (
        ds.rename({"a": "b"}, missing="none")
        .cast({"b": "int16"})
        .rename({"b": "c"}, keep=True)
        .fill({"c": 1}, nested=True)
        .source_column("f", row="r")
        .rename({"*.jsonl": {"c": "d"}})
        .select_columns(["b"])
        .drop_columns(["b"])
    )
    expected = (
        "from_sequence(<builtins.list of 1>).rename({'a': 'b'}, missing='none').cast({'b': int16})"
        ".rename({'b': 'c'}, keep=True).fill({'c': 1}, nested=True).source_column('f', row='r')"
        ".rename({'*.jsonl': {'c': 'd'}}).select_columns(['b']).drop_columns(['b'])"
    )
    assert expected in repr(made)
    assert len(made.explain().splitlines()) == 9


def test_fingerprints_tell_columns_apart() -> None:
    ds = sk.from_sequence([{"a": 1, "b": 2}])
    made = [
        ds,
        ds.select_columns(["a"]),
        ds.select_columns(["b"]),
        ds.select_columns(["a", "b"]),
        ds.select_columns(["b", "a"]),
        ds.drop_columns(["a"]),
        ds.rename({"a": "c"}),
        ds.rename({"a": "c"}, missing="none"),
        ds.cast({"a": int}),
        ds.cast({"a": "int64"}),
        ds.cast({"a": pa.int64()}),
        ds.cast({"a": as_text}),
        ds.cast({"a": as_text}, version=2),
        ds.rename({"a": "c"}, keep=True),
        ds.map(sorted_text, column="c"),
        ds.map(sorted_text, column="c", version="2"),
        ds.fill({"a": 0}),
        ds.fill({"a": 0}, nested=True),
        ds.fill({"a": 0.0}),
        ds.fill({"a": b"x"}),
        ds.source_column(),
        ds.source_column(relative=True),
        ds.rename({"*": {"a": "c"}}),
    ]
    assert len({each.fingerprint for each in made}) == len(made)
    assert ds.drop_columns(["a", "b"]).fingerprint == ds.drop_columns(["b", "a"]).fingerprint


@pytest.mark.parametrize(
    ("files", "differ"),
    [
        (['{"id": 1, "text": "a"}', '{"id": 2, "body": "b"}'], True),
        (['{"id": 1, "text": "a"}', "torn", '{"n": 3}'], True),
        (['{"id": 1, "text": "a"}', '{"id": 2}'], False),
        (['{"a": 1}\n{"b": 1}', '{"b": 1}\n{"a": 1}'], False),
        (["[1]", '{"a": 1}', ""], False),
    ],
)
def test_files_that_seem_to_be_of_different_data_are_named_in_the_log(
    tmp_path: Path, files: list[str], caplog: pytest.LogCaptureFixture, *, differ: bool
) -> None:
    for number, content in enumerate(files):
        (tmp_path / f"{number}.jsonl").write_text(content)
    assert len(sk.open(tmp_path, decode="bytes")) == sum(len(content.splitlines()) for content in files)
    assert caplog.messages == []
    sk.open(tmp_path)
    said = re.search(r"'(text|id)' is in .*0\.jsonl' and not in .*jsonl', which has '(body|n)'", caplog.text)
    assert bool(said) == differ
