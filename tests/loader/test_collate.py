"""Batches of lists of records, and of columns."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable.loader.collate import collate
from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BIG = 2**53 + 1


@pytest.mark.parametrize(
    ("records", "batch"),
    [
        ([], []),
        ([1, 2], np.array([1, 2])),
        ([1.5, 2], np.array([1.5, 2.0])),
        ([True, False], np.array([True, False])),
        ([1j, 2], np.array([1j, 2])),
        ([np.float32(1), np.float32(2)], np.array([1, 2], dtype=np.float32)),
        (["a", "bc"], ["a", "bc"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([None, None], [None, None]),
        ([1, None], [1, None]),
        ([1, "a"], [1, "a"]),
        ([[1], [2]], [[1], [2]]),
        ([2**70, 1], [2**70, 1]),
        ([2**63, 1], [2**63, 1]),
        ([2**63, -1], [2**63, -1]),
        ([True, 2], [True, 2]),
        ([BIG, 0.5], [BIG, 0.5]),
        ([(1, "a"), (2, "b")], (np.array([1, 2]), ["a", "b"])),
        ([(1,), (2, 3)], [(1,), (2, 3)]),
        ([{"x": 1, "y": "a"}, {"y": "b", "x": 2}], {"x": np.array([1, 2]), "y": ["a", "b"]}),
        ([{"x": {"y": (1, [2])}}] * 2, {"x": {"y": (np.array([1, 1]), [[2], [2]])}}),
        ([{}, {}], {}),
        ([{"x": 1}, None], [{"x": 1}, None]),
    ],
    ids=repr,
)
def test_records_become_a_batch(records: list[Any], batch: Any) -> None:
    assert same(collate(records), batch)


def test_arrays_of_one_shape_are_stacked() -> None:
    ones = [np.ones((2, 3), dtype=np.float32)] * 4
    made = collate(ones)
    assert made.shape == (4, 2, 3)
    assert made.dtype == np.float32


def test_arrays_of_different_shapes_stay_a_list() -> None:
    arrays = [np.ones(2), np.ones(3)]
    assert same(collate(arrays), arrays)


def test_arrays_beside_other_things_stay_a_list() -> None:
    records = [np.ones(2), [1.0, 1.0]]
    assert same(collate(records), records)


def test_keys_must_agree() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"beside record 0, record 1 lacks 'a' and adds 'b'"):
        collate([{"a": 1}, {"b": 1}])
    with pytest.raises(ValueError, match=r"record 2 lacks 'y'"):
        collate([{"x": {"y": 1}}, {"x": {"y": 1}}, {"x": {}}])


def test_a_batch_of_one_is_a_batch() -> None:
    assert same(collate([{"x": 1}]), {"x": np.array([1])})


def test_the_loader_collates_by_default() -> None:
    records = [{"id": i, "text": str(i)} for i in range(3)]
    loader = sk.Loader(sk.from_sequence(records), batch_size=2)
    wanted = [
        {"id": np.array([0, 1]), "text": ["0", "1"]},
        {"id": np.array([2]), "text": ["2"]},
    ]
    assert same(list(loader), wanted)


def around_it(records: Any) -> Any:
    return collate(records)


@functools.wraps(collate)
def wrapped(records: Any) -> Any:
    return collate(records)


def columns_or_records(batch: Any) -> str:
    return "records" if isinstance(batch, list) else "columns"


def declared(batch: Any) -> str:
    return columns_or_records(batch)


declared.columnar = True  # type: ignore[attr-defined]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A table with columns of many types, some with nulls."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {
        "whole": [1, 2, 3],
        "nullable": [1, None, 3],
        "real": [0.5, None, 2.5],
        "text": ["a", None, "c"],
        "bytes": [b"a", b"b", b"c"],
        "flag": [True, False, True],
        "alike": [[1, 2], [3, 4], [5, 6]],
        "ragged": [[1], [2, 3], []],
        "struct": [{"x": 1}, {"x": 2}, {"x": 3}],
        "time": np.array([1, 2, 3], dtype="datetime64[us]"),
        "span": np.array([1, 2, 3], dtype="timedelta64[s]"),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    return tmp_path


@pytest.mark.parametrize("decode", ["python", "numpy", "arrow"])
@pytest.mark.parametrize(
    "around",
    [around_it, wrapped, functools.partial(collate)],
    ids=["function", "wraps", "partial"],
)
def test_a_function_around_the_default_changes_no_batch(
    tables: Path, decode: Any, around: Callable[[Any], Any]
) -> None:
    dataset = sk.open(tables, decode=decode)
    for size in (1, 2, 3):
        default = list(sk.Loader(dataset, batch_size=size))
        assert same(list(sk.Loader(dataset, batch_size=size, collate=around)), default), size


@pytest.mark.parametrize("decode", ["python", "numpy", "arrow"])
def test_a_function_that_says_so_gets_columns(tables: Path, decode: Any) -> None:
    dataset = sk.open(tables, decode=decode)
    expected = "records" if decode == "python" else "columns"
    assert list(sk.Loader(dataset, batch_size=3, collate=declared)) == [expected]
    assert list(sk.Loader(dataset, batch_size=3, collate=columns_or_records)) == ["records"]
