"""Damage of the cache on disk of object stores: records are right, or refused by name, and never others."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING
from unittest import mock

from tests.fuzz.formats import damage
from tests.remote.reading.folder_store import mounted

import seekable as sk
from seekable.errors import SeekableError
from seekable.remote.cache import disk_cache
from seekable.remote.cache.disk_cache import BYTES_VARIABLE, FOLDER_VARIABLE, UNIT_BYTES
from seekable.remote.fetching import fetcher as fetchers

if TYPE_CHECKING:
    import random
    from pathlib import Path


def caches(folder: Path, rng: random.Random) -> None:
    """Damage files of a cache between two readers: the second has right records, or a refusal by name."""
    data, cache = folder / "data", folder / "cache"
    data.mkdir()
    for name in "ab":
        lines = (
            f"{name} {row} {rng.getrandbits(64):x} {'x' * 40_000}" for row in range(rng.randrange(5, 12))
        )
        (data / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    right = list(sk.open(data, index=sk.Index(folder=folder / "local")))
    limit = rng.choice(["", str(2 * UNIT_BYTES)])
    with (
        mock.patch.dict(os.environ, {FOLDER_VARIABLE: str(cache), BYTES_VARIABLE: limit}),
        mounted(data) as store,
    ):
        assert read(store.address, folder) == right
        for _ in range(rng.choice([1, 1, 2, 4])):
            changed(rng, [path for path in cache.rglob("*") if path.is_file()])
        for _ in range(2):  # What the first one leaves in the cache, the second one reads.
            try:
                found = read(store.address, folder)
            except SeekableError:
                continue
            assert found == right


def read(address: str, folder: Path) -> list[str]:
    """Return all records as a process that begins reads them; the cache is written when it ends."""
    disk_cache._cache_in.cache_clear()
    try:
        return list(sk.open(address, index=sk.Index(folder=folder / "index")))
    finally:
        fetchers.fetcher().close()


def changed(rng: random.Random, files: list[Path]) -> None:
    """Damage a file, remove it, put another one or a folder in its place, or exchange two."""
    if not files:
        return
    path, other = rng.choice(sorted(files)), rng.choice(sorted(files))
    kind = rng.randrange(6)
    if kind < 2:
        damage(rng, files)
    elif kind == 2:
        path.unlink()
    elif kind == 3:
        path.unlink()
        path.mkdir()
    elif kind == 4:
        path.write_bytes(other.read_bytes())
    else:
        shutil.move(path, f"{path}-")
        if other != path:
            shutil.move(other, path)
        shutil.move(f"{path}-", other)
