"""Rows by conditions, by files and up to a limit: those of a model, of no more reading than that takes."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.index.location import Location
from seekable.nodes.bases import InMemoryPlan
from seekable.nodes.conditions import Bounds, Where
from seekable.nodes.filter import _common
from seekable.nodes.graph import Plan, Reader
from seekable.nodes.node import LeafNode, NamedFiles
from seekable.order.blocks import default_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

RECORDS = [{"id": row, "lang": ("de", "fr", "en")[row % 3], "text": "x" * (row % 50)} for row in range(200)]
BLOCK = 20


@final
@dataclass(frozen=True, eq=False, repr=False)
class Counting(LeafNode):
    """A source that knows the bounds of each 20 rows, gives needed columns alone, and counts what is read."""

    read: list[int]
    needed: frozenset[str] | None = None
    kind: ClassVar[str] = "counting"

    @property
    def size(self) -> int:
        return len(RECORDS)

    @property
    def blocks(self) -> Int64s:
        return default_blocks(self.size)

    @property
    def keys(self) -> None:
        return None

    @property
    def cache_bytes(self) -> int:
        return 0

    def arguments(self, upto: int | None) -> dict[str, Any]:
        return {}

    def shown(self, children: Sequence[str]) -> str:
        return "counting"

    def rows_of(self, path: str, row: int) -> list[int]:
        return [row]

    def named_files(self) -> NamedFiles:
        return NamedFiles(["counting"], [""], np.array([len(RECORDS)]))

    def close(self) -> None:
        pass

    def narrowed(self, columns: frozenset[str]) -> Counting:
        return Counting(self.read, columns)

    def may_match(self, where: Where) -> Int64s:
        found = []
        for start in range(0, self.size, BLOCK):
            some = [record["id"] for record in RECORDS[start : start + BLOCK]]
            bounds = {"id": Bounds(min(some), max(some), nulls=False, values=True)}
            if where.may_pass(bounds):
                found.append((start, start + BLOCK))
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    def record(self, position: int) -> Any:
        self.read.append(position)
        record = RECORDS[position]
        return {n: v for n, v in record.items() if self.needed is None or n in self.needed}

    @classmethod
    def reader(cls, nodes: Sequence[Counting]) -> Reader:
        return _CountingReader(nodes[0])


class _CountingReader(Reader):
    def __init__(self, node: Counting) -> None:
        self._node = node

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        return _CountingPlan(self._node, positions % len(RECORDS))


@dataclass(frozen=True, slots=True)
class _CountingPlan(InMemoryPlan):
    node: Counting
    rows: Int64s

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        return _CountingPlan(self.node, self.rows[start:stop])

    def read(self) -> list[Any]:
        return [self.node.record(row) for row in self.rows.tolist()]

    def locate(self) -> list[Any]:
        return [Location("<counting>", row, 0, 0) for row in self.rows.tolist()]


def ids(dataset: sk.Dataset) -> list[int]:
    return [record["id"] for record in dataset]


@pytest.mark.parametrize(
    ("make", "wanted", "read"),
    [
        (lambda ds: ds.filter(where=[("id", "<", 5)]), range(5), 20),
        (
            lambda ds: ds.filter(where=[[("id", "<", 5)], [("id", ">=", 190)]]),
            [*range(5), *range(190, 200)],
            40,
        ),
        (lambda ds: ds.filter(where=[("id", "<", 30), ("lang", "==", "de")]), range(0, 30, 3), 40),
        (lambda ds: ds.filter(where=[("lang", "==", "de")]), range(0, 200, 3), 200),
        (
            lambda ds: ds.rename({"id": "n"}).filter(where=[("n", "in", [7, 99])]).rename({"n": "id"}),
            [7, 99],
            40,
        ),
        (lambda ds: ds.rename({"id": "n"}, keep=True).filter(where=[("n", "==", 7)]), [7], 20),
        (lambda ds: ds.cast({"lang": str}).filter(where=[("id", "==", 7)]), [7], 20),
        (lambda ds: ds.cast({"id": int}).filter(where=[("id", "==", 7)]), [7], 200),
        (lambda ds: ds.select_columns(["id"]).filter(where=[("id", "==", 7)]), [7], 20),
        (lambda ds: sk.concat([ds, ds]).filter(where=[("id", "==", 7)]), [7, 7], 40),
        (lambda ds: ds.filter(where=[("id", ">", 500)]), [], 0),
        (lambda ds: ds.filter(lambda record: record["id"] % 2, where=[("id", "<", 5)]), [1, 3], 20 + 5),
        (lambda ds: ds.filter(where=[("id", ">", 100)], limit=2), [101, 102], None),
        (lambda ds: ds.sample(50, seed=1).filter(where=[("id", "<", 5)]), None, None),
        (
            lambda ds: ds.filter(where=[("id", "<", 90)]).filter(where=[("id", ">", 80)]),
            range(81, 90),
            100 + 10,
        ),
    ],
    ids=itertools.count(),
)
def test_only_rows_that_can_match_are_read(
    make: Callable[[sk.Dataset], sk.Dataset], wanted: Any, read: int | None
) -> None:
    source = Counting([])
    made = make(sk.Dataset(source))
    if read is not None:
        assert len(source.read) == read
    elif wanted is None:
        assert len(source.read) < 20
        wanted = [row for row in ids(sk.Dataset(source).sample(50, seed=1)) if row < 5]
    assert ids(made) == list(wanted)


def test_conditions_are_asked_of_their_columns_alone() -> None:
    source = Counting([])
    seen: list[frozenset[str] | None] = []
    whole = sk.Dataset(source).filter(where=[("lang", "==", "de")])
    assert whole[0] == RECORDS[0]
    narrowed = source.narrowed(frozenset({"lang"}))
    seen.append(narrowed.needed)
    assert narrowed.record(0) == {"lang": "de"}
    assert whole._node.children[0] is source


@given(some=st.lists(st.integers(0, 30), max_size=12), others=st.lists(st.integers(0, 30), max_size=12))
def test_what_two_lists_of_runs_have_in_common(some: list[int], others: list[int]) -> None:
    def runs_of(numbers: list[int]) -> Int64s:
        edges = sorted(set(numbers))
        return np.array(edges[: len(edges) // 2 * 2], dtype=np.int64).reshape(-1, 2)

    def rows(found: Int64s) -> list[int]:
        return [row for start, stop in found.tolist() for row in range(start, stop)]

    one, other = runs_of(some), runs_of(others)
    assert rows(_common(one, other)) == sorted(set(rows(one)) & set(rows(other)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("2023/a", range(10)), ("2024/a", range(10, 2500)), ("2024/b", range(2500, 2510))):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps({"id": row}) + "\n" for row in rows))
    return tmp_path


def test_rows_of_files(folder: Path) -> None:
    ds = sk.open(folder)
    assert ids(ds.filter(files="2023/*")) == list(range(10))
    assert ids(ds.filter(files="*2024*")) == list(range(10, 2510))
    assert ids(ds.filter(files="b.jsonl")) == list(range(2500, 2510))
    assert ids(ds.filter(files=["2023/*", "b.*"])) == [*range(10), *range(2500, 2510)]
    assert ids(ds.filter(files=f"{folder}/2023/*")) == list(range(10))
    assert ids(ds.filter(files="nothing")) == []
    assert ids(ds.filter(files=[])) == []
    both = ds.filter(lambda record: record["id"] % 2, files="a.jsonl", where=[("id", ">", 2490)], limit=3)
    assert ids(both) == [2491, 2493, 2495]
    mixed = sk.concat([ds[::-7], ds.map(dict).filter(files="b*"), sk.from_sequence([{"id": -1}])])
    wanted = [row for row in range(2509, -1, -7) if row < 10] + [-1]
    assert ids(mixed.filter(files=["2023*", "<*>"])) == wanted
    with pytest.raises(sk.errors.InvalidArgument, match="made of several"):
        ds.batch(2).filter(files="a*")


def test_no_record_is_read_for_files(folder: Path) -> None:
    (folder / "2023" / "a.jsonl").write_text("broken\n" * 10)
    ds = sk.open(folder)
    assert len(ds.filter(files="2024/*")) == 2500
    assert ids(ds.filter(files="2024/*", where=[("id", "<", 12)])) == [10, 11]


def test_the_first_rows_are_enough_for_a_limit() -> None:
    source = Counting([])
    ds = sk.Dataset(source)
    assert ids(ds.filter(lambda record: record["lang"] == "de", limit=2, jobs=1)) == [0, 3]
    assert len(source.read) < 100
    before = len(source.read)
    assert len(ds.filter(lambda _: True, limit=0)) == 0
    assert len(source.read) == before
    assert len(ds.filter(lambda _: True, limit=10**6, jobs=2)) == 200


def test_kept_rows_are_those_of_the_same_conditions(tmp_path: Path) -> None:
    ds, save = sk.from_sequence(RECORDS), tmp_path / "kept.u64"
    first = ds.filter(where=[("id", "<", 9)], save=save)
    assert ids(ds.filter(where=[("id", "<", 9)], save=save)) == ids(first)
    for other in (
        {"where": [("id", "<", 8)]},
        {"where": [("id", "<", 9)], "limit": 3},
        {"where": [("id", "<", 9)], "files": "*"},
        {"fn": bool},
    ):
        with pytest.raises(sk.StateMismatch, match="kept of something else"):
            ds.filter(**other, save=save)


def test_a_column_that_nobody_has_is_an_error() -> None:
    ds = sk.from_sequence(RECORDS)
    with pytest.raises(
        sk.errors.MissingColumn, match=r"none of the 200 records .* a column 'lnag', which filter"
    ):
        ds.filter(where=[("lnag", "==", "de")])
    with pytest.raises(sk.errors.MissingColumn):
        ds.filter(where=[("lnag", "is null")], jobs=2)
    # One record that has it is enough.
    some = sk.from_sequence([{"a": 1}, {"b": 2}])
    assert list(some.filter(where=[("b", "is null")])) == [{"a": 1}]
    assert len(sk.from_sequence([]).filter(where=[("b", "==", 1)])) == 0


def test_what_cannot_be_compared_names_the_record(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": "2"}\n')
    with pytest.raises(
        sk.errors.WrongType, match=rf"^{tmp_path}/a.jsonl row 1: the column 'n' has '2', a str"
    ):
        sk.open(tmp_path).filter(where=[("n", ">", 0)])
    with pytest.raises(
        sk.errors.WrongType, match=r"row 0: conditions are asked of records that are dicts \(got a str"
    ):
        sk.from_sequence("ab").filter(where=[("n", ">", 0)])


def test_holes_pass() -> None:
    ds = sk.from_sequence([{"a": 1}, sk.HOLE, {"a": 2}])
    assert list(ds.filter(where=[("a", "==", 2)])) == [sk.HOLE, {"a": 2}]
    assert list(ds.filter(lambda some: [False] * len(some), size=256)) == [sk.HOLE]


def test_functions_of_lists() -> None:
    ds = sk.from_sequence(range(1000))
    sizes: list[int] = []

    def third(numbers: list[int]) -> Any:
        sizes.append(len(numbers))
        return np.array(numbers) % 3 == 0

    assert list(ds.filter(third, size=7, jobs=1)) == list(range(0, 1000, 3))
    assert max(sizes) == 7
    with pytest.raises(sk.errors.InvalidArgument, match="as many answers as it is given records"):
        ds.filter(lambda _: [True], size=256)


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        ({}, sk.errors.InvalidArgument, "a function, where= or files="),
        ({"fn": 3}, sk.errors.WrongType, "needs a function"),
        ({"files": 3}, sk.errors.WrongType, "a pattern of files"),
        ({"files": [3]}, sk.errors.WrongType, "a pattern of files"),
        ({"fn": bool, "limit": -1}, sk.errors.InvalidArgument, "limit must be at least 0"),
        ({"where": []}, sk.errors.InvalidArgument, "at least one"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        sk.from_sequence(RECORDS).filter(**arguments)


def test_the_filter_tells_what_it_asked() -> None:
    ds = sk.from_sequence(RECORDS).filter(where=[("id", "<", 9)], limit=2)
    assert repr(ds).endswith(".filter(where=[('id', '<', 9)], limit=2)>")


def test_a_column_for_a_function_that_no_record_has_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 0}\n{"id": 1, "lang": "de"}\n')
    ds = sk.open(tmp_path)
    assert len(ds.filter(lambda record: "lang" in record, columns=["lang"], jobs=1)) == 1
    with pytest.raises(
        sk.errors.MissingColumn, match=r"none of the 2 .* column 'lnag', which filter\(bool, columns="
    ):
        ds.filter(bool, columns=["id", "lnag"], jobs=1)
    with pytest.raises(sk.errors.MissingColumn, match="a column 'lnag'"):
        ds.filter(lambda records: records, size=256, columns=["lnag"], jobs=1)
    assert len(ds.filter(bool, where=[("id", "==", 5)], columns=["lnag"], jobs=1)) == 0
    assert len(ds.filter(bool, columns=["lnag"], limit=0, jobs=1)) == 0
