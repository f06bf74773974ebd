"""Requests for the names in stores: folders, all keys below one, globs, single objects.

Few requests are sent, many at once. A request that fails in passing is sent again by the fetcher; a long
listing goes on after the last key that came.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, final

from seekable.errors import DataNotFound
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.listing.known import FolderListing, ListedFiles, known_listings
from seekable.remote.stores.object_store import identities_of
from seekable.storage import addresses
from seekable.storage.file_names import INDEX_FOLDER
from seekable.storage.listing import MAGIC, RECURSIVE, matcher

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from seekable.remote.stores.object_store import Stat, Store

    _Columns = tuple[list[str], list[int], list[int]]

__all__ = [
    "_KeySpan",
    "can_list",
    "files_below",
    "keys_below",
    "listed",
    "listed_each",
    "matches",
    "split_glob",
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

_FEWEST_SPANS = 16
"""Folders are listed level by level until there are so many, which then are listed whole, at once."""

_FEWEST_IN_SPAN = 1000
"""A part of a folder that is listed by itself has at least a page of names."""

_SAMPLED_OF_SPAN = 64

_MOST_LEVELS = 3


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
        message = f"{addresses.shown(path)!r} names no object, but all of a bucket"
        raise DataNotFound(message)
    return fetcher().run(lambda store: store.stat(key), path=path)


def stat_each(paths: Sequence[str]) -> dict[str, Stat | None]:
    """Describe many objects in one store; None for those that do not exist.

    Raises:
        AccessDenied, Unreachable: they cannot be read.
    """

    async def ask(store: Store, path: str) -> Stat | None:
        try:
            return await store.stat(addresses.parse(path).key)
        except DataNotFound:
            return None

    return _each(paths, ask)


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
    missing = [path for path in paths if path not in found]

    async def ask(store: Store, path: str) -> FolderListing:
        prefix = addresses.parse(path).key
        folders, objects = await store.list_folder(prefix)
        return _as_listing(prefix, folders, objects)

    for path, listing in _each(missing, ask).items():
        known.add_folder(path, listing)
        found[path] = listing
    return found


@dataclass(slots=True, eq=False)
class _KeySpan:
    """The keys of one folder between two keys, and the files found in it so far."""

    path: str
    """The address of the folder."""

    after: str
    """The listing begins after this key; empty for the first one."""

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
    spans: list[_KeySpan] = []

    async def ask(store: Store, span: _KeySpan) -> None:
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
        cuts = [base + bound for bound in bounds] if store.lists_in_order and len(folders) == 1 else []
        for folder in folders:
            path = f"{root}/{folder}" if folder else root
            # A cut belongs to the span before it: no key is between it and itself with a NUL after it.
            ends = [*(f"{cut}\0" for cut in cuts), ""]
            spans.extend(_KeySpan(path, *pair) for pair in zip(["", *cuts], ends, strict=True))
        await _answer_all(store, spans, ask)

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


def _each(paths: Iterable[str], ask: Callable[[Store, str], Awaitable[T]]) -> dict[str, T]:
    """Return the answers to requests for some addresses of one store, by address."""
    wanted = list(dict.fromkeys(paths))
    found: dict[str, T] = {}

    async def add(store: Store, path: str) -> None:
        found[path] = await ask(store, path)

    if wanted:
        fetcher().run(lambda store: _answer_all(store, wanted, add), path=wanted[0])
    return found


async def _answer_all(store: Store, keys: Sequence[K], ask: Callable[[Store, K], Awaitable[None]]) -> None:
    """Send many requests, some at a time."""
    todo = iter(keys)

    async def answer() -> None:
        for key in todo:
            await ask(store, key)

    tasks = [asyncio.ensure_future(answer()) for _ in range(min(AT_ONCE, len(keys)))]
    try:
        for task in asyncio.as_completed(tasks):
            await task
    finally:
        for task in tasks:
            task.cancel()


def files_below(path: str) -> ListedFiles:
    """Return the sizes and identities of all files below a folder, by their paths relative to it.

    Those of published indexes are left out.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    known = known_listings()
    if found := known.below(path):
        return found
    if bounds := _bounds(known.earlier(path)):
        parts = keys_below(path, [""], bounds)
        files = _joined_parts(parts)
        own = f"{INDEX_FOLDER}/"
        if any(name.startswith(own) or f"/{own}" in name for name in files):
            files = files.taken([name for name in files if f"/{own}" not in f"/{name}"])
        files = without_markers(files)
    else:
        files = _files_of_folders(path)
    known.add_all_below(path, files)
    return files


def _files_of_folders(path: str) -> ListedFiles:
    """Return all files below a folder, from listings of folders below it that are sent at once."""
    files = ListedFiles()
    folders = [""]
    for _ in range(_MOST_LEVELS):
        listings = listed_each([_joined(path, inner) for inner in folders])
        pairs = [(inner, listings[_joined(path, inner)]) for inner in folders]
        for inner, each in pairs:
            sizes, identities = each.files.columns(each.files.names)
            files.extend((_joined(inner, name) for name in each.files), sizes.tolist(), identities.tolist())
        folders = [
            _joined(inner, name) for inner, each in pairs for name in each.folders if name != INDEX_FOLDER
        ]
        if not folders or len(folders) >= _FEWEST_SPANS:
            break
    for part in keys_below(path, folders):
        files.add(without_markers(part))
    return files


def _joined_parts(parts: Sequence[ListedFiles]) -> ListedFiles:
    files = ListedFiles()
    for part in parts:
        files.add(part)
    return files


def _bounds(names: Sequence[str]) -> list[str]:
    """Return names that cut a listing into parts of about equal size; none for few names."""
    if len(names) < _FEWEST_SPANS * _FEWEST_IN_SPAN:
        return []
    step = len(names) // (_FEWEST_SPANS * _SAMPLED_OF_SPAN)
    sample = sorted(names[::step], key=lambda name: name.encode("utf-8", "surrogateescape"))
    return sample[_SAMPLED_OF_SPAN::_SAMPLED_OF_SPAN][: _FEWEST_SPANS - 1]


def split_glob(path: str) -> tuple[str, list[str]]:
    """Return the folder that a glob begins in, and the parts of the glob below it.

    A part that is the name of a file or a folder stands for itself; a path without other parts has no parts.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    scheme, _, rest = path.partition("://")
    bucket, *parts = rest.split("/")
    root = f"{scheme}://{bucket}"
    for number, part in enumerate(parts):
        if MAGIC.search(part):
            here = listed(root)
            if part not in here.folders and (number + 1 < len(parts) or part not in here.files):
                return root, parts[number:]
        root = f"{root}/{part}"
    return root, []


def matches(root: str, parts: Sequence[str], suffixes: tuple[str, ...], passed: list[str]) -> set[str]:
    """Return the files below a folder that the parts of a glob match, relative to it.

    Args:
        root: the folder.
        parts: the parts of the glob.
        suffixes: the suffixes of data, which match in letters of any case.
        passed: gets the other files, and the folders, that lie beside those files.
    """
    return _matches(_FolderTree(root), [""], parts, suffixes, passed)


@final
class _FolderTree:
    """The folders below a root, each listed when it is first needed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._listings: dict[str, FolderListing] = {}

    def expect(self, folders: Iterable[str]) -> None:
        """List some folders at once."""
        missing = [each for each in folders if each not in self._listings]
        found = listed_each([_joined(self._root, each) for each in missing])
        self._listings |= {each: found[_joined(self._root, each)] for each in missing}

    def expect_all(self, folders: Iterable[str]) -> None:
        """List some folders with all folders below them."""
        for top in folders:
            files = files_below(_joined(self._root, top))
            columns = (column.tolist() for column in files.columns(files.names))
            inner: dict[str, tuple[dict[str, None], _Columns]] = {top: ({}, ([], [], []))}
            for name, size, identity in zip(files, *columns, strict=True):
                above, _, base = _joined(top, name).rpartition("/")
                if above not in inner:
                    _add_folder(inner, above)
                names, sizes, identities = inner[above][1]
                names.append(base)
                sizes.append(size)
                identities.append(identity)
            for each, (found, of_folder) in inner.items():
                listed = ListedFiles()
                listed.extend(*of_folder)
                self._listings[each] = FolderListing(tuple(found), listed)

    def at(self, path: str) -> FolderListing:
        """Return the listing of a folder."""
        return self._listings[path]

    def below(self, path: str) -> Iterator[str]:
        """Yield the folders below a folder that do not begin with a dot."""
        for name in self.at(path).folders:
            if not name.startswith("."):
                inner = _joined(path, name)
                yield inner
                yield from self.below(inner)


def _matches(
    tree: _FolderTree,
    folders: Sequence[str],
    parts: Sequence[str],
    suffixes: tuple[str, ...],
    passed: list[str],
) -> set[str]:
    part, rest = parts[0], parts[1:]
    if part == RECURSIVE:
        tree.expect_all(folders)
        every = [each for top in folders for each in (top, *tree.below(top))]
        return _matches(tree, list(dict.fromkeys(every)), rest or ["*"], suffixes, passed)
    tree.expect(folders)
    is_match = matcher(part, () if rest else suffixes)
    inner: list[str] = []
    found: set[str] = set()
    for top in folders:
        here = tree.at(top)
        for names, is_file in ((here.folders, False), (here.files, True)):
            for name in names:
                fits = is_match(name) and (part.startswith(".") or not name.startswith("."))
                path = _joined(top, name)
                if rest:
                    inner += [path] if fits and not is_file else []
                elif fits and is_file:
                    found.add(path)
                else:
                    passed.append(path)
    return _matches(tree, inner, rest, suffixes, passed) if inner else found


def _add_folder(tree: dict[str, tuple[dict[str, None], _Columns]], path: str) -> None:
    """Add a folder to a tree, and those above it up to one that the tree has."""
    if path not in tree:
        tree[path] = ({}, ([], [], []))
        above, _, base = path.rpartition("/")
        _add_folder(tree, above)
        tree[above][0][base] = None


def _joined(above: str, name: str) -> str:
    return f"{above}/{name}" if above and name else above or name
