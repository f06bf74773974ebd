"""Adding what was scanned to an index folder: all of it or nothing, whoever else does so too.

Under the folder's lock the catalog is read again, the new files are added, and the new segment, the
new table and the new catalog are written in this order, each atomically. The catalog decides: a
process killed at any point leaves the old index or the new one.

Files that the catalog does not name any more stay for an hour, for those who opened it before; the
next commit after that removes them. What a killed process left unfinished goes the same way.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import xxhash
from filelock import FileLock

from seekable.index.catalog import CATALOG, encode_catalog, read_table, whole_segments
from seekable.index.digest import offset_bytes, offsets_digest
from seekable.index.entry import Entry, Segment
from seekable.index.table import Table, encode_table
from seekable.storage.atomic import TEMPORARY_SUFFIX, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from seekable.index.scan import FileScan

LOCK = "lock"

_GRACE_SECONDS = 3600
_OURS = re.compile(rf"(files|offsets)-[0-9a-f]{{16}}\.(bin|u64)|.*{re.escape(TEMPORARY_SUFFIX)}", re.DOTALL)


def commit(folder: str, scans: Mapping[str, FileScan], *, format_name: str, root: str) -> None:
    """Add scanned files to an index folder.

    Args:
        folder: the index folder, which is there.
        scans: what was found, by the files' names relative to the root.
        format_name: the format that they were scanned as.
        root: where the data is; files that are gone from there are dropped from the index.
    """
    # Whoever may write the folder must be able to take its lock, whatever the umask of the one who made it.
    with FileLock(os.path.join(folder, LOCK), mode=os.stat(folder).st_mode & 0o666):
        old = read_table(folder)
        known = _known(folder, old)
        segment, offsets = _new_segment(scans.values())
        fresh = _fresh_entries(scans, known, segment=segment, format_name=format_name)
        kept = {
            key: entry
            for key, entry in known.items()
            if key in fresh or os.path.lexists(os.path.join(root, entry.name))
        }
        if offsets:
            write_atomically(os.path.join(folder, segment.file_name), offsets)
        _publish(folder, (kept | fresh).values(), old=old)


def make_folder(folder: str) -> None:
    """Make an index folder, if it is not there.

    Raises:
        OSError: it cannot be made; a note says what to do.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        error.add_note(
            "seekable keeps an index here; name a folder that can be written "
            "with index_dir= or SEEKABLE_INDEX_DIR"
        )
        raise


def _known(folder: str, table: Table | None) -> dict[tuple[str, str], Entry]:
    if table is None:
        return {}
    whole = dict(zip(table.segments, whole_segments(folder, table).tolist(), strict=True))
    return {entry.key: entry for entry in table.entries() if whole[entry.segment]}


def _new_segment(scans: Iterable[FileScan]) -> tuple[Segment, list[bytes | memoryview]]:
    hasher, length = xxhash.xxh3_64(), 0
    parts: list[bytes | memoryview] = []
    for scan in scans:
        if scan.starts is not None:
            for part in offset_bytes(scan.starts, scan.size):
                hasher.update(part)
                parts.append(part)
            length += len(scan.starts) + 1
    return Segment(hasher.intdigest(), length), parts


def _fresh_entries(
    scans: Mapping[str, FileScan],
    known: Mapping[tuple[str, str], Entry],
    *,
    segment: Segment,
    format_name: str,
) -> dict[tuple[str, str], Entry]:
    entries, start = {}, 0
    for name, scan in scans.items():
        old = known.get((name, format_name))
        if scan.starts is not None:
            entry = _entry(name, format_name, scan, scan.starts, segment=segment, start=start)
            start += entry.records + 1
        elif old and old.content == scan.content:
            entry = replace(old, mtime_ns=scan.mtime_ns, indexed_ns=scan.indexed_ns)
        else:
            continue  # Somebody dropped it meanwhile; whoever opens it finds it missing and scans it.
        entries[entry.key] = entry
    return entries


def _entry(
    name: str, format_name: str, scan: FileScan, starts: NDArray[np.uint64], *, segment: Segment, start: int
) -> Entry:
    return Entry(
        name=name,
        format=format_name,
        size=scan.size,
        mtime_ns=scan.mtime_ns,
        indexed_ns=scan.indexed_ns,
        records=len(starts),
        head_tail=scan.head_tail,
        content=scan.content,
        offsets=offsets_digest(starts, size=scan.size),
        segment=segment,
        start=start,
    )


def _publish(folder: str, entries: Iterable[Entry], *, old: Table | None) -> None:
    data = encode_table(entries)
    table = Table(data)
    write_atomically(os.path.join(folder, table.file_name), data)
    named = _files_of(table)
    replaced = (_files_of(old) if old else set()) - named
    # Before the catalog changes, so that their hour starts now even if the process ends here.
    _touch(os.path.join(folder, name) for name in replaced)
    write_atomically(os.path.join(folder, CATALOG), encode_catalog(table.entries(), table=data))
    _remove_garbage(folder, named | replaced)


def _files_of(table: Table) -> set[str]:
    return {table.file_name, *(segment.file_name for segment in table.segments)}


def _touch(paths: Iterable[str]) -> None:
    for path in paths:
        # A lost segment, or another user's file: that one stays until the next build at least.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.utime(path)


def _remove_garbage(folder: str, kept: set[str]) -> None:
    oldest = time.time() - _GRACE_SECONDS
    with os.scandir(folder) as files:
        for file in files:
            if file.name not in kept and _OURS.fullmatch(file.name) and file.stat().st_mtime < oldest:
                with contextlib.suppress(PermissionError):  # A folder where each may remove only one's own.
                    os.unlink(file.path)
