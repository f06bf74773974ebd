"""What statistics leave out is never a row that passes; and they do leave out what they can."""

from __future__ import annotations

import datetime as dt
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import seekable as sk
from seekable.nodes.conditions import checked_where

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), st.integers(-100, 100)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text(max_size=5)),
    "large": (pa.large_string(), st.sampled_from(["a" * 200, "a" * 200 + "b", "é" * 100])),
    "binary": (pa.binary(), st.binary(max_size=4)),
    "date": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    "time": (
        pa.timestamp("us"),
        st.datetimes(),
    ),
    "aware": (pa.timestamp("ms", "UTC"), st.just(dt.datetime(2026, 1, 2, tzinfo=dt.UTC))),
    "decimal": (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["x", "y", "z"])),
}
OPERATORS = ["==", "!=", "<", "<=", ">", ">="]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(COLUMNS)), index=st.booleans())
@example(data=None, name="double", index=True)
def test_no_row_that_passes_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, *, data: st.DataObject | None, name: str, index: bool
) -> None:
    kind, values = COLUMNS[name]
    nan = float("nan")
    drawn = (
        [nan, 1.0, None, nan, -0.0, 0.0]
        if data is None
        else data.draw(st.lists(st.none() | values, min_size=1, max_size=40))
    )
    asked = 0.0 if data is None else data.draw(values)
    folder = tmp_path_factory.mktemp("bounds")
    group_rows = 6 if data is None else data.draw(st.integers(1, 20))
    pq.write_table(
        pa.table({"c": pa.array(drawn, kind)}),
        folder / "a.parquet",
        row_group_size=group_rows,
        data_page_size=1,
        write_batch_size=2,
        write_page_index=index,
    )
    dataset = sk.open(folder)
    records = list(dataset)
    for operator in OPERATORS:
        where = checked_where([("c", operator, asked)])
        runs = dataset._node.may_match(where).tolist()
        left = {row for start, stop in runs for row in range(start, stop)}
        passing = {row for row, record in enumerate(records) if where.passes(record)}
        assert passing <= left, (operator, asked, drawn)
    for operator in ("is null", "is not null"):
        where = checked_where([("c", operator)])
        left = {row for start, stop in dataset._node.may_match(where).tolist() for row in range(start, stop)}
        assert {row for row, record in enumerate(records) if where.passes(record)} <= left


@pytest.mark.parametrize(("index", "left"), [(True, 1000), (False, 5000)])
def test_pages_are_left_out_where_there_is_an_index_of_them_else_groups(
    tmp_path: Path, *, index: bool, left: int
) -> None:
    rows = np.arange(20_000)
    pq.write_table(
        pa.table({"id": rows, "text": [f"row {row}" for row in rows]}),
        tmp_path / "a.parquet",
        row_group_size=5000,
        data_page_size=1,
        write_batch_size=1000,
        use_dictionary=False,
        write_page_index=index,
    )
    dataset = sk.open(tmp_path)
    ((start, stop),) = dataset._node.may_match(checked_where([("id", "==", 7321)])).tolist()
    assert (stop - start, start <= 7321 < stop) == (left, True)
    assert dataset.filter(where=[("id", "==", 7321)])[0] == {"id": 7321, "text": "row 7321"}
    assert dataset._node.may_match(checked_where([("id", ">", 20_000)])).tolist() == []


def test_a_column_that_is_converted_is_not_trusted(tmp_path: Path) -> None:
    # As a double 2**53 + 1 would be 2**53, which the statistics of the integers leave out.
    pq.write_table(pa.table({"n": [2**53 + 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": [0.5]}), tmp_path / "b.parquet")
    dataset = sk.open(tmp_path)
    assert dataset._node.may_match(checked_where([("n", "==", 2**53)])).tolist() == [[0, 1]]
    with pytest.raises(
        sk.errors.BadValue, match=r"a\.parquet: row 0, column 'n'.* double .*9007199254740993"
    ):
        list(dataset)
    assert list(sk.open(tmp_path, errors=lambda error: error.row)) == [0, {"n": 0.5}]


def test_a_column_index_that_lies_about_its_length_is_not_used(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    table = pa.table({"id": np.arange(100)})
    pq.write_table(table, buffer, data_page_size=1, write_batch_size=10, write_page_index=True)
    data = bytearray(buffer.getvalue())
    at = data.index(b"PAR1", 4) if b"PAR1" in data[4:-4] else 0
    assert at == 0
    # The index lies between the data and the footer: spoil all of that.
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    end_of_data = pq.read_metadata(io.BytesIO(bytes(data))).row_group(0).column(0).total_compressed_size + 4
    for place in range(end_of_data, footer):
        data[place] ^= 0x55
    (tmp_path / "a.parquet").write_bytes(bytes(data))
    dataset = sk.open(tmp_path)
    assert [row["id"] for row in dataset.filter(where=[("id", ">=", 95)])] == [95, 96, 97, 98, 99]
