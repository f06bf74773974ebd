"""Entries of a published index, taken over for the objects that it has as they are now.

What is fetched is checked before it counts: the table and whole segments by the digests in their names, the
offsets of each file by its digest and by their order, seek points and schemas by theirs. A file whose size or
version differs from the listing, or whose part of the index is damaged, is scanned.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, final

import xxhash
from msgspec.structs import replace

from seekable._log import LOG
from seekable.errors import AccessDenied, DataNotFound, IndexStale, InvalidArgument, Unreachable
from seekable.index.build.commit import add_entries, folder_lock, write_segment
from seekable.index.file_table import OFFSET_BYTES
from seekable.index.finder import is_surveyor
from seekable.index.integrity import Indexed, check_offsets
from seekable.index.sidecar_files import schema_digest, schema_name
from seekable.remote.index.publishing import PublishedFolder, TooLarge, published_table
from seekable.storage.abandoned import abandoned_at_errors
from seekable.storage.compression import compression_of
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, put_in_place, write_atomically
from seekable.storage.memory import bytes_in_words
from seekable.storage.seek_points import SeekPoints, points_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.index.build.file_parts import FileToIndex
    from seekable.index.file_table import Entry, FileTable, OffsetSegment
    from seekable.index.finder import Finder

__all__ = ["adopt_published"]

_ATTEMPTS = 3
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
    for _ in range(_ATTEMPTS):
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
