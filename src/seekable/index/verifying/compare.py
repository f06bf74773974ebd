"""One part of a data file compared with its index: the work of ``verify`` that runs anywhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.index.building.content import ContentSource
from seekable.index.digest import END_BYTES
from seekable.index.offsets import open_offsets
from seekable.index.scanner import ByteSource
from seekable.index.surveyor import is_surveyor
from seekable.remote.ranges import hashed_ranges
from seekable.storage.compression import compression_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable.index.entry import Entry
    from seekable.index.scanner import Scanner
    from seekable.index.surveyor import Surveyor

__all__ = ["Boundary", "Compared", "PartJob", "compare_part", "compare_parts"]


@dataclass(frozen=True, slots=True)
class PartJob:
    """A part of an indexed file, to be read and compared."""

    path: str
    folder: str
    """The index folder."""
    entry: Entry
    """What the index says of the file; its size is at least 1."""
    start: int
    stop: int
    """The part, in bytes of the file as it is now."""
    size: int
    """How many bytes the file has now."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """The first start of a record that is not where the index says."""

    row: int
    """The record."""
    indexed: int | None
    """Where the index says that it starts; None if it ends the records before this part's end."""
    found: int | None
    """Where it starts; None if none does before this part's end."""

    @property
    def offset(self) -> int:
        """The earlier of both bytes."""
        return min(at for at in (self.indexed, self.found) if at is not None)


@dataclass(frozen=True, slots=True)
class Compared:
    """What a part is now."""

    pieces: bytes
    """The digests of its pieces."""
    boundary: Boundary | None
    """Where it disagrees with the index."""
    refused: str | None
    """Why it is not of the format at all."""


def compare_parts(jobs: Sequence[PartJob], scanner: Scanner | Surveyor) -> list[Compared]:
    """Compare some parts, for instance in another process."""
    return [compare_part(job, scanner, on_bytes=None) for job in jobs]


def compare_part(
    job: PartJob, scanner: Scanner | Surveyor, *, on_bytes: Callable[[int], None] | None
) -> Compared:
    """Read a part of a file, find its records again and compare them with the index.

    Args:
        job: the part.
        scanner: what finds the records.
        on_bytes: is told how many more bytes were read.

    Raises:
        FileNotFoundError: the file is gone, or the offsets are.
    """
    with open(job.path, "rb", buffering=0) as file:
        try:
            if is_surveyor(scanner):
                ranges = hashed_ranges(file.fileno(), path=job.path, size=job.size)
                groups = scanner.survey(ranges).starts
                return Compared(ranges.digest(), _first_difference(job, groups), None)
            source = _source(file.fileno(), job, on_bytes)
            if not job.start:
                scanner.check_head(source.head, job.path)
            found = scanner.scan(source)
        except UnsupportedFormat as error:
            return Compared(b"", None, str(error))
        pieces = source.piece_digests()
    return Compared(pieces, _first_difference(job, found), None)


def _source(descriptor: int, job: PartJob, on_bytes: Callable[[int], None] | None) -> ByteSource:
    if kind := compression_of(job.path):
        return ContentSource(descriptor, size=job.size, kind=kind, path=job.path, on_bytes=on_bytes)
    head, part = os.pread(descriptor, END_BYTES, 0), (job.start, job.stop)
    return ByteSource(descriptor, size=job.size, head=head, part=part, on_bytes=on_bytes)


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
