"""A thousand million records are planned without their data: memory, reads and states are counted, not timed.

The index of 10,000 files of 100,000 records each is made by its own writer. The files have the sizes
and times that it has, and hold zeros. All have their offsets in one range of one segment. What it takes to do
something there is compared with 10,000 files of ten records. `benchmarks/at_scale.py` measures an index of
100,000 files that was built from their lines.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable.index import fileset
from seekable.index.build.commit import add_entries, folder_lock, make_folder, write_segment
from seekable.index.file_table import Entry
from seekable.index.index_location import find_index
from seekable.loader import checkpoint_files
from seekable.nodes.saved_rows import keep_unnamed
from seekable.remote.simulation import simulated_run
from seekable.storage.paths import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.exhaustive

FILES, FEW, MANY = 10_000, 10, 100_000
LENGTH = 10
RANKS, BATCH = 512, 1024
FAR = 10**12
OLD_NS, LATER_NS = 1_700_000_000_000_000_000, 1_700_000_100_000_000_000
KILOBYTE, MEGABYTE = 1000, 1_000_000


@dataclass(frozen=True)
class Corpus:
    """Files of equally many records."""

    data: str
    index: str
    each: int

    def open(self) -> sk.Dataset:
        return sk.open(self.data, index=sk.Index(folder=self.index))

    def place(self, row: int) -> tuple[str, int, int]:
        """Return the name of a record's file, and its offset and length there."""
        file, within = divmod(row, self.each)
        return f"{file:05d}.txt", LENGTH * within, LENGTH


def made(folder: Path, each: int) -> Corpus:
    data, index = folder / "data", folder / "index"
    data.mkdir()
    names = [f"{number:05d}.txt" for number in range(FILES)]
    for name in names:
        descriptor = os.open(data / name, os.O_CREAT | os.O_WRONLY)
        os.truncate(descriptor, each * LENGTH)
        os.utime(descriptor, ns=(OLD_NS, OLD_NS))
        os.close(descriptor)
    place = find_index(str(data), index_dir=str(index)).folder
    make_folder(place)
    segment = write_segment(place, [np.arange(0, each * LENGTH + 1, LENGTH, dtype="<u8").tobytes()])
    entries = [
        Entry(
            *(name, "text", each * LENGTH, OLD_NS, LATER_NS, each, number, number, segment.digest),
            segment=segment,
            start=0,
            generation=1,
        )
        for number, name in enumerate(names)
    ]
    with folder_lock(place):
        add_entries(place, entries)
    return Corpus(str(data), str(index), each)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return made(tmp_path_factory.mktemp("many"), MANY)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return made(tmp_path_factory.mktemp("few"), FEW)


def allocated(do: Callable[[], Any]) -> tuple[int, int]:
    """Return the bytes that are allocated after a second call, and the most during it."""
    do()  # What the first call leaves behind, modules among it, is not of the data.
    gc.collect()
    tracemalloc.start()
    try:
        kept = do()
        gc.collect()
        now, most = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return now, most


def loader_of(data: sk.Dataset, *, rank: int = 0, epochs: int = 1) -> sk.Loader:
    return sk.Loader(
        data,
        global_batch_size=BATCH,
        rank=rank,
        world_size=RANKS,
        epochs=epochs,
        end="drop",
        collate=list,
        prefetch=0,
    )


def test_what_is_opened_has_all_records_and_nothing_was_scanned(many: Corpus) -> None:
    ds = many.open()
    assert len(ds) == FILES * MANY == 10**9
    for row in (0, 123_456_789, 10**9 - 1):
        found = ds.locate(row)
        assert (os.path.basename(found.path), found.offset, found.length) == many.place(row)
        assert ds[row] == "\0" * LENGTH


def test_opening_takes_memory_for_files_and_none_for_records(few: Corpus, many: Corpus) -> None:
    (now, most), (now_many, most_many) = allocated(few.open), allocated(many.open)
    assert now_many < now + 20 * KILOBYTE
    assert most_many < most + 20 * KILOBYTE
    assert now_many < 200 * FILES
    assert most_many < 1000 * FILES


@pytest.mark.parametrize("order", ["all", "mixed"])
def test_a_step_of_all_ranks_is_planned_by_as_many_offsets_as_it_has_records(
    few: Corpus, many: Corpus, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(offsets: Any, segments: Any, at: Any) -> Any:
        asked.append(len(at))
        return gather(offsets, segments, at)

    gather = fileset._gather
    monkeypatch.setattr(fileset, "_gather", counted)
    most = []
    for corpus in (few, many):
        ds = corpus.open()
        shuffled = ds.shuffle(seed=1)
        if order == "mixed":
            shuffled = sk.mix([shuffled, ds.shuffle(seed=2)], weights=[1, 3], seed=0)
        loader = loader_of(shuffled)
        most.append(allocated(functools.partial(loader.locate, step=7))[1])
        asked.clear()
        planned = loader.locate(step=7)
        assert len(planned) == BATCH
        assert sum(asked) == BATCH
        rows = [corpus.each * int(os.path.basename(place.path)[:5]) + place.row for place in planned[:20]]
        assert [(os.path.basename(p.path), p.offset, p.length) for p in planned[:20]] == list(
            map(corpus.place, rows)
        )
    assert most[1] < most[0] + 100 * KILOBYTE
    assert most[1] < 2000 * BATCH


def test_a_windowed_shuffle_has_a_table_of_blocks_and_nothing_for_records(many: Corpus) -> None:
    ds = many.open()
    blocks = FILES * -(-MANY // 8192)

    def shuffled() -> sk.Dataset:
        windowed = ds.shuffle(seed=0, window=16, lanes=RANKS, block_rows=8192)
        windowed.locate(list(range(100)))
        return windowed

    now, most = allocated(shuffled)
    # Two times the edges of blocks beside the table, which is kept for single rows and for many.
    assert now < 150 * blocks + MEGABYTE
    assert most < 400 * blocks + 20 * MEGABYTE


def test_a_far_state_is_as_small_as_a_near_one_and_is_loaded_without_data(many: Corpus, few: Corpus) -> None:
    sizes = []
    for corpus, position in ((few, 0), (many, FAR)):
        ds = corpus.open().shuffle(seed=1)
        before = loader_of(ds, epochs=2 + FAR // len(ds))
        before.skip_batches(position // BATCH)
        state = json.dumps(before.state_dict(rows=False))
        sizes.append(len(state))
        os.rename(corpus.data, f"{corpus.data}.away")
        try:
            loader = loader_of(ds, rank=RANKS - 1, epochs=2 + FAR // len(ds))
            loader.load_state_dict(json.loads(state))
        finally:
            os.rename(f"{corpus.data}.away", corpus.data)
        assert len(loader.locate(step=position // BATCH)) == BATCH
        assert next(iter(loader)) == ["\0" * LENGTH] * (BATCH // RANKS)
    assert max(sizes) < 200


def test_the_rest_of_an_epoch_is_taken_over_by_rows_with_memory_for_files_alone(
    few: Corpus, many: Corpus
) -> None:
    most = []
    for corpus in (few, many):
        old, new = (corpus.open().shuffle(seed=seed) for seed in (1, 2))
        before = loader_of(old)
        before.skip_batches(len(before) // 2)
        state = json.loads(json.dumps(before.state_dict()))

        def resumed(new: sk.Dataset = new, state: dict[str, Any] = state) -> sk.Loader:
            loader = loader_of(new)
            loader.load_state_dict(state, resume="rows")
            return loader

        most.append(allocated(resumed)[1])
    step = len(before) // 2
    assert resumed().locate(step=step) == before.locate(step=step)
    # Their numbers of records are objects where they are large.
    assert most[1] < most[0] + 300 * FILES
    assert most[1] < 3000 * FILES


def test_a_rank_reads_each_state_once_and_writes_one(
    few: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = 64
    ds = few.open().shuffle(seed=1)
    given: dict[str, Any] = {"global_batch_size": 64, "world_size": ranks, "end": "drop", "collate": list}
    loaders = [sk.Loader(ds, rank=rank, **given) for rank in range(ranks)]
    read: list[str] = []

    def counted(path: str) -> bytes:
        read.append(path)
        return LOCAL.read(path)

    local = SimpleNamespace(names=LOCAL.names, size=LOCAL.size, has_folder=LOCAL.has_folder, read=counted)
    monkeypatch.setattr(checkpoint_files, "output_of", lambda _: local)
    for loader in loaders:
        path = sk.save_state(tmp_path, loader)
        assert os.path.getsize(path) < 200
    assert not read
    assert sk.load_state(tmp_path, loaders[-1])
    assert len(read) == len(set(read)) == ranks  # and neither the description nor the sources


PEAK = """
import sys
from seekable.nodes.saved_rows import KeptRows

def peak():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))

kept = KeptRows(sys.argv[1], int(sys.argv[2]), sys.argv[3], named=True)
before = peak()
kept.check()
assert kept.array[-1] == kept.count - 1
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_kept_rows_are_checked_without_staying_in_memory() -> None:
    count = 10_000_000
    kept = keep_unnamed([np.arange(count)])
    command = [sys.executable, "-c", PEAK, kept.path, str(count), kept.digest]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < 40 * MEGABYTE < count * 8


def test_a_simulation_resolves_a_sample_of_a_long_run(many: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[int] = []
    reads_of = simulated_run.reads_of

    def counted(node: Any, positions: Any, numbers: Any) -> Any:
        resolved.append(len(positions))
        return reads_of(node, positions, numbers)

    monkeypatch.setattr(simulated_run, "reads_of", counted)
    monkeypatch.setattr(simulated_run, "_MOST_RECORDS", 20_000)
    monkeypatch.setattr(simulated_run, "_REPLAYED", 16_000)
    monkeypatch.setattr(simulated_run, "_BATCHES", 2)
    ds = many.open().shuffle(seed=0)
    found = sk.simulate(ds, nodes=64, ranks=8, global_batch_size=BATCH, records_per_second=1e6)
    assert (found.records, found.is_exact) == (10**9, False)
    assert sum(resolved) <= 20_000 + 16_000 + 2 * BATCH
