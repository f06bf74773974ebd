"""The data files that addresses stand for: objects, folders, globs and braces, by the rules of local ones.

What was found is kept between calls, in a file in the folder of indexes. It is read where the user trusts it
(``refresh=False``): then no request is sent. Nothing in it is relied on for the content of files: each answer
of a store is compared with the identity, and a file that is damaged counts as missing.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import os
import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from seekable.errors import DataNotFound, UnsupportedFormat
from seekable.remote.listing import key_listing
from seekable.remote.listing.known import ListedFiles, known_listings, listing_once
from seekable.storage import addresses, listing
from seekable.storage.file_names import expanded, has_braces
from seekable.storage.files import make_private_folder, regular_only, write_atomically
from seekable.storage.listing import HIDDEN, MAGIC, PLAIN, FoundFiles, Rules, checked_asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.remote.listing.known import Columns
    from seekable.storage.listing import Arrange, Asked, Inspect

__all__ = ["find_files", "is_plain", "sizes", "status_columns", "statuses"]

_HIDDEN_PART = re.compile(r"(?:^|[/\0])[._]")

_WORTH_LISTING = 100
"""From this many files of one folder on, the folder is listed; for fewer, each is asked for."""

_KEPT_VERSION = 1
_DIGEST_BYTES = 8
_WIDTH = 8


def find_files(
    asked: Asked,
    *,
    suffixes: Iterable[str],
    inspect: Inspect | None = None,
    arrange: Arrange | None = None,
    kind: str = "spec",
) -> tuple[FoundFiles, ...]:
    """Return the data files of a source that may name addresses; see `seekable.storage.listing.find_files`.

    Local paths and addresses may stand in one list. The root of an object is the address of a folder. Web
    servers list nothing, so there only files and braces are found.

    Args:
        asked: the address, folder, glob or list.
        suffixes: how names of data files in a folder end, in lower case, dot included.
        inspect: returns the files that are never data.
        arrange: returns the data files of a folder.
        kind: a text that differs where ``inspect`` and ``arrange`` choose otherwise: the name of a format.

    Raises:
        DataNotFound: there is no such object, folder or bucket, or no data file in it.
        AccessDenied: the credentials do not permit to list it.
        Unreachable: the store does not answer.
        UnsupportedFormat: a glob or a folder on a web server.
        WrongType: the source is neither a path nor a list of paths.
    """
    checked = checked_asked(asked)
    items = (
        [os.fsdecode(checked)] if isinstance(checked, str | os.PathLike) else list(map(os.fsdecode, checked))
    )
    rules = Rules(tuple(suffixes), inspect, arrange)
    with listing_once():
        path, known = _kept_listing(items, rules, kind), known_listings()
        kept = None if path is None else _read_kept(path)
        for run, files in kept or ():
            if known.refresh:
                known.add_earlier(run.root, run.names)
            else:
                known.add_below(run.root, files)
        if kept and not known.refresh:
            return tuple(run for run, _ in kept)
        found = _find_all(items, rules)
        if path is not None:
            _write_kept(path, found, [status_columns(run.root, run.names) for run in found])
    return found


def _find_all(items: Sequence[str], rules: Rules) -> tuple[FoundFiles, ...]:
    found: list[FoundFiles] = []
    _ask_together(items)
    for item in items:
        if "://" in item:
            found += _find(item, rules)
        else:
            local = listing.find_files(
                item, suffixes=rules.suffixes, inspect=rules.inspect, arrange=rules.arrange
            )
            found += local
    if not found:
        raise DataNotFound("an empty list names no data; give at least one path")
    return tuple(
        FoundFiles(root, tuple(itertools.chain.from_iterable(run.names for run in runs)))
        for root, runs in itertools.groupby(found, key=lambda run: run.root)
    )


def _ask_together(items: Sequence[str]) -> None:
    """Ask for the objects that a list names all at once, so that each is known when its turn comes."""
    named: dict[str, list[str]] = {}
    for item in items:
        root, _, name = item.rpartition("/")
        if "://" in item and name and not (_is_bucket(item) or _is_glob(item) or has_braces(item)):
            named.setdefault(root, []).append(name)
    known = known_listings()
    if sum(map(len, named.values())) <= 1 or not known.remembers:
        return
    of_stores: dict[str, list[str]] = {}
    for root, names in named.items():
        if len(names) > _WORTH_LISTING:
            _statuses(root, names)
        else:
            store = str(addresses.parse(root)._replace(key=""))
            of_stores.setdefault(store, []).extend(f"{root}/{name}" for name in names)
    for paths in of_stores.values():
        for path, stat in key_listing.stat_each(paths).items():
            if stat is not None:
                known.add_status(path, stat.size, stat.identity)


def _kept_listing(items: Sequence[str], rules: Rules, kind: str) -> str | None:
    """Return the file that keeps the listing of a source, None if it is not to be kept.

    A source with local files is listed each time.
    """
    kept = known_listings().kept
    if kept is None or not all("://" in item for item in items):
        return None
    hooks = [getattr(hook, "__qualname__", "") for hook in (rules.inspect, rules.arrange)]
    return os.path.join(kept, _listing_name(items, kind, " ".join((*rules.suffixes, *hooks))))


def is_plain(path: str) -> bool:
    """Return True if an address is known to be no folder of another tool, without asking the store.

    A glob is none, and, where kept listings are taken, a source of which one is kept.
    """
    known = known_listings()
    if _is_glob(path):
        return True
    return known.kept is not None and not known.refresh and _has_kept(known.kept, [path], PLAIN)


def statuses(root: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the size and the identity of each file below the address of a folder.

    Raises:
        DataNotFound: a file does not exist.
        AccessDenied, Unreachable: the store does not say.
    """
    found = _statuses(root, names)
    for name, status in zip(names, found, strict=True):
        if status is None:
            path = f"{root}/{name}"
            raise DataNotFound(f"there is no {addresses.shown(path)!r}; {_nearest(path)}")
    return [status for status in found if status is not None]


def status_columns(root: str, names: Sequence[str]) -> Columns:
    """Return the sizes and the identities of files below the address of a folder, int64; see `statuses`."""
    below = known_listings().below(root)
    if below:
        with contextlib.suppress(KeyError):
            return below.columns(names)
    found = np.array(statuses(root, names), np.int64).reshape(-1, 2)
    return found[:, 0].copy(), found[:, 1].copy()


def sizes(root: str, names: Sequence[str]) -> list[int | None]:
    """Return the size of each file below an address, None where there is no file.

    Raises:
        AccessDenied, Unreachable: the store does not say.
    """
    return [None if status is None else status[0] for status in _statuses(root, names)]


def _statuses(root: str, names: Sequence[str]) -> list[tuple[int, int] | None]:
    known, below = known_listings(), known_listings().below(root)
    missing = [name for name in names if name not in below and known.status(f"{root}/{name}") is None]
    by_folder: dict[str, list[str]] = {}
    for name in missing:
        by_folder.setdefault(name.rpartition("/")[0], []).append(name)
    asked: dict[str, tuple[int, int] | None] = {}
    alone: list[str] = []
    for inner, some in by_folder.items():
        if len(some) > _WORTH_LISTING and key_listing.can_list(root):
            files = key_listing.listed(f"{root}/{inner}" if inner else root).files
            asked |= {name: files.get(name.rpartition("/")[2]) for name in some}
        else:
            alone += some
    stats = key_listing.stat_each([f"{root}/{name}" for name in alone])
    for name in alone:
        stat = stats[f"{root}/{name}"]
        asked[name] = None if stat is None else (stat.size, stat.identity)
    for name, status in asked.items():
        if status is not None:
            known.add_status(f"{root}/{name}", *status)
    return [
        asked[name] if name in asked else below.get(name) or known.status(f"{root}/{name}") for name in names
    ]


def _find(text: str, rules: Rules) -> list[FoundFiles]:
    paths = expanded(text) if has_braces(text) else [text]
    plain = [path for path in paths if not _is_glob(path) and not path.endswith("/")]
    if len(plain) == len(paths) > 1:
        return _find_each(text, paths)
    return [_find_one(path, rules) for path in paths]


def _find_each(text: str, paths: Sequence[str]) -> list[FoundFiles]:
    """Return the files that braces stand for.

    Raises:
        DataNotFound: some do not exist.
    """
    roots = [tuple(path.rpartition("/")[::2]) for path in paths]
    found, lost = [], []
    for root, group in itertools.groupby(roots, key=lambda pair: pair[0]):
        names = [name for _, name in group]
        lost += [
            f"{root}/{name}" for name, status in zip(names, _statuses(root, names), strict=True) if not status
        ]
        found.append(FoundFiles(root, tuple(names)))
    if lost:
        message = (
            f"of the {len(paths):,} objects that {addresses.shown(text)!r} stands for, {len(lost):,} do not "
            f"exist; the first of these is {addresses.shown(lost[0])!r}: {_nearest(lost[0])}"
        )
        raise DataNotFound(message)
    return found


def _find_one(path: str, rules: Rules) -> FoundFiles:
    whole = path.rstrip("/")
    if not key_listing.can_list(whole):
        return _find_on_web(path)
    if not _is_glob(whole):
        return _find_literal(whole, rules, is_folder=path != whole or _is_bucket(whole))
    root, parts = key_listing.split_glob(whole)
    if not parts:
        return _find_literal(whole, rules, is_folder=path != whole)
    passed: list[str] = []
    found = key_listing.matches(root, parts, rules.suffixes, passed)
    names = rules.of_glob(root, parts[-1], found, passed)
    if not names:
        if key_listing.listed(root).is_empty:
            raise DataNotFound(
                f"nothing matches {addresses.shown(whole)!r}: there is no folder {addresses.shown(root)!r}; "
                f"{_nearest(root)}"
            )
        raise DataNotFound(f"no file matches {addresses.shown(whole)!r}; {_nearest(f'{root}/{parts[0]}')}")
    return FoundFiles(root, names)


def _find_literal(path: str, rules: Rules, *, is_folder: bool) -> FoundFiles:
    root, _, name = path.rpartition("/")
    if not is_folder and _statuses(root, [name])[0] is not None:
        return FoundFiles(root, (name,))
    files = key_listing.files_below(path)
    if not files:
        what = "folder" if is_folder else "object or folder"
        raise DataNotFound(f"there is no {what} {addresses.shown(path)!r}; {_nearest(path)}")
    hidden: dict[str, None] = {}
    names = list(files.names)
    if _HIDDEN_PART.search("\0".join(names)):
        skipped = [_hidden_part(each) for each in names]
        hidden = dict.fromkeys(each for each in skipped if each is not None)
        names = [name for name, each in zip(names, skipped, strict=True) if each is None]
    return rules.in_folder(path, names, list(hidden))


def _is_glob(path: str) -> bool:
    """Return True for an address with characters of globs below its host, which is perhaps ``[::1]``."""
    return MAGIC.search(path.partition("://")[2].partition("/")[2]) is not None


def _is_bucket(path: str) -> bool:
    """Return True for the address of all of a bucket."""
    return path.count("/") == len("//")


def _hidden_part(name: str) -> str | None:
    """Return a relative path up to its first part that starts with ``.`` or ``_``; None without one."""
    at = 0
    while True:
        if name.startswith(HIDDEN, at):
            end = name.find("/", at)
            return name if end < 0 else name[:end]
        at = name.find("/", at) + 1
        if not at:
            return None


def _find_on_web(path: str) -> FoundFiles:
    """Return one file of a web server.

    Raises:
        DataNotFound: it does not exist.
        UnsupportedFormat: the path is a glob or a folder.
    """
    is_folder = path.endswith("/") or _is_bucket(path)
    if is_folder or _is_glob(path):
        message = (
            f"{addresses.shown(path)!r} is a {'folder' if is_folder else 'glob'} on a web server, "
            f"which lists no files: name them, in a list or with braces such as part-{{000..099}}.jsonl"
        )
        raise UnsupportedFormat(message)
    root, _, name = path.rpartition("/")
    statuses(root, [name])
    return FoundFiles(root, (name,))


def _nearest(path: str) -> str:
    """Return a hint for an address that does not exist: names near it."""
    if not key_listing.can_list(path):
        return "check the address: the server has no file of this name"
    if _is_bucket(path):
        return "the bucket is empty"
    parent, _, name = path.rpartition("/")
    while not _is_bucket(parent) and key_listing.listed(parent).is_empty:
        parent, _, name = parent.rpartition("/")
    found = key_listing.listed(parent)
    names = [*found.folders, *found.files]
    close = difflib.get_close_matches(name, names, n=3)
    if close:
        return f"in {addresses.shown(parent)!r} there is {', '.join(map(repr, close))}: was that meant?"
    return f"the nearest folder that exists is {addresses.shown(parent)!r}, with {len(names):,} entries"


class _KeptHead(msgspec.Struct):
    """The first line of a kept listing."""

    seekable_listing: int
    roots: list[tuple[str, int]]
    """The folder and the number of files of each run of files."""


def _listing_name(asked: Sequence[str], kind: str, rules: str) -> str:
    """Return the name of the file that keeps the listing of a source.

    Args:
        asked: the items of the source.
        kind: the kind of the source.
        rules: a text that differs where the same items mean other files.
    """
    return (
        f"{_start_of_name(asked, kind)}{xxhash.xxh3_64_hexdigest(rules.encode('utf-8', 'surrogatepass'))}.bin"
    )


def _has_kept(folder: str, asked: Sequence[str], kind: str) -> bool:
    """Return True if the listing of a source is kept, by whatever rules."""
    start = _start_of_name(asked, kind)
    with contextlib.suppress(OSError):
        return any(name.startswith(start) for name in os.listdir(folder))
    return False


def _start_of_name(asked: Sequence[str], kind: str) -> str:
    text = json.dumps([*asked, kind])
    return f"listing-{xxhash.xxh3_128_hexdigest(text.encode('utf-8', 'surrogatepass'))}-"


def _read_kept(path: str) -> list[tuple[FoundFiles, ListedFiles]] | None:
    """Return the runs of files of a kept listing, with their sizes; None if there is none that is whole.

    Args:
        path: the file that keeps it.
    """
    try:
        with open(path, "rb", opener=regular_only) as file:
            digest, data = file.read(_DIGEST_BYTES), file.read()
    except OSError:
        return None
    if digest != xxhash.xxh3_64_digest(data):
        return None
    line, _, rest = data.partition(b"\n")
    head = msgspec.json.decode(line, type=_KeptHead)
    if head.seekable_listing != _KEPT_VERSION:
        return None
    count = sum(some for _, some in head.roots)
    sizes, identities = np.frombuffer(rest[: 2 * _WIDTH * count], "<i8").reshape(2, count)
    names = rest[2 * _WIDTH * count :].decode("utf-8", "surrogateescape").split("\0")
    found, at = [], 0
    for root, some in head.roots:
        own = slice(at, at + some)
        files = ListedFiles.of(names[own], sizes[own], identities[own])
        found.append((FoundFiles(root, tuple(files.names)), files))
        at += some
    return found


def _write_kept(path: str, found: Sequence[FoundFiles], statuses: Sequence[Columns]) -> None:
    """Keep a listing; if the folder cannot be written, nothing is kept and no error is raised.

    Args:
        path: the file that keeps it.
        found: the files.
        statuses: their sizes and identities, int64.
    """
    head = _KeptHead(_KEPT_VERSION, [(run.root, len(run.names)) for run in found])
    columns = [np.concatenate([pair[number] for pair in statuses]).astype("<i8") for number in (0, 1)]
    names = "\0".join(itertools.chain.from_iterable(run.names for run in found))
    pieces = [
        msgspec.json.encode(head) + b"\n",
        *(column.tobytes() for column in columns),
        names.encode("utf-8", "surrogateescape"),
    ]
    hasher = xxhash.xxh3_64()
    for piece in pieces:
        hasher.update(piece)
    with contextlib.suppress(OSError):
        make_private_folder(os.path.dirname(path))
        write_atomically(path, [hasher.digest(), *pieces])
