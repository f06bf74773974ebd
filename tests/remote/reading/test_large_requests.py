"""Records that are small, or of windows, come in few large requests."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.remote.reading.folder_store import mounted, over_objects
from tests.thrift import sample

import seekable as sk
from seekable.remote.cache.disk_cache import BYTES_VARIABLE, FOLDER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINE, ROWS = 50, 80_000
UNIT = 256 << 10

READERS: dict[str, Callable[[sk.Dataset], Iterator[list[Any]]]] = {
    "iteration": lambda dataset: ([record] for record in dataset),
    "large batches": lambda dataset: dataset.batches("python", size=5000),
    "Loader": lambda dataset: iter(sk.Loader(dataset, batch_size=256, collate=list)),
    "stream": lambda dataset: ([record] for record in dataset.stream(epochs=1)),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of lines of 50 bytes: 16 units of the cache."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_bytes(b"".join(f"{row:0{LINE - 1}}\n".encode() for row in range(ROWS)))
    return folder


@pytest.mark.parametrize(("name", "room"), sample(itertools.product(READERS, [0, 1 << 30]), of=2))
def test_small_records_in_order_come_in_few_requests(
    name: str, room: int, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(BYTES_VARIABLE, str(room))
    local = sk.open(corpus)
    with mounted(corpus) as store:
        remote = over_objects(local, corpus, store.address)
        found = [record for batch in READERS[name](remote) for record in batch]
        sizes = sorted((stop - start for _, start, stop in store.reads), reverse=True)
    assert found == [f"{row:0{LINE - 1}}" for row in range(ROWS)]
    assert sum(sizes) == LINE * ROWS
    # Requests grow from one record on; those of a unit alone would be 16.
    assert len(sizes) <= 9
    assert sizes[0] >= 3 * UNIT


def test_windows_without_a_disk_are_fetched_without_small_pieces(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    local = sk.open(corpus).shuffle(1, window=2, lanes=4, block_rows=4000)
    with mounted(corpus) as store:
        remote = over_objects(local, corpus, store.address)
        loader = sk.Loader(remote, batch_size=64, collate=list, steps=300, prefetch=0)
        found = [record for batch in loader for record in batch]
        sizes = [stop - start for _, start, stop in store.reads]
    assert found == [local[row] for row in range(300 * 64)]
    # Blocks of 200 kB, two of which may be neighbours; the edges of a block alone would be some records.
    assert min(sizes) > UNIT // 4
