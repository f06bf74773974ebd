"""Building what indexes lack: scan the files, here or in workers, and commit what was found.

Finished files are committed every half minute, and when the build is interrupted or fails, so that
the next one goes on where this one was.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.index.commit import commit, make_folder
from seekable.index.entry import OFFSET_BYTES
from seekable.index.executor import WorkerProcesses, usable_cpus
from seekable.index.plan import plan_batches
from seekable.index.progress import Progress
from seekable.index.scan import ScanBatch, ScanJob, scan_batch, scan_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.index.progress import ProgressHook
    from seekable.index.scan import FileScan
    from seekable.index.scanner import Scanner

_log = logging.getLogger(__name__)

_PARALLEL_BYTES = 1 << 30
"""Below this, one process is done before workers are worth their start (some 0.2 s each)."""

_COMMIT_SECONDS = 30.0
_COMMIT_BYTES = 256 << 20
_PROGRESS_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Task:
    """One file that an index folder lacks."""

    folder: str
    """The index folder."""

    root: str
    """Where the data is."""

    name: str
    """The file, relative to the root."""

    job: ScanJob
    """How to scan it."""


class _Ledger:
    """What was scanned and not yet committed, and how far the build is."""

    def __init__(self, tasks: Sequence[Task], *, format_name: str, hook: ProgressHook | None) -> None:
        self._format_name = format_name
        self._hook = hook
        self._files, self._bytes = len(tasks), sum(task.job.size for task in tasks)
        self._files_done = self._bytes_done = self._records = 0
        self._bytes_of_current = 0
        self._pending: dict[tuple[str, str], dict[str, FileScan]] = {}
        self._pending_bytes = 0
        self._committed = self._told = time.monotonic()

    def add(self, task: Task, scan: FileScan) -> None:
        """Take a finished file, and commit if there is enough to commit."""
        self._pending.setdefault((task.folder, task.root), {})[task.name] = scan
        self._files_done += 1
        self._bytes_done += task.job.size
        self._bytes_of_current = 0
        if scan.starts is not None:
            self._records += len(scan.starts)
            self._pending_bytes += len(scan.starts) * OFFSET_BYTES
        self.tell()
        if time.monotonic() - self._committed > _COMMIT_SECONDS or self._pending_bytes > _COMMIT_BYTES:
            self.commit()

    def read(self, count: int) -> None:
        """Take note of bytes of a file that is being scanned."""
        self._bytes_of_current += count
        self.tell()

    def commit(self) -> None:
        """Write what is finished to the index folders."""
        while self._pending:
            folder, root = next(iter(self._pending))
            commit(folder, self._pending[folder, root], format_name=self._format_name, root=root)
            del self._pending[folder, root]
        self._pending_bytes = 0
        self._committed = time.monotonic()

    def tell(self, *, always: bool = False, notice: str = "") -> None:
        """Call the hook, unless that was done a moment ago."""
        if self._hook is None or not (always or time.monotonic() - self._told > _PROGRESS_SECONDS):
            return
        self._told = time.monotonic()
        done = min(self._bytes_done + self._bytes_of_current, self._bytes)
        self._hook(Progress(self._files_done, self._files, done, self._bytes, self._records, notice))


def build(
    tasks: Sequence[Task],
    scanner: Scanner,
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
        jobs: how many processes; None for one to a processor.
        executor: runs the scans instead of our own processes; it stays open.
        progress: is told how far the build is.
    """
    ledger = _Ledger(tasks, format_name=scanner.name, hook=progress)
    for notice in notices:
        _log.info(notice)
        ledger.tell(always=True, notice=notice)
    for folder in {task.folder for task in tasks}:
        make_folder(folder)
    workers = _worth_starting(tasks, jobs)
    try:
        if executor is not None:
            _scan_in(executor, tasks, scanner, ledger)
        elif workers > 1:
            with WorkerProcesses(workers) as processes:
                _scan_in(processes, tasks, scanner, ledger)
        else:
            for task in tasks:
                ledger.add(task, scan_file(task.job, scanner, on_bytes=ledger.read))
    finally:
        ledger.commit()
    ledger.tell(always=True)


def _worth_starting(tasks: Sequence[Task], jobs: int | None) -> int:
    """Return how many worker processes to start; not more than 1 means none."""
    if sum(task.job.size for task in tasks) < _PARALLEL_BYTES:
        return 0
    return min(usable_cpus() if jobs is None else jobs, len(tasks))


def _scan_in(executor: Executor, tasks: Sequence[Task], scanner: Scanner, ledger: _Ledger) -> None:
    """Scan in other processes; what is not begun when one scan fails is not begun any more."""
    batches = {}
    try:
        for numbers in plan_batches([task.job.size for task in tasks]):
            batch = [tasks[number] for number in numbers]
            request = ScanBatch(tuple(task.job for task in batch), scanner)
            batches[executor.submit(scan_batch, request)] = batch
        while batches:
            # Not longer than a moment, so that a large file's scan shows that it is alive.
            for future in wait(batches, timeout=_PROGRESS_SECONDS, return_when=FIRST_COMPLETED).done:
                for task, scan in zip(batches.pop(future), future.result(), strict=True):
                    ledger.add(task, scan)
            ledger.tell()
    finally:
        for future in batches:
            future.cancel()
