"""Files whose record offsets come from the index of another tool, so that they are not scanned.

The offsets of another tool are taken where nothing that can be seen speaks against them:

- the file was not modified after the index was written;
- the lines that the index names follow each other without a gap, from the first byte of the file to its last;
- in both ends of the file and in pieces between them, lines begin exactly where the index says;
- none of the lines that begin there, and none of the short ones anywhere, is blank.

A small file is one such piece, and so is checked as a whole. All else is scanned.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol

import numpy as np

from seekable.index.build.data_file import opened_file
from seekable.index.build.file_scan import FileScan, OffsetBuffer
from seekable.index.build.scan import ScanJob
from seekable.index.digest import END_BYTES, unread_content_digest
from seekable.index.scanner import ReadsOtherIndexes
from seekable.storage.abandoned import abandoned_at_errors
from seekable.storage.compression import compression_of
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.index.build.commit import BuildProgress
    from seekable.index.build.parts import FileToIndex
    from seekable.index.scanner import OtherIndex, OtherOffsets, Scanner
    from seekable.index.surveyor import Finder

OtherIndexes = Mapping[str, "Sequence[OtherIndex]"]
"""The indexes of other tools by the root of the files, for roots with files that may have some."""

_log = logging.getLogger(__name__)

_WHOLE_BYTES = 1 << 20
"""Up to this size all of a file is checked: to read it takes as long as the pieces of a larger one."""

_END_PIECE_BYTES = END_BYTES
_PIECES = 64
_PIECE_BYTES = 4 << 10

_SHORT_BYTES = 16
_MOST_SHORT = 256
"""Short lines outside of the pieces; a file with more of them is scanned."""

_MOST_SHORT_STORED = 8
"""As many of an object, of which each is a request."""

_THREADS = 16
"""The files of stores that are compared at once."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LAST_BLANK = 32
_NEWLINE = 10


def find_others(tasks: Sequence[FileToIndex], scanner: Finder) -> OtherIndexes:
    """Return the indexes that other tools have of some files, by the roots of the files."""
    if not isinstance(scanner, ReadsOtherIndexes):
        return {}
    names: dict[str, list[str]] = {}
    for task in tasks:
        if _is_worth(task):
            names.setdefault(task.root, []).append(task.name)
    return {root: scanner.other_indexes(root, some) for root, some in names.items()}


def take_over(
    tasks: Sequence[FileToIndex], scanner: Finder, others: OtherIndexes, progress_of_build: BuildProgress
) -> list[FileToIndex]:
    """Add the files whose offsets another tool has, and return those that are to be scanned.

    Args:
        tasks: the files.
        scanner: finds the records in them.
        others: the indexes of other tools, as `find_others` returns them.
        progress_of_build: gets the files that need no scan.

    Raises:
        DataNotFound: a file is gone.
        AccessDenied: a file may not be read.
        UnsupportedFormat: a file is of another format.
    """
    if not isinstance(scanner, ReadsOtherIndexes) or not any(others.values()):
        return list(tasks)
    left: list[FileToIndex] = []
    taken = {root: [0] * len(indexes) for root, indexes in others.items()}
    offered = {root: [0] * len(indexes) for root, indexes in others.items()}
    with closing(_compared(tasks, others, scanner)) as compared:
        for task, (looked_up, scan) in zip(tasks, compared, strict=True):
            for number in looked_up:
                offered[task.root][number] += 1
            if scan is None:
                left.append(task)
                continue
            whole = ScanJob(task.path, task.size, task.mtime_ns, 0, task.size)
            progress_of_build.arrived(whole, task.size, records=scan.records)
            progress_of_build.add(task.folder, task.root, task.name, scan)
            taken[task.root][looked_up[-1]] += 1
    for root, indexes in others.items():
        count = sum(task.root == root for task in tasks)
        for number, other in enumerate(indexes):
            if offered[root][number]:
                _tell(other, taken[root][number], count, progress_of_build)
    return left


def _compared(
    tasks: Sequence[FileToIndex], others: OtherIndexes, scanner: Scanner
) -> Generator[tuple[list[int], FileScan | None]]:
    """Yield for each file which indexes have it, up to the first that fits, and the scan made of that one."""

    def compare(task: FileToIndex) -> tuple[list[int], FileScan | None]:
        looked_up = []
        for number, other in enumerate(others.get(task.root, ())):
            if (found := _found(task, other)) is not None:
                looked_up.append(number)
                if (scan := _scan_of(task, found, scanner)) is not None:
                    return looked_up, scan
        return looked_up, None

    if not any("://" in root for root in others):
        yield from map(compare, tasks)
        return
    with abandoned_at_errors(_THREADS, "seekable-compare") as threads:
        # Each thread has the listings of the call.
        futures = [threads.submit(copy_context().run, compare, task) for task in tasks]
        for future in futures:
            yield future.result()


def _tell(other: OtherIndex, found: int, count: int, progress_of_build: BuildProgress) -> None:
    """Log the number of files that need no scan, and show it to the user."""
    rest = "" if found == count else "; the others are not in it as they are now, and are scanned"
    message = f"the records of {found} of {count} files are found by {other.label}{rest}"
    _log.info(message)
    progress_of_build.report(always=True, notice=message)


def _found(task: FileToIndex, other: OtherIndex) -> OtherOffsets | None:
    """Return the lines of a plain file by another index; None if it has none, and for other files."""
    if task.remote_size is not None or compression_of(task.name) or not _is_worth(task):
        return None
    return other.find(task.name)


def _is_worth(task: FileToIndex) -> bool:
    """Return False for a small object: to read it takes one request, and to look for an index another one."""
    return "://" not in task.path or task.size > _WHOLE_BYTES


def _scan_of(task: FileToIndex, found: OtherOffsets, scanner: Scanner) -> FileScan | None:
    """Return what a scan would find in a file; None if the other index cannot be trusted."""
    is_stored = "://" in task.path
    if task.mtime_ns > found.made_ns and not is_stored:
        return None
    begun_ns = time.time_ns()
    offsets = OffsetBuffer(task.folder)
    version = task.size, task.mtime_ns
    with opened_file(task.path, version=version) as file:
        source: _Bytes = file.ranges()
        if is_stored:
            source = far().builds.pieces(task.path, version, _pieces(task.size))
        most_short = _MOST_SHORT_STORED if is_stored else _MOST_SHORT
        head = bytes(source.range(0, min(END_BYTES, task.size)))
        scanner.check_head(head, task.path)
        head_tail = file.head_tail()
        fits = not head.startswith(_BYTE_ORDER_MARK) and _all_fit(
            source, task.size, found.ranges, offsets, most_short=most_short
        )
        is_same = file.version == version and file.is_unchanged()
    if not fits or not is_same:
        offsets.discard()
        return None
    offsets.finish(size=task.size)
    return FileScan(
        size=task.size,
        mtime_ns=task.mtime_ns,
        indexed_ns=begun_ns,
        head_tail=head_tail,
        content=unread_content_digest(
            head_tail=head_tail, offsets=offsets.digest, size=task.size, mtime_ns=task.mtime_ns
        ),
        offsets=offsets,
        points=b"",
        schema=b"",
        records=offsets.records,
    )


def _all_fit(
    file: _Bytes,
    size: int,
    ranges: Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]],
    offsets: OffsetBuffer,
    *,
    most_short: int,
) -> bool:
    """Add the offsets of a file to the buffer; return False if they cannot be those of its lines."""
    end, short = 0, 0
    pieces = _pieces(size)
    for starts, lengths in ranges:
        ends = starts + lengths
        if int(starts[0]) != end or (starts[1:] != ends[:-1]).any() or (ends <= starts).any():
            return False
        end = int(ends[-1])
        if end > size or not all(_piece_fits(file, size, piece, starts, ends) for piece in pieces):
            return False
        if size > _WHOLE_BYTES:
            some = starts[lengths <= _SHORT_BYTES].tolist()
            short += len(some)
            if short > most_short or any(_may_be_blank(file, start) for start in some):
                return False
        offsets.add(starts)
    return end == size


def _pieces(size: int) -> list[tuple[int, int]]:
    """Return where the pieces start and stop in which all bytes are compared with the index."""
    if size <= _WHOLE_BYTES:
        return [(0, size)]
    between = [size * number // (_PIECES + 1) for number in range(1, _PIECES + 1)]
    middle = ((at, at + _PIECE_BYTES) for at in between)
    return [(0, _END_PIECE_BYTES), *middle, (size - _END_PIECE_BYTES, size)]


def _piece_fits(
    file: _Bytes,
    size: int,
    piece: tuple[int, int],
    starts: NDArray[np.uint64],
    ends: NDArray[np.uint64],
) -> bool:
    """Return True if some lines of the index, as far as they lie in a piece, are there and are not blank."""
    first, stop = max(piece[0], int(starts[0])), min(piece[1], int(ends[-1]))
    if first >= stop:
        return True
    data = np.frombuffer(file.range(first, stop), np.uint8)
    if len(data) < stop - first:
        return False
    inside = starts[slice(*np.searchsorted(starts, np.array([first, stop], np.uint64)))].view(np.int64)
    ended = ends[slice(*np.searchsorted(ends, np.array([first + 1, stop + 1], np.uint64)))].view(np.int64)
    if stop == size and data[-1] != _NEWLINE:
        ended = ended[:-1]
    newlines = np.flatnonzero(data == _NEWLINE) + (first + 1)
    return np.array_equal(newlines, ended) and bool((data[inside - first] > _LAST_BLANK).all())


def _may_be_blank(file: _Bytes, start: int) -> bool:
    return bytes(file.range(start, start + 1)) <= b" "


class _Bytes(Protocol):
    """Some bytes of a file."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return the bytes of a range."""
