"""Bits that flip on the way from a store are found, where the index was built by reading all of an object."""

from __future__ import annotations

import gzip
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.remote.reading.folder_store import mounted

import seekable as sk
from seekable.index.build import build_index
from seekable.index.digest import PieceHasher
from seekable.index.object_digests import _opened, encode_digests
from seekable.remote.cache.disk_cache import BYTES_VARIABLE, FOLDER_VARIABLE, UNIT_BYTES
from seekable.remote.fetching import fetcher as fetchers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remote.reading.folder_store import FolderStore

    from seekable.remote.stores.object_store import Pin

FLIPPED = 2 * UNIT_BYTES + 77
"""The byte of each object of which a bit flips."""


@pytest.fixture(params=["", "0"], ids=["on disk", "in memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an object of five units and some, with a cache on disk or none."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(BYTES_VARIABLE, request.param)
    rng = random.Random(7)
    (tmp_path / "data").mkdir()
    lines = b"".join(rng.randbytes(4000).hex().encode() + b"\n" for _ in range(170))
    (tmp_path / "data" / "a.txt").write_bytes(lines)
    _opened.cache_clear()
    return tmp_path / "data"


def flip(store: FolderStore, times: int) -> list[tuple[int, int]]:
    """Flip a bit of the next answers with a certain byte; return the ranges of these, as they come."""
    read = store.read
    flipped: list[tuple[int, int]] = []

    async def flipping(key: str, start: int, stop: int, *, pin: Pin) -> bytes:
        data = bytearray(await read(key, start, stop, pin=pin))
        if start <= FLIPPED < stop and len(flipped) < times:
            flipped.append((start, stop))
            data[FLIPPED - start] ^= 4
        return bytes(data)

    store.__dict__["read"] = flipping
    return flipped


@pytest.fixture
def store(folder: Path) -> Iterator[FolderStore]:
    with mounted(folder) as store:
        yield store


def records(store: FolderStore, tmp_path: Path) -> list[Any]:
    fetchers.fetcher().close()  # The memory of the next one is empty.
    return list(sk.open(store.address, index=sk.Index(folder=tmp_path / "index")))


def test_a_bit_that_flips_once_is_fetched_again(store: FolderStore, folder: Path, tmp_path: Path) -> None:
    sk.open(store.address, index=sk.Index(folder=tmp_path / "index"))
    flipped = flip(store, 1)
    assert records(store, tmp_path) == (folder / "a.txt").read_text().splitlines()
    assert len(flipped) == 1


def test_a_bit_that_stays_flipped_is_an_error_that_says_where(store: FolderStore, tmp_path: Path) -> None:
    sk.open(store.address, index=sk.Index(folder=tmp_path / "index"))
    flip(store, 1 << 20)
    unit = rf"/a\.txt: the bytes {2 * UNIT_BYTES} to {3 * UNIT_BYTES} "
    place = unit + r"have the digest xxh3:\w{16}, and had xxh3:\w{16} when they were indexed"
    with pytest.raises(sk.IndexStale, match=place):
        records(store, tmp_path)


def test_compressed_objects_are_compared_as_they_are(
    store: FolderStore, folder: Path, tmp_path: Path
) -> None:
    data = (folder / "a.txt").read_bytes()
    (folder / "a.txt").unlink()
    (folder / "a.txt.gz").write_bytes(gzip.compress(data * 2, 1, mtime=0))
    sk.open(store.address, index=sk.Index(folder=tmp_path / "index"))
    flipped = flip(store, 1)
    assert records(store, tmp_path) == data.decode().splitlines() * 2
    assert len(flipped) == 1


def test_an_index_without_digests_is_read_without_comparisons(store: FolderStore, tmp_path: Path) -> None:
    sk.open(store.address, index=sk.Index(folder=tmp_path / "index"))
    (digests,) = (tmp_path / "index").rglob("digests-*.bin")
    digests.write_bytes(digests.read_bytes()[:-1] + b"?")
    assert len(records(store, tmp_path)) == 170


def test_parts_of_an_object_make_the_digests_of_the_whole(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_index, "_PART_BYTES", 2 * UNIT_BYTES)
    with mounted(folder) as store:
        sk.open(store.address, index=sk.Index(folder=tmp_path / "index"))
    whole = PieceHasher(UNIT_BYTES)
    whole.update(memoryview((folder / "a.txt").read_bytes()))
    (digests,) = (tmp_path / "index").rglob("digests-*.bin")
    assert digests.read_bytes() == encode_digests(whole.digests())
    assert digests.stat().st_size == 8 * (2 + os.path.getsize(folder / "a.txt") // UNIT_BYTES)
