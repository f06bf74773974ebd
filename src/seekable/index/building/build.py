"""Building what indexes lack: scan the files, here or in workers, and commit what was found.

A large file is scanned in parts, at once where there are workers. Finished files are committed every
half minute, and when the build is interrupted or fails, so that the next one goes on where this one was.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seekable.errors import IndexStale
from seekable.index.building.assembly import Assembly
from seekable.index.building.commit import make_folder
from seekable.index.building.ledger import Ledger
from seekable.index.building.plan import parts_of, plan_batches
from seekable.index.building.scan import ScanBatch, ScanJob, scan_batch, scan_part, stat_file
from seekable.index.digest import PIECE_BYTES
from seekable.index.surveyor import is_surveyor
from seekable.parallel.processes import WorkerProcesses, usable_cpus
from seekable.parallel.tasks import Tasks, run_tasks
from seekable.storage.compression import compression_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from seekable.index.building.scan import PartScan
    from seekable.index.scanner import Scanner
    from seekable.index.surveyor import Surveyor
    from seekable.parallel.progress import ProgressHook

_log = logging.getLogger(__name__)

_PARALLEL_BYTES = 1 << 30
"""Below this, one process is done before workers are worth their start (some 0.1 s)."""

_PART_BYTES = PIECE_BYTES
"""What a large file is cut into: whole pieces, so that their digests make that of the file."""

_AHEAD_EACH = 2
"""Requests for each of our workers: while one is answered, the next one is there."""

_AHEAD = 256
"""Requests for an executor whose number of workers is not known."""

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Task:
    """One file that an index folder lacks."""

    folder: str
    """The index folder."""

    root: str
    """Where the data is."""

    name: str
    """The file, relative to the root."""

    path: str
    """The file's absolute path."""

    size: int
    """How many bytes it has."""

    mtime_ns: int
    """When it was modified."""

    attempt: int = 1
    """Which scan of the file this is, from 1."""


@dataclass(frozen=True, slots=True)
class _Request:
    batch: ScanBatch
    places: tuple[tuple[Task, Assembly, int], ...]
    """For each part of the batch: its file, what puts that together, and the number of the part in it."""


def build(
    tasks: Sequence[Task],
    scanner: Scanner | Surveyor,
    *,
    notices: Sequence[str],
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> None:
    """Scan files and add them to their indexes.

    Args:
        tasks: the files.
        scanner: what finds the records in them.
        notices: what to tell the user first.
        jobs: how many processes scan, this one among them; None for one to a processor.
        executor: runs the scans instead of this process and our own workers; it stays open.
        progress: is told how far the build is.

    Raises:
        DataNotFound: a file is gone.
        AccessDenied: a file may not be read, or an index folder not be written.
        UnsupportedFormat: a file is of another format.
        IndexStale: a file is changed each time it is scanned.
        WorkerDied: a worker process ended too early.
    """
    size = sum(task.size for task in tasks)
    ledger = Ledger(files=len(tasks), size=size, format_name=scanner.name, hook=progress)
    for notice in notices:
        _log.info(notice)
        ledger.tell(always=True, notice=notice)
    for folder in {task.folder for task in tasks}:
        make_folder(folder)
    with closing(ledger), closing(_Scans(tasks, scanner, ledger)) as scans:
        workers = _worth_starting(scans.parts, size=size, jobs=jobs)
        if executor is not None:
            scans.run(executor, ahead=_AHEAD, helping=False)
        elif workers > 0:
            # This process scans too: workers take a while to start, and it has nothing else to do.
            with WorkerProcesses(workers) as processes:
                scans.run(processes, ahead=workers * _AHEAD_EACH, helping=True)
        else:
            scans.run(None, ahead=0, helping=True)
    ledger.tell(always=True)


def _worth_starting(parts: int, *, size: int, jobs: int | None) -> int:
    """Return how many worker processes to start beside this one."""
    if size < _PARALLEL_BYTES:
        return 0
    return min(usable_cpus() if jobs is None else jobs, parts) - 1


class _Scans:
    """The files of a build: which are to be scanned, and which have arrived in part."""

    def __init__(self, tasks: Sequence[Task], scanner: Scanner | Surveyor, ledger: Ledger) -> None:
        self._scanner = scanner
        self._ledger = ledger
        self._part_bytes = None if is_surveyor(scanner) or not scanner.splittable else _PART_BYTES
        self._planned = deque([self._requests(tasks)])
        self._unfinished: set[Assembly] = set()
        self.parts = sum(map(self._parts, tasks))

    def run(self, executor: Executor | None, *, ahead: int, helping: bool) -> None:
        """Scan all files."""
        tasks = Tasks(
            take=self._take,
            submit=_submit,
            here=self._scan_here if helping else None,
            idle=self._ledger.tell,
            name=_name_of,
        )
        with closing(run_tasks(tasks, executor=executor, ahead=ahead)) as found:
            for request, scans in found:
                for job, place, scan in zip(request.batch.jobs, request.places, scans, strict=True):
                    self._add(job, *place, scan)

    def close(self) -> None:
        """Remove what was kept on disk of files that are not finished."""
        for assembly in self._unfinished:
            assembly.spool.discard()

    def _requests(self, tasks: Sequence[Task]) -> Iterator[_Request]:
        """Yield what to scan; the parts of a file follow each other."""
        assembly: Assembly | None = None
        whole = {number for number, task in enumerate(tasks) if compression_of(task.name)}
        sizes = [task.size for task in tasks]
        for parts in plan_batches(sizes, part_bytes=self._part_bytes, whole=whole):
            jobs, places = [], []
            for part in parts:
                task = tasks[part.file]
                if assembly is None or part.number == 0:
                    assembly = Assembly(
                        task.folder, parts=self._parts(task), size=task.size, mtime_ns=task.mtime_ns
                    )
                    self._unfinished.add(assembly)
                jobs.append(ScanJob(task.path, task.size, task.mtime_ns, part.start, part.stop))
                places.append((task, assembly, part.number))
            yield _Request(ScanBatch(tuple(jobs), self._scanner), tuple(places))

    def _parts(self, task: Task) -> int:
        """Return into how many parts a file is cut; one that is compressed is read from its start."""
        return parts_of(task.size, part_bytes=None if compression_of(task.name) else self._part_bytes)

    def _take(self) -> _Request | None:
        while self._planned:
            if request := next(self._planned[0], None):
                return request
            self._planned.popleft()
        return None

    def _scan_here(self, request: _Request) -> Iterator[PartScan | None]:
        for job in request.batch.jobs:
            yield scan_part(job, self._scanner, on_bytes=self._ledger.read)

    def _add(self, job: ScanJob, task: Task, assembly: Assembly, number: int, scan: PartScan | None) -> None:
        """Take a part; a file that was changed meanwhile is scanned again."""
        if assembly.torn:
            return
        whole = assembly.add(number, scan)
        if assembly.torn:
            self._unfinished.discard(assembly)
            self._ledger.arrived(0, records=-assembly.records)
            self._planned.append(self._requests([_once_more(task)]))
            return
        self._ledger.arrived(job.stop - job.start, records=scan.records if scan else 0)
        if whole:
            self._unfinished.discard(assembly)
            self._ledger.add(task.folder, task.root, task.name, whole)


def _submit(executor: Executor, request: _Request) -> Future[Iterable[PartScan | None]]:
    return executor.submit(scan_batch, request.batch)


def _name_of(request: _Request) -> str:
    first, *others = request.batch.jobs
    return f"{first.path!r} from byte {first.start}" + (f" and {len(others)} more" if others else "")


def _once_more(task: Task) -> Task:
    if task.attempt == _ATTEMPTS:
        raise IndexStale(
            f"{task.path!r} was changed while it was indexed, {_ATTEMPTS} times in a row; "
            f"index it when nothing writes to it"
        )
    status = stat_file(task.path)
    return replace(task, size=status.st_size, mtime_ns=status.st_mtime_ns, attempt=task.attempt + 1)
