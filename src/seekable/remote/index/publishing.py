"""The publication of an index beside its objects: another machine reads some megabytes and no data.

The folder is ``.seekable`` beside the data. All files but the catalog are named by digests and never change,
so one that is there stays. Segments, seek points and schemas are written first, then the table, and the
catalog last. It is replaced only where it is the one that the new table was made from, so that of two
publishers none loses the files of the other.

Entries of such an index are taken over for the objects that it has as they are now (`adopt_published`). What
is fetched is checked before it counts: the table and whole segments by the digests in their names, the
offsets of each file by its digest and by their order, seek points and schemas by theirs. A file whose size or
version differs from the listing, or whose part of the index is damaged, is scanned.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import xxhash
from msgspec.structs import replace

from seekable._log import LOG
from seekable.errors import AccessDenied, DataNotFound, IndexStale, InvalidArgument, Unreachable
from seekable.index.build.commit import add_entries, folder_lock, sidecars_of, write_segment
from seekable.index.catalog import CATALOG, encode_catalog, read_table, table_in_catalog
from seekable.index.file_table import (
    OFFSET_BYTES,
    TABLE_NAMES,
    FileTable,
    encode_table,
    in_order,
    is_table_name,
    table_name,
)
from seekable.index.finder import is_surveyor
from seekable.index.integrity import Indexed, check_offsets
from seekable.index.sidecar_files import schema_digest, schema_name
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.stores.object_store import Pin
from seekable.storage.abandoned import abandoned_at_errors, awaited
from seekable.storage.addresses import parse, shown
from seekable.storage.compression import compression_of
from seekable.storage.file_names import INDEX_FOLDER
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, put_in_place, read_or_map, write_atomically
from seekable.storage.memory import bytes_in_words
from seekable.storage.seek_points import SeekPoints, points_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from typing_extensions import Buffer

    from seekable.index.build.file_parts import FileToIndex
    from seekable.index.file_table import Entry, OffsetSegment
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.remote.stores.object_store import Stat, Store

__all__ = [
    "Publication",
    "PublishedFolder",
    "TooLarge",
    "adopt_published",
    "check_roots",
    "publish",
    "published_table",
    "unread_tables",
]

_REQUEST_BYTES = 8 << 20
_AT_ONCE = 4

_ATTEMPTS = 20
"""Each attempt that fails is the success of another publisher."""

_GRACE_NS = 3600 * 10**9
"""The time after which no reader of a catalog is about to read its table."""

_MOST_LISTED = 100_000
"""The files that a published catalog lists for people; the table has all in any case."""


@final
class PublishedFolder:
    """The folder of a published index. Nothing of it is kept in a cache."""

    __slots__ = ("_address", "_prefix")

    def __init__(self, root: str) -> None:
        """Name the folder; nothing is read.

        Args:
            root: the address of the folder of the data.
        """
        self._address = f"{root.rstrip('/')}/{INDEX_FOLDER}"
        self._prefix = parse(self._address).key

    @property
    def shown(self) -> str:
        """The address of the folder in messages."""
        return shown(self._address)

    def stat(self, name: str) -> Stat | None:
        """Return the description of a file, None if there is none.

        Raises:
            AccessDenied, Unreachable: the store cannot be read.
        """
        key = self._key(name)
        try:
            return fetcher().run(lambda store: store.stat(key), path=self._address)
        except DataNotFound:
            return None

    def pieces(self, stat: Stat, start: int = 0, stop: int | None = None) -> Iterator[memoryview]:
        """Yield the bytes of a file in their order, up to 8 MiB at a time.

        Args:
            stat: the file.
            start: the first byte.
            stop: the byte after the last; None for the end of the file.

        Raises:
            DataNotFound: the file is gone.
            IndexStale: it was replaced.
            AccessDenied, Unreachable: it cannot be read.
        """
        stop = stat.size if stop is None else stop
        starts = iter(range(start, stop, _REQUEST_BYTES))
        under_way: deque[Future[Buffer]] = deque()
        try:
            while True:
                while len(under_way) < _AT_ONCE and (at := next(starts, None)) is not None:
                    under_way.append(self._begin(stat, at, min(at + _REQUEST_BYTES, stop)))
                if not under_way:
                    return
                yield memoryview(awaited(under_way.popleft())).cast("B")
        finally:
            for request in under_way:
                request.cancel()

    def read(self, stat: Stat, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes of a file; arguments and errors are those of `pieces`."""
        return b"".join(self.pieces(stat, start, stop))

    def write(self, name: str, data: Buffer) -> None:
        """Write a file whose name is the digest of its content; one that is there stays.

        Raises:
            AccessDenied: the store cannot be written.
            Unreachable: the store cannot be reached.
        """
        try:
            self._put(name, data, replacing=None)
        except FileExistsError:
            return

    def replace(self, name: str, data: Buffer, *, old: Stat | None) -> bool:
        """Replace a file; return False if it is not the old one any more.

        Args:
            name: its name.
            data: the new content.
            old: the description of the file that is replaced; None if there must be none.

        Raises:
            AccessDenied: the store cannot be written.
            Unreachable: the store cannot be reached.
        """
        try:
            self._put(name, data, replacing=old)
        except (FileExistsError, IndexStale, DataNotFound):
            return False
        return True

    def between(self, first: str, last: str) -> list[Stat]:
        """Return the descriptions of the files whose names are between two others.

        Raises:
            AccessDenied, Unreachable, InvalidArgument: the store cannot be listed.
        """
        after, before = self._key(first), self._key(last)

        async def listed(store: Store) -> list[Stat]:
            pages = store.list(self._prefix, after=after, before=before)
            return [stat async for page in pages for stat in page]

        return fetcher().run(listed, path=self._address)

    def delete(self, name: str) -> None:
        """Delete a file; nothing happens if there is none."""
        key = self._key(name)
        fetcher().run(lambda store: store.delete(key), path=self._address)

    def _put(self, name: str, data: Buffer, *, replacing: Stat | None) -> None:
        key = self._key(name)
        fetcher().run(lambda store: store.put(key, data, replacing=replacing), path=self._address)

    def _begin(self, stat: Stat, start: int, stop: int) -> Future[Buffer]:
        pin = Pin(stat.size, stat.identity, stat.etag, stat.version)
        return fetcher().start(lambda store: store.read(stat.key, start, stop, pin=pin), path=self._address)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"


@dataclass(frozen=True, slots=True)
class Publication:
    """The index that was published for one root."""

    address: str
    """The address of its folder, for messages."""

    files: int
    """The number of files that were published or that were there already."""

    written: int
    """The number of files of the index that were written; 0 if it was there."""

    def in_words(self) -> str:
        """Return a sentence about the publication."""
        what = "was published before" if not self.written else f"is published, in {self.written} new files"
        return f"the index of {self.files:,} files {what}: {self.address}"


def publish(files: FileSet) -> list[Publication]:
    """Publish the index of some files, and return what was published for each of their roots.

    Files that others have published stay in the published index, but for those that are given here, which
    replace entries of other versions.

    Args:
        files: the files, which were compared with the store when they were opened.

    Raises:
        InvalidArgument: some files are not objects of a store.
        AccessDenied: the store cannot be written.
        Unreachable: the store cannot be reached.
        IndexStale: the local index is gone, or others publish all the time.
    """
    check_roots(root for root, _, _ in files.runs)
    names, at = files.names(), 0
    roots: dict[tuple[str, str], list[str]] = {}
    for root, folder, count in files.runs:
        roots.setdefault((root, folder), []).extend(names[at : at + count])
        at += count
    form = files.entry(0).format if names else ""
    return [_published(root, folder, some, form) for (root, folder), some in roots.items()]


def check_roots(roots: Iterable[str]) -> None:
    """Check that the index of some roots can be published.

    Raises:
        InvalidArgument: one of them is a folder of this machine.
    """
    if local := [root for root in roots if "://" not in root]:
        message = (
            f"the index of {local[0]!r} cannot be published: it is a folder of this machine, where the index "
            f"lies beside the data anyway; publish is for addresses such as s3://bucket/data"
        )
        raise InvalidArgument(message)


class TooLarge(Exception):
    """A published table has more bytes than its reader permits; the argument is their number."""


def published_head(folder: PublishedFolder) -> tuple[Stat | None, str | None]:
    """Return the description of the published catalog, and the name of its table; None for what is not there.

    Raises:
        DataNotFound, IndexStale: it is being replaced; read it again.
        AccessDenied, Unreachable: the store cannot be read.
    """
    catalog = folder.stat(CATALOG)
    if catalog is None:
        return None, None
    return catalog, table_in_catalog(lambda start, stop: folder.read(catalog, start, stop), catalog.size)


def published_table(
    folder: PublishedFolder, *, most_bytes: int | None = None
) -> tuple[Stat | None, FileTable | None]:
    """Return the description of the published catalog and its table; None for what is not there or damaged.

    Args:
        folder: the folder.
        most_bytes: the most bytes of a table that is read; None for any number.

    Raises:
        TooLarge: the table has more bytes.
        DataNotFound, IndexStale: it is being replaced; read it again.
        AccessDenied, Unreachable: the store cannot be read.
    """
    catalog, name = published_head(folder)
    stat = folder.stat(name) if name else None
    if name is None or stat is None:
        return catalog, None
    if most_bytes is not None and stat.size > most_bytes:
        raise TooLarge(stat.size)
    data = folder.read(stat)
    if table_name(data) != name:
        return catalog, None
    try:
        table = FileTable(data)
        table.check()
    except ValueError:
        return catalog, None
    return catalog, table


def _published(root: str, folder: str, names: Sequence[str], form: str) -> Publication:
    table = read_table(folder)
    rows = table.rows(names, format_name=form).tolist() if table else [-1]
    if table is None or min(rows, default=0) < 0:
        raise IndexStale(f"the index in {folder!r} does not have all files any more; open the data again")
    entries = table.entries()
    mine = [entries[row] for row in dict.fromkeys(rows)]
    target = PublishedFolder(root)
    written = 0
    for _ in range(_ATTEMPTS):
        try:
            catalog, old = published_table(target)
        except (DataNotFound, IndexStale):
            continue  # Another publisher replaces it in this moment.
        known = {entry.key: entry for entry in old.entries()} if old else {}
        fresh = [entry for entry in mine if not _is_same(entry, known.get(entry.key))]
        if not fresh and old is not None:
            return Publication(target.shown, len(mine), written)
        written += _write_parts(folder, target, fresh)
        generation = 1 + max((entry.generation for entry in known.values()), default=0)
        renewed = {entry.key: replace(entry, generation=generation) for entry in fresh}
        if _replace(target, in_order((known | renewed).values()), catalog):
            _remove_replaced(target, catalog, old)
            return Publication(target.shown, len(mine), written + 2)
    raise IndexStale(f"others have published to {target.shown!r} {_ATTEMPTS} times meanwhile; try again")


def _is_same(mine: Entry, known: Entry | None) -> bool:
    """Return True if a published entry says the same of the same version of a file."""
    return known is not None and _facts(mine) == _facts(known)


def _facts(entry: Entry) -> tuple[int, ...]:
    return entry.size, entry.mtime_ns, entry.head_tail, entry.content, entry.offsets, entry.schema


def _write_parts(folder: str, target: PublishedFolder, entries: Iterable[Entry]) -> int:
    """Write segments and sidecars, and return the number of files."""
    names = {entry.segment.file_name for entry in entries} | sidecars_of(entries)
    written = 0
    for name in sorted(names):
        path = os.path.join(folder, name)
        # Page tables are made again from the data, and nobody believes those, or the digests, of others.
        if os.path.exists(path) and not name.startswith(("pages-", "digests-")):
            target.write(name, read_or_map(path))
            written += 1
    return written


def _remove_replaced(target: PublishedFolder, catalog: Stat | None, old: FileTable | None) -> None:
    """Remove tables that no reader can be about to read; a publisher that may not list or delete leaves them.

    Args:
        target: the folder, whose catalog was just replaced.
        catalog: the catalog that was replaced.
        old: the table that it named.
    """
    with contextlib.suppress(AccessDenied, DataNotFound, IndexStale, InvalidArgument, Unreachable):
        newest, table = published_head(target)
        if catalog is None or newest is None or table is None:
            return
        named = {table} | ({old.file_name} if old is not None else set())
        tables = {stat.key.rpartition("/")[2]: stat.modified_ns for stat in target.between(*TABLE_NAMES)}
        times = {"replaced_ns": catalog.modified_ns, "now_ns": newest.modified_ns}
        for name in unread_tables(tables, named=named, **times):
            target.delete(name)


def unread_tables(
    tables: Mapping[str, int], *, named: Container[str], replaced_ns: int, now_ns: int
) -> list[str]:
    """Return the tables that were named by no catalog for an hour and will be named by none. Pure.

    All times are those of the store.

    Args:
        tables: the times at which the tables were written, by their names.
        named: the table of the present catalog, and that of the one before it.
        replaced_ns: the time at which the catalog before the present one was written. Since then no catalog
            has named another table.
        now_ns: the time at which the present catalog was written.

    Example:
        >>> hour = 3600 * 10**9
        >>> old, new = "files-00000000000000aa.bin", "files-00000000000000bb.bin"
        >>> unread_tables({old: 1, new: 2}, named={new}, replaced_ns=2, now_ns=3 * hour)
        ['files-00000000000000aa.bin']
    """
    if not replaced_ns or now_ns - replaced_ns <= _GRACE_NS:
        return []
    # A young one may be of another publisher, whose catalog comes next.
    return [
        name
        for name, written_ns in tables.items()
        if name not in named and is_table_name(name) and 0 < written_ns < now_ns - _GRACE_NS
    ]


def _replace(target: PublishedFolder, entries: Sequence[Entry], old: Stat | None) -> bool:
    data = encode_table(entries)
    target.write(table_name(data), data)
    listed = entries if len(entries) <= _MOST_LISTED else ()
    return target.replace(CATALOG, b"".join(encode_catalog(listed, table=data)), old=old)


_READINGS = 3
"""Readings of an index that others replace meanwhile."""

_NEAR_NUMBERS = 8 << 10
"""Offsets of two files this near to each other in a segment are fetched together."""

_COMPANIONS_AT_ONCE = 16

_MOST_TABLE_BYTES = 256 << 20
"""The most bytes of a table that are read, for whatever few files: those of about 1.5 million files."""

_MOST_ENTRY_BYTES = 2 << 10
"""The bytes by which it may be larger for each file that is looked for in it."""

_MOST_SCHEMA_BYTES = 16 << 20
"""The most bytes of a schema, and of seek points, beside those that the size of its file permits."""

_MOST_POINTS_SHARE = 64
"""Seek points keep 32 KiB for each MiB of content, which gzip compresses to a thousandth at best."""


def adopt_published(
    tasks: Sequence[FileToIndex], scanner: Finder, *, most_bytes: int | None
) -> tuple[list[FileToIndex], list[str]]:
    """Add the files that published indexes have, and return those that are to be scanned, and notices.

    Args:
        tasks: the files; those that are not objects of a store are returned.
        scanner: finds the records in them.
        most_bytes: the most bytes that may be fetched; None for any number.

    Raises:
        InvalidArgument: the published index has more bytes than may be fetched.
    """
    left, notices = [], []
    by_root = defaultdict(list)
    for task in tasks:
        if task.is_object:
            by_root[task.folder, task.root].append(task)
        else:
            left.append(task)
    for (folder, root), some in by_root.items():
        published = PublishedFolder(root)
        taken = _adopted(published, folder, some, scanner, most_bytes)
        left += [task for task in some if task.name not in taken]
        if taken:
            notices.append(
                f"the index of {len(taken)} of {len(some)} files is published in {published.shown}"
            )
    return left, notices


@final
class _Allowance:
    """The bytes of sidecars that may still be fetched. Safe from threads."""

    def __init__(self, most_bytes: int | None) -> None:
        self._lock = threading.Lock()
        self._left = most_bytes

    def takes(self, count: int) -> bool:
        """Take so many bytes; return False if there are fewer."""
        with self._lock:
            if self._left is None:
                return True
            if count > self._left:
                return False
            self._left -= count
            return True


def _adopted(
    published: PublishedFolder,
    folder: str,
    tasks: Sequence[FileToIndex],
    scanner: Finder,
    most_bytes: int | None,
) -> set[str]:
    """Return the names of the files that were taken over."""
    for _ in range(_READINGS):
        try:
            most_table = _MOST_TABLE_BYTES + _MOST_ENTRY_BYTES * len(tasks)
            least = most_table if most_bytes is None else min(most_table, most_bytes)
            catalog, table = published_table(published, most_bytes=least)
            if catalog is not None and table is None:
                continue  # Perhaps another publisher replaced it in this moment.
            entries = _wanted(table, tasks, scanner.name) if table is not None else []
            if not entries:
                return set()
            size = sum(entry.numbers for entry in entries) * OFFSET_BYTES
            left = _check_size(size, published, most_bytes)
            return _take(published, folder, entries, tasks[0].root, scanner, _Allowance(left))
        except TooLarge as error:
            _check_size(error.args[0] if error.args[0] <= most_table else 0, published, most_bytes)
            LOG.warning(
                f"the index published in {published.shown} is not used: its table has {error.args[0]:,} "
                f"bytes, and at most {least:,} are read for {len(tasks):,} files"
            )
            return set()
        except (DataNotFound, IndexStale):
            continue
        except (AccessDenied, Unreachable):
            return set()  # Some servers refuse names that they do not serve. A scan tells what is wrong.
    return set()


def _wanted(table: FileTable, tasks: Sequence[FileToIndex], format_name: str) -> list[Entry]:
    """Return the entries of the files that have the listed size and version."""
    rows = table.rows([task.name for task in tasks], format_name=format_name).tolist()
    entries = table.entries()
    return [
        entries[row]
        for task, row in zip(tasks, rows, strict=True)
        if row >= 0 and (entries[row].size, entries[row].mtime_ns) == (task.size, task.mtime_ns)
    ]


def _check_size(size: int, published: PublishedFolder, most_bytes: int | None) -> int | None:
    """Return how many bytes may be fetched beside some of a published index; None for any number.

    Raises:
        InvalidArgument: those have more bytes than may be fetched.
    """
    if most_bytes is not None and size > most_bytes:
        message = (
            f"the index published in {published.shown} has {bytes_in_words(size)} for these files, and "
            f"most_bytes is {most_bytes:,}; none of its offsets was transferred. Raise most_bytes"
        )
        raise InvalidArgument(message)
    return None if most_bytes is None else most_bytes - size


def _take(
    published: PublishedFolder,
    folder: str,
    entries: Iterable[Entry],
    root: str,
    scanner: Finder,
    allowance: _Allowance,
) -> set[str]:
    by_segment = defaultdict(list)
    for entry in entries:
        by_segment[entry.segment].append(entry)
    found: list[Entry] = []
    for segment, some in by_segment.items():
        found += _with_offsets(published, folder, segment, some)
    with abandoned_at_errors(_COMPANIONS_AT_ONCE, "seekable-adopt") as threads:
        has = threads.map(lambda entry: _has_sidecars(published, folder, entry, allowance), found)
        found = [entry for entry, whole in zip(found, has, strict=True) if whole]
    surveyed = is_surveyor(scanner)
    good = [
        entry
        for entry in found
        if not check_offsets(Indexed(root, folder, 0, entry, entry.size, entry.mtime_ns), surveyed=surveyed)
    ]
    with folder_lock(folder):
        add_entries(folder, good, replacing=True)
    return {entry.name for entry in good}


def _with_offsets(
    published: PublishedFolder, folder: str, segment: OffsetSegment, entries: Sequence[Entry]
) -> list[Entry]:
    """Fetch the offsets of files that lie in one segment, and return the entries of those that are whole."""
    if any(entry.start < 0 or entry.start + entry.numbers > segment.length for entry in entries):
        return []
    if 2 * sum(entry.numbers for entry in entries) >= segment.length:
        return list(entries) if _has_segment(published, folder, segment) else []
    stat = published.stat(segment.file_name)
    if stat is None or stat.size != segment.bytes:
        return []
    parts: list[tuple[Entry, memoryview]] = []
    for run in _runs(entries):
        first, last = run[0].start, max(entry.start + entry.numbers for entry in run)
        data = memoryview(published.read(stat, first * OFFSET_BYTES, last * OFFSET_BYTES))
        for entry in run:
            at = (entry.start - first) * OFFSET_BYTES
            part = data[at : at + entry.numbers * OFFSET_BYTES]
            if xxhash.xxh3_64_intdigest(part) == entry.offsets:
                parts.append((entry, part))
    own, start, placed = write_segment(folder, [part for _, part in parts]), 0, []
    for entry, part in parts:
        placed.append(replace(entry, segment=own, start=start))
        start += len(part) // OFFSET_BYTES
    return placed


def _runs(entries: Sequence[Entry]) -> Iterable[list[Entry]]:
    """Return the entries in the order of their offsets, those near each other together."""
    runs: list[list[Entry]] = []
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.start):
        if not runs or entry.start - end > _NEAR_NUMBERS:
            runs.append([])
        runs[-1].append(entry)
        end = max(end, entry.start + entry.numbers)
    return runs


def _has_segment(published: PublishedFolder, folder: str, segment: OffsetSegment) -> bool:
    """Fetch a whole segment, unless it is there; return False if it is gone or damaged."""
    path = os.path.join(folder, segment.file_name)
    if os.path.exists(path) and os.path.getsize(path) == segment.bytes:
        return True
    stat = published.stat(segment.file_name)
    if stat is None or stat.size != segment.bytes:
        return False
    temporary = f"{path}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    hasher = xxhash.xxh3_64()
    try:
        with create_new(temporary) as file:
            for piece in published.pieces(stat):
                hasher.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if hasher.intdigest() != segment.digest:
            return False
        put_in_place(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return True


def _has_sidecars(published: PublishedFolder, folder: str, entry: Entry, allowance: _Allowance) -> bool:
    """Fetch the schema and the seek points of a file.

    Return False if one of them is gone, damaged, or larger than it can be for this file.
    """
    wanted = [schema_name(entry.schema)] if entry.schema else []
    wanted += [points_name(entry.content)] if compression_of(entry.name) else []
    for name in wanted:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            continue
        stat = published.stat(name)
        is_schema = bool(entry.schema) and name == schema_name(entry.schema)
        most_bytes = _MOST_SCHEMA_BYTES + (1 if is_schema else _MOST_POINTS_SHARE) * entry.size
        if stat is None or stat.size > most_bytes or not allowance.takes(stat.size):
            return False
        data = published.read(stat)
        if not (schema_digest(data) == entry.schema if is_schema else _are_points(data)):
            return False
        write_atomically(path, data)
    return True


def _are_points(data: bytes) -> bool:
    try:
        return SeekPoints(data).is_whole()
    except ValueError:
        return False
