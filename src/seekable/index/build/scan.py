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
from seekable.index.build.data_bytes import data_of
from seekable.index.build.decompressing import (
    MOST_BLOCK_BYTES,
    DecompressingSource,
    gzip_seek_points,
    needs_points,
)
from seekable.index.build.forward import ForwardContent, ForwardFile
from seekable.index.digest import END_BYTES, head_tail_digest
from seekable.index.digest import content_digest as digest_of_pieces
from seekable.index.scanner import ByteSource
from seekable.index.surveyor import is_surveyor
from seekable.index.table_indexer import is_table_indexer
from seekable.storage.files import PLACEHOLDER_HEAD, stat_file, unreadable_error
from seekable.storage.ranges import DescriptorRanges, HashedRanges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from io import FileIO

    from numpy.typing import NDArray

    from seekable.index import remote_file
    from seekable.index.build.data_bytes import Data
    from seekable.index.scanner import Scanner
    from seekable.index.surveyor import Finder, Surveyor
    from seekable.index.table_indexer import TableIndexer
    from seekable.storage.compression import Compression
    from seekable.storage.seek_points import SeekPoint

else:
    remote_file = lazy("seekable.index.remote_file")


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
    """The first byte of the part; if the file is a placeholder, of the file that it stands for."""

    stop: int
    """The byte behind the last of the part."""


@dataclass(frozen=True, slots=True)
class ScanBatch:
    """Some parts to scan, one after the other."""

    jobs: tuple[ScanJob, ...]
    """The parts to scan."""

    scanner: Finder
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
    """Of a compressed file, how many bytes of content it has; of a table, how many rows; of a file that lies
    elsewhere, its number of bytes."""

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
        # Words of an archive do not ascend.
        narrow = len(first) and not self.schema and self.starts[-1] - first[0] <= np.iinfo(np.uint32).max
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


def scan_part(job: ScanJob, scanner: Finder, *, on_bytes: Callable[[int], None] | None) -> PartScan | None:
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
            with data_of(file, job.path, job.size, head=head) as data:
                if is_surveyor(scanner):
                    scan = _surveyed(data, scanner, identity, begun_ns, on_bytes)
                else:
                    scan = _scanned(data, job, scanner, identity, begun_ns, on_bytes)
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
    data: Data,
    job: ScanJob,
    scanner: Scanner,
    identity: tuple[int, int, int],
    begun_ns: int,
    on_bytes: Callable[[int], None] | None,
) -> PartScan:
    kind = data.compression
    source = _content(data, kind, on_bytes) if kind else _part(data, job, on_bytes)
    if not job.start:
        scanner.check_head(source.head, data.name)
    starts = scanner.scan(source)
    size, points = data.size, b""
    if isinstance(source, DecompressingSource):
        size, points = source.content_size, _points(data, source)
    return PartScan(identity, begun_ns, source.piece_digests(), starts, size, points)


def _surveyed(
    data: Data,
    surveyor: Surveyor,
    identity: tuple[int, int, int],
    begun_ns: int,
    on_bytes: Callable[[int], None] | None,
) -> PartScan:
    found = survey(data, surveyor, head_tail=identity[2], on_bytes=on_bytes)
    return PartScan(
        identity,
        begun_ns,
        found.pieces,
        found.words,
        content_size=found.records,
        points=found.points,
        schema=found.schema,
    )


@dataclass(frozen=True, slots=True, eq=False)
class SurveyedFile:
    """The survey of a data file, with what the index keeps beside it."""

    words: NDArray[np.uint64]
    """The numbers that the format reads back."""

    records: int
    """The number of records."""

    schema: bytes
    """The fields of the file."""

    pieces: bytes
    """The digests of all headers and of the ends of the file; of a compressed file, of its pieces."""

    points: bytes
    """Of a compressed file, the table of where it can be entered."""


def survey(
    data: Data,
    surveyor: Surveyor,
    *,
    head_tail: int,
    on_bytes: Callable[[int], None] | None = None,
) -> SurveyedFile:
    """Survey an open data file; a compressed one is decompressed from its start to its end.

    Args:
        data: the file.
        surveyor: finds the records.
        head_tail: the digest of the ends of the file.
        on_bytes: is called with the number of bytes that were passed since the last call.

    Raises:
        UnsupportedFormat: the file is of another format, or damaged.
    """
    if not data.compression:
        surveyor.check_head(data.head, data.name)
        forward = ForwardFile(data.file, data.name, size=data.size, on_bytes=on_bytes)
        found = surveyor.survey(forward)
        forward.finish()
        pieces = found.digest + head_tail.to_bytes(8, "little")
        return SurveyedFile(found.words, found.records, found.schema, pieces, b"")
    source = _content(data, data.compression, on_bytes)
    surveyor.check_head(source.head, data.name)
    content = ForwardContent(source, data.name)
    found = surveyor.survey(content)
    content.finish()
    return SurveyedFile(
        found.words, found.records, found.schema, source.piece_digests(), _points(data, source)
    )


def _part(data: Data, job: ScanJob, on_bytes: Callable[[int], None] | None) -> ByteSource:
    part = job.start, job.stop
    return ByteSource(data.file, size=data.size, head=data.head, part=part, on_bytes=on_bytes)


def _content(data: Data, kind: Compression, on_bytes: Callable[[int], None] | None) -> DecompressingSource:
    entries: Sequence[SeekPoint] = ()
    if kind == "gz" and needs_points(data.size, data.head):
        on_bytes = _half(on_bytes)  # It is read twice.
        entries = gzip_seek_points(data.file, data.name, on_bytes=on_bytes)
    return DecompressingSource(
        data.file, size=data.size, kind=kind, path=data.name, entries=entries, on_bytes=on_bytes
    )


def _half(on_bytes: Callable[[int], None] | None) -> Callable[[int], None] | None:
    return None if on_bytes is None else lambda count: on_bytes(count // 2)


def _points(data: Data, source: DecompressingSource) -> bytes:
    """Return the table of points of a file that was scanned."""
    if source.largest > MOST_BLOCK_BYTES and data.compression == "gz":
        # Few bytes with a lot of content: it was thought to be small.
        entries = gzip_seek_points(data.file, data.name)
        source = DecompressingSource(data.file, size=data.size, kind="gz", path=data.name, entries=entries)
        for _ in source.chunks():
            pass
    return source.points()


def content_digest(path: str, scanner: Finder) -> int:
    """Return the digest of a whole file; of a table or an archive, of what is read to index it."""
    if is_table_indexer(scanner):
        with _opened(path) as file:
            ranges = hashed_ranges(file.fileno(), path=path, size=os.fstat(file.fileno()).st_size)
            scanner.read_layout(ranges)
            return digest_of_pieces(ranges.digest())
    if is_surveyor(scanner):
        with _opened(path) as file:
            size, head = os.fstat(file.fileno()).st_size, os.pread(file.fileno(), END_BYTES, 0)
            ends = head_tail_digest(file.fileno(), size=size, head=head)
            with data_of(file, path, size, head=head) as data:
                return digest_of_pieces(survey(data, scanner, head_tail=ends).pieces)
    return bytes_digest(path)


def bytes_digest(path: str) -> int:
    """Return the digest of a whole file; of a placeholder, of the file that it stands for."""
    with _opened(path) as file:
        head = os.pread(file.fileno(), len(PLACEHOLDER_HEAD), 0)
        with data_of(file, path, os.fstat(file.fileno()).st_size, head=head) as data:
            source = ByteSource(data.file, size=data.size, head=b"")
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
    source = None
    if os.pread(descriptor, len(PLACEHOLDER_HEAD), 0) == PLACEHOLDER_HEAD:
        source = remote_file.remote_ranges_of(descriptor, path)
    return HashedRanges(source or DescriptorRanges(descriptor, path=path, size=size))


def _opened(path: str) -> FileIO:
    try:
        return open(path, "rb", buffering=0)
    except PermissionError:
        raise unreadable_error(path) from None


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
