"""Adding scanned files to an index folder: all of them or none, also while other processes add theirs.

Under the lock of the folder the catalog is read again and the new files are added. Then the new segment, the
seek points of compressed files, the schemas of tables, the new table and the new catalog are written in this
order, each atomically. The catalog decides: a process killed at any point leaves the old index or the new
one.

Files that the catalog no longer names stay for an hour, for processes that opened it before; the next commit
after that removes them, and the unfinished files of killed processes too.

Each commit with new files writes a segment of offsets, so a folder that grows by a file a day would have
hundreds of them, each of them a memory map for every reader. When there are more than 64, the smaller half
becomes one. Each number is copied only together with about as many others, so adding files one by one
costs little more than adding them at once.

A build commits what it has finished every half minute and at its end (`BuildProgress`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import xxhash
from msgspec.structs import replace

from seekable.errors import AccessDenied
from seekable.index.catalog import CATALOG, encode_catalog, read_table, whole_segments
from seekable.index.file_table import OFFSET_BYTES, Entry, OffsetSegment, encode_table, in_order, table_name
from seekable.index.object_digests import digests_name, encode_digests, has_digests
from seekable.index.offsets import UnitHasher, complete_units, keep_units, open_offsets, units_name
from seekable.index.sidecar_files import pages_name, schema_digest, schema_name
from seekable.parallel.progress import Progress, Throttle
from seekable.storage.compression import compression_of
from seekable.storage.far import far
from seekable.storage.files import (
    TEMPORARY_SUFFIX,
    cache_folder,
    has_access,
    locked,
    make_private_folder,
    write_atomically,
)
from seekable.storage.listing import missing
from seekable.storage.seek_points import points_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from seekable.index.build.scan import FileScan, ScanJob
    from seekable.index.file_table import FileTable
    from seekable.parallel.progress import ProgressHook


_LOCK = "lock"

_WAY_OUT = "name a folder that can be written with index_dir= or SEEKABLE_INDEX_DIR"

_GRACE_SECONDS = 3600

_WEEK_SECONDS = 7 * 24 * 3600

_PART = "part-"
"""The beginning of the names of finished parts. They are kept for a week, for a build that goes on."""

_OURS = re.compile(
    r"(files|offsets|points|schema|pages|part|digests)-[0-9a-f]{16}\.(bin|u64|units)"
    rf"|[a-z][a-z0-9.-]*\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}"
)
"""The names that the library gives to files of an index, finished or not; others' files stay."""


_COMMIT_SECONDS = 30.0
_COMMIT_BYTES = 256 << 20
"""When a build commits what it has finished so far."""

_MOST_SEGMENTS = 64

_FEW_FILES = 4

_SYNCED_AT_ONCE = 32
"""The threads that write many files: a disk syncs many files at once in little more time than one."""


def commit(folder: str, scans: Mapping[str, FileScan], *, format_name: str, root: str) -> None:
    """Add scanned files to an index folder.

    Args:
        folder: the index folder, which is there.
        scans: what was found, by the files' names relative to the root.
        format_name: the format that they were scanned as.
        root: where the data is; files that are gone from there are dropped from the index.
    """
    with folder_lock(folder):
        old = read_table(folder)
        known = _known(folder, old)
        generation = 1 + int(old.column("generation").max(initial=0)) if old else 1
        fresh = _fresh_entries(folder, scans, known, format_name=format_name, generation=generation)
        others = (name for name, form in known if (name, form) not in fresh)
        # What is gone from a store is known where a listing of this call lacks it.
        gone = far().lost(root, others) if "://" in root else missing(root, others)
        kept = {key: entry for key, entry in known.items() if entry.name not in gone}
        entries = in_order((kept | fresh).values())
        _write_sidecars(folder, scans.values())
        _publish(folder, _merge_segments(folder, entries), old=old, sidecars=sidecars_of(known.values()))


def add_entries(folder: str, entries: Iterable[Entry], *, replacing: bool = False) -> None:
    """Add entries to an index whose lock the caller holds.

    Args:
        folder: the index folder, which has the segments and the sidecars of the entries.
        entries: the entries.
        replacing: True to replace entries of the same files; else those stay as they are.
    """
    old = read_table(folder)
    known = _known(folder, old)
    generation = 1 + int(old.column("generation").max(initial=0)) if old else 1
    fresh = {entry.key: replace(entry, generation=generation) for entry in entries}
    together = known | fresh if replacing else fresh | known
    merged = _merge_segments(folder, in_order(together.values()))
    _publish(folder, merged, old=old, sidecars=sidecars_of(known.values()))


def folder_lock(folder: str) -> AbstractContextManager[None]:
    """Return the lock of an index folder, which a ``with`` statement takes.

    Raises:
        AccessDenied: it is a link.
    """
    return locked(os.path.join(folder, _LOCK), waiting=lambda: None)


def make_folder(folder: str, *, private: bool = False) -> None:
    """Make an index folder if it does not exist, and check that it can be written, before any work is done.

    Args:
        folder: the index folder.
        private: True for data that others may not be able to read, such as that of a bucket.

    Raises:
        AccessDenied: the folder cannot be made or written.
        OSError: it cannot be made for another reason; a note says what to do.
    """
    try:
        if private or folder.startswith(os.path.join(cache_folder(), "")):
            make_private_folder(folder)
        else:
            os.makedirs(folder, exist_ok=True)
    except OSError as error:
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise AccessDenied(f"the index folder {folder!r} cannot be made: {error}; {_WAY_OUT}") from None
        error.add_note(f"seekable keeps an index in {folder!r}; {_WAY_OUT}")
        raise
    lock = os.path.join(folder, _LOCK)
    for path, wanted in ((folder, os.W_OK | os.X_OK), (lock, os.R_OK | os.W_OK)):
        if os.path.lexists(path) and not has_access(path, wanted):
            raise AccessDenied(f"the index folder {folder!r} cannot be written: {path!r}; {_WAY_OUT}")


def _known(folder: str, table: FileTable | None) -> dict[tuple[str, str], Entry]:
    if table is None:
        return {}
    whole = dict(zip(table.segments, whole_segments(folder, table)[0].tolist(), strict=True))
    return {entry.key: entry for entry in table.entries() if whole[entry.segment]}


def _fresh_entries(
    folder: str,
    scans: Mapping[str, FileScan],
    known: Mapping[tuple[str, str], Entry],
    *,
    format_name: str,
    generation: int,
) -> dict[tuple[str, str], Entry]:
    """Return the entries of what was scanned, after writing the segments that they are in."""
    entries: dict[tuple[str, str], Entry] = {}
    small: list[tuple[str, FileScan]] = []
    # By name, because they come in any order: so the segment is the same whoever scanned them.
    for name, scan in sorted(scans.items()):
        key, old = (name, format_name), known.get((name, format_name))
        if old and (old.content, old.offsets) == (scan.content, scan.offsets.digest):
            scan.offsets.discard()
            # The schema may hold what files beside the data file are like now.
            entries[key] = replace(
                old,
                mtime_ns=scan.mtime_ns,
                indexed_ns=scan.indexed_ns,
                schema=schema_digest(scan.schema) if scan.schema else 0,
            )
        elif scan.offsets.on_disk:
            entries[key] = _entry(*key, scan, scan.offsets.publish(), start=0, generation=generation)
        else:
            small.append((name, scan))
    segment, start = write_segment(folder, [scan.offsets.data for _, scan in small]), 0
    for name, scan in small:
        entries[name, format_name] = _entry(
            name, format_name, scan, segment, start=start, generation=generation
        )
        start += scan.offsets.records + 1
    return entries


def _entry(
    name: str, format_name: str, scan: FileScan, segment: OffsetSegment, *, start: int, generation: int
) -> Entry:
    return Entry(
        name=name,
        format=format_name,
        size=scan.size,
        mtime_ns=scan.mtime_ns,
        indexed_ns=scan.indexed_ns,
        records=scan.records,
        head_tail=scan.head_tail,
        content=scan.content,
        offsets=scan.offsets.digest,
        segment=segment,
        start=start,
        generation=generation,
        groups=scan.offsets.records if scan.schema else 0,
        schema=schema_digest(scan.schema) if scan.schema else 0,
    )


def _write_sidecars(folder: str, scans: Iterable[FileScan]) -> None:
    """Write the seek points, the digests of units and the schemas of scanned files."""
    for scan in scans:
        if scan.points:
            write_atomically(os.path.join(folder, points_name(scan.content)), scan.points)
    digests = {
        os.path.join(folder, digests_name(scan.content)): encode_digests(scan.units)
        for scan in scans
        if scan.units
    }
    _write_all(digests)
    # Thousands of files mostly have one schema; of files with others beside them, each has its own.
    schemas = {
        path: schema
        for schema in {scan.schema for scan in scans if scan.schema}
        if not os.path.exists(path := os.path.join(folder, schema_name(schema_digest(schema))))
    }
    _write_all(schemas)


def _write_all(files: Mapping[str, bytes]) -> None:
    """Write files, given by their paths."""
    if len(files) <= _FEW_FILES:
        for path, content in files.items():
            write_atomically(path, content)
        return
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as threads:
        list(threads.map(write_atomically, files.keys(), files.values()))


def sidecars_of(entries: Iterable[Entry]) -> set[str]:
    """Name the sidecar files of some data files: seek points, schemas, page tables, digests of units.

    The index may lack page tables and digests.
    """
    names = set()
    for entry in entries:
        if entry.schema:
            names |= {schema_name(entry.schema), pages_name(entry.content)}
        if compression_of(entry.name):
            names.add(points_name(entry.content))
        if not entry.schema and has_digests(entry.size):
            names.add(digests_name(entry.content))
    return names


def _publish(folder: str, entries: Sequence[Entry], *, old: FileTable | None, sidecars: set[str]) -> None:
    entries = _with_units(folder, entries)
    data = encode_table(entries)
    write_atomically(os.path.join(folder, table_name(data)), data)
    named = {table_name(data), *sidecars_of(entries), *_names_of(entry.segment for entry in entries)}
    replaced = ((_files_of(old) if old else set()) | sidecars) - named
    # Before the catalog changes, so that their hour starts now even if the process ends here.
    _touch(os.path.join(folder, name) for name in replaced)
    write_atomically(os.path.join(folder, CATALOG), encode_catalog(entries, table=data))
    _remove_garbage(folder, named | replaced)


def _with_units(folder: str, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries whose segments have digests of their units, after making those that are missing.

    An older index lacks them. A segment that turns out to be damaged is left out with its files.
    """
    segments = {entry.segment for entry in entries}
    damaged = {segment for segment in segments if not complete_units(folder, segment)}
    return [entry for entry in entries if entry.segment not in damaged] if damaged else entries


def _files_of(table: FileTable) -> set[str]:
    return {table.file_name, *_names_of(table.segments)}


def _names_of(segments: Iterable[OffsetSegment]) -> Iterator[str]:
    """Name segments, and the files with the digests of their units."""
    for segment in segments:
        yield segment.file_name
        yield units_name(segment.file_name)


def _touch(paths: Iterable[str]) -> None:
    for path in paths:
        # A lost segment, or another user's file: that one stays until the next build at least.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.utime(path)


def _remove_garbage(folder: str, kept: set[str]) -> None:
    now = time.time()
    with os.scandir(folder) as files:
        for file in files:
            if file.name in kept or not _OURS.fullmatch(file.name):
                continue
            seconds = _WEEK_SECONDS if file.name.startswith(_PART) else _GRACE_SECONDS
            if file.stat().st_mtime < now - seconds:
                with contextlib.suppress(
                    PermissionError
                ):  # In some folders each user may remove only their own files.
                    os.unlink(file.path)


def write_segment(folder: str, parts: Sequence[memoryview | bytes]) -> OffsetSegment:
    """Write the offsets of some files as one segment, and return it; without offsets nothing is written."""
    hasher = UnitHasher()
    for part in parts:
        hasher.update(part)
    segment = OffsetSegment(hasher.whole(), sum(map(len, parts)) // OFFSET_BYTES)
    if parts:
        path = os.path.join(folder, segment.file_name)
        keep_units(path, hasher)
        write_atomically(path, parts)
    return segment


def _merge_segments(folder: str, entries: Sequence[Entry]) -> list[Entry]:
    """Return entries whose offsets are in no more segments than is good, after writing one if need be.

    Args:
        folder: the index folder; segments that no entry is in any more stay there.
        entries: the files; those whose offsets turn out to be damaged are left out.
    """
    sizes = Counter(entry.segment for entry in entries)
    if len(sizes) <= _MOST_SEGMENTS:
        return list(entries)
    smallest = set(sorted(sizes, key=lambda segment: (segment.length, segment.digest))[: len(sizes) // 2 + 1])
    moved = [entry for entry in entries if entry.segment in smallest]
    parts = {entry.key: part for entry in moved if (part := _offsets(folder, entry))}
    segment, start = write_segment(folder, list(parts.values())), 0
    places: dict[tuple[str, str], int] = {}
    for key, part in parts.items():
        places[key] = start
        start += len(part) // OFFSET_BYTES
    return list(_placed(entries, smallest, segment, places))


def _placed(
    entries: Iterable[Entry],
    merged: set[OffsetSegment],
    segment: OffsetSegment,
    places: dict[tuple[str, str], int],
) -> Iterable[Entry]:
    for entry in entries:
        if entry.segment not in merged:
            yield entry
        elif entry.key in places:
            yield replace(entry, segment=segment, start=places[entry.key])


def _offsets(folder: str, entry: Entry) -> memoryview | None:
    """Return the offsets of a file, None if they are not what was written."""
    view = open_offsets(folder, entry.segment).view
    part = view[entry.start : entry.start + entry.numbers].cast("B")
    return part if xxhash.xxh3_64_intdigest(part) == entry.offsets else None


class BuildProgress:
    """Commits finished files every half minute and when the build ends, and calls the progress hook."""

    def __init__(self, *, files: int, size: int, format_name: str, hook: ProgressHook | None) -> None:
        """Begin with no file scanned.

        Args:
            files: the number of files to scan.
            size: their number of bytes.
            format_name: the name of the format that they are scanned as.
            hook: is called with the progress, at most ten times a second; None for no calls.
        """
        self._format_name = format_name
        self._hook = hook
        self._files, self._bytes = files, size
        self._files_done = self._bytes_done = self._records = 0
        self._bytes_of_parts: dict[ScanJob, int] = {}
        self._pending: dict[tuple[str, str], dict[str, FileScan]] = {}
        self._after: list[Callable[[], object]] = []
        self._pending_bytes = 0
        self._committed = time.monotonic()
        self._throttle = Throttle()

    def read(self, job: ScanJob, count: int) -> None:
        """Count bytes of a part that is being scanned in this thread."""
        self.count(job, count)
        self.report()

    def count(self, job: ScanJob, count: int) -> None:
        """Count bytes of a part that is being scanned in any thread; the hook is not called."""
        self._bytes_of_parts[job] = self._bytes_of_parts.get(job, 0) + count

    def arrived(self, job: ScanJob, count: int, *, records: int) -> None:
        """Count a finished part.

        Args:
            job: the part.
            count: its size in bytes.
            records: the number of records that start in it; negative to take back those of a changed file.
        """
        self._bytes_done += count
        self._bytes_of_parts.pop(job, None)
        self._records += records
        self.report()

    def add(
        self,
        folder: str,
        root: str,
        name: str,
        scan: FileScan,
        *,
        after: Callable[[], object] | None = None,
    ) -> None:
        """Take a finished file, and commit if half a minute has passed or the offsets are many.

        Args:
            folder: its index folder.
            root: the folder of the data.
            name: the path of the file, relative to the root.
            scan: the result of its scan.
            after: is called when the file is in the index.
        """
        if after is not None:
            self._after.append(after)
        self._pending.setdefault((folder, root), {})[name] = scan
        self._pending_bytes += (scan.offsets.records + 1) * OFFSET_BYTES
        self._files_done += 1
        self.report()
        if time.monotonic() - self._committed > _COMMIT_SECONDS or self._pending_bytes > _COMMIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Add the finished files to the index folders."""
        while self._pending:
            folder, root = next(iter(self._pending))
            commit(folder, self._pending[folder, root], format_name=self._format_name, root=root)
            del self._pending[folder, root]
        while self._after:
            self._after.pop()()
        self._pending_bytes = 0
        self._committed = time.monotonic()

    def close(self) -> None:
        """Commit the finished files; offsets that cannot be committed are removed from disk."""
        try:
            self.commit()
        finally:
            for scans in self._pending.values():
                for scan in scans.values():
                    scan.offsets.discard()

    def report(self, *, always: bool = False, notice: str = "") -> None:
        """Call the hook, unless it was called within a tenth of a second."""
        if self._hook is None or not self._throttle.is_due(always=always):
            return
        # A file that changes while it is scanned is read twice, and may have another size then.
        read = min(self._bytes_done + sum(list(self._bytes_of_parts.values())), self._bytes)
        done = self._bytes if self._files_done == self._files else read
        self._hook(Progress(self._files_done, self._files, done, self._bytes, self._records, notice))
