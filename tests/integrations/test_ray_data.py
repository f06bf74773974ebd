"""Ray Data over datasets and streams: `sk_source`."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.integrations.ray import sk_source
from seekable.integrations.ray.datasource import DatasetReads, parts_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integrations.ray_cluster import RayCluster

# Ray Data warns of options that it sets itself.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data\..*")


@pytest.fixture(autouse=True)
def context(ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> ray.data.DataContext:
    """The options of Ray Data, which keep the order in this test."""
    assert ray_cluster.nodes
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "enable_progress_bars", False)
    monkeypatch.setattr(context.execution_options, "preserve_order", True)
    return context


def lines(path: Path, count: int) -> sk.Dataset:
    path.write_text("".join(f"{json.dumps({'id': row, 'text': 'x' * (row % 50)})}\n" for row in range(count)))
    return sk.open(path)


def table(path: Path, count: int) -> sk.Dataset:
    columns = {"id": np.arange(count), "text": [f"text {row}" * 9 for row in range(count)]}
    pq.write_table(pa.table(columns), path, row_group_size=1000)
    return sk.open(path)


def read(data: sk.Dataset | sk.Stream, *, blocks: int | None = None, **given: Any) -> ray.data.Dataset:
    rows: ray.data.Dataset = ray.data.read_datasource(sk_source(data, **given), override_num_blocks=blocks)
    return rows


@given(total=st.integers(0, 10**12), most=st.integers(1, 300))
def test_parts_cover_all_positions_once_and_in_order(total: int, most: int) -> None:
    parts = parts_of(total, most)
    edges = [parts[0].start, *(part.stop for part in parts)]
    assert (edges[0], edges[-1]) == (0, total)
    assert [part.start for part in parts[1:]] == edges[1:-1]
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == max(1, min(total, most))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("count", "epochs", "blocks"),
    [(1000, 2, 7), (0, 1, 3), (1, 1, 4), (7, 3, 1), (7, 2, 5), (1000, 1, 1)],
)
def test_positions_come_in_their_order(tmp_path: Path, count: int, epochs: int, blocks: int) -> None:
    dataset = lines(tmp_path / "a.jsonl", count).shuffle(seed=3)
    rows = read(dataset, blocks=blocks, epochs=epochs, position=True)
    positions = np.arange(count * epochs, dtype=np.int64)
    records = dataset._node.fetch(positions)
    assert rows.take_all() == [
        {**record, "position": row} for record, row in zip(records, positions.tolist(), strict=True)
    ]
    assert rows.count() == count * epochs


def test_a_mixture_of_tables_has_the_columns_of_all(tmp_path: Path) -> None:
    one = table(tmp_path / "a.parquet", 2500).shuffle(seed=1)
    other = sk.open(tmp_path / "a.parquet", columns=["id"]).cast({"id": "float64"}).rename({"id": "score"})
    mixed = sk.mix([one, other], weights=[2, 1], seed=3, stop="all")
    rows = read(mixed, blocks=3)
    assert sorted(rows.schema().names) == ["id", "score", "text"]
    columns = {"id": None, "text": None, "score": None}
    assert rows.take_all() == [columns | record for record in mixed]
    assert rows.count() == len(mixed)


def test_without_an_order_all_records_come_once(tmp_path: Path, context: ray.data.DataContext) -> None:
    context.execution_options.preserve_order = False
    dataset = lines(tmp_path / "a.jsonl", 500).map(lambda record: {"double": 2 * record["id"]})
    assert sorted(row["double"] for row in read(dataset, blocks=6).take_all()) == list(range(0, 1000, 2))


def test_two_consumers_share_all_records(tmp_path: Path) -> None:
    shards = read(lines(tmp_path / "a.jsonl", 500).shuffle(seed=1), position=True).streaming_split(
        2, equal=True
    )
    found: list[list[int]] = [[], []]

    def take(number: int) -> None:
        for batch in shards[number].iter_batches(batch_size=64, batch_format="numpy"):
            found[number] += batch["position"].tolist()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(positions) for positions in found] == [250, 250]
    assert sorted(found[0] + found[1]) == list(range(500))


def test_a_stream_is_read_by_lanes_and_slots_give_its_order(tmp_path: Path) -> None:
    stream = lines(tmp_path / "a.jsonl", 300).shuffle(seed=2).stream(lanes=3, epochs=1)
    stream = stream.filter(lambda record: record["id"] % 7)
    rows = read(stream, position="slot")
    found = sorted(rows.take_all(), key=lambda row: row["slot"])
    assert [row["id"] for row in found] == [record["id"] for record in stream]
    assert rows.count() == len(found)
    assert len({row["slot"] % 3 for row in found}) == 3


def test_only_the_columns_that_are_used_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    dataset = table(path, 3000)
    reads = DatasetReads.of(dataset._node, epochs=1, position=None, schema=None)
    everything = sum(each.bytes for each in dataset._node.plan(np.arange(3000)).ranges())
    node = reads.node.narrowed(frozenset(["id"]))
    some = sum(each.bytes for each in node.plan(np.arange(3000)).ranges())
    assert some < everything / 2
    place = pq.ParquetFile(path).metadata.row_group(1).column(1)
    damaged = bytearray(path.read_bytes())
    first = place.dictionary_page_offset or place.data_page_offset
    damaged[first : first + place.total_compressed_size] = bytes(place.total_compressed_size)
    path.write_bytes(damaged)
    rows = read(sk.open(path), blocks=2)
    assert rows.select_columns(["id"]).take_all() == [{"id": row} for row in range(3000)]
    assert rows.count() == 3000
    with pytest.raises(sk.CorruptRecord, match=r"a\.parquet"):
        rows.materialize()


def test_a_column_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.MissingColumn, match="no column 'nope'; there are 'id', 'text'"):
        read(lines(tmp_path / "a.jsonl", 5)).select_columns(["nope"]).take_all()


def test_a_limit_reads_no_more_than_it_needs(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", 900)
    text = (tmp_path / "a.jsonl").read_text()
    (tmp_path / "a.jsonl").write_text(text.replace('{"id": 400,', '{"id": 400?'))
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})
    rows = read(sk.open(tmp_path / "a.jsonl"), blocks=1, schema=schema)
    # Ray gives a limit to a read only if a map lies between them.
    limited = rows.map(lambda row: {"id": row["id"]}).limit(40)
    assert limited.take_all() == [{"id": row} for row in range(40)]


def test_an_error_names_the_file_the_row_and_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n' * 200 + "oops\n" + '{"id": 1}\n' * 20)
    schema = pa.schema({"id": pa.int64()})
    with pytest.raises(sk.CorruptRecord, match=rf"{path}: record 200 at byte 2000 \(4 bytes\)"):
        read(sk.open(path), schema=schema).materialize()
    rows = read(sk.open(path, errors=lambda _: sk.HOLE), position=True)
    assert rows.count() == 220
    assert [row["position"] for row in rows.take_all()] == [*range(200), *range(201, 221)]


def test_a_record_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    misfit = 3001
    path.write_text(
        "".join(
            f'{{"id": {row if row != misfit else "null, " + chr(34) + "n" + chr(34) + ": 1"}}}\n'
            for row in range(5000)
        )
    )
    with pytest.raises(
        sk.errors.WrongType, match=r"row 3,001 \(record 3,001 of .*the schema has no column.*schema="
    ):
        read(sk.open(path)).materialize()
    schema = pa.schema({"id": pa.int64(), "n": pa.int8()})
    assert read(sk.open(path), schema=schema).sum("n") == 1


ARRAYS = [np.full((2, 3), number, np.float32) for number in range(4)]


@pytest.mark.parametrize(
    ("records", "rows"),
    [
        pytest.param([b"one", b"two"], [{"item": b"one"}, {"item": b"two"}], id="bytes"),
        pytest.param([None, 1], [{"item": None}, {"item": 1}], id="None"),
        pytest.param([(1, "a")] * 2, None, id="values of two types"),
        pytest.param([{"a": {"b": [1]}}, {"a": None}], [{"a": {"b": [1]}}, {"a": None}], id="nested"),
        pytest.param([{"a": 1}, {"b": "x"}], [{"a": 1, "b": None}, {"a": None, "b": "x"}], id="other names"),
        pytest.param([sk.HOLE, {"a": 1}, sk.HOLE], [{"a": 1}], id="holes"),
        pytest.param([sk.HOLE], [], id="only a hole"),
        pytest.param([{"a": 1}, 2], None, id="dicts and others"),
        pytest.param([{"a": {1, 2}}], None, id="a set"),
        pytest.param([{"t": np.arange(n)} for n in (2, 0)], [{"t": [0, 1]}, {"t": []}], id="ragged"),
    ],
)
def test_records_of_any_kind(records: list[Any], rows: list[Any] | None) -> None:
    dataset = sk.from_sequence(records)
    if rows is None:
        with pytest.raises(sk.errors.WrongType, match=r"row [01]"):
            sk_source(dataset)
    else:
        found = read(dataset, blocks=1)
        assert found.take_all() == rows
        assert found.count() == len(rows)


def test_arrays_become_tensors() -> None:
    alike = read(sk.from_sequence(ARRAYS), blocks=2)
    batch = alike.take_batch(4)["item"]
    assert (batch.shape, batch.dtype) == ((4, 2, 3), np.float32)
    np.testing.assert_array_equal(batch, np.stack(ARRAYS))
    other = [{"t": np.full((size, 2), size)} for size in (1, 3)]
    for row, record in zip(read(sk.from_sequence(other)).take_all(), other, strict=True):
        np.testing.assert_array_equal(row["t"], record["t"])
    late = sk.from_sequence([{"t": np.zeros(3)}] * 3001 + [{"t": np.zeros(4)}] + [{"t": np.zeros(3)}] * 3000)
    with pytest.raises(sk.errors.WrongType, match=r"row 3,001.*an array of float64 of the shape \(4,\)"):
        read(late).materialize()


def test_sizes_are_estimated_from_the_index(tmp_path: Path) -> None:
    dataset = lines(tmp_path / "a.jsonl", 1000)
    size = (tmp_path / "a.jsonl").stat().st_size
    source = sk_source(dataset.shuffle(seed=1), epochs=2)
    estimate = source.estimate_inmemory_data_size()
    assert type(estimate) is int
    assert abs(estimate - 2 * size) < size / 10
    sizes = [task.metadata.size_bytes for task in source.get_read_tasks(5)]
    assert {type(each) for each in sizes} == {int}
    assert abs(sum(filter(None, sizes)) - estimate) <= len(sizes)
    assert sk_source(dataset.take(0)).estimate_inmemory_data_size() == 0
    assert sk_source(sk.from_sequence([{"n": 1}])).estimate_inmemory_data_size() is None


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    dataset = lines(tmp_path / "a.jsonl", 5)
    with pytest.raises(sk.errors.EndlessDataset, match="take"):
        sk_source(sk.mix([dataset], weights=[1], seed=1, stop="never"))
    with pytest.raises(sk.errors.EndlessDataset, match="epochs"):
        sk_source(dataset.stream())
    with pytest.raises(sk.errors.InvalidArgument, match="for datasets"):
        sk_source(dataset.stream(epochs=1), epochs=2)
    with pytest.raises(sk.errors.InvalidArgument, match="column 'text' already"):
        sk_source(dataset, position="text")
    with pytest.raises(sk.errors.WrongType, match="got a list"):
        sk_source([1])  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match="position must be"):
        sk_source(dataset, position=1)  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match=r"a pyarrow\.Schema"):
        sk_source(dataset, schema={"id": int})
