"""The scan of a file, or of a part of one: the work of an index build that runs anywhere.

`scan_batch` and its argument are importable and picklable, so any `concurrent.futures.Executor` can
run it, on this machine or on another one that sees the same files.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable.index.build.decompressing import (
    MOST_BLOCK_BYTES,
    DecompressingSource,
    gzip_seek_points,
    needs_points,
)
from seekable.index.digest import END_BYTES, head_tail_digest
from seekable.index.digest import content_digest as digest_of_pieces
from seekable.index.scanner import ByteSource
from seekable.index.table_indexer import is_table_indexer
from seekable.storage.compression import compression_of
from seekable.storage.files import stat_file, unreadable_error
from seekable.storage.ranges import DescriptorRanges, HashedRanges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from io import FileIO

    from numpy.typing import NDArray

    from seekable.index.scanner import Scanner
    from seekable.index.table_indexer import TableIndexer
    from seekable.remote import hub, placeholder
    from seekable.storage.compression import Compression
    from seekable.storage.seek_points import SeekPoint

else:
    hub = lazy("seekable.remote.hub")
    placeholder = lazy("seekable.remote.placeholder")


@dataclass(frozen=True, slots=True)
class ScanJob:
    """A part of a file to scan."""

    path: str
    """The absolute path of the file."""

    size: int
    """The number of bytes of the file when the work was planned."""

    mtime_ns: int
    """When it was modified then."""

    start: int
    """The first byte of the part."""

    stop: int
    """The byte behind the last of the part."""


@dataclass(frozen=True, slots=True)
class ScanBatch:
    """Some parts to scan, one after the other."""

    jobs: tuple[ScanJob, ...]
    """The parts to scan."""

    scanner: Scanner | TableIndexer
    """Finds the records in them."""


@dataclass(frozen=True, slots=True, eq=False)
class PartScan:
    """The result of the scan of a part of a file."""

    identity: tuple[int, int, int]
    """Device, inode and digest of both ends of the file: all its parts must agree."""

    begun_ns: int
    """The time at which the scan began."""

    pieces: bytes
    """The digests of the pieces in the part."""

    starts: NDArray[np.uint64]
    """The first byte of each record of the part in the content; of a table, the first row of each group."""

    content_size: int | None = None
    """Of a compressed file, how many bytes of content it has; of a table, how many rows."""

    points: bytes = b""
    """Of a compressed file, the table of where it can be entered."""

    schema: bytes = b""
    """Of a table, its columns."""

    @property
    def records(self) -> int:
        """The number of records that start in the part."""
        return self.content_size or 0 if self.schema else len(self.starts)

    @property
    def head_tail(self) -> int:
        """The digest of the file's ends."""
        return self.identity[2]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the starts in half the bytes if they are within 4 GiB, as those of a part are."""
        first = self.starts[:1].copy()
        narrow = len(first) and self.starts[-1] - first[0] <= np.iinfo(np.uint32).max
        starts = (self.starts - first).astype(np.uint32) if narrow else self.starts
        rest = self.content_size, self.points, self.schema
        return _unpacked, (self.identity, self.begun_ns, self.pieces, first if narrow else None, starts, rest)


def _unpacked(
    identity: tuple[int, int, int],
    begun_ns: int,
    pieces: bytes,
    first: NDArray[np.uint64] | None,
    starts: NDArray[Any],
    rest: tuple[int | None, bytes, bytes],
) -> PartScan:
    return PartScan(identity, begun_ns, pieces, starts if first is None else starts + first, *rest)


def scan_batch(batch: ScanBatch) -> list[PartScan | None]:
    """Scan some parts, for instance in another process."""
    return [scan_part(job, batch.scanner, on_bytes=None) for job in batch.jobs]


def scan_part(
    job: ScanJob, scanner: Scanner | TableIndexer, *, on_bytes: Callable[[int], None] | None
) -> PartScan | None:
    """Scan a part of a file.

    Args:
        job: the part.
        scanner: finds the records in it.
        on_bytes: is called with the number of bytes that were read since the last call.

    Returns:
        The result; None if the file is not as it was when the work was planned, or changed during the scan.

    Raises:
        DataNotFound: the file does not exist, or is no regular file.
        AccessDenied: this user may not read it.
        UnsupportedFormat: it is of another format; the scan of its first part finds out.
    """
    begun_ns = time.time_ns()
    before = stat_file(job.path)
    if (before.st_size, before.st_mtime_ns) != (job.size, job.mtime_ns):
        return None
    with _opened(job.path) as file:
        head = os.pread(file.fileno(), END_BYTES, 0)
        head_tail = head_tail_digest(file.fileno(), size=job.size, head=head)
        identity = before.st_dev, before.st_ino, head_tail
        if is_table_indexer(scanner):
            scan = _indexed_table(file, job, scanner, identity, begun_ns)
        else:
            scan = _scanned(file, job, scanner, head, identity, begun_ns, on_bytes)
    return scan if _identity(before) == _identity(stat_file(job.path)) else None


def _indexed_table(
    file: FileIO, job: ScanJob, indexer: TableIndexer, identity: tuple[int, int, int], begun_ns: int
) -> PartScan:
    source = hashed_ranges(file.fileno(), path=job.path, size=job.size)
    found = indexer.read_layout(source)
    return PartScan(
        identity, begun_ns, source.digest(), found.starts, content_size=found.records, schema=found.schema
    )


def _scanned(
    file: FileIO,
    job: ScanJob,
    scanner: Scanner,
    head: bytes,
    identity: tuple[int, int, int],
    begun_ns: int,
    on_bytes: Callable[[int], None] | None,
) -> PartScan:
    kind = compression_of(job.path)
    source = _content(file, job, head, kind, on_bytes) if kind else _part(file, job, head, on_bytes)
    if not job.start:
        scanner.check_head(source.head, job.path)
    starts = scanner.scan(source)
    size, points = None, b""
    if isinstance(source, DecompressingSource):
        size, points = source.content_size, _points(file, job, source)
    return PartScan(identity, begun_ns, source.piece_digests(), starts, size, points)


def _part(file: FileIO, job: ScanJob, head: bytes, on_bytes: Callable[[int], None] | None) -> ByteSource:
    part = job.start, job.stop
    return ByteSource(file.fileno(), size=job.size, head=head, part=part, on_bytes=on_bytes)


def _content(
    file: FileIO, job: ScanJob, head: bytes, kind: Compression, on_bytes: Callable[[int], None] | None
) -> DecompressingSource:
    entries: Sequence[SeekPoint] = ()
    if kind == "gz" and needs_points(job.size, head):
        on_bytes = _half(on_bytes)  # It is read twice.
        entries = gzip_seek_points(file, job.path, on_bytes=on_bytes)
    return DecompressingSource(
        file.fileno(), size=job.size, kind=kind, path=job.path, entries=entries, on_bytes=on_bytes
    )


def _half(on_bytes: Callable[[int], None] | None) -> Callable[[int], None] | None:
    return None if on_bytes is None else lambda count: on_bytes(count // 2)


def _points(file: FileIO, job: ScanJob, source: DecompressingSource) -> bytes:
    """Return the table of points of a file that was scanned."""
    if source.largest > MOST_BLOCK_BYTES and compression_of(job.path) == "gz":
        # Few bytes with a lot of content: it was thought to be small.
        entries = gzip_seek_points(file, job.path)
        source = DecompressingSource(file.fileno(), size=job.size, kind="gz", path=job.path, entries=entries)
        for _ in source.chunks():
            pass
    return source.points()


def content_digest(path: str, scanner: Scanner | TableIndexer) -> int:
    """Return the digest of a whole file; of a table, of the ranges that are read to index it."""
    with _opened(path) as file:
        if is_table_indexer(scanner):
            ranges = hashed_ranges(file.fileno(), path=path, size=os.fstat(file.fileno()).st_size)
            scanner.read_layout(ranges)
            return digest_of_pieces(ranges.digest())
        source = ByteSource(file.fileno(), size=os.fstat(file.fileno()).st_size, head=b"")
        for _ in source.chunks():
            pass
        return digest_of_pieces(source.piece_digests())


def hashed_ranges(descriptor: int, *, path: str, size: int) -> HashedRanges:
    """Return the bytes of an open table file, hashed as they are read.

    Of a placeholder they are the bytes of the file that it stands for.

    Args:
        descriptor: the file; closing it stays the caller's task.
        path: its path.
        size: its number of bytes.

    Raises:
        UnsupportedFormat: it is a placeholder that was moved or damaged.
    """
    if size <= placeholder.LARGEST_PLACEHOLDER:
        text = os.pread(descriptor, size, 0)
        if placeholder.is_placeholder(text, size):
            return HashedRanges(hub.hub_ranges(placeholder.read_placeholder(path, text)))
    return HashedRanges(DescriptorRanges(descriptor, path=path, size=size))


def _opened(path: str) -> FileIO:
    try:
        return open(path, "rb", buffering=0)
    except PermissionError:
        raise unreadable_error(path) from None


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
