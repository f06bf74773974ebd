"""Where worker processes make the batches, the main process of a rank fetches what they read next."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from tests.remote.reading.folder_store import mounted

import seekable as sk
from seekable.loader.batch_sources import DatasetSource, JobStart
from seekable.loader.steps import StepCursor, Steps
from seekable.remote.cache.disk_cache import BYTES_VARIABLE, FOLDER_VARIABLE
from seekable.remote.fetching import fetcher as fetchers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remote.reading.folder_store import FolderStore
    from tests.remote.servers.bucket import Bucket

ROWS = 3000


@pytest.fixture
def lines() -> dict[str, bytes]:
    """Two files of lines."""
    texts = [json.dumps({"id": row, "text": "x" * (200 + row % 400)}) for row in range(ROWS)]
    half = ROWS // 2
    return {
        f"corpus/{name}.jsonl": "".join(f"{text}\n" for text in some).encode()
        for name, some in (("a", texts[:half]), ("b", texts[half:]))
    }


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache on disk of this test alone."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(BYTES_VARIABLE, str(1 << 30))


def written(files: dict[str, bytes], folder: Path) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.usefixtures("cached")
def test_the_main_process_fetches_and_no_job_does(lines: dict[str, bytes], tmp_path: Path) -> None:
    root = written(lines, tmp_path / "store")
    with mounted(root) as store:
        dataset = sk.open(f"{store.address}/corpus", index=sk.Index(folder=tmp_path / "index")).shuffle(
            1, window=2
        )
        steps = Steps(size=ROWS, epochs=1, batch=100, end="short", limit=None, rank=0, world_size=1)
        source = DatasetSource(dataset._node, steps, list)
        assert [job.fetches_ahead for job in source.jobs(2, apart=True)] == [False, False]
        assert [job.fetches_ahead for job in source.jobs(2, apart=False)] == [True, True]
        store.forget()
        size = sum(map(len, lines.values()))
        results = [worker_results(range(number, 30, 2), store, size) for number in range(2)]
        starts = [JobStart(StepCursor(step=number)) for number in range(2)]
        delivered: list[Any] = list(source.batches(results, starts, StepCursor(), apart=True))
        assert delivered == list(range(30))
        assert store.read_bytes == size


def worker_results(numbers: range, store: FolderStore, size: int) -> Iterator[Any]:
    """Yield the results of a worker, which is so slow that all is fetched before its second one."""
    for number in numbers:
        end = time.monotonic() + 10
        while number > 1 and store.read_bytes < size and time.monotonic() < end:
            time.sleep(0.001)
        yield number


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("window", [None, 2])
def test_a_second_epoch_from_the_disk_needs_no_request(
    window: int | None, lines: dict[str, bytes], tmp_path: Path
) -> None:
    root = written(lines, tmp_path / "store")
    with mounted(root) as store:
        dataset = sk.open(f"{store.address}/corpus", index=sk.Index(folder=tmp_path / "index")).shuffle(
            1, window=window
        )
        store.forget()
        first = ids_of(dataset, epoch=0)
        # Units of the cache begin before the first record of a file, and end at its end.
        assert store.read_bytes <= 1.05 * sum(map(len, lines.values()))
        store.forget()
        with mock.patch.dict(fetchers._FETCHERS, clear=True):
            second = ids_of(dataset, epoch=1)
            fetchers.fetcher().close()
        assert store.reads == []
        assert first != second
        assert sorted(first) == sorted(second) == list(range(ROWS))


def ids_of(dataset: sk.Dataset, epoch: int) -> list[int]:
    with sk.Loader(dataset, batch_size=100, collate=list, prefetch=0) as loader:
        loader.set_epoch(epoch)
        return [record["id"] for batch in loader for record in batch]


def test_jobs_fetch_for_themselves_without_a_cache(
    lines: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    root = written(lines, tmp_path / "store")
    local = sk.open(root, index=sk.Index(folder=tmp_path / "local"))
    with mounted(root) as store:
        remote = sk.open(f"{store.address}/corpus", index=sk.Index(folder=tmp_path / "index"))
        steps = Steps(size=ROWS, epochs=1, batch=100, end="short", limit=None, rank=0, world_size=1)
        for dataset in (local, remote):
            jobs = DatasetSource(dataset._node, steps, list).jobs(2, apart=True)
            assert all(job.fetches_ahead for job in jobs)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_workers_are_those_of_local_files(
    workers: int, lines: dict[str, bytes], bucket: Bucket, tmp_path: Path
) -> None:
    bucket.upload(lines)
    local = sk.open(written(lines, tmp_path / "files"), index=sk.Index(folder=tmp_path / "local"))
    remote = sk.open(
        f"{bucket.url}/corpus",
        index=sk.Index(folder=tmp_path / "index"),
        storage=sk.Storage(options=bucket.options),
    )
    orders = [ds.shuffle(1, window=2, lanes=2) for ds in (local, remote)]
    expected, found = (
        list(sk.Loader(ds, batch_size=100, collate=list, epochs=2, workers=workers)) for ds in orders
    )
    assert found == expected
