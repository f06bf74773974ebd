"""One part of a data file, read and compared with the index: the work of a deep verification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import DataNotFound, IndexStale, UnsupportedFormat
from seekable.index.build.data_file import opened_file
from seekable.index.build.decompressing import DecompressingSource
from seekable.index.build.scan import survey
from seekable.index.offsets import open_offsets
from seekable.index.scanner import ByteSource
from seekable.index.surveyor import is_surveyor
from seekable.index.table_indexer import is_table_indexer
from seekable.parallel.pickling import deserialized, serialized
from seekable.storage.compression import compression_of
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable.index.build.data_bytes import Data
    from seekable.index.entry import Entry
    from seekable.index.surveyor import Finder

__all__ = ["Boundary", "Compared", "PartJob", "compare_part", "compare_parts", "compare_sent", "sent_jobs"]


@dataclass(frozen=True, slots=True)
class PartJob:
    """A part of an indexed file, to be read and compared."""

    path: str
    folder: str
    """The folder of the index."""
    entry: Entry
    """The entry of the file in the index; its size is at least 1."""
    start: int
    stop: int
    """The part, in bytes of the file as it is now."""
    size: int
    """The number of bytes of the file now; if it is a placeholder, of the file that it stands for."""
    version: tuple[int, int]
    """The number of bytes of the file itself, and its modification time; of an object, of its version."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """The first start of a record that is not where the index says."""

    row: int
    """The row of the record."""
    indexed: int | None
    """The first byte of the record by the index; None if the index has no further record in this part."""
    found: int | None
    """The first byte of the record in the file; None if no further record starts in this part."""

    @property
    def offset(self) -> int:
        """The earlier of both bytes."""
        return min(at for at in (self.indexed, self.found) if at is not None)


@dataclass(frozen=True, slots=True)
class Compared:
    """The present state of a part."""

    pieces: bytes
    """The digests of its pieces."""
    boundary: Boundary | None
    """The first record that disagrees with the index."""
    refused: str | None
    """The error message if the file is not of the format, or is not what was listed; else None."""


def compare_parts(jobs: Sequence[PartJob], scanner: Finder) -> list[Compared]:
    """Compare some parts, for instance in another process."""
    return [compare_part(job, scanner, on_bytes=None) for job in jobs]


def sent_jobs(jobs: Sequence[PartJob], scanner: Finder) -> bytes:
    """Return parts of objects as bytes for another process, with their stores."""
    stores = far().passport(job.path for job in jobs)
    return serialized((stores, jobs, scanner), way_out="verify with jobs=1, in this process")


def compare_sent(data: bytes) -> list[Compared]:
    """Compare the parts of `sent_jobs`; call this only with bytes of the process that verifies."""
    _, jobs, scanner = deserialized(data)
    return compare_parts(jobs, scanner)


def compare_part(job: PartJob, scanner: Finder, *, on_bytes: Callable[[int], None] | None) -> Compared:
    """Read a part of a file, find its records again and compare them with the index.

    Args:
        job: the part.
        scanner: finds the records.
        on_bytes: is called with the number of bytes that were read since the last call.

    Raises:
        FileNotFoundError: the file or its offsets do not exist any more.
    """
    with opened_file(job.path, version=job.version, on_wait=on_bytes) as file:
        try:
            if is_table_indexer(scanner):
                ranges = file.ranges()
                groups = scanner.read_layout(ranges).starts
                return Compared(ranges.digest(), _first_difference(job, groups), None)
            if is_surveyor(scanner):
                with file.data(job.start, job.stop, headers=False) as data:
                    _read_all(data, on_bytes)
                with file.data(job.start, job.stop, headers=compression_of(job.path) is None) as data:
                    words = survey(data, scanner, head_tail=file.head_tail())
                return Compared(words.pieces, _first_difference(job, words.words), None)
            with file.data(job.start, job.stop, headers=False) as data:
                source = _source(data, job, on_bytes)
                if not job.start:
                    scanner.check_head(source.head, data.name)
                found = scanner.scan(source)
        except (UnsupportedFormat, IndexStale, DataNotFound) as error:
            return Compared(b"", None, str(error))
        pieces = source.piece_digests()
    return Compared(pieces, _first_difference(job, found), None)


def _read_all(data: Data, on_bytes: Callable[[int], None] | None) -> None:
    """Read all bytes of an archive, of which a survey reads the headers alone: each must be readable."""
    for _ in ByteSource(data.file, size=data.size, head=data.head, on_bytes=on_bytes).chunks():
        pass


def _source(data: Data, job: PartJob, on_bytes: Callable[[int], None] | None) -> ByteSource:
    if kind := data.compression:
        return DecompressingSource(data.file, size=data.size, kind=kind, path=data.name, on_bytes=on_bytes)
    part = (job.start, job.stop)
    return ByteSource(data.file, size=data.size, head=data.head, part=part, on_bytes=on_bytes)


def _first_difference(job: PartJob, found: NDArray[np.uint64]) -> Boundary | None:
    entry = job.entry
    offsets = open_offsets(job.folder, entry.segment).array[entry.start : entry.start + entry.numbers - 1]
    first, last = np.searchsorted(offsets, np.array([job.start, job.stop], np.uint64)).tolist()
    if job.stop == job.size:
        last = len(offsets)  # What the index has beyond the file's end is wrong, too.
    indexed = offsets[first:last]
    common = min(len(indexed), len(found))
    differ = np.flatnonzero(indexed[:common] != found[:common])
    at = int(differ[0]) if len(differ) else common
    if at == len(indexed) == len(found):
        return None
    return Boundary(
        first + at,
        int(indexed[at]) if at < len(indexed) else None,
        int(found[at]) if at < len(found) else None,
    )
