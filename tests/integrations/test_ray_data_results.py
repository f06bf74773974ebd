"""Results of Ray Data as datasets, and in files of our writers: `from_ray` and `sk_sink`."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import ray

import seekable as sk
from seekable.integrations.ray import RayExecutor, from_ray, sk_sink, sk_source

if TYPE_CHECKING:
    from tests.integrations.ray_cluster import RayCluster

# Ray Data warns of options that it sets itself.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\.data\..*")

COUNT = 400


@pytest.fixture(autouse=True)
def context(ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> ray.data.DataContext:
    """The options of Ray Data, which keep the order in this test."""
    assert ray_cluster.nodes
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "enable_progress_bars", False)
    monkeypatch.setattr(context.execution_options, "preserve_order", True)
    return context


def records() -> list[dict[str, Any]]:
    return [{"id": row, "text": "x" * (row % 9), "tags": [row, str(row)][:1]} for row in range(COUNT)]


def rows_of_ray(*, blocks: int = 4) -> ray.data.Dataset:
    source = sk_source(sk.from_sequence(records()))
    rows: ray.data.Dataset = ray.data.read_datasource(source, override_num_blocks=blocks)
    return rows


def test_rows_come_by_number_in_the_order_of_blocks() -> None:
    dataset = from_ray(rows_of_ray())
    assert len(dataset) == COUNT
    assert list(dataset) == records()
    assert dataset[[399, 3, 3, 150]] == [records()[row] for row in (399, 3, 3, 150)]
    assert dataset[-1] == records()[-1]
    shuffled = dataset.shuffle(seed=1)
    assert list(shuffled) != records()
    assert sorted(record["id"] for record in shuffled) == list(range(COUNT))
    again = pickle.loads(pickle.dumps(dataset))
    assert again[7] == records()[7]
    assert from_ray(rows_of_ray()).fingerprint != dataset.fingerprint


def test_blocks_of_any_kind_and_none_at_all() -> None:
    assert list(from_ray(ray.data.from_items([1, 2]))) == [{"item": 1}, {"item": 2}]
    assert len(from_ray(ray.data.range(0))) == 0
    tensors = from_ray(ray.data.from_numpy(np.arange(12).reshape(3, 4)))
    np.testing.assert_array_equal(tensors[[2, 0]][0]["data"], [8, 9, 10, 11])
    with pytest.raises(sk.errors.WrongType, match="got a list"):
        from_ray([1])  # type: ignore[arg-type]


def test_workers_of_the_cluster_write_the_same_bytes(tmp_path: Path) -> None:
    dataset = from_ray(rows_of_ray()).map(lambda row: {**row, "double": 2 * row["id"]})
    here = dataset.write_jsonl(tmp_path / "here", rows_per_file=90, jobs=1)
    with RayExecutor() as executor:
        there = dataset.write_jsonl(tmp_path / "there", rows_per_file=90, executor=executor)
        kept = dataset.filter(lambda row: row["id"] % 3 == 0, executor=executor)
    assert [Path(path).read_bytes() for path in here.paths] == [
        Path(path).read_bytes() for path in there.paths
    ]
    assert [row["id"] for row in kept] == list(range(0, COUNT, 3))


def test_a_process_outside_the_cluster_is_refused() -> None:
    loader = sk.Loader(from_ray(rows_of_ray()), batch_size=10, workers=1)
    with pytest.raises(sk.errors.InvalidArgument, match=r"workers=0 or executor=RayExecutor\(\)"):
        list(loader)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_sink_writes_files_in_the_order_of_rows(tmp_path: Path, kind: Any) -> None:
    sink = sk_sink(tmp_path / "out", format=kind)
    rows_of_ray().write_datasink(sink)
    assert sink.written is not None
    assert sink.written.rows == COUNT
    assert sink.written.bytes == sum(Path(path).stat().st_size for path in sink.written.paths)
    assert [os.path.basename(path) for path in sink.written.paths] == [
        f"part-{number:05d}.{kind}" for number in range(4)
    ]
    assert list(sk.open(tmp_path / "out")) == records()
    with pytest.raises(sk.errors.InvalidArgument, match="holds data"):
        sk_sink(tmp_path / "out", format=kind)


def test_a_task_that_dies_leaves_one_file_of_its_rows(tmp_path: Path) -> None:
    died = tmp_path / "died"

    def die_once(batch: pa.Table) -> pa.Table:
        if 250 in batch["id"].to_pylist() and not died.exists():
            died.touch()
            os._exit(1)
        return batch

    sink = sk_sink(tmp_path / "out", format="jsonl")
    rows_of_ray().map_batches(die_once, batch_format="pyarrow", batch_size=None).write_datasink(sink)
    assert died.exists()
    assert sink.written is not None
    assert sorted(os.listdir(tmp_path / "out")) == [os.path.basename(path) for path in sink.written.paths]
    assert list(sk.open(tmp_path / "out")) == records()


def test_a_job_that_fails_names_the_row_and_leaves_no_file(tmp_path: Path) -> None:
    sink = sk_sink(tmp_path / "out", format="jsonl")
    bad = rows_of_ray(blocks=2).map(lambda row: {"n": float("nan") if row["id"] == 250 else 1.0})
    with pytest.raises(sk.errors.WrongType, match="row 50 of write task 1 of Ray cannot be written as jsonl"):
        bad.write_datasink(sink)
    assert os.listdir(tmp_path / "out") == []
    assert sink.written is None


def test_a_sink_of_no_rows_and_of_few_files(tmp_path: Path) -> None:
    empty = sk_sink(tmp_path / "empty", format="parquet")
    rows_of_ray().map_batches(lambda batch: batch.slice(0, 0), batch_format="pyarrow").write_datasink(empty)
    assert empty.written is not None
    assert empty.written.paths == ()
    few = sk_sink(tmp_path / "few", format="jsonl", min_rows_per_file=COUNT)
    rows_of_ray().write_datasink(few)
    assert few.written is not None
    assert len(few.written.paths) == 1


def test_wrong_arguments_of_a_sink_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="'jsonl' or 'parquet'"):
        sk_sink(tmp_path, format="tar")  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match="'jsonl' or 'parquet'"):
        sk_sink(tmp_path, format="jsonl", schema=pa.schema({"a": pa.int8()}))
    with pytest.raises(sk.errors.InvalidArgument, match="one file by its suffix"):
        sk_sink(tmp_path / "a.jsonl", format="jsonl")
    with pytest.raises(sk.errors.InvalidArgument, match="min_rows_per_file"):
        sk_sink(tmp_path, format="jsonl", min_rows_per_file=0)
