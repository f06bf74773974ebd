"""The build of an index: scan the files that it lacks, here or in workers, and commit the results.

A large file is scanned in parts, at once where there are workers. Finished files are committed every
half minute, and when the build is interrupted or fails, so that the next build continues from there.

A file is not scanned if the index of another tool has its record offsets. They are taken where nothing that
can be seen speaks against them:

- the file was not modified after that index was written;
- the lines that the index names follow each other without a gap, from the first byte of the file to its last;
- in both ends of the file and in pieces between them, lines begin exactly where the index says;
- none of the lines that begin there, and none of the short ones anywhere, is blank.

A small file is one such piece, and so is checked as a whole.

`FarBuilds` is what the build asks of files that lie far away: ``far().builds`` of `seekable.storage.far`.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from seekable._log import LOG
from seekable.errors import IndexStale
from seekable.index.build.commit import BuildProgress, make_folder
from seekable.index.build.data_file import opened_file
from seekable.index.build.file_parts import FileToIndex, parts_of, plan_batches
from seekable.index.build.kept_parts import KeptParts, KeptResults, StoredParts, loaded
from seekable.index.build.scan import (
    FileScan,
    FileScanBuilder,
    OffsetBuffer,
    ScanBatch,
    ScanJob,
    scan_batch,
    scan_part,
)
from seekable.index.digest import END_BYTES, PIECE_BYTES, unread_content_digest
from seekable.index.finder import ReadsOtherIndexes, is_splittable, is_table_indexer
from seekable.parallel.cluster import most_requests
from seekable.parallel.function_calls import Tasks, run_tasks
from seekable.parallel.processes import WorkerProcesses, usable_cpus
from seekable.storage import addresses
from seekable.storage.abandoned import abandoned_at_errors
from seekable.storage.compression import compression_of
from seekable.storage.far import far
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    from seekable.index.build.data_file import DataFile
    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.scan import PartScan, PartSummary
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder, OtherIndex, OtherOffsets, Scanner
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.far import Look


_PARALLEL_BYTES = 1 << 30
"""A build of fewer bytes ends before workers are worth their start (some 0.1 s)."""

_PART_BYTES = PIECE_BYTES
"""The bytes of a part of a large file: whole pieces, so that their digests make the digest of the file."""

_AHEAD_EACH = 2
"""The requests under way for each of our workers: while one is answered, the next one waits."""

_AHEAD = 256
"""Requests under way in a user's executor, whose number of workers is unknown."""

_HUB_AT_ONCE = 8
"""The most parts of files of the Hub that are scanned at once, in threads: they mostly wait for bytes."""

_OBJECTS_AT_ONCE = 16
"""The same for objects of a store; a request of 8 MiB is under way for each."""

_SMALL_AT_ONCE = 32
"""The same for objects of which little is fetched: of two requests each, 64 are then under way."""

_SMALL_BYTES = 1 << 20

_ATTEMPTS = 2


class FarPieces(Protocol):
    """Pieces of a file, all fetched at once."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes of a piece, or bytes between pieces by a request of their own.

        Raises:
            IndexStale: the file is of another version now.
            DataNotFound, AccessDenied, Unreachable: it cannot be read.
        """


class FarBuilds(Protocol):
    """Far files while they are indexed and verified; nothing of them is kept in a cache."""

    def file(self, path: str, look: Look, on_wait: Callable[[int], None] | None) -> DataFile:
        """Return a file as it was looked at, open; nothing is fetched.

        Args:
            path: its address.
            look: its size, and the number that stands for its content.
            on_wait: is called with 0 about ten times a second while bytes are awaited.
        """

    def file_of_placeholder(self, own: DataFile, descriptor: int, path: str) -> DataFile:
        """Return a placeholder whose bytes for scanners are those of the file that it stands for.

        Args:
            own: the placeholder as a local file.
            descriptor: its descriptor.
            path: its path.
        """

    def pieces(self, path: str, look: Look, pieces: Iterable[tuple[int, int]]) -> FarPieces:
        """Begin to fetch pieces of a file, each given by its first byte and the byte after its last."""

    def before(
        self, tasks: Sequence[FileToIndex], finder: Finder, *, most_bytes: int | None
    ) -> tuple[Sequence[FileToIndex], Sequence[str]]:
        """Take over what indexes published beside files have; return the files left, and notices.

        Raises:
            InvalidArgument: more than ``most_bytes`` may have to be fetched; of the data nothing was.
        """

    def submit(
        self, executor: Executor, batch: ScanBatch, read: Callable[[ScanJob, int], None]
    ) -> Future[Answer]:
        """Submit the scan of some parts to threads, which take small files when their bytes are here.

        Args:
            executor: the threads.
            batch: the parts.
            read: is called with a part and the number of its bytes that were read since the last call.
        """

    def newest(self, path: str) -> Look:
        """Ask the store, past all listings, for the size and the number of a file.

        Raises:
            DataNotFound, AccessDenied, Unreachable: it cannot be looked at.
        """

    def check_publishable(self, roots: Iterable[str]) -> None:
        """Check that the index of some roots can be published.

        Raises:
            InvalidArgument: one of them is a folder of this machine.
        """

    def publish(self, files: FileSet) -> Sequence[str]:
        """Write the index of some files beside them, and return a sentence on each root.

        Raises:
            AccessDenied, Unreachable, IndexStale: it cannot be published.
        """

    def by_version(self, files: FileSet) -> FileSet:
        """Return the same files, read by the versions that they have now.

        Raises:
            InvalidArgument: a bucket keeps no versions.
            IndexStale: a file is another one than the one that was indexed.
            AccessDenied, Unreachable: a version cannot be asked for.
        """

    def version_of(self, folder: str, name: str, identity: int) -> str:
        """Return the version of a file that `by_version` has kept.

        Args:
            folder: the index folder.
            name: the name of the file, relative to the folder of the data.
            identity: the number made of its etag when it was indexed.

        Raises:
            IndexStale: its version was not kept.
        """


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a part: its file, the builder of the file's scan, and the part's index."""

    task: FileToIndex
    builder: FileScanBuilder
    number: int


@dataclass(frozen=True, slots=True)
class _BatchRequest:
    batch: ScanBatch
    places: tuple[_Place, ...]
    """For each part of the batch, its place."""
    kept: KeptParts | None
    """The file in the index folder that may have the result; None where none is to be kept."""


def build(
    tasks: Sequence[FileToIndex],
    scanner: Finder,
    *,
    notices: Sequence[str],
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
    most_bytes: int | None = None,
) -> None:
    """Scan files and add them to their indexes.

    Args:
        tasks: the files.
        scanner: finds the records in them.
        notices: messages for the user, reported first.
        jobs: the most processes that scan, this one included; None for one to a processor.
        executor: runs the scans instead of this process and our own workers; it stays open.
        progress: is called with the progress of the build.
        most_bytes: the most bytes that may be fetched from stores; None for any number.

    Raises:
        InvalidArgument: more bytes may have to be fetched than the user allows; none were.
        DataNotFound: a file is gone.
        AccessDenied: a file may not be read, or an index folder not be written.
        UnsupportedFormat: a file is of another format.
        IndexStale: a file changed during each of its scans.
        WorkerDied: a worker process ended too early.
    """
    for folder, private in {(task.folder, task.is_remote) for task in tasks}:
        make_folder(folder, private=private)
    if any(task.is_object for task in tasks):
        tasks, found, others = _indexed_elsewhere(tasks, scanner, most_bytes=most_bytes)
        notices = (*notices, *found)
    else:
        others = find_others(tasks, scanner)
    size = sum(task.bytes for task in tasks)
    progress_of_build = BuildProgress(files=len(tasks), size=size, format_name=scanner.name, hook=progress)
    for notice in notices:
        LOG.info(notice)
        progress_of_build.report(always=True, notice=notice)
    with (
        closing(progress_of_build),
        closing(
            _Scans(take_over(tasks, scanner, others, progress_of_build), scanner, progress_of_build)
        ) as scans,
    ):
        remote = any(task.is_remote for task in tasks)
        workers = 0 if remote else _worth_starting(scans.parts, size=scans.size, jobs=jobs)
        if executor is not None:
            scans.run_in_executor(executor)
        elif remote and scans.parts > 1:
            scans.run_in_threads(min(_threads_for(tasks, scanner), scans.parts))
        elif workers > 0:
            # This process scans too: workers take a while to start, and it has nothing else to do.
            with WorkerProcesses(workers) as processes:
                scans.run(processes, ahead=workers * _AHEAD_EACH, helping=True)
        else:
            scans.run(None, ahead=0, helping=True)
    progress_of_build.report(always=True)


def _indexed_elsewhere(
    tasks: Sequence[FileToIndex], scanner: Finder, *, most_bytes: int | None
) -> tuple[Sequence[FileToIndex], Sequence[str], OtherIndexes]:
    """Take over what indexes published beside objects have; look for those of other tools meanwhile.

    Returns:
        The files that are left, notices for the user, and the indexes of other tools for these files.
    """
    with abandoned_at_errors(1, "seekable-look") as thread:
        # Each is a round trip to the store.
        looking = thread.submit(copy_context().run, find_others, tasks, scanner)
        left, notices = far().builds.before(tasks, scanner, most_bytes=most_bytes)
        return left, notices, looking.result() if left else {}


def _worth_starting(parts: int, *, size: int, jobs: int | None) -> int:
    """Return the number of worker processes to start beside this one."""
    if size < _PARALLEL_BYTES:
        return 0
    return min(usable_cpus() if jobs is None else jobs, parts) - 1


def _threads_for(tasks: Sequence[FileToIndex], scanner: Finder) -> int:
    """Return the number of remote files, or parts of them, that are scanned at once."""
    objects = [task.size for task in tasks if task.is_object]
    small = is_table_indexer(scanner) or sum(objects) < _SMALL_BYTES * len(objects)
    if not objects:
        return _HUB_AT_ONCE
    return _SMALL_AT_ONCE if small else _OBJECTS_AT_ONCE


class _Scans:
    """The files of a build that are not finished: to be scanned, or scanned in part."""

    def __init__(
        self, tasks: Sequence[FileToIndex], scanner: Finder, progress_of_build: BuildProgress
    ) -> None:
        self._scanner = scanner
        self._progress = progress_of_build
        self._part_bytes = _PART_BYTES if is_splittable(scanner) else None
        self._planned = deque([self._requests(tasks)])
        self._unfinished: dict[FileScanBuilder, list[KeptParts]] = {}
        """The files that are not finished, with the parts that are kept until they are in the index."""
        self._shared = False
        self._results = KeptResults()
        self.parts = sum(map(self._parts, tasks))
        self.size = sum(task.bytes for task in tasks)

    def run_in_threads(self, count: int) -> None:
        """Scan all files in threads of this process; an error or an interrupt stops the threads too."""
        stopped = False

        def read(job: ScanJob, size: int) -> None:
            if stopped:
                raise _BuildStopped
            self._progress.count(job, size)

        def submit(executor: Executor, request: _BatchRequest) -> Future[Answer]:
            builds: FarBuilds = far().builds
            return builds.submit(executor, request.batch, read)

        threads = ThreadPoolExecutor(count, thread_name_prefix="seekable-scan")
        try:
            self.run(threads, ahead=count, helping=False, submit=submit)
        finally:
            stopped = True
            threads.shutdown(wait=False, cancel_futures=True)

    def run_in_executor(self, executor: Executor) -> None:
        """Scan all files in a user's executor, whose workers keep large results in the index folder."""

        def submit(executor: Executor, request: _BatchRequest) -> Future[Answer]:
            assert request.kept is not None
            return self._results.submit(executor, request.kept, request.batch)

        self._shared = True
        ahead = most_requests(executor, otherwise=_AHEAD)
        self.run(executor, ahead=ahead, helping=False, submit=submit)

    def run(
        self,
        executor: Executor | None,
        *,
        ahead: int,
        helping: bool,
        submit: Callable[[Executor, _BatchRequest], Future[Answer]] | None = None,
    ) -> None:
        """Scan all files, and add each to the finished ones."""
        tasks = Tasks(
            take=self._take,
            submit=submit or _submit,
            here=self._scan_here if helping else None,
            idle=self._progress.report,
            name=_name_of,
        )
        with closing(run_tasks(tasks, executor=executor, ahead=ahead)) as found:
            for request, answer in found:
                if isinstance(answer, StoredParts):
                    self._add_stored(request, answer.summary)
                    continue
                for job, place, scan in zip(request.batch.jobs, request.places, answer, strict=True):
                    if request.kept and scan is not None and place.task.is_object and not place.builder.torn:
                        request.kept.save([scan])
                    self._add(job, place, scan)

    def close(self) -> None:
        """Remove the offsets on disk of files that are not finished."""
        self._results.close()
        for builder in self._unfinished:
            builder.spool.discard()

    def _requests(self, tasks: Sequence[FileToIndex]) -> Iterator[_BatchRequest]:
        """Yield batches of parts to scan; the parts of a file follow each other."""
        builder: FileScanBuilder | None = None
        whole = {number for number, task in enumerate(tasks) if compression_of(task.name)}
        sizes = [task.bytes for task in tasks]
        # Of remote files one batch waits for each file in turn, so that each file is a batch.
        alone = any(task.is_remote for task in tasks)
        for parts in plan_batches(sizes, part_bytes=self._part_bytes, whole=whole, alone=alone):
            jobs, places = [], []
            for part in parts:
                task = tasks[part.file]
                if builder is None or part.number == 0:
                    builder = FileScanBuilder(
                        task.folder, parts=self._parts(task), size=task.size, mtime_ns=task.mtime_ns
                    )
                    self._unfinished[builder] = []
                if builder.torn:
                    continue
                jobs.append(ScanJob(task.path, task.size, task.mtime_ns, part.start, part.stop))
                places.append(_Place(task, builder, part.number))
            if jobs:
                batch = ScanBatch(tuple(jobs), self._scanner)
                request = _BatchRequest(batch, tuple(places), self._kept(batch, places))
                if not self._add_earlier(request):
                    yield request

    def _kept(self, batch: ScanBatch, places: Sequence[_Place]) -> KeptParts | None:
        """Return the file that keeps a result: for parts of large objects, and for all of an executor's."""
        task = places[0].task
        kept = KeptParts(task.folder, batch)
        if len(places) == 1 and (self._shared or (task.is_object and self._parts(task) > 1)):
            self._unfinished[places[0].builder].append(kept)
        elif not self._shared:
            return None
        return kept

    def _add_earlier(self, request: _BatchRequest) -> bool:
        """Take the result of a batch that an earlier build kept; return True if there is one."""
        scans = self._results.earlier(request.kept) if request.kept else None
        if scans is None:
            return False
        for job, place, scan in zip(request.batch.jobs, request.places, scans, strict=True):
            self._add(job, place, scan)
        return True

    def _add_stored(self, request: _BatchRequest, summary: PartSummary | None) -> None:
        """Take a result that a worker wrote into the index folder."""
        assert request.kept is not None
        load = partial(loaded, request.kept, request.batch)
        if summary is not None:
            ((job,), (place,)) = request.batch.jobs, request.places
            self._add_part(job, place, summary, lambda: load()[0])
            return
        for job, place, scan in zip(request.batch.jobs, request.places, load(), strict=True):
            self._add(job, place, scan)
        self._results.discard([request.kept])

    def _parts(self, task: FileToIndex) -> int:
        """Return the number of parts of a file: 1 if it is compressed, because it is read from its start."""
        return parts_of(task.bytes, part_bytes=None if compression_of(task.name) else self._part_bytes)

    def _take(self) -> _BatchRequest | None:
        while self._planned:
            if request := next(self._planned[0], None):
                return request
            self._planned.popleft()
        return None

    def _scan_here(self, request: _BatchRequest) -> Iterator[PartScan | None]:
        for job in request.batch.jobs:
            yield scan_part(job, self._scanner, on_bytes=partial(self._progress.read, job))

    def _add(self, job: ScanJob, place: _Place, scan: PartScan | None) -> None:
        """Take the scan of a part."""
        self._add_part(job, place, None if scan is None else scan.summary, lambda: scan)

    def _add_part(
        self,
        job: ScanJob,
        place: _Place,
        summary: PartSummary | None,
        load: Callable[[], PartScan | None],
    ) -> None:
        """Take the scan of a part; a file that changed during its scan is scanned again."""
        task, builder = place.task, place.builder
        if builder.torn:
            return
        whole = builder.add(place.number, summary, load)
        if builder.torn:
            self._results.discard(self._unfinished.pop(builder))
            self._progress.arrived(job, 0, records=-builder.records)
            self._planned.append(self._requests([_once_more(task)]))
            return
        self._progress.arrived(job, job.stop - job.start, records=summary.records if summary else 0)
        if whole:
            after = partial(self._results.discard, self._unfinished.pop(builder))
            self._progress.add(task.folder, task.root, task.name, whole, after=after)


class _BuildStopped(BaseException):
    """Ends the scan in a thread whose build has ended; no handler of errors takes it for damage of a file."""


def _submit(executor: Executor, request: _BatchRequest) -> Future[Answer]:
    return executor.submit(scan_batch, request.batch)


def _name_of(request: _BatchRequest) -> str:
    first, *others = request.batch.jobs
    return f"{first.path!r} from byte {first.start}" + (f" and {len(others)} more" if others else "")


def _once_more(task: FileToIndex) -> FileToIndex:
    if task.attempt == _ATTEMPTS:
        raise IndexStale(
            f"{addresses.shown(task.path)!r} was changed while it was indexed, {_ATTEMPTS} times in a row; "
            f"index it when nothing writes to it"
        )
    if task.is_object:
        size, version = far().builds.newest(task.path)
    else:
        status = stat_file(task.path)
        size, version = status.st_size, status.st_mtime_ns
    return replace(task, size=size, mtime_ns=version, attempt=task.attempt + 1)


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
"""The most short lines outside of the pieces; a file with more of them is scanned."""

_MOST_SHORT_STORED = 8
"""The pieces of an object; each is a request."""

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
