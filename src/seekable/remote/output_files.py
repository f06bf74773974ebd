"""Files that this library writes into stores: each appears whole or not at all.

What is read here is read anew each time, past all caches, because other processes write to the same place.
What is not for readers lies in a local folder: locks, unfinished files, states, copies of small objects.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from functools import partial
from typing import TYPE_CHECKING, Final, cast, final

import xxhash

from seekable._lazy import lazy
from seekable.errors import DataNotFound, IndexStale, Unreachable
from seekable.storage.addresses import parse
from seekable.storage.files import cache_folder, create_new, make_private_folder, map_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import filelock
    from typing_extensions import Buffer

    from seekable.remote import mounts
    from seekable.remote.fetching import fetcher
    from seekable.remote.stores import object_store
    from seekable.remote.stores.object_store import FolderListing, Pin, Stat, Store
else:
    fetcher = lazy("seekable.remote.fetching.fetcher")
    object_store = lazy("seekable.remote.stores.object_store")
    filelock = lazy("filelock")
    mounts = lazy("seekable.remote.mounts")

__all__ = ["StoredFiles"]

_NO_CONDITIONS = re.compile(r"\b501\b|NotImplemented")
"""The answers of stores that take no conditions with a write."""

_COPY_BYTES = 8 << 20
"""The bytes of an object that are copied at a time."""

_ABANDONED_SECONDS: Final = 60 * 24 * 3600.0
"""A folder that was not used for so long is removed."""

_LOCK: Final = ".seekable-write.lock"
"""A part of the names of lock files."""

_REMOVED: Final = ".removed-"

_swept: set[str] = set()


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
            pin = object_store.Pin(stat.size, stat.identity, stat.etag)
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
                pin = object_store.Pin(stat.size, stat.identity, stat.etag)
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
                made.append(os.path.join(_scratch_folder(folder), f".{secrets.token_hex(8)}.{name}"))
                _download(path, made[-1])
            yield made
        finally:
            for copy in made:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(copy)

    def kept_local(self, path: str, size: int) -> str:
        """Return the path of a copy of an object in the cache folder, whose name stands for its content."""
        folder, name = os.path.split(path)
        kept = os.path.join(_scratch_folder(folder), name)
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
        return _scratch_folder(folder)


def _download(path: str, local: str) -> None:
    key = parse(path).key
    stat: Stat = fetcher.fetcher().run(lambda of: of.stat(key), path=path)
    pin = object_store.Pin(stat.size, stat.identity, stat.etag)
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


def _scratch_folder(folder: str) -> str:
    """Return the local folder for what is not for readers: locks, unfinished files, states.

    It is in the cache folder of this user, and is made if it does not exist. The first call of a process
    removes those that were not used for 60 days and whose locks are free: no call has continued what was
    written there.

    Args:
        folder: the address of a folder.
    """
    place = f"{folder} {mounts.options_of(folder).place(parse(folder).scheme)}"
    root = os.path.join(cache_folder(), "writing")
    made = os.path.join(root, xxhash.xxh3_128_hexdigest(place.encode()))
    make_private_folder(made)
    with contextlib.suppress(OSError):
        os.utime(made)
    if root not in _swept:
        _swept.add(root)
        _remove_abandoned(root)
    return made


def _remove_abandoned(root: str) -> None:
    """Remove the folders that were not used for long; other processes may do so at the same time."""
    oldest = time.time() - _ABANDONED_SECONDS
    for name in os.listdir(root):
        path = os.path.join(root, name)
        with contextlib.suppress(OSError, filelock.Timeout):
            if name.startswith(_REMOVED):  # A process was killed while it removed this folder.
                shutil.rmtree(path, ignore_errors=True)
            elif _last_use(path) < oldest:
                _remove(path, os.path.join(root, f"{_REMOVED}{secrets.token_hex(8)}"))


def _last_use(folder: str) -> float:
    """Return the latest modification time of a folder and of what is in it, in seconds."""
    times = [os.stat(folder).st_mtime]
    for above, folders, files in os.walk(folder):
        times += [os.lstat(os.path.join(above, name)).st_mtime for name in (*folders, *files)]
    return max(times)


def _remove(folder: str, renamed: str) -> None:
    """Remove a folder of which no lock is held.

    Raises:
        Timeout: a lock is held.
        OSError: the folder cannot be removed, or is gone.
    """
    with contextlib.ExitStack() as locks:
        for name in os.listdir(folder):
            if _LOCK in name:
                locks.enter_context(filelock.FileLock(os.path.join(folder, name), timeout=0))
        os.rename(folder, renamed)
        shutil.rmtree(renamed, ignore_errors=True)
