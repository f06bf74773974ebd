"""The build of an index: scan the files that it lacks, here or in workers, and commit the results.

A large file is scanned in parts, at once where there are workers. Finished files are committed every
half minute, and when the build is interrupted or fails, so that the next build continues from there.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from seekable._log import LOG
from seekable.errors import IndexStale
from seekable.index.build.commit import BuildProgress, make_folder
from seekable.index.build.file_scan import FileScanBuilder
from seekable.index.build.kept_parts import KeptParts, KeptResults, StoredParts, loaded
from seekable.index.build.other_index import find_others, take_over
from seekable.index.build.parts import FileToIndex, parts_of, plan_batches
from seekable.index.build.scan import ScanBatch, ScanJob, scan_batch, scan_part
from seekable.index.digest import PIECE_BYTES
from seekable.index.surveyor import is_splittable, is_table_indexer
from seekable.parallel.cluster import most_requests
from seekable.parallel.function_calls import Tasks, run_tasks
from seekable.parallel.processes import WorkerProcesses, usable_cpus
from seekable.storage import addresses
from seekable.storage.abandoned import abandoned_at_errors
from seekable.storage.compression import compression_of
from seekable.storage.far import far
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from seekable.index.build.far_builds import FarBuilds
    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.other_index import OtherIndexes
    from seekable.index.build.scan import PartScan, PartSummary
    from seekable.index.surveyor import Finder
    from seekable.parallel.progress import ProgressHook

_PARALLEL_BYTES = 1 << 30
"""A build of fewer bytes ends before workers are worth their start (some 0.1 s)."""

_PART_BYTES = PIECE_BYTES
"""The bytes of a part of a large file: whole pieces, so that their digests make the digest of the file."""

_AHEAD_EACH = 2
"""Requests under way for each of our workers: while one is answered, the next one waits."""

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


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a part: its file, the builder of the file's scan, and the index of the part."""

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
        """Return the file for a result that is kept: of a part of a large object, and of any executor."""
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
