"""Files that this library writes into stores: each appears whole or not at all.

What is read here is read anew each time, past all caches, because other processes write to the same place.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from functools import partial
from typing import TYPE_CHECKING, cast, final

from seekable._lazy import lazy
from seekable.errors import DataNotFound, IndexStale, Unreachable
from seekable.remote.scratch_folders import scratch_folder
from seekable.storage.addresses import parse
from seekable.storage.files import create_new, map_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from seekable.remote.fetching import fetcher
    from seekable.remote.stores import store
    from seekable.remote.stores.store import FolderListing, Pin, Stat, Store
else:
    fetcher = lazy("seekable.remote.fetching.fetcher")
    store = lazy("seekable.remote.stores.store")

__all__ = ["StoredFiles"]

_NO_CONDITIONS = re.compile(r"\b501\b|NotImplemented")
"""The answers of stores that take no conditions with a write."""

_COPY_BYTES = 8 << 20
"""The bytes of an object that are copied at a time."""


@final
class StoredFiles:
    """`seekable.storage.far.FileOutput` over addresses of stores."""

    def size(self, path: str) -> int | None:
        """Return the number of bytes of an object; None if there is none."""
        found = self.seen(path)
        return None if found is None else found.size

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the bytes of each object directly below an address, by name."""
        return {stat.key.rpartition("/")[2]: stat.size for stat in _listing(folder)[1]}

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects and folders directly below an address."""
        folders, stats = _listing(folder)
        return [key.rpartition("/")[2] for key in (*folders, *(stat.key for stat in stats))]

    def has_folder(self, folder: str) -> bool:
        """Return True if an object lies below an address."""
        return bool(any(_listing(folder)))

    def make_folder(self, folder: str) -> None:
        """Do nothing: a folder is there while an object lies below it."""

    def read(self, path: str) -> bytes:
        """Return all bytes of an object."""
        key = parse(path).key

        async def read(of: Store) -> bytes:
            stat = await of.stat(key)
            pin = store.Pin(stat.size, stat.identity, stat.etag)
            return bytes(memoryview(await of.read(key, 0, stat.size, pin=pin)))

        found: bytes = fetcher.fetcher().run(read, path=path)
        return found

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write an object, in place of the one that is there."""
        key = parse(path).key
        fetcher.fetcher().run(lambda of: of.put(key, data, replacing="any"), path=path)

    def seen(self, path: str) -> Stat | None:
        """Return the description of an object; None if there is none."""
        key = parse(path).key
        try:
            found: Stat = fetcher.fetcher().run(lambda of: of.stat(key), path=path)
        except DataNotFound:
            return None
        return found

    def replace(self, path: str, data: bytes, *, old: object) -> Stat:
        """Write an object in place of exactly the one that was there, and return its description."""
        key, replaced = parse(path).key, cast("Stat | None", old)

        async def put(of: Store) -> Stat:
            try:
                return await of.put(key, data, replacing=replaced)
            except Unreachable as error:
                if _NO_CONDITIONS.search(str(error)) is None:
                    raise
                return await of.put(key, data, replacing="any")
            except DataNotFound:
                message = f"{of.shown(key)} cannot be replaced: it was deleted meanwhile"
                raise IndexStale(message) from None
            except (FileExistsError, IndexStale):
                # A try that failed may have written the object nevertheless.
                stat = await of.stat(key)
                pin = store.Pin(stat.size, stat.identity, stat.etag)
                if (
                    stat.size != len(data)
                    or bytes(memoryview(await of.read(key, 0, stat.size, pin=pin))) != data
                ):
                    raise
                return stat

        found: Stat = fetcher.fetcher().run(put, path=path)
        return found

    def place(self, made: str, path: str) -> None:
        """Write the content of a local file to an address, and remove the file."""
        with open(made, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.write(path, map_file(file.fileno(), size) if size else b"")
        os.unlink(made)

    @contextlib.contextmanager
    def local(self, paths: Sequence[str]) -> Iterator[list[str]]:
        """Yield the local paths of copies of objects, which are removed at the end."""
        made: list[str] = []
        try:
            for path in paths:
                folder, name = os.path.split(path)
                made.append(os.path.join(scratch_folder(folder), f".{secrets.token_hex(8)}.{name}"))
                _download(path, made[-1])
            yield made
        finally:
            for copy in made:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(copy)

    def kept_local(self, path: str, size: int) -> str:
        """Return the path of a copy of an object in the cache folder, whose name stands for its content."""
        folder, name = os.path.split(path)
        kept = os.path.join(scratch_folder(folder), name)
        if not os.path.isfile(kept) or os.path.getsize(kept) != size:
            with self.local([path]) as (copy,):
                os.replace(copy, kept)
        return kept

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""
        key = parse(path).key
        fetcher.fetcher().run(lambda of: of.delete(key), path=path)

    def scratch(self, folder: str) -> str:
        """Return the folder in the cache folder for what is not for readers of an address."""
        return scratch_folder(folder)


def _download(path: str, local: str) -> None:
    key = parse(path).key
    stat: Stat = fetcher.fetcher().run(lambda of: of.stat(key), path=path)
    pin = store.Pin(stat.size, stat.identity, stat.etag)
    with create_new(local) as file:
        for start in range(0, stat.size, _COPY_BYTES):
            bounds = start, min(start + _COPY_BYTES, stat.size)
            file.write(fetcher.fetcher().run(partial(_read, key, bounds, pin), path=path))


async def _read(key: str, bounds: tuple[int, int], pin: Pin, of: Store) -> Buffer:
    return await of.read(key, *bounds, pin=pin)


def _listing(folder: str) -> FolderListing:
    key = parse(folder).key
    found: FolderListing = fetcher.fetcher().run(lambda of: of.list_folder(key), path=folder)
    return found
