"""Every type of Arrow is read as pyarrow reads it, from Arrow files and from Parquet, in every decoding."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from tests.formats.arrow_types import ROWS, UNREADABLE, columns, known_types, type_ids

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["file", "compressed", "stream", "parquet"]
KINDS: list[Kind] = ["file", "compressed", "stream", "parquet"]

SOME = [
    [row] for row in (0, 3, 59, 60, ROWS - 1)
] + [[90, 2, 2, 77], list(range(ROWS)), np.random.default_rng(0).permutation(ROWS).tolist()]  # fmt: skip
"""Rows that are read alone, a few at a time, all in their order, and all in another one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


def in_parquet(column: pa.Array) -> bool:
    """Tell whether pyarrow writes a column to Parquet."""
    try:
        pq.write_table(pa.table({"a": column}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


@functools.cache
def written(folder: Path, kind: Kind) -> tuple[Path, pa.Table]:
    """Return a file of two groups with a column of each type, and what pyarrow reads of it."""
    table = pa.table({name: c for name, c in columns().items() if kind != "parquet" or in_parquet(c)})
    path = folder / f"{kind}.{'parquet' if kind == 'parquet' else 'arrow'}"
    if kind == "parquet":
        if not path.exists():
            pq.write_table(table, path, row_group_size=60, data_page_size=100)
        return path, pq.read_table(path, use_threads=False)
    if not path.exists():
        options = ipc.IpcWriteOptions(compression="zstd" if kind == "compressed" else None)
        new = ipc.new_stream if kind == "stream" else ipc.new_file
        with new(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=60)
    data = path.read_bytes()
    return path, (ipc.open_stream if kind == "stream" else ipc.open_file)(data).read_all()


@functools.cache
def python_values(folder: Path, kind: Kind) -> dict[str, list[Any]]:
    _, table = written(folder, kind)
    return {name: table[name].to_pylist() for name in table.column_names}


def test_there_is_a_column_of_every_type() -> None:
    there = {number for column in columns().values() for number in type_ids(column.type)}
    missing = {name for name, number in known_types().items() if number not in there}
    assert missing == UNREADABLE


def test_most_types_are_read_from_parquet_too() -> None:
    assert sum(in_parquet(column) for column in columns().values()) > 80


@pytest.mark.parametrize("kind", KINDS)
def test_python_values_are_those_of_pyarrow(folder: Path, kind: Kind) -> None:
    path, _ = written(folder, kind)
    truth = python_values(folder, kind)
    for rows in SOME:
        records = sk.open(path, index=sk.Index(jobs=1))[rows]
        for record, row in zip(records, rows, strict=True):
            for name, values in truth.items():
                assert repr(record[name]) == repr(values[row]), (name, row, rows)


@pytest.mark.parametrize("kind", KINDS)
def test_arrow_batches_are_those_of_pyarrow(folder: Path, kind: Kind) -> None:
    path, table = written(folder, kind)
    dataset = sk.open(path, decode="arrow", index=sk.Index(jobs=1))
    truth = python_values(folder, kind)
    batches: list[tuple[Any, Any]] = [(rows, dataset[rows]) for rows in SOME]
    batches += [([row], dataset[row]) for row in (0, ROWS - 1)]
    batches += [(list(range(ROWS)), next(dataset.batches("arrow", size=ROWS)))]
    for rows, batch in batches:
        batch.validate(full=True)
        assert batch.schema.types == table.schema.types
        for name, values in truth.items():
            assert repr(batch[name].to_pylist()) == repr([values[row] for row in rows]), (name, rows)


def as_numpy(column: pa.ChunkedArray) -> list[Any]:
    """Return values as decode="numpy" gives them: numpy's own of numbers and times without nulls."""
    kind = column.type
    plain = pa.types.is_primitive(kind) and not pa.types.is_interval(kind)
    if plain and not column.null_count:
        return list(column.to_numpy())
    return [np.asarray(value) if isinstance(value, list) else value for value in column.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_values_are_those_of_pyarrow(folder: Path, kind: Kind) -> None:
    path, table = written(folder, kind)
    full = [name for name in table.column_names if not table[name].null_count]
    truth = {name: as_numpy(table[name]) for name in full}
    dataset = sk.open(path, decode="numpy", index=sk.Index(jobs=1))
    for row in (0, 59, 60, ROWS - 1):
        record = dataset[row]
        for name, values in truth.items():
            assert repr(record[name]) == repr(values[row]), (name, row)
    for rows in SOME:
        batch = dataset[rows]
        for name, values in truth.items():
            for value, row in zip(batch[name], rows, strict=True):
                assert repr(value) == repr(values[row]), (name, row, rows)
    # With nulls among the rows numpy's own values become Python's; they are equal all the same.
    batch = dataset[list(range(ROWS))]
    for name in table.column_names:
        nulls = [value is None for value in python_values(folder, kind)[name]]
        assert [value is None for value in batch[name]] == nulls, name


class _Schema(ctypes.Structure):
    """A type as Arrow's C data interface hands it over."""


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


@ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))  # type: ignore[untyped-decorator]
def _release(schema: Any) -> None:
    schema.contents.release = None


def _unreadable(code: bytes) -> pa.DataType:
    """Return a type that pyarrow has no constructor for."""
    release = ctypes.cast(_release, ctypes.c_void_p).value
    schema = _Schema(code, b"", None, 2, 0, None, None, release, None)
    return pa.DataType._import_from_c(ctypes.addressof(schema))


@pytest.mark.parametrize(("code", "name"), [(b"tiM", "month_interval"), (b"tiD", "day_time_interval")])
@pytest.mark.parametrize("within", ["", "list", "struct", "dictionary", "extension"])
def test_types_that_pyarrow_has_no_arrays_of_are_refused_by_name(
    tmp_path: Path, code: bytes, name: str, within: str
) -> None:
    kind = _unreadable(code)
    made = {
        "list": lambda: pa.list_(kind),
        "struct": lambda: pa.struct([("a", pa.list_(kind))]),
        "dictionary": lambda: pa.dictionary(pa.int8(), kind),
        "extension": lambda: pa.opaque(kind, "t", "v"),
    }
    path = tmp_path / "a.arrow"
    with ipc.new_file(path, pa.schema({"n": pa.int8(), "took": made.get(within, lambda: kind)()})):
        pass
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=rf"a\.arrow.*'took'.*{name}.*month_day_nano_interval"
    ):
        sk.open(path, index=sk.Index(jobs=1))
