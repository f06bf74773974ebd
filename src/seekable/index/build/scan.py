"""The scan of a file: in parts, which run anywhere, and put together from them in any order.

`scan_batch` and its argument are importable and picklable, so any `concurrent.futures.Executor` can
run it, on this machine or on another one that sees the same files. Few record offsets stay in memory. Many go
to disk while the file is scanned, and are a segment of their own.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

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
from seekable.index.file_table import OFFSET_BYTES, OffsetSegment
from seekable.index.finder import ByteSource, is_surveyor, is_table_indexer
from seekable.index.object_digests import has_digests
from seekable.index.offsets import UnitHasher, keep_units
from seekable.storage.addresses import UNIT_BYTES
from seekable.storage.compression import compression_of
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, put_in_place
from seekable.storage.first_bytes import HEAD_BYTES, check_compression, refuse_foreign, refuse_lfs_pointer
from seekable.storage.memory import advise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable.index.build.data_file import Data, DataFile
    from seekable.index.finder import Finder, ForwardReader, Scanner, Survey, Surveyor, TableIndexer
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
    """Return what a surveyor finds; for a file in another format, the error names that format."""
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


_SPILL_BYTES = 32 << 20
"""From this size on the offsets of one file are a segment of their own, written while it is scanned."""


@dataclass(frozen=True, slots=True, eq=False)
class FileScan:
    """The result of the scan of one file."""

    size: int
    """The size of the file in bytes."""

    mtime_ns: int
    """The modification time of the file."""

    indexed_ns: int
    """The time at which the scan began."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    offsets: OffsetBuffer
    """The first byte of each record in the content, and the end of the last one."""

    points: bytes
    """Of a compressed file, the table of where it can be entered; else nothing."""

    schema: bytes
    """Of a table, its columns; else nothing."""

    records: int
    """The number of records."""

    units: bytes = b""
    """Of an object that was read as a whole, the digests of its units."""


class FileScanBuilder:
    """Puts the scans of the parts of one file together: they arrive in any order, and are added in order."""

    def __init__(self, folder: str, *, parts: int, size: int, mtime_ns: int) -> None:
        """Begin without any part.

        Args:
            folder: the index folder; many offsets are written there.
            parts: the number of parts of the file.
            size: the size of the file in bytes.
            mtime_ns: the modification time of the file.
        """
        self.torn = False
        """True if the file changed during the scan, so that its parts are not those of one file."""
        self.spool = OffsetBuffer(folder)
        """The offsets of the parts that have come in order."""
        self.records = 0
        """The number of records in the parts that have arrived."""
        self._left = parts
        self._size = size
        self._mtime_ns = mtime_ns
        self._early: dict[int, Callable[[], PartScan | None]] = {}
        self._next = 0
        self._pieces = self._units = b""
        self._head_tail: int | None = None
        self._holders: dict[int, tuple[int, int]] = {}
        """By machine, the device and the inode of the file there."""
        self._begun_ns = 0

    def add(
        self, number: int, summary: PartSummary | None, load: Callable[[], PartScan | None]
    ) -> FileScan | None:
        """Take a part, and return the whole file with its last one.

        Args:
            number: the index of the part.
            summary: that of the part; None if the file was not as expected.
            load: returns the part, when those before it have come; None if the file changed.
        """
        if summary is None or not self._agrees(summary):
            self._tear()
        if summary is None or self.torn:
            return None
        self._begun_ns = min(summary.begun_ns, self._begun_ns or summary.begun_ns)
        self._early[number] = load
        self.records += summary.records
        self._left -= 1
        whole = None
        while (early := self._early.pop(self._next, None)) is not None:
            part = early()
            if part is None or not self._agrees(part.summary):
                self._tear()
                return None
            self._next += 1
            self._pieces += part.pieces
            self._units += part.units
            self.spool.add(part.starts)
            whole = part
        return self._whole(whole) if whole is not None and not self._left else None

    def _agrees(self, part: PartSummary) -> bool:
        """Return True if a part is of the same file as the parts before it."""
        device, inode, head_tail = part.identity
        known = self._holders.setdefault(part.node, (device, inode))
        if self._head_tail is None:
            self._head_tail = head_tail
        return known == (device, inode) and self._head_tail == head_tail

    def _tear(self) -> None:
        self.torn = True
        self.spool.discard()
        self._early.clear()

    def _whole(self, scan: PartScan) -> FileScan:
        self.spool.finish(size=self._size if scan.content_size is None else scan.content_size)
        return FileScan(
            size=self._size,
            mtime_ns=self._mtime_ns,
            indexed_ns=self._begun_ns,
            head_tail=scan.head_tail,
            content=digest_of_pieces(self._pieces),
            offsets=self.spool,
            points=scan.points,
            schema=scan.schema,
            records=self.records,
            units=self._units,
        )


class OffsetBuffer:
    """The offsets of one file, given part by part and in order, and hashed as they come.

    Example:
        >>> import numpy as np
        >>> spool = OffsetBuffer("/index")
        >>> spool.add(np.array([0, 7], np.uint64))
        >>> spool.finish(size=12)
        >>> spool.records, np.frombuffer(spool.data, "<u8").tolist()
        (2, [0, 7, 12])
    """

    __slots__ = (
        *("_file", "_folder", "_hasher", "_held", "_parts", "_path", "_published"),
        *("data", "digest", "records"),
    )

    def __init__(self, folder: str) -> None:
        """Begin without offsets; nothing is written to disk while they are few.

        Args:
            folder: the index folder.
        """
        self.records = 0
        """The number of offsets that were added."""
        self.digest = 0
        """The xxh3_64 of all offsets, after ``finish``."""
        self.data = b""
        """The bytes of all offsets, after ``finish``, unless they are on disk."""
        self._folder = folder
        self._hasher: UnitHasher | None = UnitHasher()
        self._parts: list[memoryview | bytes] = []
        self._held = 0
        self._path = ""
        self._file: BinaryIO | None = None
        self._published = False

    @property
    def on_disk(self) -> bool:
        """True if the offsets are many, and therefore on disk."""
        return self._file is not None

    def add(self, starts: NDArray[np.uint64]) -> None:
        """Add the next offsets.

        Raises:
            OSError: the offsets are many, and the index folder cannot be written or is full.
        """
        self.records += len(starts)
        self._take(starts.astype("<u8", copy=False).view("u1").data)
        if self._held >= _SPILL_BYTES:
            self._spill()

    def finish(self, *, size: int) -> None:
        """Add the end of the file's last record, the content's size; what is on disk is synced then.

        Of a table it is the number of its rows, as the first rows of groups were added before.
        """
        self._take(size.to_bytes(OFFSET_BYTES, "little"))
        assert self._hasher is not None
        # Many finished files may wait to be committed: neither the hasher nor the arrays stay with them.
        hasher, self._hasher = self._hasher, None
        self.digest = hasher.whole()
        if self._file:
            keep_units(self._segment_path, hasher)
            self._spill()
            os.fsync(self._file.fileno())
            self._file.close()
        else:
            self.data = b"".join(self._parts)
            self._parts.clear()

    def publish(self) -> OffsetSegment:
        """Give what is on disk its name, as a segment of the index; a commit that failed may do so again."""
        segment = self._segment
        if not self._published:
            put_in_place(self._path, self._segment_path)
            self._published = True
        return segment

    @property
    def _segment(self) -> OffsetSegment:
        return OffsetSegment(self.digest, self.records + 1)

    @property
    def _segment_path(self) -> str:
        return os.path.join(self._folder, self._segment.file_name)

    def discard(self) -> None:
        """Remove what is on disk and was not published."""
        if self._file:
            self._file.close()
        if self._file and os.path.lexists(self._path):
            os.unlink(self._path)

    def _take(self, data: memoryview | bytes) -> None:
        assert self._hasher is not None
        self._hasher.update(data)
        self._parts.append(data)
        self._held += len(data)

    def _spill(self) -> None:
        if self._file is None:
            # Open until it is finished: another build may take it for what a killed one left, and remove it.
            self._path = os.path.join(self._folder, f"offsets.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
            self._file = create_new(self._path)
        self._file.writelines(self._parts)
        self._file.flush()
        # This process does not read these bytes again. With this advice Linux begins at once to write them to
        # disk, while the next parts are scanned, and there is little left to wait for in the end.
        start = self._file.tell() - self._held
        advise(self._file.fileno(), start, self._held, "DONTNEED")
        self._parts.clear()
        self._held = 0
