"""Scanning one file, or many: the work of an index build that runs anywhere.

`scan_batch` and its argument are importable and picklable, so any `concurrent.futures.Executor` can
run it, on this machine or on another one that sees the same files.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import DataNotFound, IndexStale
from seekable.index.digest import END_BYTES, head_tail_digest
from seekable.index.scanner import ByteSource

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from seekable.index.scanner import Scanner

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class ScanJob:
    """One file to scan."""

    path: str
    """Its absolute path."""

    size: int
    """How many bytes it had when the work was planned."""

    known_content: int | None = None
    """The digest that it is indexed with; if it still has it, the offsets are not wanted again."""


@dataclass(frozen=True, slots=True)
class ScanBatch:
    """Some files to scan, one after the other."""

    jobs: tuple[ScanJob, ...]
    """The files."""

    scanner: Scanner
    """What finds the records in them."""


@dataclass(frozen=True, slots=True, eq=False)
class FileScan:
    """What was found in one file."""

    size: int
    """How many bytes it has."""

    mtime_ns: int
    """When it was modified."""

    indexed_ns: int
    """When the scan began."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    starts: NDArray[np.uint64] | None
    """Where its records start; None if the content is the known one."""


def scan_batch(batch: ScanBatch) -> list[FileScan]:
    """Scan some files, for instance in another process."""
    return [scan_file(job, batch.scanner, on_bytes=None) for job in batch.jobs]


def scan_file(job: ScanJob, scanner: Scanner, *, on_bytes: Callable[[int], None] | None) -> FileScan:
    """Scan one file, again if it is changed meanwhile.

    Args:
        job: the file.
        scanner: what finds the records in it.
        on_bytes: is told how many more bytes were read.

    Raises:
        DataNotFound: it is not there, or is no regular file.
        IndexStale: it was changed meanwhile, both times.
        UnsupportedFormat: it is of another format.
    """
    for _ in range(_ATTEMPTS):
        if scan := _scan_once(job, scanner, on_bytes):
            return scan
    raise IndexStale(
        f"{job.path!r} was changed while it was indexed, {_ATTEMPTS} times in a row; "
        f"index it when nothing writes to it"
    )


def stat_file(path: str) -> os.stat_result:
    """Return the status of a data file.

    Raises:
        DataNotFound: there is no such file, or it is something else than a file.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DataNotFound(f"there is no file {path!r}, or it links to one that is gone") from None
    if not stat.S_ISREG(status.st_mode):
        raise DataNotFound(f"{path!r} is no regular file; only those can be indexed")
    return status


def content_digest(path: str) -> int:
    """Return the digest of a whole file."""
    with open(path, "rb", buffering=0) as file:
        return _drained(ByteSource(file.fileno(), size=os.fstat(file.fileno()).st_size, head=b""))


def _scan_once(job: ScanJob, scanner: Scanner, on_bytes: Callable[[int], None] | None) -> FileScan | None:
    indexed_ns = time.time_ns()
    before = stat_file(job.path)
    with open(job.path, "rb", buffering=0) as file:
        head = os.pread(file.fileno(), END_BYTES, 0)
        head_tail = head_tail_digest(file.fileno(), size=before.st_size, head=head)
        starts, content = None, None
        if job.known_content is not None:
            content = _drained(ByteSource(file.fileno(), size=before.st_size, head=head))
            file.seek(0)
        if content is None or content != job.known_content:
            scanner.check_head(head, job.path)
            source = ByteSource(file.fileno(), size=before.st_size, head=head, on_bytes=on_bytes)
            starts = scanner.scan(source)
            content = source.content_digest()
    if _identity(before) != _identity(stat_file(job.path)):
        return None
    return FileScan(before.st_size, before.st_mtime_ns, indexed_ns, head_tail, content, starts)


def _drained(source: ByteSource) -> int:
    for _ in source.chunks():
        pass
    return source.content_digest()


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
