"""Simulated runs: their figures are those of real ones, of which a store counts the requests."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.cli.command import documents, output, run

import seekable as sk
from seekable.remote.cache.disk_cache import DiskCache
from seekable.remote.fetching.fetcher import MOST_BYTES, Fetcher, fetcher
from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.simulation import node_cache as replay
from seekable.remote.simulation import simulated_run
from seekable.remote.simulation.node_cache import (
    Knobs,
    RankMemory,
    RankReads,
    RankRequests,
    UnitAxis,
    range_requests,
)
from seekable.remote.simulation.simulated_run import FileNumbers, reads_of, stretches
from seekable.remote.stores.object_store import Pin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.nginx import Nginx
    from tests.remote.servers.s3 import Moto
    from typing_extensions import Buffer

FILES, RECORDS, LENGTH = 4, 2500, 2000
BATCH = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 MB of JSON lines of about 2 kB."""
    folder = tmp_path_factory.mktemp("data")
    for file in range(FILES):
        lines = (
            json.dumps({"file": file, "row": row, "text": "x" * (LENGTH + row % 7)}) for row in range(RECORDS)
        )
        (folder / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    sk.open(folder)
    return folder


@pytest.fixture
def data(folder: Path) -> sk.Dataset:
    return sk.open(folder)


class CountingStore:
    """Objects of zeros, and the requests for them."""

    fork_safe = True

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def shown(self, key: str) -> str:
        return key

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        del key, pin
        self.sizes.append(stop - start)
        return bytes(stop - start)


def real_run(
    dataset: sk.Dataset, folder: Path, *, node: int, nodes: int, ranks: int, epochs: int, cache: int
) -> tuple[CountingStore, float]:
    """Read what a node reads, through fetchers of its ranks; return the store and the share of hits."""
    store, disk = CountingStore(), DiskCache(str(folder), most_bytes=cache) if cache else None
    made: Any = store
    fetchers = [Fetcher(lambda path: (made, path), disk=lambda _: disk) for _ in range(ranks)]
    # What is under way goes on from stretch to stretch, as in a loader: a request that is given up counts.
    aheads = [own_fetcher.ahead() for own_fetcher in fetchers]
    numbers, world, size = FileNumbers(), nodes * ranks, len(dataset)
    wanted = 0
    for epoch in range(epochs):
        positions = [
            np.arange(epoch * size + (number - epoch * size) % world, (epoch + 1) * size, world)
            for number in range(node * ranks, (node + 1) * ranks)
        ]
        reads = [reads_of(dataset._node, each, numbers) for each in positions]
        axis = UnitAxis.of(numbers.sizes)
        wanted += sum(int(axis.sizes(np.unique(axis.units(own)[0])).sum()) for own in reads)
        sizes = numbers.sizes.tolist()
        objects = tuple(ObjectRef(f"s3://b/{file}", Pin(each, file)) for file, each in enumerate(sizes))
        for start, stop in stretches(positions[0].size, BATCH // world):
            for own_fetcher, ahead, own in zip(fetchers, aheads, reads, strict=True):
                due = own.between(start, stop)
                ahead.want(
                    _wants(objects, own.between(start, positions[0].size if start or epoch else stop + 4096))
                )
                own_fetcher.need(_wants(objects, due))
    for own_fetcher in fetchers:
        own_fetcher.close()
    return store, max(0.0, 1 - sum(store.sizes) / wanted)


def _wants(objects: tuple[ObjectRef, ...], reads: RankReads) -> Wants:
    return Wants(objects, reads.files, reads.starts, reads.stops)


CASES: dict[str, dict[str, Any]] = {
    "in order": {},
    "in order, two nodes": {"nodes": 2},
    "windowed": {"window": 2, "lanes": 2},
    "windowed, two nodes of two ranks, two epochs": {
        "window": 2,
        "lanes": 4,
        "nodes": 2,
        "ranks": 2,
        "epochs": 2,
    },
    "shuffled": {"shuffled": True, "epochs": 2},
}


CHEAP = ("windowed, two nodes of two ranks, two epochs",)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=() if name in CHEAP else pytest.mark.exhaustive)
        for name, case in CASES.items()
    ],
)
def test_bytes_and_requests_are_those_of_a_real_run(
    data: sk.Dataset, tmp_path: Path, case: dict[str, Any]
) -> None:
    found, runs = simulated_and_real(data, tmp_path, case)
    assert found.is_exact
    sizes = [size for store, _ in runs for size in store.sizes]
    assert found.bytes == pytest.approx(sum(sizes), rel=0.01)
    assert found.requests == pytest.approx(len(sizes), rel=0.01)
    assert found.hit_ratio == pytest.approx(np.mean([ratio for _, ratio in runs]), abs=0.02)


def simulated_and_real(
    data: sk.Dataset, folder: Path, case: dict[str, Any]
) -> tuple[sk.Simulation, list[tuple[CountingStore, float]]]:
    case = {"nodes": 1, "ranks": 1, "epochs": 1, "cache": 64 << 20, **case}
    window, lanes = case.pop("window", None), case.pop("lanes", None)
    dataset = data.shuffle(3, window=window, lanes=lanes) if window or case.pop("shuffled", False) else data
    found = sk.simulate(dataset, global_batch_size=BATCH, records_per_second=1000, **case)
    return found, [real_run(dataset, folder / str(node), node=node, **case) for node in range(case["nodes"])]


@pytest.mark.exhaustive
def test_a_cache_that_evicts_is_about_as_good_as_simulated(data: sk.Dataset, tmp_path: Path) -> None:
    case = {"window": 2, "lanes": 2, "epochs": 2, "cache": 8 << 20}
    found, [(store, _)] = simulated_and_real(data, tmp_path, case)
    # What was read ahead when an extent went depends on the moment.
    assert found.bytes == pytest.approx(sum(store.sizes), rel=0.4)
    assert 0 < found.peak_disk_bytes <= 8 << 20


@pytest.mark.exhaustive
@pytest.mark.parametrize("cache", [64 << 20, 0], ids=["cache", "no cache"])
@pytest.mark.parametrize(
    "order", [{}, {"window": 2, "lanes": 2}, None], ids=["in order", "windowed", "shuffled"]
)
def test_a_loader_over_a_bucket_transfers_what_was_simulated(
    moto: Moto,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    order: dict[str, int] | None,
    cache: int,
) -> None:
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", str(cache))
    bucket = moto.bucket()
    bucket.upload({f"data/{path.name}": path.read_bytes() for path in folder.glob("*.jsonl")})
    remote = sk.open(
        f"{bucket.url}/data",
        index=sk.Index(folder=tmp_path / "index"),
        storage=sk.Storage(options=bucket.options),
    )
    if order != {}:
        window, lanes = (order or {}).get("window"), (order or {}).get("lanes")
        remote = remote.shuffle(3, window=window, lanes=lanes)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    before = fetcher().report()
    found = sk.simulate(
        remote, global_batch_size=BATCH, records_per_second=1000, cache=cache, network={"link": 125e6}
    )
    assert fetcher().report().requests == before.requests
    for _ in sk.Loader(remote, batch_size=BATCH, collate=list):
        pass
    after = fetcher().report()
    assert after.fetched_bytes - before.fetched_bytes == pytest.approx(found.bytes, rel=0.01)
    # A reader that waits may ask for a part of what is planned ahead.
    assert after.requests - before.requests == pytest.approx(found.requests, abs=2)


async def landed() -> None:
    """Wait until what was fetched ahead is here."""
    while tasks := [flight.task for ahead in fetcher()._living_aheads() for flight in ahead._flights]:
        await asyncio.wait(tasks)
        await asyncio.sleep(0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cache", [1 << 30, 0], ids=["cache", "no cache"])
@pytest.mark.parametrize(
    ("order", "alone"),
    [({}, 0), ({"window": 2, "lanes": 2}, 0), ({"window": 16, "lanes": 8}, BATCH), (None, BATCH)],
    ids=["in order", "windowed", "large windows", "shuffled"],
)
def test_an_epoch_over_more_than_is_fetched_ahead_transfers_what_was_simulated(
    nginx: Nginx,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    order: dict[str, Any] | None,
    alone: int,
    cache: int,
) -> None:
    """Of a reader who takes a batch when what is fetched ahead is here, as in training.

    Of the first batch ``alone`` records are requested alone, or fewer: some may be here already.
    """
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", str(cache))
    bucket = nginx.bucket()
    lines = "".join(
        json.dumps({"row": row, "text": "x" * (LENGTH + row % 7)}) + "\n" for row in range(10_000)
    )
    bucket.upload({f"data/{file}.jsonl": lines.encode() for file in range(10)})
    remote = sk.open(
        [f"{bucket.url}/data/{file}.jsonl" for file in range(10)],
        index=sk.Index(folder=tmp_path / "index"),
        storage=sk.Storage(options=bucket.options),
    )
    if order != {}:
        remote = remote.shuffle(3, **(order or {}))
    fetcher().close()  # the next one has measured nothing yet
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    found = sk.simulate(
        remote, global_batch_size=BATCH, records_per_second=64_000, cache=cache, network={"link": 125e6}
    )
    for _ in sk.Loader(remote, batch_size=BATCH, collate=list, prefetch=0):
        fetcher()._loop.call(landed())
    report = fetcher().report()
    # Of a request that was sent twice, because it was late, both answers may come.
    assert 0.98 * found.bytes <= report.fetched_bytes <= 1.02 * found.bytes + report.hedges * MOST_BYTES
    # When ranges are given to the look-ahead anew depends on the moment.
    requests = report.requests - report.hedges
    assert 0.8 * (found.requests - alone) <= requests <= 1.2 * found.requests


def test_a_full_shuffle_fetches_all_on_every_node_and_windows_a_part(data: sk.Dataset) -> None:
    arguments: dict[str, Any] = {"nodes": 4, "global_batch_size": BATCH, "records_per_second": 1000}
    full = sk.simulate(data.shuffle(1), **arguments)
    windowed = sk.simulate(data.shuffle(1), window=1, lanes=4, **arguments)
    assert full.epochs[0].share == pytest.approx(4, rel=0.01)
    assert windowed.epochs[0].share < 1.1
    small = sk.simulate(data.shuffle(1), window=1, lanes=4, block_rows=200, **arguments)
    assert any("fewer lanes, or block_rows=4113" in line for line in small.advice)
    assert any("shuffle(window=16, lanes=32)" in line for line in full.advice)
    assert full.mean_jump == pytest.approx(1, abs=0.1)
    assert windowed.neighbours < 0.05
    ordered = sk.simulate(data, **arguments)
    assert ordered.neighbours > 0.9
    assert ordered.blocks_in_batch < 1.5


@pytest.mark.exhaustive
def test_a_sample_of_a_long_run_gives_about_the_figures_of_all(
    data: sk.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for dataset, nodes in ((data.shuffle(1), 2), (data.shuffle(1, window=2, lanes=2), 1), (data, 2)):
        arguments: dict[str, Any] = {
            "nodes": nodes,
            "global_batch_size": BATCH,
            "records_per_second": 1000,
            "epochs": 2,
        }
        exact = sk.simulate(dataset, **arguments)
        with monkeypatch.context() as patch:
            patch.setattr(simulated_run, "_MOST_RECORDS", 2500)
            patch.setattr(simulated_run, "_REPLAYED", 1000)
            sampled = sk.simulate(dataset, **arguments)
        assert not sampled.is_exact
        assert sampled.bytes == pytest.approx(exact.bytes, rel=0.15)
        assert sampled.peak_disk_bytes == pytest.approx(exact.peak_disk_bytes, rel=0.15)


def test_cost_and_time_follow_the_prices_and_the_network(data: sk.Dataset) -> None:
    arguments: dict[str, Any] = {"global_batch_size": BATCH, "records_per_second": 1e6}
    fast = sk.simulate(data, **arguments, network={"get_price": 0.5, "list_price": 2.0, "byte_price": 0.001})
    assert fast.cost == pytest.approx(0.5 * fast.requests + 2.0 + 0.001 * fast.bytes)
    slow = sk.simulate(data, **arguments, network={"link": 1e6, "latency": 0.5})
    assert slow.seconds == pytest.approx(slow.bytes / 1e6, rel=0.1)
    assert slow.link_use > 0.9
    assert slow.stall_seconds > 0.5 * slow.seconds
    assert slow.first_batch_seconds > 0.5
    assert any("faster link" in line for line in slow.advice)
    patient = sk.simulate(data, **{**arguments, "records_per_second": 1000})
    assert patient.stalls == 0
    assert patient.seconds == pytest.approx(10, rel=0.05)


def test_a_small_cache_is_advised_to_grow(data: sk.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "RECENT_BYTES", 1 << 20)
    # Data of 20 MB stays in memory else, from its first epoch to the second.
    monkeypatch.setattr(simulated_run, "_FIRST_STRETCH", 500)
    monkeypatch.setattr(simulated_run, "_STRETCH", 500)
    found = sk.simulate(
        data, global_batch_size=BATCH, records_per_second=1000, epochs=2, cache=1 << 20, nodes=2
    )
    assert found.advice[0].startswith("a cache of 20.4 MB a node: ")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 0}, "nodes must be at least 1"),
        ({"nodes": 3}, "global_batch_size=100 must be a multiple of the 3 ranks"),
        ({"records_per_second": 0}, "records_per_second must be above 0"),
        ({"records_per_second": "x"}, "records_per_second must be a number"),
        ({"network": {"link": float("inf")}}, r"network\['link'\] must be a finite number"),
        ({"network": {"links": 1}}, "must be 'link', 'latency', .* or 'byte_price' .got 'links'"),
        ({"network": 5}, "network must be a dict"),
        ({"latency": 1}, r"no argument 'latency': write network=\{\"latency\": ...\}"),
        ({"cache": -1}, "cache must be at least 0"),
        ({"window": 2}, "window, lanes and block_rows change a shuffle, and here is none"),
    ],
    ids=["nodes", "batch", "rate", "type", "link", "name", "dict", "elsewhere", "cache", "window"],
)
def test_wrong_arguments_are_refused(data: sk.Dataset, wrong: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"global_batch_size": BATCH, "records_per_second": 1.0, **wrong}
    with pytest.raises((ValueError, TypeError), match=message):
        sk.simulate(data, **arguments)


def test_what_has_no_bytes_or_no_end_is_refused_or_nothing() -> None:
    memory = sk.simulate(sk.from_sequence(range(100)), global_batch_size=10, records_per_second=100)
    assert (memory.bytes, memory.requests, memory.hit_ratio) == (0, 0, 0.0)
    with pytest.raises(sk.errors.InvalidArgument, match="the dataset is empty"):
        sk.simulate(sk.from_sequence([]), global_batch_size=10, records_per_second=100)
    endless = sk.mix({"a": sk.from_sequence([1]), "b": sk.from_sequence([2])}, seed=0, stop="never")
    with pytest.raises(sk.errors.EndlessDataset):
        sk.simulate(endless, global_batch_size=10, records_per_second=100)
    stream: Any = sk.from_sequence([1]).stream()
    with pytest.raises(sk.errors.WrongType, match="takes a Dataset"):
        sk.simulate(stream, global_batch_size=10, records_per_second=100)


def test_the_command_prints_the_same_figures(folder: Path, data: sk.Dataset, tmp_path: Path) -> None:
    options = ["--nodes", "2", "-G", "100", "--records-per-second", "1000", "--epochs", "2"]
    (shown,) = documents("simulate", folder, "--shuffle", *options, "--json")
    arguments: dict[str, Any] = {
        "nodes": 2,
        "global_batch_size": 100,
        "records_per_second": 1000,
        "epochs": 2,
    }
    found = asdict(sk.simulate(data.shuffle(0), **arguments))
    assert {**shown, "schema": None} == {**json.loads(json.dumps(found)), "schema": None}
    text = output("simulate", folder, "--window", "2", "--lanes", "2", *options).decode()
    assert "epoch  bytes a node" in text
    pipeline = tmp_path / "pipeline.json"
    data.shuffle(0).save(pipeline)
    (again,) = documents("simulate", str(pipeline), *options, "--json")
    assert again == shown
    done = run("simulate", str(pipeline), "--shuffle", *options)
    assert done.returncode == 2
    assert b"has an order of its own" in done.stderr


def test_requests_of_ranges_bring_each_byte_once() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        count = int(rng.integers(1, 60))
        starts = rng.integers(0, 5000, count)
        reads = RankReads(
            np.arange(count), rng.integers(0, 3, count), starts, starts + rng.integers(0, 900, count)
        )
        knobs = Knobs(most_bytes=1000, gap_bytes=int(rng.integers(0, 50)), cache_bytes=0, data_bytes=0)
        found = range_requests(reads, knobs)
        brought = np.zeros((3, 6000), np.int64)
        for file, start, size, row in zip(found.files, found.starts, found.sizes, found.rows, strict=True):
            brought[file, start : start + size] += 1
            shares = (reads.files == file) & (reads.starts < start + size) & (reads.stops > start)
            assert row == np.flatnonzero(shares)[0], "the first record that needs bytes of it"
        assert brought.max() == 1
        for file, start, stop in zip(reads.files, reads.starts, reads.stops, strict=True):
            assert brought[file, start:stop].all()


def test_the_memory_of_a_rank_tells_very_many_files_apart() -> None:
    memory, last = RankMemory(), 9_000_000
    memory.keep_spans(RankRequests(*np.array([[0, 0], [100, 50], [last, 3], [0, 1000]])))
    asked = RankRequests(*np.array([[0, 1, 2, 3], [10, 50, 10, 99], [last, 3, 3, 4], [10, 1000, 990, 0]]))
    left = memory.missing(asked)
    assert left.rows.tolist() == [2, 3]
    assert (left.files.tolist(), left.starts.tolist(), left.sizes.tolist()) == ([3, 4], [990, 0], [10, 99])


def test_what_is_in_memory_is_cut_out_of_requests() -> None:
    memory, kib = RankMemory(), 1 << 10
    memory.keep_spans(RankRequests(*np.array([[0, 0], [8 * kib, 100 * kib], [0, 0], [20 * kib, 100 * kib]])))
    # 8 KiB are fetched again with what is before and after them, 100 KiB are not.
    left = memory.missing(RankRequests(*np.array([[7], [300 * kib], [0], [0]])))
    assert left.starts.tolist() == [0, 200 * kib]
    assert left.sizes.tolist() == [100 * kib, 100 * kib]
    assert left.rows.tolist() == [7, 7]


def test_ranges_near_each_other_are_one_in_each_chunk_of_records() -> None:
    rows = np.arange(200)
    # Each record lies 1,000 bytes behind the one before it; chunks have 64 records at the least.
    huge = RankReads(rows, np.zeros(200, np.int64), 1000 * rows, 1000 * rows + (1 << 20))
    found = simulated_run._fewer_ranges(huge, np.array([1 << 21]))
    assert found.rows.tolist() == [0, 64, 128, 192]
    assert found.starts.tolist() == [0, 64_000, 128_000, 192_000]
    assert found.stops.tolist() == [1000 * last + (1 << 20) for last in (63, 127, 191, 199)]
