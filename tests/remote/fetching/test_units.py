from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.remote.fetching.fake_store import FakeStore, content, failing

from seekable.remote.cache.disk_cache import DiskCache
from seekable.remote.fetching.fetcher import Fetcher
from seekable.remote.fetching.wants import NO_ROOM, CacheRoom, ObjectRef, Wants, planned
from seekable.remote.stores.object_store import Passing, Pin
from seekable.storage.addresses import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

A = content(3 * UNIT_BYTES + 1000)
UNITS = [(0, UNIT_BYTES), (UNIT_BYTES, 2 * UNIT_BYTES), (2 * UNIT_BYTES, 3 * UNIT_BYTES)]


@pytest.fixture
def store() -> FakeStore:
    return FakeStore({"a": A})


def fetcher_over(store: FakeStore, folder: Path, *, most_bytes: int | None = None) -> Fetcher:
    disk = DiskCache(str(folder), most_bytes=most_bytes)
    return Fetcher(store.store_of, disk=lambda _: disk)


@pytest.fixture
def fetcher(store: FakeStore, tmp_path: Path) -> Iterator[Fetcher]:
    fetcher = fetcher_over(store, tmp_path)
    yield fetcher
    fetcher.close()


def test_a_read_brings_its_unit_and_a_second_process_finds_it(
    store: FakeStore, fetcher: Fetcher, tmp_path: Path
) -> None:
    ref = store.ref("a")
    assert fetcher.range(ref, 10, 20) == A[10:20]
    assert store.reads == [("a", 0, UNIT_BYTES)]
    other = fetcher_over(store, tmp_path)
    assert other.range(ref, 30, UNIT_BYTES) == A[30:UNIT_BYTES]
    assert len(store.reads) == 1
    assert other.range(ref, UNIT_BYTES - 5, len(A)) == A[UNIT_BYTES - 5 :]
    assert store.reads[1:] == [("a", UNIT_BYTES, len(A))]
    other.close()


def test_damaged_units_are_fetched_again(store: FakeStore, fetcher: Fetcher, tmp_path: Path) -> None:
    fetcher.range(store.ref("a"), 0, len(A))
    fetcher.close()
    for extent in tmp_path.rglob("*.ext"):
        extent.write_bytes(bytes(len(extent.read_bytes())))
    other = fetcher_over(store, tmp_path)
    assert other.range(store.ref("a"), 0, len(A)) == A
    assert store.reads == [("a", 0, len(A))] * 2
    other.close()


def test_readers_do_not_wait_for_the_disk_and_others_wait_for_what_is_written(
    store: FakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write, save = threading.Event(), DiskCache.save_units

    def save_late(disk: DiskCache, key: str, first: int, data: bytes, *, etag: str | None) -> None:
        may_write.wait(60)
        save(disk, key, first, data, etag=etag)

    monkeypatch.setattr(DiskCache, "save_units", save_late)
    fetcher, other = fetcher_over(store, tmp_path), fetcher_over(store, tmp_path)
    assert fetcher.range(store.ref("a"), 0, 10) == A[:10]
    assert fetcher.range(store.ref("a"), 0, len(A)) == A
    found: list[bytes] = []
    waiting = threading.Thread(target=lambda: found.append(bytes(other.range(store.ref("a"), 0, 10))))
    waiting.start()
    assert not list(tmp_path.rglob("*.ext"))
    may_write.set()
    waiting.join()
    assert found == [A[:10]]
    fetcher.close()
    assert len(list(tmp_path.rglob("*.ext"))) == 1
    assert sum(stop - start for _, start, stop in store.reads) == len(A), "a unit came twice"
    other.close()


def test_of_what_is_written_a_reader_holds_the_map_and_not_the_answer(tmp_path: Path) -> None:
    answers: list[weakref.ref[Any]] = []

    class WatchedStore(FakeStore):
        async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Any:
            answer = np.frombuffer(await super().read(key, start, stop, pin=pin), np.uint8).copy()
            answers.append(weakref.ref(answer))
            return answer

    for most_bytes, lives in ((None, False), (2 * UNIT_BYTES, True)):
        store = WatchedStore({"a": A})
        ref = store.ref("a")
        fetcher = fetcher_over(store, tmp_path / str(lives), most_bytes=most_bytes)
        held = fetcher.need(Wants.of(ref, 0, len(A)))
        fetcher.close()  # All is written that there is room for.
        gc.collect()
        assert [answer() is not None for answer in answers] == [lives]
        assert bytes(fetcher.memory.view(ref.key, 0, len(A)) or b"") == A
        assert held.held_bytes == len(A)
        answers.clear()


def test_without_room_the_records_alone_are_fetched(store: FakeStore, tmp_path: Path) -> None:
    fetcher = fetcher_over(store, tmp_path, most_bytes=UNIT_BYTES)
    assert fetcher.range(store.ref("a"), 10, 20) == A[10:20]
    assert store.reads == [("a", 10, 20)]
    fetcher.close()


def test_threads_and_fetchers_of_one_folder_fetch_each_unit_once(store: FakeStore, tmp_path: Path) -> None:
    fetchers = [fetcher_over(store, tmp_path) for _ in range(3)]
    wrong: list[object] = []

    def read(fetcher: Fetcher, seed: int) -> None:
        for start in np.random.default_rng(seed).integers(0, len(A) - 100, 40).tolist():
            view = fetcher.range(store.ref("a"), start, start + 100)
            if view != A[start : start + 100]:
                wrong.append(start)

    threads = [
        threading.Thread(target=read, args=(fetcher, seed)) for fetcher in fetchers for seed in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    spans = sorted(span[1:] for span in store.reads)
    assert [stop for _, stop in spans][:-1] == [start for start, _ in spans][1:], "a unit came twice"
    for fetcher in fetchers:
        fetcher.close()


def test_a_unit_whose_owner_fails_is_fetched_by_another(store: FakeStore, tmp_path: Path) -> None:
    first, second = fetcher_over(store, tmp_path), fetcher_over(store, tmp_path)
    store.script = iter([failing(Passing("reset", retry_after=1e6))])
    with pytest.raises(ConnectionError, match="1 tries"):
        first.range(store.ref("a"), 0, 5)
    store.script = iter([good_again] * 9)
    assert second.range(store.ref("a"), 0, 5) == A[:5]
    first.close()
    second.close()


async def good_again() -> None:
    pass


BIG = ObjectRef("s3://bucket/big", Pin(1 << 40, 1))
SMALL = ObjectRef("s3://bucket/small", Pin(1 << 20, 1))


def test_each_object_is_read_by_units_or_by_records() -> None:
    rows = [(0, 5_000_000, 5_001_000), (1, 0, 900_000), (0, 7 << 30, (7 << 30) + 9)]
    wants = Wants((BIG, SMALL), *np.array(rows).T.copy())
    figures = {"gap_bytes": 100, "most_bytes": 8 << 20, "align_bytes": 4 * UNIT_BYTES}
    requests = planned(wants, rooms=[CacheRoom(1 << 41, 1 << 30)] * 2, **figures)
    assert [(one.ref, one.start, one.stop, one.by_units) for one in requests] == [
        (BIG, 5_000_000, 5_001_000, False),
        (SMALL, 0, 1 << 20, True),
        (BIG, 7 << 30, (7 << 30) + 9, False),
    ]
    assert not any(one.by_units for one in planned(wants, rooms=[CacheRoom(1 << 41, 0)] * 2, **figures))
    assert all(one.by_units for one in planned(wants, rooms=[CacheRoom(1 << 41, 1 << 42)] * 2, **figures))
    own = planned(wants, rooms=[CacheRoom(1 << 41, 1 << 42), CacheRoom(1 << 20, 0)], **figures)
    assert {one.ref for one in own if one.by_units} == {BIG}, "each object by its own cache"


def test_ranges_all_over_a_large_object_are_not_joined_to_all_of_it() -> None:
    """Memory has to hold what requests bring until it is read, and a shuffle of all records reads it late."""
    figures: dict[str, Any] = {"gap_bytes": 1 << 20, "most_bytes": 8 << 20, "align_bytes": UNIT_BYTES}

    def fetched(records: int) -> int:
        starts = np.random.default_rng(0).permutation(records) * 100_000
        wants = Wants((BIG,), np.zeros(records, np.int64), starts, starts + 2000)
        return sum(one.stop - one.start for one in planned(wants, rooms=[NO_ROOM], **figures))

    assert fetched(1 << 14) == 2000 << 14
    assert fetched(1 << 12) > 40 * 2000 << 12
