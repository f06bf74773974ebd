"""Each dataset keeps its choice of a cache on disk: after others were opened, and in other processes."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from tests.remote.reading.folder_store import mounted

import seekable as sk
from seekable.remote.cache.disk_cache import BYTES_VARIABLE, FOLDER_VARIABLE, UNIT_BYTES, disk_caches
from seekable.remote.fetching import fetcher as fetchers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remote.reading.folder_store import FolderStore

LIMIT = 2 * UNIT_BYTES
NAMES = ("a", "b", "c")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderStore]:
    """Files of four units of one record each."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(BYTES_VARIABLE, raising=False)
    (tmp_path / "data").mkdir()
    for name in NAMES:
        text = b"".join(name.encode() * (UNIT_BYTES - 1) + b"\n" for _ in range(4))
        (tmp_path / "data" / f"{name}.txt").write_bytes(text)
    with mounted(tmp_path / "data") as store:
        yield store


def kept() -> list[tuple[int | None, int]]:
    """Return the limit of each cache that was chosen, None for the shared one, and the units in it."""
    fetchers.fetcher().close()  # Until then what was fetched may wait to be written.
    shared, *own = disk_caches()
    counts = [(None, shared), *((cache.most_bytes, cache) for cache in own)]
    return [
        (limit, sum(each.kept_bytes for each in cache.contents()) // UNIT_BYTES) for limit, cache in counts
    ]


def test_a_dataset_without_a_cache_leaves_that_of_others_as_it_is(store: FolderStore, tmp_path: Path) -> None:
    shared = sk.open(store.address, index=sk.Index(folder=tmp_path))
    none = sk.open(store.address, index=sk.Index(folder=tmp_path), storage=sk.Storage(cache=False))
    assert (none[1][0], shared[4][0]) == ("a", "b")
    assert kept() == [(None, 1)], "of b alone"
    assert (none[8][0], shared[0][0]) == ("c", "a")
    assert kept() == [(None, 2)]


def test_a_limit_evicts_nothing_that_others_fetched(store: FolderStore, tmp_path: Path) -> None:
    list(sk.open(store.address, index=sk.Index(folder=tmp_path)))
    assert kept() == [(None, 12)]
    small = sk.open(store.address, index=sk.Index(folder=tmp_path), storage=sk.Storage(cache=LIMIT))
    for row in (0, 4, 8):
        small[row]
    found = kept()
    assert found[0] == (None, 12)
    assert found[1][0] == LIMIT
    assert 0 < found[1][1] <= LIMIT // UNIT_BYTES


def test_the_choice_goes_along_into_other_processes(store: FolderStore, tmp_path: Path) -> None:
    sent = [
        pickle.dumps(sk.open(store.address, index=sk.Index(folder=tmp_path), storage=sk.Storage(cache=cache)))
        for cache in (LIMIT, False, None)
    ]
    for number, dataset in enumerate(map(pickle.loads, sent)):
        assert dataset.shuffle(1).take(12)[0] in {name * (UNIT_BYTES - 1) for name in NAMES}
        assert dataset[4 * number][0] == NAMES[number]
        fetchers.fetcher().close()  # The memory of the next one is empty.
    assert [limit for limit, units in kept() if units] == [None, LIMIT]


def test_datasets_of_several_caches_are_read_together(store: FolderStore, tmp_path: Path) -> None:
    own = dict(zip(NAMES, (None, 1 << 30, False), strict=True))
    datasets = {
        name: sk.open(
            f"{store.address}/{name}.txt",
            index=sk.Index(folder=tmp_path),
            storage=sk.Storage(cache=cache),
        )
        for name, cache in own.items()
    }
    with sk.Loader(sk.mix(datasets, seed=1, stop="all"), batch_size=4, collate=list) as loader:
        found = [record[0] for batch in loader for record in batch]
    assert sorted(found) == sorted(4 * list(NAMES))
    assert kept() == [(None, 4), (1 << 30, 4)]
