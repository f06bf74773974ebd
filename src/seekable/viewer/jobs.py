"""Long work in threads: a few jobs at a time, each with its latest partial result and its rate.

A job iterates a generator of partial results. It ends after the last one ("done"), on ``stop`` ("stopped") or
with the error that the generator raised ("failed"); a partial result that was made stays in each case.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Protocol

from seekable._arguments import checked_count
from seekable.errors import KeyNotFound
from seekable.parallel.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable

    from seekable.parallel.progress import ProgressHook

JobState = Literal["waiting", "running", "done", "stopped", "failed"]

_ENDED_KEPT = 50
"""Beyond this number the oldest jobs that have ended are forgotten, so that memory is bounded."""

_SECONDS_TO_END = 2.0
"""A job ends at its next partial result, which is at most 100 ms of the library's own work away."""


class Partial(Protocol):
    """A frozen fact about a part of the work; the generator of a job yields it."""

    @property
    def done(self) -> int:
        """The amount that is done, in the unit of ``of``."""

    @property
    def of(self) -> int:
        """The amount that is to be done."""

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""


@dataclass(frozen=True, slots=True)
class JobAddresses:
    """The addresses of a job beside its own."""

    again: str = ""
    """Starts the same work again when it is asked for by POST; empty for none."""

    page: str = ""
    """Shows what it finds; empty for its own. ``{job}`` stands for its name."""


_NO_ADDRESSES = JobAddresses()


class ViewerJob:
    """One piece of work, made by ``Jobs.start``; any thread may read and stop it.

    Attributes:
        name: the last part of its address, unique in its ``Jobs``.
        kind: what the work is, for people: "search", "verify".
        key: what tells it from other work of the kind.
        at: its addresses.
        is_brief: True for what a page needs and soon has, which is not listed.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        key: Hashable,
        work: Generator[Partial],
        release: Callable[[ViewerJob], None],
        *,
        at: JobAddresses = _NO_ADDRESSES,
        is_brief: bool = False,
    ) -> None:
        self.name = name
        self.is_brief = is_brief
        self.kind = kind
        self.key = key
        self.at = replace(at, page=at.page.replace("{job}", name))
        self._work = work
        self._release = release
        self._lock = threading.Lock()
        self._state: JobState = "waiting"
        self._partial: Partial | None = None
        self._error: BaseException | None = None
        self._began: float | None = None
        self._ended_at: float | None = None
        self._asked_to_stop = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> JobState:
        """The phase of the job, from "waiting" to its end."""
        return self._state

    @property
    def is_live(self) -> bool:
        """True until it has ended."""
        return self._state in {"waiting", "running"}

    @property
    def has_begun(self) -> bool:
        """True if the work was begun, even if it has ended."""
        return self._began is not None

    @property
    def partial(self) -> Partial | None:
        """The latest partial result, complete when the state is "done"; None before the first."""
        return self._partial

    @property
    def error(self) -> BaseException | None:
        """The error that the work raised, if it failed."""
        return self._error

    def stop(self) -> None:
        """End the work at its next partial result, or at once if it waits; nothing if it has ended."""
        self._asked_to_stop.set()
        with self._lock:
            waits = self._state == "waiting"
            if waits:
                self._state = "stopped"
        if waits:
            self._work.close()
            self._ended.set()
            self._release(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether the job has ended, after waiting for its end for at most some seconds.

        Args:
            seconds: the longest wait; None waits until the end.
        """
        return self._ended.wait(seconds)

    def document(self) -> dict[str, Any]:
        """Return the state, the progress, the rate and the latest partial result, JSON-safe.

        ``rate`` is in units of ``of`` a second since the work began, and ``seconds_left`` follows from it;
        both are None where nothing is done yet.
        """
        state, partial, error = self._state, self._partial, self._error
        seconds = self._seconds()
        done, of = (0, 0) if partial is None else (partial.done, partial.of)
        rate = done / seconds if done and seconds else None
        runs = state == "running" and rate is not None
        return {
            "job": self.name,
            "kind": self.kind,
            "state": state,
            "done": done,
            "of": of,
            "seconds": seconds,
            "rate": rate,
            "seconds_left": (of - done) / rate if runs and rate else None,
            "error": None if error is None else f"{type(error).__name__}: {error}",
            "again": self.at.again or None,
            "page": self.at.page or None,
            "result": None if partial is None else partial.document(),
        }

    def begin(self) -> bool:
        """Start the thread of a job that waits; False if it was stopped meanwhile. Only for ``Jobs``."""
        with self._lock:
            if self._state != "waiting":
                return False
            self._state = "running"
            self._began = time.monotonic()
            self._thread = threading.Thread(target=self._run, name=f"seekable-job-{self.name}", daemon=True)
        self._thread.start()
        return True

    def _run(self) -> None:
        state: JobState = "done"
        try:
            for partial in self._work:
                self._partial = partial
                if self._asked_to_stop.is_set():
                    state = "stopped"
                    break
            self._work.close()
        except BaseException as error:  # noqa: BLE001 - functions of a user raise anything, SystemExit too
            self._error, state = error, "failed"
        self._ended_at = time.monotonic()
        self._state = state
        self._release(self)
        self._ended.set()

    def _seconds(self) -> float:
        """The time since the work began, or the time that it took."""
        if self._began is None:
            return 0.0
        end = self._ended_at
        return (time.monotonic() if end is None else end) - self._began


class Jobs:
    """The jobs of one viewer; any thread may use it.

    Args:
        at_a_time: the number of jobs that run together; others wait in the order in which they were started.
    """

    def __init__(self, *, at_a_time: int = 2) -> None:
        self._free = checked_count("at_a_time", at_a_time, least=1)
        self._lock = threading.Lock()
        self._count = 0
        self._jobs: dict[str, ViewerJob] = {}
        self._by_key: dict[tuple[str, Hashable], ViewerJob] = {}
        self._waiting: deque[ViewerJob] = deque()
        self._beside: set[ViewerJob] = set()
        self._closed = False

    def start(
        self,
        kind: str,
        key: Hashable,
        work: Generator[Partial],
        *,
        at: JobAddresses = _NO_ADDRESSES,
        anew: bool = True,
        at_once: bool = False,
    ) -> ViewerJob:
        """Return the job of a kind and a key, which is started unless it waits, runs or is done.

        A job that failed or was stopped is started anew, under another name. ``work`` is closed where it is
        not needed.

        Args:
            kind: what the work is, for people.
            key: what tells it from other work of the kind: all that its result depends on.
            work: a generator of partial results that is not begun yet.
            at: the addresses that start it again and show it.
            anew: False to return a job that failed or was stopped as it is.
            at_once: True to begin beside those that run, for work that soon ends.

        Raises:
            RuntimeError: ``close`` was called.
        """
        with self._lock:
            if self._closed:
                message = f"a job cannot be started: the viewer is closed (kind: {kind})"
                raise RuntimeError(message)
            job = self._by_key.get((kind, key))
            is_new = job is None or (anew and job.state in {"failed", "stopped"})
            if job is None or is_new:
                self._count += 1
                name = str(self._count)
                job = ViewerJob(name, kind, key, work, self._ended, at=at, is_brief=at_once)
                self._jobs[job.name] = self._by_key[kind, key] = job
                if at_once:
                    self._beside.add(job)
                else:
                    self._waiting.append(job)
        if not is_new:
            work.close()
        elif at_once:
            job.begin()
        else:
            self._begin_waiting()
        return job

    def __getitem__(self, name: str) -> ViewerJob:
        """Return the job of a name.

        Raises:
            KeyNotFound: there is none, or it ended long ago and is forgotten.
        """
        with self._lock:
            job = self._jobs.get(name)
        if job is None:
            message = f"there is no job {name!r}: it ended long ago, or in another viewer; start it again"
            raise KeyNotFound(message)
        return job

    def forget(self, job: ViewerJob) -> None:
        """Drop a job that has ended, and its result."""
        with self._lock:
            self._jobs.pop(job.name, None)
            if self._by_key.get((job.kind, job.key)) is job:
                del self._by_key[job.kind, job.key]

    def all(self) -> list[ViewerJob]:
        """Return the jobs, the newest first, with at most the last fifty that have ended."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def close(self) -> None:
        """Stop all jobs, and wait for their ends for at most two seconds together."""
        with self._lock:
            self._closed = True
            jobs = list(self._jobs.values())
        for job in jobs:
            job.stop()
        until = time.monotonic() + _SECONDS_TO_END
        for job in jobs:
            job.wait(max(0.0, until - time.monotonic()))

    def _begin_waiting(self) -> None:
        """Begin jobs that wait while there is room."""
        with self._lock:
            while self._free and self._waiting:
                self._free -= self._waiting.popleft().begin()

    def _ended(self, job: ViewerJob) -> None:
        """Note that a job has ended: forget the oldest of these, and begin others if it ran."""
        with self._lock:
            if job in self._beside:
                self._beside.remove(job)
            elif job.has_begun:
                self._free += 1
            elif job in self._waiting:
                self._waiting.remove(job)
            ended = [job for job in self._jobs.values() if not job.is_live]
            for old in ended[:-_ENDED_KEPT]:
                del self._jobs[old.name]
                if self._by_key.get((old.kind, old.key)) is old:
                    del self._by_key[old.kind, old.key]
        self._begin_waiting()


class _CallStopped(BaseException):
    """Ends a call whose generator was closed; not an ``Exception``, so that no handler catches it."""


@dataclass(frozen=True, slots=True)
class _CallEnd:
    """What a call returned or raised."""

    result: Partial | None
    error: BaseException | None


def hooked(
    call: Callable[[ProgressHook], Partial], shown: Callable[[Progress], Partial]
) -> Generator[Partial]:
    """Yield what a call reports to its hook, then what it returns.

    The call runs in a thread from the first item on. Closing the generator ends the call at its next report,
    and waits for that.

    Args:
        call: takes a hook, which it calls some ten times a second.
        shown: makes a partial result of a report.

    Raises:
        BaseException: what the call raised.
    """
    news: SimpleQueue[Progress | _CallEnd] = SimpleQueue()
    stopping = threading.Event()

    def hook(progress: Progress) -> None:
        if stopping.is_set():
            raise _CallStopped
        news.put(progress)

    def run() -> None:
        try:
            news.put(_CallEnd(call(hook), None))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the generator
            news.put(_CallEnd(None, error))

    thread = threading.Thread(target=run, name="seekable-hooked", daemon=True)
    thread.start()
    try:
        while isinstance(item := news.get(), Progress):
            yield shown(item)
        if item.error is not None:
            raise item.error
        if item.result is not None:
            yield item.result
    finally:
        stopping.set()
        thread.join()
