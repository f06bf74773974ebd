"""Requests for the names in stores: one folder, many folders at once, all keys below a folder, one object.

A request that fails in passing is sent again by the fetcher; a long listing goes on behind the last key that
came, and of many requests only those that failed are sent again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from seekable.errors import DataNotFound
from seekable.remote import addresses
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.listing.known import FolderListing, known_listings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.remote.listing.known import Status
    from seekable.remote.stores.store import Stat, Store

__all__ = [
    "Span",
    "can_list",
    "keys_below",
    "listed",
    "listed_each",
    "shown",
    "stat",
    "stat_each",
    "without_markers",
]

AT_ONCE = 64
"""The most requests for names under way at once."""

_UNLISTED = ("http", "https")

_MARKER = "_$folder$"
"""The end of the names of empty objects by which Hadoop marks folders."""

T = TypeVar("T")
K = TypeVar("K")


def shown(path: str) -> str:
    """Return an address as messages have it: without secrets."""
    return addresses.shown(path)


def can_list(path: str) -> bool:
    """Return True if the store of an address lists its keys; web servers do not."""
    return addresses.parse(path).scheme not in _UNLISTED


def stat(path: str) -> Stat:
    """Return the size, the etag and the version of one object.

    Raises:
        DataNotFound, AccessDenied, Unreachable: it cannot be read.
    """
    key = addresses.parse(path).key
    if not key:
        message = f"{shown(path)!r} names no object, but all of a bucket"
        raise DataNotFound(message)
    return fetcher().run(lambda store: store.stat(key), path=path)


def stat_each(paths: Sequence[str]) -> dict[str, Stat | None]:
    """Return the facts of many objects of one store, None of those that do not exist.

    Raises:
        AccessDenied, Unreachable: they cannot be read.
    """

    async def ask(store: Store, path: str) -> Stat | None:
        try:
            return await store.stat(addresses.parse(path).key)
        except DataNotFound:
            return None

    return _each(list(dict.fromkeys(paths)), ask) if paths else {}


def listed(path: str) -> FolderListing:
    """Return the names directly in a folder; none if no key lies below it.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    return listed_each([path])[path]


def listed_each(paths: Sequence[str]) -> dict[str, FolderListing]:
    """Return the names directly in each of some folders of one store.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: they cannot be listed.
    """
    known = known_listings()
    found = {path: listing for path in paths if (listing := known.folder(path)) is not None}
    missing = [path for path in dict.fromkeys(paths) if path not in found]

    async def ask(store: Store, path: str) -> FolderListing:
        prefix = addresses.parse(path).key
        folders, objects = await store.list_folder(prefix)
        return _as_listing(prefix, folders, objects)

    for path, listing in (_each(missing, ask) if missing else {}).items():
        known.add_folder(path, listing)
        found[path] = listing
    return found


@dataclass(slots=True, eq=False)
class Span:
    """The keys of one folder between two keys, and the files found in it so far."""

    path: str
    """The address of the folder."""

    after: str
    """The listing begins behind this key; empty for the first one."""

    before: str
    """It ends before this key; empty for the last one."""

    files: dict[str, Status] = field(default_factory=dict)
    """The sizes and identities of the files, by their paths relative to the folder."""

    done: bool = False
    """True if all keys have come."""


def keys_below(spans: Sequence[Span]) -> None:
    """List all keys in some spans of one store, many at once, into ``span.files``.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """

    async def ask(store: Store, number: int) -> None:
        span = spans[number]
        prefix = addresses.parse(span.path).key
        start = f"{prefix}/" if prefix else ""
        async for page in store.list(prefix, after=span.after, before=span.before):
            for each in page:
                if not each.key.startswith(start) or _is_marker(each, prefix):
                    continue
                span.files[each.key[len(start) :]] = each.size, each.identity
            if page:
                span.after = page[-1].key
        span.done = True

    _each(range(len(spans)), ask, path=spans[0].path if spans else "")


def without_markers(files: Mapping[str, Status]) -> dict[str, Status]:
    """Return files without empty ones whose name is that of a folder of other files."""
    empty = [name for name, (size, _) in files.items() if not size]
    if not empty:
        return dict(files)
    folders = {name[:at] for name in files for at in _slashes(name)}
    return {name: status for name, status in files.items() if status[0] or name not in folders}


def _slashes(name: str) -> Iterable[int]:
    return (at for at, letter in enumerate(name) if letter == "/")


def _as_listing(prefix: str, folders: Iterable[str], objects: Iterable[Stat]) -> FolderListing:
    inner = dict.fromkeys(folder.rstrip("/").rpartition("/")[2] for folder in folders)
    inner.pop("", None)
    files = {
        name: (each.size, each.identity)
        for each in objects
        if not _is_marker(each, prefix) and ((name := each.key.rpartition("/")[2]) not in inner or each.size)
    }
    return FolderListing(tuple(inner), files)


def _is_marker(found: Stat, prefix: str) -> bool:
    """Return True for an empty object that stands for a folder."""
    key = found.key
    return not found.size and (key.endswith(("/", _MARKER)) or key == prefix)


def _each(
    keys: Iterable[K], ask: Callable[[Store, K], Awaitable[T]], *, path: str | None = None
) -> dict[K, T]:
    """Return the answers to many requests of one store, by key; those that failed alone are sent again."""
    waiting = dict.fromkeys(keys)
    found: dict[K, T] = {}

    async def answer(store: Store, todo: Iterator[K]) -> None:
        for key in todo:
            found[key] = await ask(store, key)
            del waiting[key]

    async def answer_all(store: Store) -> None:
        todo = iter(list(waiting))
        tasks = [asyncio.ensure_future(answer(store, todo)) for _ in range(min(AT_ONCE, len(waiting)))]
        try:
            for task in asyncio.as_completed(tasks):
                await task
        finally:
            for task in tasks:
                task.cancel()

    if waiting:
        fetcher().run(answer_all, path=str(next(iter(waiting))) if path is None else path)
    return found
