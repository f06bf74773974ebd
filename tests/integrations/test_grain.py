"""A dataset is a source of Grain's as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grain
import pytest
from absl import flags

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TRAIN = Path(__file__).with_name("grain_train.py")


@pytest.fixture(autouse=True)
def parsed_flags() -> Iterator[None]:
    """Grain asks for absl's flags, which absl.app.run parses in a program."""
    flags.FLAGS.mark_as_parsed()
    yield
    flags.FLAGS.unparse_flags()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for shard in range(3):
        records = [{"id": shard * 20 + row, "text": "a word"} for row in range(20)]
        (folder / f"{shard}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


class Together:
    """Reads lists of rows at once, and says which."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __len__(self) -> int:
        return 10

    def __getitem__(self, row: int) -> int:
        raise AssertionError(f"row {row} was asked for alone")

    def __getitems__(self, rows: list[int]) -> list[int]:
        self.calls.append(rows)
        return rows


def loader_of(dataset: sk.Dataset, *, epochs: int = 1) -> grain.DataLoader:
    return grain.DataLoader(
        data_source=dataset,
        sampler=grain.samplers.IndexSampler(num_records=len(dataset), num_epochs=epochs),
        operations=[grain.transforms.Batch(batch_size=7)],
    )


def test_a_dataset_is_a_source(data: Path) -> None:
    dataset = sk.open(str(data)).shuffle(seed=1)
    assert isinstance(dataset, grain.sources.RandomAccessDataSource)
    source = grain.MapDataset.source(dataset)
    assert len(source) == 60
    assert list(source) == list(dataset)
    assert source[61] == dataset[1]
    assert list(source.shuffle(seed=3).map(lambda record: record["id"])[10:20]) == [
        record["id"] for record in list(source.shuffle(seed=3))[10:20]
    ]


def test_what_grain_reads_together_is_read_together() -> None:
    rows = Together()
    pipeline = grain.MapDataset.source(sk.from_sequence(rows)).shuffle(seed=1).map(str)[2:]
    got = pipeline._getitems([0, 3, 5])
    assert [list(map(str, call)) for call in rows.calls] == [got]


def test_a_batch_that_grain_reads_as_one_is_read_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grain does so where a switch of its own, which is off in its releases, is on."""
    switch = "grain._src.python.dataset.transformations.batch._is_batch_map_pushdown_experiment_enabled"
    monkeypatch.setattr(switch, lambda: True)
    rows = Together()
    batches = grain.MapDataset.source(sk.from_sequence(rows)).batch(5)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert sorted(rows.calls) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_a_batch_of_ours_is_read_together_under_grain() -> None:
    rows = Together()
    source = grain.MapDataset.source(sk.from_sequence(rows).batch(5))
    assert list(source) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert sorted(rows.calls) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]  # in threads, so in any order


def test_repeated_here_each_epoch_has_its_own_order_and_repeated_there_it_has_not() -> None:
    shuffled = sk.from_sequence(range(50)).shuffle(seed=1)
    here = list(grain.MapDataset.source(shuffled.repeat(3)))
    assert here == [record for epoch in range(3) for record in shuffled.epoch(epoch)]
    assert list(grain.MapDataset.source(shuffled).repeat(3)) == list(shuffled) * 3


@pytest.mark.parametrize("cut", [0, 1, 5, 9])
def test_a_run_of_a_data_loader_goes_on(data: Path, cut: int) -> None:
    dataset = sk.open(str(data)).shuffle(seed=1).map(lambda record: record["id"])
    whole = [batch.tolist() for batch in loader_of(dataset)]
    assert [record for batch in whole for record in batch] == list(dataset)
    run = iter(loader_of(dataset))
    before = [next(run).tolist() for _ in range(cut)]
    rest = iter(loader_of(dataset))
    rest.set_state(run.get_state())
    assert before + [batch.tolist() for batch in rest] == whole


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_of_an_iter_dataset_goes_on(data: Path, workers: int) -> None:
    def pipeline() -> Any:
        source = grain.MapDataset.source(sk.open(str(data)).map(identity).shuffle(seed=1))
        batches = source.to_iter_dataset().batch(7)
        return iter(batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=1)) if workers else batches)

    run = pipeline()
    before = [next(run).tolist() for _ in range(4)]
    rest = pipeline()
    rest.set_state(run.get_state())
    got = [record for batch in [*before, *(batch.tolist() for batch in rest)] for record in batch]
    assert got == [record["id"] for record in sk.open(str(data)).shuffle(seed=1)]


def test_a_state_of_another_order_is_refused_by_grain(data: Path) -> None:
    """Grain compares what the source shows: its records, and the expression that made it."""
    dataset = sk.open(str(data))
    run = iter(loader_of(dataset.shuffle(seed=1).map(identity)))
    next(run)
    for other in (dataset.shuffle(seed=2), dataset, sk.concat([dataset.take(30)] * 2)):
        with pytest.raises(ValueError, match="DataSource in checkpoint does not match"):
            iter(loader_of(other.map(identity))).set_state(run.get_state())


def test_a_run_with_grains_workers_goes_on_in_another_process(data: Path, tmp_path: Path) -> None:
    """Grain deals records to its two workers before they make batches of them."""
    command = [sys.executable, str(TRAIN), str(data), str(tmp_path / "state"), "9"]
    lives = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    shuffled = sk.open(str(data)).shuffle(seed=1)
    ids = [record["id"] for epoch in range(2) for record in shuffled.epoch(epoch)]
    batches = [[ids[worker::2][at : at + 8] for worker in range(2)] for at in range(0, 60, 8)]
    wanted = [batch for of_both in batches for batch in of_both]
    assert [json.loads(line) for life in lives for line in life.splitlines()] == wanted


def identity(record: dict[str, Any]) -> int:
    return int(record["id"])


def drawn(record: int, rng: np.random.Generator) -> float:
    return record + rng.random()


def shown(data: str) -> list[str]:
    """Return what datasets show: this is what Grain keeps in its states."""
    files, numbers = sk.open(f"{data}/*.jsonl"), sk.from_sequence(range(30), version=1)
    mixed = sk.mix({"b": files.shuffle(seed=1, window=2, lanes=3), "a": numbers}, weights=[1, 2], seed=1)
    datasets = [
        sk.open(data, key="id"),
        files.filter(lambda record: record["id"] % 2, jobs=1),
        files.map(lambda record: record).map(partial(identity)).map_batches(sorted, size=3),
        mixed.take(20).shuffle(seed=3).repeat(2).batch(4),
        sk.zip([numbers, sk.concat([numbers, numbers])[::2]]),
        *numbers.split({"x": 0.5, "y": 0.5}, seed=1).values(),
        numbers.select([3, 1]).map(drawn, rng=True, seed=1),
    ]
    return [repr(dataset) for dataset in datasets]


def test_what_a_dataset_shows_is_the_same_in_each_process(data: Path) -> None:
    code = f"from tests.integrations.test_grain import shown; print(shown({str(data)!r}))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in (1, 2)
    }
    assert len(said) == 1
    assert "0x" not in said.pop()
