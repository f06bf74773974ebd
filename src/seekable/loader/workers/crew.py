"""The worker processes of a loader, and what they make, each in its order."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import TYPE_CHECKING, Any

from seekable.errors import WorkerHung
from seekable.loader.workers.message import Closed
from seekable.loader.workers.process import WorkerProcess
from seekable.loader.workers.worker import Delivered, Failed, Run
from seekable.parallel.pickling import serialized

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.loader.steps import Cursor
    from seekable.loader.workers.job import Begin, Job

__all__ = ["Crew", "CrewKeeper"]

_WAY_OUT = "workers=0 and worker_type='thread' send nothing"

_MOST_PATHS = 4
_MOST_DEATHS = 3
"""Workers that may die at one and the same batch before that is an error, even if they are replaced."""


class Crew:
    """Some worker processes, started once and used for one run after another."""

    def __init__(self, jobs: Sequence[Job], *, timeout: float | None, restart: bool) -> None:
        """Start a worker for each job.

        Args:
            jobs: what they make.
            timeout: how many seconds to wait for a result; None for as long as it takes.
            restart: whether a worker that dies is replaced.

        Raises:
            InvalidArgument: the pipeline cannot be sent to another process.
        """
        self._jobs = jobs
        self._sent = [serialized(job, way_out=_WAY_OUT) for job in jobs]
        self._timeout, self._restart = timeout, restart
        self._process = os.getpid()
        self._run = 0
        self._workers = [self._started(number) for number in range(len(jobs))]
        self._finalizer = weakref.finalize(self, _end, self._workers, self._process)

    @property
    def is_ours(self) -> bool:
        """Whether this process started the workers, and not one that it was forked from."""
        return os.getpid() == self._process

    def leave(self) -> None:
        """Let go of another process's workers, which then end with that process."""
        for worker in self._workers:
            worker.connection.close()

    def __len__(self) -> int:
        """Return how many workers there are."""
        return len(self._jobs)

    def begin(self, begin: Callable[[int], Begin]) -> int:
        """Begin a run, and return its number; what was made before is dropped.

        Args:
            begin: where each worker begins.
        """
        self._run += 1
        for number, worker in enumerate(self._workers):
            if not worker.usable:
                worker.end()
                self._workers[number] = self._started(number)
            self._tell(number, Run(self._run, begin(number)))
        return self._run

    def take(self, number: int, run: int, cursor: Cursor, again: Callable[[], Begin]) -> Any:
        """Return a worker's next result, from whoever makes it in the end.

        Args:
            number: which worker.
            run: the number of the run.
            cursor: where the result's batch begins.
            again: where a worker begins that has to take this one's place.

        Raises:
            WorkerDied: the worker ended, and is not to be replaced.
            WorkerHung: the result took longer than ``timeout``.
            Exception: what was raised in place of the result.
        """
        for _ in range(_MOST_DEATHS):
            try:
                while (result := self._wait(number, run, cursor)) is None:
                    pass
            except Closed:
                # All that it had sent was received before.
                died = self._workers[number].death(cursor)
            else:
                if isinstance(result, Failed):
                    raise result.error
                self._tell(number, Delivered(run))
                return result
            if not self._restart:
                break
            self._workers[number] = self._started(number)
            self._tell(number, Run(run, again()))
        raise died

    def close(self) -> None:
        """End the workers."""
        self._finalizer()

    def _wait(self, number: int, run: int, cursor: Cursor) -> Any:
        try:
            return self._workers[number].receive(run, self._timeout, cursor)
        except WorkerHung as error:
            paths = sorted(self._jobs[number].paths(cursor))
            if paths:
                more = f" and {len(paths) - _MOST_PATHS:,} more" if len(paths) > _MOST_PATHS else ""
                error.add_note(f"the batch reads from {', '.join(paths[:_MOST_PATHS])}{more}")
            raise

    def _started(self, number: int) -> WorkerProcess:
        return WorkerProcess(self._sent[number], slots=self._jobs[number].most_batches)

    def _tell(self, number: int, message: Run | Delivered) -> None:
        # One that is dead is found to be so when its result is waited for.
        with contextlib.suppress(Closed):
            self._workers[number].connection.send(message)


class CrewKeeper:
    """Has a crew once one is needed, and a new one in a forked child."""

    def __init__(self, jobs: Sequence[Job], *, timeout: float | None, restart: bool) -> None:
        """Start nothing yet; the arguments are those of a crew."""
        self._jobs, self._timeout, self._restart = jobs, timeout, restart
        self.crew: Crew | None = None

    def ready(self) -> Crew:
        """Return a crew of this process."""
        if self.crew is not None and not self.crew.is_ours:
            # A forked child has its parent's workers, and starts its own.
            self.crew.leave()
            self.crew = None
        if self.crew is None:
            self.crew = Crew(self._jobs, timeout=self._timeout, restart=self._restart)
        return self.crew

    def close(self) -> None:
        """End the workers."""
        if self.crew is not None:
            self.crew.close()
            self.crew = None


def _end(workers: list[WorkerProcess], process: int) -> None:
    # A forked child has the objects too, and not the right to end its parent's workers.
    if os.getpid() == process:
        for worker in workers:
            worker.end()
