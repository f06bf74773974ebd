"""The scan of a file, or of a part of one: the work of an index build that runs anywhere.

`scan_batch` and its argument are importable and picklable, so any `concurrent.futures.Executor` can
run it, on this machine or on another one that sees the same files.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import IndexStale, UnsupportedFormat
from seekable.index.build.content import (
    MOST_BLOCK_BYTES,
    DecompressingSource,
    ForwardContent,
    ForwardFile,
    gzip_seek_points,
    needs_points,
)
from seekable.index.build.data_file import opened_file
from seekable.index.digest import PieceHasher
from seekable.index.digest import content_digest as digest_of_pieces
from seekable.index.object_digests import has_digests
from seekable.index.scanner import ByteSource
from seekable.index.surveyor import is_surveyor, is_table_indexer
from seekable.storage.compression import compression_of
from seekable.storage.first_bytes import HEAD_BYTES, check_compression, refuse_foreign, refuse_lfs_pointer
from seekable.storage.object_key import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable.index.build.data_file import Data, DataFile
    from seekable.index.scanner import Scanner
    from seekable.index.surveyor import Finder, ForwardReader, Survey, Surveyor, TableIndexer
    from seekable.storage.compression import Compression
    from seekable.storage.seek_points import SeekPoint

_MOST_ROWS = 1 << 36
"""The most rows of a table file: a few damaged bytes can promise more than memory holds the places of."""


@dataclass(frozen=True, slots=True)
class ScanJob:
    """A part of a file to scan."""

    path: str
    """The absolute path of the file."""

    size: int
    """The size of the file in bytes when the work was planned."""

    mtime_ns: int
    """When it was modified then."""

    start: int
    """The first byte of the part; if the file is a placeholder, of the file that it stands for."""

    stop: int
    """The byte after the last of the part."""


@dataclass(frozen=True, slots=True)
class ScanBatch:
    """Some parts to scan, one after the other."""

    jobs: tuple[ScanJob, ...]
    """The parts to scan."""

    scanner: Finder
    """Finds the records in them."""


@dataclass(frozen=True, slots=True)
class PartSummary:
    """A scan of a part without its offsets: what its file is put together by."""

    identity: tuple[int, int, int]
    node: int
    begun_ns: int
    records: int


@dataclass(frozen=True, slots=True, eq=False)
class PartScan:
    """What a scan found in a part of a file."""

    identity: tuple[int, int, int]
    """Device, inode and digest of both ends of the file: all its parts must agree, on each machine."""

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

    node: int = 0
    """The machine that scanned it, 0 for this process. Machines number devices, and may number inodes, in
    their own ways."""

    units: bytes = b""
    """Of an object that was read as a whole, the digests of the units in the part."""

    @property
    def summary(self) -> PartSummary:
        """The part without its offsets."""
        return PartSummary(self.identity, self.node, self.begun_ns, self.records)

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
        rest = self.content_size, self.points, self.schema, self.node, self.units
        return _unpacked, (self.identity, self.begun_ns, self.pieces, first if narrow else None, starts, rest)


def _unpacked(
    identity: tuple[int, int, int],
    begun_ns: int,
    pieces: bytes,
    first: NDArray[np.uint64] | None,
    starts: NDArray[Any],
    rest: tuple[int | None, bytes, bytes, int, bytes],
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
        DataNotFound: the file does not exist, or is not a regular file.
        AccessDenied: this user may not read it.
        UnsupportedFormat: it is of another format; the scan of its first part finds out.
    """
    begun_ns = time.time_ns()
    try:
        with opened_file(job.path, version=(job.size, job.mtime_ns), on_wait=on_bytes) as file:
            if file.version != (job.size, job.mtime_ns):
                return None
            if is_table_indexer(scanner):
                scan = _indexed_table(file, scanner, begun_ns)
            else:
                with file.data(job.start, job.stop, headers=_walks(scanner, job.path)) as data:
                    if is_surveyor(scanner):
                        scan = _surveyed(file, data, scanner, begun_ns, on_bytes)
                    else:
                        scan = _scanned(file, data, job, scanner, begun_ns, on_bytes)
            return scan if file.is_unchanged() else None
    except IndexStale:
        if "://" in job.path:
            return None  # The object was replaced since it was listed.
        raise


def _walks(scanner: Finder, path: str) -> bool:
    """Return True if a scanner leaves out bytes between headers; of a compressed file it cannot."""
    return is_surveyor(scanner) and compression_of(path) is None


def _identity(file: DataFile) -> tuple[int, int, int]:
    return (*file.holder, file.head_tail())


def _indexed_table(file: DataFile, indexer: TableIndexer, begun_ns: int) -> PartScan:
    source = file.ranges()
    try:
        found = indexer.read_layout(source)
    except UnsupportedFormat:
        head = bytes(source.range(0, min(source.size, HEAD_BYTES)))
        check_compression(head, source.path, renames=False)
        _refuse_foreign(head, source.path, indexer)
        raise
    if found.records > _MOST_ROWS:
        message = (
            f"{source.path!r} is said to have {found.records:,} rows, in {source.size:,} bytes: it is "
            f"damaged, write it or copy it again"
        )
        raise UnsupportedFormat(message)
    return PartScan(
        _identity(file),
        begun_ns,
        source.digest(),
        found.starts,
        content_size=found.records,
        schema=found.schema,
    )


def _scanned(
    file: DataFile,
    data: Data,
    job: ScanJob,
    scanner: Scanner,
    begun_ns: int,
    on_bytes: Callable[[int], None] | None,
) -> PartScan:
    kind = data.compression
    check_compression(data.head, data.name, kind)
    units = _units(job)
    source = _content(data, kind, on_bytes, units) if kind else _part(data, job, on_bytes, units)
    if not job.start:
        scanner.check_head(source.head, data.name)
    starts = scanner.scan(source)
    size, points = data.size, b""
    if isinstance(source, DecompressingSource):
        size, points = source.content_size, _points(data, source)
    digests = source.unit_digests()
    return PartScan(_identity(file), begun_ns, source.piece_digests(), starts, size, points, units=digests)


def _surveyed(
    file: DataFile,
    data: Data,
    surveyor: Surveyor,
    begun_ns: int,
    on_bytes: Callable[[int], None] | None,
) -> PartScan:
    identity = _identity(file)
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


def _found_in(content: ForwardReader, surveyor: Surveyor, head: bytes) -> Survey:
    """Return what a surveyor finds; of a file of another format, the error says of which."""
    try:
        return surveyor.survey(content)
    except UnsupportedFormat:
        _refuse_foreign(head, content.path, surveyor)
        raise


def _refuse_foreign(head: bytes, path: str, finder: Surveyor | TableIndexer) -> None:
    name = finder.name.partition("-")[0]
    refuse_foreign(head, path, what=f"a file of {name}", own=name)


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
    refuse_lfs_pointer(data.head, data.name)
    if not data.compression:
        surveyor.check_head(data.head, data.name)
        forward = ForwardFile(data.file, data.name, size=data.size, on_bytes=on_bytes)
        found = _found_in(forward, surveyor, data.head)
        forward.finish()
        pieces = found.digest + head_tail.to_bytes(8, "little")
        return SurveyedFile(found.words, found.records, found.schema, pieces, b"")
    check_compression(data.head, data.name, data.compression)
    source = _content(data, data.compression, on_bytes)
    surveyor.check_head(source.head, data.name)
    content = ForwardContent(source, data.name)
    found = _found_in(content, surveyor, source.head)
    content.finish()
    return SurveyedFile(
        found.words, found.records, found.schema, source.piece_digests(), _points(data, source)
    )


def _units(job: ScanJob) -> PieceHasher | None:
    """Return what makes the digests of the units of an object; None for other files."""
    return PieceHasher(UNIT_BYTES) if "://" in job.path and has_digests(job.size) else None


def _part(
    data: Data, job: ScanJob, on_bytes: Callable[[int], None] | None, units: PieceHasher | None
) -> ByteSource:
    part = job.start, job.stop
    return ByteSource(data.file, size=data.size, head=data.head, part=part, units=units, on_bytes=on_bytes)


def _content(
    data: Data,
    kind: Compression,
    on_bytes: Callable[[int], None] | None,
    units: PieceHasher | None = None,
) -> DecompressingSource:
    entries: Sequence[SeekPoint] = ()
    if kind == "gz" and needs_points(data.size, data.head):
        on_bytes = _half(on_bytes)  # It is read twice.
        entries = gzip_seek_points(data.file, data.name, on_bytes=on_bytes)
    return DecompressingSource(
        data.file,
        size=data.size,
        kind=kind,
        path=data.name,
        entries=entries,
        units=units,
        on_bytes=on_bytes,
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


def content_digest(path: str, scanner: Finder, *, version: tuple[int, int]) -> int:
    """Hash a whole file; of a table or an archive, what is read to index it.

    Args:
        path: its path.
        scanner: finds the records in it.
        version: its size in bytes and its modification time, as they were listed.
    """
    if not is_table_indexer(scanner) and not is_surveyor(scanner):
        return bytes_digest(path, version=version)
    with opened_file(path, version=version) as file:
        if is_table_indexer(scanner):
            ranges = file.ranges()
            scanner.read_layout(ranges)
            return digest_of_pieces(ranges.digest())
        with file.data(0, file.version[0], headers=_walks(scanner, path)) as data:
            return digest_of_pieces(survey(data, scanner, head_tail=file.head_tail()).pieces)


def bytes_digest(path: str, *, version: tuple[int, int]) -> int:
    """Hash a whole file; of a placeholder, the file that it stands for.

    Args:
        path: its path.
        version: its size in bytes and its modification time, as they were listed.
    """
    with opened_file(path, version=version) as file, file.data(0, file.version[0], headers=False) as data:
        source = ByteSource(data.file, size=data.size, head=b"")
        for _ in source.chunks():
            pass
    return digest_of_pieces(source.piece_digests())
