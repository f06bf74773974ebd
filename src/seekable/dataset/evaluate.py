"""Work on all rows of a dataset, once: in this process and, where that is worth it, in others.

A *job* is a function of a run of rows, ``job(start, stop)``. Runs are as long as takes a fraction of a
second, and what the job returns of them comes in the order of the rows.

The job travels to other processes by cloudpickle, through a pipe and once to each process: what stands in a
script, lambdas and closures included, works there too. A dataset over a long list is sent whole, so it is
not sent with every request.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import cloudpickle

from seekable.errors import InvalidArgument
from seekable.nodes.readahead import Ahead
from seekable.parallel.pickling import sent
from seekable.parallel.processes import WorkerProcesses, usable_cpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset

__all__ = ["Means", "evaluate", "means", "read_rows"]

T = TypeVar("T")
Job = Callable[[int, int], T]

_RUN_SECONDS = 0.2
"""What a run of rows is to take: often enough to show progress, and far more than sending one costs."""

_FIRST_ROWS, _MOST_ROWS = 1, 1 << 17

_PATIENCE_SECONDS = 1.0
_START_SECONDS = 0.6
"""What workers must save to be worth starting: a process is some 0.3 s old when it can begin."""

_LOOK_SECONDS = 0.1
_MOST_COPIES = 4
"""Requests under way that carry the job, which may be large."""

_FOREIGN_REQUESTS = 64
"""Requests under way in an executor that does not say how many workers it has."""

_AHEAD, _AT_ONCE = 4096, 64
_WAY_OUT = "jobs=1 does everything in this process"


@dataclass(frozen=True, slots=True)
class Means:
    """What a job may be run with."""

    workers: int
    """The most worker processes."""

    patience_seconds: float
    """How long the job is run here before workers are thought of."""

    executor: Executor | None
    """Runs the job instead; it stays open."""


def means(jobs: int | None, executor: Executor | None, *, at_once: bool) -> Means:
    """Return what ``jobs=`` and ``executor=`` of a user mean.

    Args:
        jobs: how many processes; None for as many as there are processors, if they are worth their start.
        executor: runs the job instead.
        at_once: whether a number of jobs is an order to start them, and not the most there may be.

    Raises:
        InvalidArgument: fewer jobs than one.
    """
    if jobs is not None and jobs < 1:
        message = f"jobs must be at least 1, or None for one to a processor where it pays (got {jobs})"
        raise InvalidArgument(message)
    patience = 0.0 if at_once and jobs is not None else _PATIENCE_SECONDS
    return Means(usable_cpus() if jobs is None else jobs, patience, executor)


def evaluate(job: Job[T], rows: int, *, using: Means) -> Generator[tuple[int, T]]:
    """Yield, in the order of the rows, where each run of rows ends and what the job returned of it.

    Close the generator (`contextlib.closing`) if it is not run to its end: that ends the workers.

    Args:
        job: called with the first row of a run and the one behind its last; many times, anywhere.
        rows: how many there are.
        using: what it may be run with.

    Raises:
        WorkerDied: a worker process ended too early.
        InvalidArgument: workers were asked for and the job cannot be sent to them.

    Example:
        >>> runs = [run for _, run in evaluate(range, 25, using=means(1, None, at_once=True))]
        >>> [row for run in runs for row in run] == list(range(25))
        True
    """
    if using.executor is not None:
        token = secrets.token_hex(8)
        # An executor of threads, or one whose processes are forks of this one, has the job already.
        _own[token] = job
        try:
            others = _Requests(using.executor, token, job, most=_FOREIGN_REQUESTS)
            yield from _elsewhere(others, 0, rows)
        finally:
            del _own[token]
        return
    start, payload = yield from _here(job, rows, using=using)
    if start < rows:
        assert payload is not None
        token = secrets.token_hex(8)
        with WorkerProcesses(using.workers, first=(receive, (token, payload))) as workers:
            requests = _Requests(workers, token, job, most=2 * using.workers)
            yield from _elsewhere(requests, start, rows)


def read_rows(dataset: Dataset, rows: NDArray[np.int64]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the records of some rows, a few at a time, and how many came before them."""
    for start in range(0, rows.size, _AHEAD):
        plan = dataset.plan(rows[start : start + _AHEAD])
        ahead = Ahead(plan)
        for first in range(0, len(plan), _AT_ONCE):
            last = min(first + _AT_ONCE, len(plan))
            ahead.read_to(last)
            yield start + first, plan.slice(first, last).read()


class _Pace:
    """How many rows the next run shall have."""

    def __init__(self) -> None:
        self.rows = _FIRST_ROWS

    def saw(self, rows: int, seconds: float) -> None:
        """Take note of how long a run took, without trusting a single one too far."""
        wanted = int(rows * _RUN_SECONDS / max(seconds, 1e-6))
        self.rows = min(max(wanted, self.rows // 4, 1), self.rows * 4, _MOST_ROWS)


def _here(
    job: Job[T], rows: int, *, using: Means
) -> Generator[tuple[int, T], None, tuple[int, bytes | None]]:
    """Run the job in this process, until it is done or workers are worth their start.

    Returns:
        The row that is next, and the job as it is sent to workers.
    """
    pace, spent, start, alone = _Pace(), 0.0, 0, using.workers == 1
    while start < rows:
        if not alone and spent >= using.patience_seconds:
            rest = (rows - start) * spent / max(start, 1)
            ordered = not using.patience_seconds
            if ordered or rest * (1 - 1 / using.workers) > _START_SECONDS:
                try:
                    return start, sent(job, way_out=_WAY_OUT)
                except InvalidArgument:
                    if ordered:
                        raise
                    alone = True
        stop = min(start + pace.rows, rows)
        began = time.monotonic()
        made = job(start, stop)
        seconds = time.monotonic() - began
        spent += seconds
        pace.saw(stop - start, seconds)
        start = stop
        yield start, made
    return start, None


def _elsewhere(requests: _Requests[T], start: int, rows: int) -> Generator[tuple[int, T]]:
    """Run a job in other processes, a few runs ahead."""
    pace = _Pace()
    try:
        while start < rows or requests:
            while start < rows and requests.has_room:
                stop = min(start + pace.rows, rows)
                requests.add(start, stop)
                start = stop
            for first, last, made, seconds in requests.finished():
                pace.saw(last - first, seconds)
                yield last, made
    finally:
        requests.cancel()


@dataclass(slots=True)
class _Request:
    start: int
    stop: int
    future: Future[Any]
    carries: bool

    @property
    def lacks_job(self) -> bool:
        """Whether a worker answered that it does not have the job."""
        future = self.future
        return future.done() and not future.cancelled() and not future.exception() and future.result() is None


class _Requests(Generic[T]):
    """The runs that are under way, in the order of their rows."""

    def __init__(self, executor: Executor, token: str, job: Job[T], *, most: int) -> None:
        self._executor = executor
        self._token = token
        self._job = job
        self._payload: bytes | None = None
        self._most = most
        self._line: deque[_Request] = deque()

    def __len__(self) -> int:
        return len(self._line)

    @property
    def has_room(self) -> bool:
        """Whether one more run may be asked for."""
        return len(self._line) < self._most

    def add(self, start: int, stop: int) -> None:
        """Ask for one more run."""
        self._line.append(_Request(start, stop, self._submit(start, stop, None), carries=False))

    def finished(self) -> Iterator[tuple[int, int, T, float]]:
        """Wait a moment, and yield the first runs of the line that are done, and the seconds they took."""
        wait([self._line[0].future], timeout=_LOOK_SECONDS)
        self._send_again()
        while self._line and self._line[0].future.done():
            answer = self._line[0].future.result()
            if answer is None:
                break
            request = self._line.popleft()
            yield request.start, request.stop, *answer

    def cancel(self) -> None:
        """Drop what is under way."""
        for request in self._line:
            request.future.cancel()

    def _send_again(self) -> None:
        """Send the job itself to executors' workers that answered that they do not have it."""
        copies = sum(request.carries and not request.future.done() for request in self._line)
        for request in self._line:
            if copies == _MOST_COPIES:
                break
            if request.lacks_job:
                self._payload = self._payload or sent(self._job, way_out=_WAY_OUT)
                request.future = self._submit(request.start, request.stop, self._payload)
                request.carries = True
                copies += 1

    def _submit(self, start: int, stop: int, payload: bytes | None) -> Future[Any]:
        return self._executor.submit(run, self._token, payload, start, stop)


_own: dict[str, Job[Any]] = {}
"""The jobs that this process has others run, by token."""

_received: dict[str, Job[Any]] = {}
"""The job that this process was sent last."""


def receive(token: str, payload: bytes) -> None:
    """Take the job that runs will be asked for."""
    _received.clear()
    _received[token] = cloudpickle.loads(payload)


def run(token: str, payload: bytes | None, start: int, stop: int) -> tuple[Any, float] | None:
    """Do a run of a job: what a worker process is asked for.

    Returns:
        What the job returned and the seconds it took; None if the job is not known here and was not sent.
    """
    if payload is not None:
        receive(token, payload)
    job = _own.get(token) or _received.get(token)
    if job is None:
        return None
    began = time.monotonic()
    made = job(start, stop)
    return made, time.monotonic() - began
