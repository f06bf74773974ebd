"""Tables as a dataset: rows of many files, columns that differ, and what is read of them."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.thrift import some

import seekable as sk
from seekable.errors import CorruptRecord, IndexStale, InvalidArgument, UnsupportedFormat
from seekable.formats.tables.parquet.parquet_format import ParquetTable
from seekable.nodes.columns.decode_column import DECODED, DECODERS, numpy_values, python_values
from seekable.storage.memory import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12), st.sampled_from(["all", "few", "other"])),
    min_size=1,
    max_size=4,
)
"""Of each file how many rows it has, how many a group, and which columns."""


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    DECODED.forget()
    yield
    DECODED.forget()


def table_of(number: int, rows: int, columns: str) -> pa.Table:
    ids = np.arange(rows) + 1000 * number
    made: dict[str, Any] = {"id": pa.array(ids, pa.int64())}
    if columns == "other":
        made["id"] = pa.array(ids, pa.int32())
        made["tags"] = pa.array([[int(i)] * (i % 3) if i % 5 else None for i in ids], pa.list_(pa.int64()))
    if columns != "few":
        made["text"] = pa.array([f"row {i}" if i % 4 else None for i in ids], pa.string())
    return pa.table(made)


def write(folder: Path, files: list[tuple[int, int, str]]) -> list[dict[str, Any]]:
    """Write files, and return their records as pyarrow has them: with a None where a file lacks a column."""
    tables = []
    for number, (rows, group_rows, columns) in enumerate(files):
        table = table_of(number, rows, columns)
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=group_rows)
        tables.append(table)
    whole = pa.concat_tables(tables, promote_options="permissive")
    records: list[dict[str, Any]] = whole.to_pylist()
    return records


@given(FILES, st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_those_of_pyarrow(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[int, int, str]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    records = write(folder, files)
    dataset = sk.open(folder)
    assert len(dataset) == len(records)
    assert list(dataset) == records
    if records:
        rows = data.draw(st.lists(st.integers(0, len(records) - 1), max_size=20))
        assert dataset[rows] == [records[row] for row in rows]
        assert [dataset[row] for row in rows] == [records[row] for row in rows]
        assert dataset.to_arrow(rows).to_pylist() == [records[row] for row in rows]
    assert [row for batch in dataset.batches("arrow", size=7) for row in batch.to_pylist()] == records


@given(FILES)
@settings(max_examples=some(25, of=2), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_are_groups_in_every_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[int, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    records = write(folder, files)
    dataset = sk.open(folder)
    edges, at = [0], 0
    for rows, group_rows, _ in files:
        edges += [at + min(rows, end) for end in range(group_rows, rows + group_rows, group_rows)]
        at += rows
    assert dataset._node.blocks.tolist() == list(dict.fromkeys(edges))
    if records:
        windowed = dataset.shuffle(seed=3, window=2, lanes=3)
        assert sorted(row["id"] for row in windowed) == sorted(row["id"] for row in records)
        for position in range(0, len(records), 5):
            assert windowed[position] == windowed[[position]][0]
            assert dataset.find(windowed.locate(position).path, windowed.locate(position).row) != []


def test_a_long_group_is_cut_into_equal_blocks(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(20_000)}), tmp_path / "a.parquet")
    assert np.diff(sk.open(tmp_path)._node.blocks).tolist() == [6667, 6667, 6666]


def test_each_way_of_decoding_gives_the_same_values(tmp_path: Path) -> None:
    records = write(tmp_path, [(30, 7, "all"), (20, 7, "other")])
    rows = [3, 45, 3, 0]
    assert sk.open(tmp_path, decode="arrow")[rows].to_pylist() == [records[row] for row in rows]
    assert sk.open(tmp_path, decode="arrow")[7].to_pylist() == [records[7]]
    as_numpy = sk.open(tmp_path, decode="numpy")
    assert as_numpy[rows]["id"].tolist() == [records[row]["id"] for row in rows]
    assert as_numpy[rows]["text"] == [records[row]["text"] for row in rows]
    assert isinstance(as_numpy[0]["id"], np.int64)
    mixed = sk.mix([sk.open(tmp_path, decode="arrow").shuffle(1)] * 2, weights=[1, 1], seed=0)
    assert len(mixed[list(range(50))].to_pylist()) == 50


def test_a_loader_gives_record_batches(tmp_path: Path) -> None:
    records = write(tmp_path, [(100, 9, "all")])
    for workers in (0, 1):
        dataset = sk.open(tmp_path, decode="arrow").shuffle(seed=1)
        loader = sk.Loader(dataset, batch_size=16, workers=workers)
        batches = list(loader)
        assert [batch.num_rows for batch in batches] == [16] * 6 + [4]
        found = [row for batch in batches for row in batch.to_pylist()]
        assert found == [records[row["id"]] for row in found]
        assert len({row["id"] for row in found}) == 100


def test_columns_are_those_asked_for_in_that_order(tmp_path: Path) -> None:
    write(tmp_path, [(3, 2, "all")])
    assert list(sk.open(tmp_path, columns=["text", "id"])[1]) == ["text", "id"]
    assert sk.open(tmp_path, columns=[])[1] == {}
    with pytest.raises(InvalidArgument, match="no file has a column 'name'; there are 'id', 'text'"):
        sk.open(tmp_path, columns=["name"])
    with pytest.raises(InvalidArgument, match="each once"):
        sk.open(tmp_path, columns=["id", "id"])


def test_columns_of_lines_are_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(InvalidArgument, match=r"select_columns\(\['id'\]\)"):
        sk.open(tmp_path, columns=["id"])


def test_strict_names_what_differs(tmp_path: Path) -> None:
    write(tmp_path, [(3, 2, "all"), (3, 2, "other")])
    with pytest.raises(UnsupportedFormat, match=r"part-1.parquet.*adds 'tags'.*'id' is int32 and not int64"):
        sk.open(tmp_path, format=sk.formats.Tables(strict=True))
    assert sk.open(str(tmp_path / "part-0.parquet"), format=sk.formats.Tables(strict=True))[0]["id"] == 0


def test_types_without_a_common_one_are_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(UnsupportedFormat, match=r"b.parquet.*'id' is string and not int64"):
        sk.open(tmp_path)


def put_tables(folder: Path, *tables: dict[str, pa.Array]) -> list[dict[str, Any]]:
    """Write a file of Arrow for each table, and return the records of all."""
    records: list[dict[str, Any]] = []
    for number, columns in enumerate(tables):
        table = pa.table(columns)
        with pa.ipc.new_file(folder / f"{number}.arrow", table.schema) as file:
            file.write_table(table)
        records += table.to_pylist()
    return records


def test_encodings_of_one_type_have_a_common_type(tmp_path: Path) -> None:
    words = pa.array(["x", None, "y"])
    coded = words.dictionary_encode()
    records = put_tables(
        tmp_path,
        {"w": words, "s": pa.StructArray.from_arrays([words], ["a"])},
        {"w": coded, "s": pa.StructArray.from_arrays([coded], ["a"])},
        {"w": words.cast(pa.string_view()), "s": pa.StructArray.from_arrays([words], ["a"])},
        {"w": pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.string_view()))},
        {"w": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), words)},
    )
    for record in records:
        record.setdefault("s", None)
    ds = sk.open(tmp_path)
    assert [ds[row] for row in range(len(ds))] == records == list(ds)
    assert sk.open(tmp_path, decode="arrow").to_arrow().to_pylist() == records


def test_columns_without_a_common_type_are_named_alone_and_the_others_can_be_read(tmp_path: Path) -> None:
    put_tables(
        tmp_path,
        {"i": pa.array([1], pa.int32()), "d": pa.array(["p"]).dictionary_encode(), "n": pa.array([1])},
        {"i": pa.array([2]), "d": pa.array(["q"]), "n": pa.array(["z"])},
    )
    with pytest.raises(UnsupportedFormat, match=r"for a column: 'n' is string and not int64\. Read"):
        sk.open(tmp_path)
    assert list(sk.open(tmp_path, columns=["d", "i"])) == [{"d": "p", "i": 1}, {"d": "q", "i": 2}]
    with pytest.raises(InvalidArgument, match="no file has a column 'x'; there are 'i', 'd', 'n'"):
        sk.open(tmp_path, columns=["x"])


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UnsupportedFormat, match="called 'id'"):
        sk.open(tmp_path)


def test_records_do_not_share_what_can_be_changed(tmp_path: Path) -> None:
    write(tmp_path, [(30, 30, "other")])
    dataset = sk.open(tmp_path)
    list(dataset)  # From now on the block is kept.
    dataset[1]["tags"].append("mine")
    dataset[[1, 1]][0]["tags"].append("mine")
    assert dataset[1]["tags"] == dataset[[1]][0]["tags"] == [1]


def test_a_file_that_was_changed_is_stale(tmp_path: Path) -> None:
    write(tmp_path, [(30, 5, "all")])
    dataset = sk.open(tmp_path)
    assert len(list(dataset)) == 30
    write(tmp_path, [(31, 5, "all")])
    with pytest.raises(IndexStale):
        _ = dataset[3]
    with pytest.raises(IndexStale):
        _ = dataset[[3, 4]]
    assert len(sk.open(tmp_path)) == 31


def test_the_fingerprint_does_not_depend_on_what_is_read_of_it(tmp_path: Path) -> None:
    write(tmp_path, [(30, 5, "all")])
    dataset = sk.open(tmp_path)
    narrow = dataset._node.narrowed(frozenset(["id"]))
    assert narrow.fingerprint == dataset.fingerprint
    assert narrow.record(3) == {"id": 3}
    others = [sk.open(tmp_path, columns=["id"]), sk.open(tmp_path, decode="arrow")]
    assert len({dataset.fingerprint, *(other.fingerprint for other in others)}) == 3


def corrupt_page(path: Path) -> None:
    """Spoil the data of the second group's column, whose text is not compressed."""
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(1).column(0)
    for at in range(column.data_page_offset, column.data_page_offset + 8):
        data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def test_a_corrupt_record_is_named_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"row {i}" for i in range(30)]}), path, row_group_size=10)
    corrupt_page(path)
    dataset = sk.open(path)
    with pytest.raises(CorruptRecord, match=r"a\.parquet") as caught:
        list(dataset)
    assert caught.value.row in range(10, 20)
    replaced = sk.open(path, errors=lambda error: {"text": f"bad {error.row}"})
    texts = [record["text"] for record in replaced]
    assert texts == [f"bad {i}" if 10 <= i < 20 else f"row {i}" for i in range(30)]
    assert [replaced[row]["text"] for row in (9, 10)] == ["row 9", "bad 10"]
    assert replaced.to_arrow([9, 12, 30 - 1])["text"].to_pylist() == ["row 9", "bad 12", "row 29"]
    with pytest.raises(InvalidArgument, match="errors= must return a dict"):
        sk.open(path, errors=lambda _: sk.HOLE).to_arrow([9, 12])
    found = sk.open(path, errors=lambda _: sk.HOLE)
    assert [record is sk.HOLE for record in found] == [10 <= i < 20 for i in range(30)]


def test_keys_are_read_of_one_column(tmp_path: Path) -> None:
    write(tmp_path, [(30, 5, "all"), (30, 5, "few")])
    dataset = sk.open(tmp_path, key="id")
    assert dataset.key(1003) == {"id": 1003, "text": None}
    assert dataset.key([5, 1029])[0] == {"id": 5, "text": "row 5"}


def test_a_dataset_survives_pickling_threads_and_forks(tmp_path: Path) -> None:
    records = write(tmp_path, [(50, 5, "all"), (50, 7, "other")])
    dataset = sk.open(tmp_path)
    assert dataset[3] == records[3]
    assert list(pickle.loads(pickle.dumps(dataset))) == records
    read: Callable[[int], Any] = dataset.__getitem__
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(100))) == records
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(dataset.__getitem__, range(100)) == records


def test_more_files_than_may_be_open(tmp_path: Path) -> None:
    records = write(tmp_path, [(2, 2, "few")] * 30)
    dataset = sk.open(tmp_path, storage=sk.Storage(max_open_files=3))
    rows = [(7 * i) % 60 for i in range(60)]
    assert dataset[rows] == [records[row] for row in rows]
    assert [dataset[row] for row in rows] == [records[row] for row in rows]


def test_verify_looks_at_footers_and_decodes_rows(tmp_path: Path) -> None:
    from seekable.dataset.verify_data import verify

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"row {i}" for i in range(30)]}), path, row_group_size=10)
    sk.open(tmp_path)
    assert verify(tmp_path, deep=True, decode=True).problems == ()
    status = path.stat()
    corrupt_page(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    (problem,) = verify(tmp_path, decode=True).problems or verify(tmp_path, deep=True).problems
    assert problem.path == str(path)


@pytest.mark.usefixtures("forked_programs")
def test_a_lost_schema_is_read_again(tmp_path: Path) -> None:
    records = write(tmp_path, [(3, 2, "all")])
    sk.open(tmp_path)
    (schema,) = (tmp_path / ".seekable").glob("schema-*.bin")
    schema.unlink()
    program = "import sys, seekable as sk; print(len(list(sk.open(sys.argv[1]))))"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == len(records)
    assert schema.exists()


def test_a_damaged_schema_is_read_again(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
    sk.open(tmp_path)
    (schema,) = (tmp_path / ".seekable").glob("schema-*.bin")
    good = schema.read_bytes()
    schema.write_bytes(good.replace(b"n", b"m"))
    assert list(sk.open(tmp_path)) == [{"n": 1}, {"n": 2}]
    assert schema.read_bytes() == good


VALUES = [
    pa.array([1, None, 3], pa.int8()),
    pa.array([1, 2, 2**64 - 1], pa.uint64()),
    pa.array([True, None, False]),
    pa.array([1.5, None, float("inf")], pa.float32()),
    pa.array([np.float16(1.5)], pa.float16()),
    pa.array(["a", None, "ü" * 50]),
    pa.array([b"a", None], pa.large_binary()),
    pa.array([b"ab", None], pa.binary(2)),
    pa.array(["a", None, "a"]).dictionary_encode(),
    pa.array([dt.date(2026, 1, 2), None]),
    pa.array([dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), None]),
    pa.array([[1], None, []], pa.list_(pa.int64())),
    pa.array([{"a": 1}, None]),
    pa.array([None, None], pa.null()),
    pa.array([], pa.int64()),
]


@pytest.mark.parametrize("array", VALUES, ids=[str(array.type) for array in VALUES])
def test_python_values_are_those_of_pyarrow(array: pa.Array) -> None:
    assert python_values(array) == array.to_pylist()
    assert [type(value) for value in python_values(array)] == [type(value) for value in array.to_pylist()]
    assert len(numpy_values(array)) == len(array)
    batch = pa.RecordBatch.from_arrays([array], names=["value"])
    rows = [*range(len(array)), *range(len(array))][::-1]
    records = [{"value": array.to_pylist()[row]} for row in rows]
    if rows:
        assert DECODERS["python"](batch).records(rows) == records
        assert [row for one in DECODERS["arrow"](batch).records(rows) for row in one.to_pylist()] == records


def test_the_cache_keeps_what_is_asked_for_again() -> None:
    cache: Cache[np.ndarray[Any, Any]] = Cache(lambda array: array.nbytes, most_bytes=80)
    for key in range(20):
        cache.put(key, np.zeros(4))
    assert [key for key in range(20) if cache.get(key) is not None] == [18, 19]
    assert [cache.should_keep("a", 40) for _ in range(3)] == [False, False, True]
    # Others come between, more than there is room for: it would not have been kept till now.
    assert [cache.should_keep(key, 40) for key in ("b", "c", "d", "b", "c", "d", "b")] == [False] * 7
    assert not cache.should_keep("large", 81)


def test_windows_that_do_not_fit_decoded_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"raw": [rng.bytes(1000) for _ in range(2000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    dataset = sk.open(tmp_path)
    monkeypatch.setattr(DECODED, "_most_bytes", 3 * 500_000)
    dataset.shuffle(seed=1, window=4)
    with pytest.warns(sk.errors.CacheTooSmall, match=r"1 lanes x 8 blocks keep 8\d\d.* room for 500.0 kB"):
        dataset.map(dict).shuffle(seed=1, window=8)


def test_a_block_that_cannot_be_kept_is_not_read_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"raw": [rng.bytes(10_000) for _ in range(500)]})
    pq.write_table(table, tmp_path / "a.parquet", data_page_size=1, write_batch_size=8, write_page_index=True)
    runs: list[int] = []
    run = ParquetTable.run

    def counted(*given: Any) -> Any:
        runs.append(1)
        return run(*given)

    monkeypatch.setattr(ParquetTable, "run", counted)
    dataset = sk.open(tmp_path)
    monkeypatch.setattr(DECODED, "_most_bytes", 3 * 5_000_000 // 2)
    assert [record["raw"] for record in dataset] == table["raw"].to_pylist()
    assert len(runs) == 0
    monkeypatch.setattr(DECODED, "_most_bytes", 2 * 3 * 5_000_000)
    assert [record["raw"] for record in dataset] == table["raw"].to_pylist()
    assert len(runs) == 1


def test_no_rows_have_the_columns_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, [(3, 2, "all")])
    schema = sk.open(tmp_path, decode="arrow")[[1]].schema
    assert sk.open(tmp_path, decode="arrow")[[]].schema == schema
    assert sk.open(tmp_path).shuffle(seed=1).take(0).to_arrow().schema == schema
    assert sk.open(tmp_path).to_arrow([]).num_rows == 0
    assert {name: len(column) for name, column in sk.open(tmp_path, decode="numpy")[[]].items()} == {
        "id": 0,
        "text": 0,
    }


OPTIMIZED = """
import sys
import seekable as sk
assert False, "python runs without -O"
try:
    sk.open(sys.argv[1], index=sk.Index(jobs=1), columns=["nope"])
except sk.errors.InvalidArgument as error:
    print(error)
"""


def test_columns_are_checked_under_python_o(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    command = [sys.executable, "-O", "-c", OPTIMIZED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "no file has a column 'nope'; there are 'id'\n"
