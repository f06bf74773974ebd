"""Records of object stores are those of local files; a batch is one round trip, an epoch is the data once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.remote.reading.folder_store import mounted, over_objects
from tests.remote.reading.test_ranges_of_plans import CASES
from tests.thrift import sample

import seekable as sk
from seekable.nodes.columns.decode_column import DECODED
from seekable.remote.cache.disk_cache import BYTES_VARIABLE, FOLDER_VARIABLE, UNIT_BYTES
from seekable.remote.fetching import budget
from seekable.remote.fetching import fetcher as fetchers
from seekable.storage import seek_points as compressed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remote.reading.folder_store import FolderStore

ROWS = 24_000
LANES = 4


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without a cache on disk, and with nothing decoded."""
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    _forget()
    yield
    _forget()


def _forget() -> None:
    DECODED.forget()
    compressed._cache.forget()


def same(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return bool(first == second)


@pytest.mark.parametrize("name", sample(CASES, of=2))
def test_records_are_those_of_local_files(name: str, tmp_path: Path) -> None:
    local = CASES[name](tmp_path)
    rows = [3, 0, len(local) - 1, 7, 3]
    single, some, everything = local[3], local[rows], list(local)
    with mounted(tmp_path) as store:
        remote = over_objects(local, tmp_path, store.address)
        _forget()
        assert same(remote[3], single)
        assert fetchers.fetcher().report().waits == 1
        assert same(remote[rows], some)
        # A table of the mixture comes in the batch first, and its footer before its pages.
        assert fetchers.fetcher().report().waits <= 2 + (name == "mix")
        assert same(list(remote), everything)
        assert same([record for batch in batches_of(remote) for record in batch], everything)


def batches_of(dataset: sk.Dataset, **options: Any) -> list[Any]:
    return list(sk.Loader(dataset, batch_size=7, collate=list, prefetch=0, **options))


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of lines of about 400 bytes."""
    folder = tmp_path_factory.mktemp("lines")
    for file in range(3):
        rows = range(file * ROWS // 3, (file + 1) * ROWS // 3)
        texts = [json.dumps({"id": row, "text": "x" * (200 + row % 400)}) for row in rows]
        (folder / f"{file}.jsonl").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.jsonl"))


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for little more than the open windows of the tests."""
    monkeypatch.setattr(fetchers, "RECENT_BYTES", 0)
    monkeypatch.setattr(fetchers, "MOST_BYTES", 512 << 10)
    monkeypatch.setattr(budget, "LEAST_AHEAD_BYTES", 8 << 20)
    monkeypatch.setattr(budget, "MOST_AHEAD_BYTES", 8 << 20)


def ids_of(dataset: Any, store: FolderStore, batch: int = 128) -> tuple[list[int], int]:
    """Return the ids of an epoch, and the round trips before the first batch."""
    with sk.Loader(dataset, batch_size=batch, collate=list, prefetch=0) as loader:
        batches = iter(loader)
        ids = [record["id"] for record in next(batches)]
        first = store.round_trips
        return ids + [record["id"] for batch in batches for record in batch], first


ORDERS = {
    "files": lambda ds: ds,
    "windows": lambda ds: ds.shuffle(1, window=3),
    "lanes": lambda ds: ds.shuffle(1, window=2, lanes=LANES),
    "stream": lambda ds: ds.shuffle(1, window=2, lanes=LANES).stream(epochs=1),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.usefixtures("small_memory")
def test_an_epoch_reads_the_data_once(order: str, lines: Path, tmp_path: Path) -> None:
    local = ORDERS[order](sk.open(lines, index=sk.Index(folder=tmp_path)))
    with mounted(lines) as store:
        remote = ORDERS[order](sk.open(store.address, index=sk.Index(folder=tmp_path / "remote")))
        store.forget()
        ids, first = ids_of(remote, store)
        assert ids == [record["id"] for record in local]
        assert first <= (4 if order != "stream" else 4 * LANES)
        # The first batch is fetched before its blocks are: some 1 MB more, however much the data.
        assert store.read_bytes <= 1.02 * size_of(lines) + (2 << 20)


@pytest.mark.parametrize("room", [0, 3 << 20, 6 << 20], ids=["memory", "small disk", "larger disk"])
@pytest.mark.usefixtures("small_memory")
def test_windows_that_exceed_what_is_read_ahead_are_not_fetched_for_each_batch(
    room: int, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LEAST_AHEAD_BYTES", 1 << 20)
    monkeypatch.setattr(budget, "MOST_AHEAD_BYTES", 1 << 20)
    monkeypatch.setenv(BYTES_VARIABLE, str(room))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    local = sk.open(lines, index=sk.Index(folder=tmp_path)).shuffle(1, window=2, lanes=LANES)
    order: Any = local._node
    assert order.open_bytes > 2 << 20
    with mounted(lines) as store:
        remote = sk.open(store.address, index=sk.Index(folder=tmp_path / "remote")).shuffle(
            1, window=2, lanes=LANES
        )
        store.forget()
        ids, _ = ids_of(remote, store)
        assert ids == [record["id"] for record in local]
        # Of a small cache, units that two blocks share may be fetched for each of them. Without one, blocks
        # whose answers come late are fetched twice, up to half of them, instead of once for each batch.
        units = 2 * UNIT_BYTES * (len(order.order.edges) - 1) if room else size_of(lines) * 0.6
        assert store.read_bytes <= 1.02 * size_of(lines) + units
        assert len(store.reads) <= 4 * len(order.order.edges)
        assert sum(path.stat().st_blocks * 512 for path in (tmp_path / "cache").rglob("*")) <= room * 17 / 16


def test_a_full_shuffle_in_memory_reads_the_data_once(lines: Path, tmp_path: Path) -> None:
    with mounted(lines) as store:
        remote = sk.open(store.address, index=sk.Index(folder=tmp_path)).shuffle(3)
        store.forget()
        ids, first = ids_of(remote, store)
        assert sorted(ids) == list(range(ROWS))
        assert first <= 4
        # The first batch is fetched before its blocks are: some 1 MB more, however much the data.
        assert store.read_bytes <= 1.02 * size_of(lines) + (2 << 20)
        store.forget()
        assert [record["id"] for record in remote] == ids
        assert store.reads == []


def test_report_has_the_requests_where_addresses_are_read(lines: Path, tmp_path: Path) -> None:
    local = sk.open(lines, index=sk.Index(folder=tmp_path / "local"))
    assert "remote" not in sk.Loader(local, batch_size=7).report()
    with mounted(lines) as store:
        remote = sk.open(store.address, index=sk.Index(folder=tmp_path))
        store.forget()
        for pipeline in (remote, remote.stream(epochs=1)):
            with sk.Loader(pipeline, batch_size=512, collate=list, steps=2) as loader:
                assert len(list(loader)) == 2
                report = loader.report()
        assert report["batches"] == 2
        assert report["remote"].requests >= report["batches"]
        assert report["remote"].fetched_bytes > 0


def test_explain_says_what_a_request_is(lines: Path, tmp_path: Path) -> None:
    with mounted(lines) as store:
        remote = sk.open(store.address, index=sk.Index(folder=tmp_path))
        assert "a request" not in sk.open(lines, index=sk.Index(folder=tmp_path / "local")).explain()
        assert "in the order of the files, about 3.4 MB a request" in remote.explain()
        assert "records of 425 bytes in any order" in remote.shuffle(1).explain()
        windowed = remote.shuffle(1, window=3, lanes=2).explain()
        assert "blocks of 1,000 records, about 425.0 kB a request" in windowed
        assert "take block_rows=3072" in windowed
        larger = remote.shuffle(1, window=3, lanes=2, block_rows=3072).explain()
        assert "take block_rows" not in larger


def test_a_run_resumes_at_every_cut_on_other_ranks_and_another_machine(lines: Path, tmp_path: Path) -> None:
    local = sk.open(lines, index=sk.Index(folder=tmp_path / "local")).shuffle(1, window=2, lanes=4)[:600]
    expected = list(sk.Loader(local, global_batch_size=60, collate=list, prefetch=0))
    for cut in (0, 1, 7, 10):
        with mounted(lines) as store:
            remote = sk.open(store.address, index=sk.Index(folder=tmp_path / "remote")).shuffle(
                1, window=2, lanes=4
            )[:600]
            with sk.Loader(remote, global_batch_size=60, collate=list, prefetch=0) as loader:
                batches = iter(loader)
                assert [next(batches) for _ in range(cut)] == expected[:cut]
                state = json.loads(json.dumps(loader.state_dict()))
        with mounted(lines) as store:
            remote = sk.open(store.address, index=sk.Index(folder=tmp_path / "another")).shuffle(
                1, window=2, lanes=4
            )[:600]
            rests = []
            for rank in range(2):
                options: dict[str, Any] = {"rank": rank, "world_size": 2, "prefetch": 0}
                with sk.Loader(remote, global_batch_size=60, collate=list, **options) as loader:
                    loader.load_state_dict(state)
                    rests.append(list(loader))
        together = [
            [record for pair in zip(*parts, strict=True) for record in pair]
            for parts in zip(*rests, strict=True)
        ]
        assert together == (expected[cut:] if cut < len(expected) else [])
