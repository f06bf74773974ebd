"""Requests for the names in stores: one folder, many folders at once, all keys below a folder, one object.

A request that fails in passing is sent again by the fetcher; a long listing goes on after the last key that
came, and of many requests only those that failed are sent again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from seekable.errors import DataNotFound
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.listing.known import FolderListing, ListedFiles, known_listings
from seekable.remote.stores.store import identities_of
from seekable.storage import addresses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

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

    files: ListedFiles = field(default_factory=ListedFiles)
    """The files, by their paths relative to the root of the listing."""


def keys_below(root: str, folders: Sequence[str], bounds: Sequence[str] = ()) -> list[ListedFiles]:
    """Return all files in some folders, by their paths relative to a root; many listings are sent at once.

    Args:
        root: the address of a folder.
        folders: folders below it, relative to it; "" for itself.
        bounds: names below the root, in the order of bytes. The listing of a single folder is cut there, and
            its parts are listed at once; a store that lists in no order lists it as a whole.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    base = addresses.parse(root).key
    base += "/" if base else ""
    spans: list[Span] = []

    async def ask(store: Store, number: int) -> None:
        span = spans[number]
        prefix = addresses.parse(span.path).key
        start = f"{prefix}/" if prefix else ""
        async for page in store.list(prefix, after=span.after, before=span.before):
            found = [
                each
                for each in page
                if each.key.startswith(start) and (each.size or not _is_marker(each, prefix))
            ]
            names = [each.key[len(base) :] for each in found]
            span.files.extend(names, [each.size for each in found], identities_of(found))
            if page:
                span.after = page[-1].key

    async def ask_all(store: Store) -> None:
        if not spans:
            cuts = [base + bound for bound in bounds] if store.lists_in_order and len(folders) == 1 else []
            for folder in folders:
                path = f"{root}/{folder}" if folder else root
                # A cut belongs to the span before it: no key is between it and itself with a NUL behind.
                ends = [*(f"{cut}\0" for cut in cuts), ""]
                spans.extend(Span(path, *pair) for pair in zip(["", *cuts], ends, strict=True))
        await _answer_all(store, range(len(spans)), ask, done)

    done: dict[int, None] = {}
    if folders:
        fetcher().run(ask_all, path=root)
    return [span.files for span in spans]


def without_markers(files: ListedFiles) -> ListedFiles:
    """Return files without empty ones whose name is that of a folder of other files."""
    if not files.has_empty:
        return files
    folders = {name[:at] for name in files for at in _slashes(name)}
    return files.taken([name for name in files if files[name][0] or name not in folders])


def _slashes(name: str) -> Iterable[int]:
    return (at for at, letter in enumerate(name) if letter == "/")


def _as_listing(prefix: str, folders: Iterable[str], objects: Iterable[Stat]) -> FolderListing:
    inner = dict.fromkeys(folder.rstrip("/").rpartition("/")[2] for folder in folders)
    inner.pop("", None)
    found = [
        each
        for each in objects
        if each.size or (not _is_marker(each, prefix) and each.key.rpartition("/")[2] not in inner)
    ]
    files = ListedFiles()
    names = [each.key.rpartition("/")[2] for each in found]
    files.extend(names, [each.size for each in found], identities_of(found))
    return FolderListing(tuple(inner), files)


def _is_marker(found: Stat, prefix: str) -> bool:
    """Return True for an empty object that stands for a folder."""
    key = found.key
    return not found.size and (key.endswith(("/", _MARKER)) or key == prefix)


def _each(
    keys: Iterable[K], ask: Callable[[Store, K], Awaitable[T]], *, path: str | None = None
) -> dict[K, T]:
    """Return the answers to many requests of one store, by key; those that failed alone are sent again."""
    wanted = list(dict.fromkeys(keys))
    found: dict[K, T] = {}
    if wanted:
        where = str(wanted[0]) if path is None else path
        fetcher().run(lambda store: _answer_all(store, wanted, ask, found), path=where)
    return found


async def _answer_all(
    store: Store, keys: Iterable[K], ask: Callable[[Store, K], Awaitable[T]], found: dict[K, T]
) -> None:
    """Add the answers to many requests that are not there yet."""
    waiting = [key for key in keys if key not in found]
    todo = iter(waiting)

    async def answer() -> None:
        for key in todo:
            found[key] = await ask(store, key)

    tasks = [asyncio.ensure_future(answer()) for _ in range(min(AT_ONCE, len(waiting)))]
    try:
        for task in asyncio.as_completed(tasks):
            await task
    finally:
        for task in tasks:
            task.cancel()
