"""Files that this library writes, local or in a store: each appears whole or not at all.

A path that is an address names an object. What is read here is read anew each time, past all caches, because
other processes write to the same place. Local paths cost one comparison more than the functions of ``os``.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable.errors import DataNotFound, IndexStale, InvalidArgument, Unreachable
from seekable.remote.scratch_folders import scratch_folder
from seekable.storage.addresses import is_address, parse
from seekable.storage.asked import address_of_path
from seekable.storage.files import create_new, put_in_place, regular_only, write_atomically
from seekable.storage.map_file import map_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Buffer

    from seekable.remote import mounts
    from seekable.remote.fetching import fetcher
    from seekable.remote.stores import store
    from seekable.remote.stores.store import FolderListing, Pin, Stat, Store
else:
    fetcher = lazy("seekable.remote.fetching.fetcher")
    mounts = lazy("seekable.remote.mounts")
    store = lazy("seekable.remote.stores.store")

__all__ = [
    "delete_file",
    "file_size",
    "file_sizes",
    "file_stat",
    "folder_exists",
    "list_names",
    "local_copies",
    "local_copy",
    "make_folder",
    "output_path",
    "place_file",
    "read_file",
    "replace_file",
    "upload_file",
    "write_file",
]


_NO_CONDITIONS = re.compile(r"\b501\b|NotImplemented")
"""The answers of stores that take no conditions with a write."""

_COPY_BYTES = 8 << 20
"""The bytes of an object that are copied at a time."""


def output_path(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> str:
    """Return the absolute path, or the address, of a file or a folder that is to be written or read.

    The bucket of an address is mounted with the options; a slash at its end is left out.

    Raises:
        InvalidArgument: options for a local path, or wrong ones.
    """
    given = os.fsdecode(path)
    given = (address_of_path(given) if isinstance(path, os.PathLike) else None) or given
    if is_address(given):
        return mounts.mount(given, storage_options).rstrip("/")
    if storage_options:
        message = (
            f"storage_options are for addresses of stores, and {given!r} is a local path: leave them out"
        )
        raise InvalidArgument(message)
    return os.path.abspath(os.path.expanduser(given))


def write_file(path: str, data: bytes | memoryview) -> None:
    """Write a file, in place of the one that is there.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
        AccessDenied, Unreachable: the store cannot be written.
    """
    if is_address(path):
        _put(path, data)
    else:
        write_atomically(path, [data])


def file_stat(path: str) -> Stat | None:
    """Return the description of an object; None if there is none.

    Raises:
        AccessDenied, Unreachable: the store cannot be read.
    """
    key = parse(path).key
    try:
        found: Stat = fetcher.fetcher().run(lambda of: of.stat(key), path=path)
    except DataNotFound:
        return None
    return found


def replace_file(path: str, data: bytes, *, old: Stat | None) -> Stat:
    """Write an object in place of exactly the one that was there, and return its description.

    Of a store that takes no conditions, whatever is there is replaced.

    Args:
        path: the address.
        data: the content.
        old: the description of the object that is replaced; None if there must be none.

    Raises:
        FileExistsError: ``old`` is None, and there is such an object.
        IndexStale: another object is there, or the one to be replaced is gone.
        AccessDenied, Unreachable: the store cannot be written.
    """
    key = parse(path).key

    async def put(of: Store) -> Stat:
        try:
            return await of.put(key, data, replacing=old)
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
            if stat.size != len(data) or bytes(memoryview(await of.read(key, 0, stat.size, pin=pin))) != data:
                raise
            return stat

    found: Stat = fetcher.fetcher().run(put, path=path)
    return found


def place_file(made: str, path: str) -> None:
    """Give a complete, synced file its name, which replaces the file that is there.

    Args:
        made: the local path of the file. It is in the folder of ``path``, or in the scratch folder of that.
        path: the path or the address that it gets.

    Raises:
        OSError: the folder cannot be written.
        AccessDenied, Unreachable: the store cannot be written.
    """
    if is_address(path):
        upload_file(made, path)
        os.unlink(made)
    else:
        put_in_place(made, path)


def upload_file(local: str, path: str) -> None:
    """Write the content of a local file to an address, in place of the object that is there.

    Raises:
        OSError: the local file cannot be read.
        AccessDenied, Unreachable: the store cannot be written.
    """
    with open(local, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _put(path, map_file(file.fileno(), size) if size else b"")


def read_file(path: str) -> bytes:
    """Return all bytes of a file.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, AccessDenied, Unreachable: it cannot be read.
    """
    if not is_address(path):
        with open(path, "rb", opener=regular_only) as file:
            return file.read()
    key = parse(path).key

    async def read(of: Store) -> bytes:
        stat = await of.stat(key)
        pin = store.Pin(stat.size, stat.identity, stat.etag)
        return bytes(memoryview(await of.read(key, 0, stat.size, pin=pin)))

    found: bytes = fetcher.fetcher().run(read, path=path)
    return found


@contextlib.contextmanager
def local_copies(paths: Sequence[str]) -> Iterator[list[str]]:
    """Give local paths with the content of files: of local files their own, of objects those of copies.

    The copies are removed at the end.

    Raises:
        FileNotFoundError: an object is not there.
        OSError, AccessDenied, Unreachable: an object cannot be read.
    """
    made: dict[str, str] = {}
    try:
        for path in filter(is_address, paths):
            folder, name = os.path.split(path)
            made[path] = os.path.join(scratch_folder(folder), f".{secrets.token_hex(8)}.{name}")
            _download(path, made[path])
        yield [made.get(path, path) for path in paths]
    finally:
        for copy in made.values():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(copy)


def local_copy(path: str, size: int) -> str:
    """Return the path of a copy of an object in the cache folder, whose name stands for its content.

    Args:
        path: the address, whose last part has a digest of the content.
        size: the bytes of the object. A copy of this size is taken as it is.

    Raises:
        FileNotFoundError: the object is not there.
        OSError, AccessDenied, Unreachable: it cannot be read, or the cache folder cannot be written.
    """
    folder, name = os.path.split(path)
    kept = os.path.join(scratch_folder(folder), name)
    if file_size(kept) != size:
        with local_copies([path]) as (copy,):
            os.replace(copy, kept)
    return kept


def file_size(path: str) -> int | None:
    """Return the number of bytes of a file; None if there is no such file."""
    try:
        if not is_address(path):
            return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    found = file_stat(path)
    return None if found is None else found.size


def list_names(folder: str) -> list[str]:
    """Return the names of the files and folders directly in a folder; of a store none if there is none.

    Raises:
        FileNotFoundError: there is no such local folder.
    """
    if not is_address(folder):
        return os.listdir(folder)
    folders, stats = _listing(folder)
    return [key.rpartition("/")[2] for key in (*folders, *(stat.key for stat in stats))]


def file_sizes(folder: str) -> dict[str, int]:
    """Return the bytes of each file directly in a folder, by name; empty if there is no such folder."""
    if is_address(folder):
        return {stat.key.rpartition("/")[2]: stat.size for stat in _listing(folder)[1]}
    if not os.path.isdir(folder):
        return {}
    with os.scandir(folder) as entries:
        return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}


def folder_exists(folder: str) -> bool:
    """Return True if a local folder exists, or if an object lies below an address."""
    return bool(any(_listing(folder))) if is_address(folder) else os.path.isdir(folder)


def make_folder(folder: str) -> None:
    """Make a local folder and its parents, unless they exist; folders of stores need not be made."""
    if not is_address(folder):
        os.makedirs(folder, exist_ok=True)


def delete_file(path: str) -> None:
    """Remove a file; nothing happens if there is none."""
    if not is_address(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    key = parse(path).key
    fetcher.fetcher().run(lambda of: of.delete(key), path=path)


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


def _put(path: str, data: bytes | memoryview) -> None:
    key = parse(path).key
    fetcher.fetcher().run(lambda of: of.put(key, data, replacing="any"), path=path)


def _listing(folder: str) -> FolderListing:
    key = parse(folder).key
    found: FolderListing = fetcher.fetcher().run(lambda of: of.list_folder(key), path=folder)
    return found
