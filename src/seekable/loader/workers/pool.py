"""The worker processes of a loader, and the results that each of them makes in its order."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import TYPE_CHECKING, Any, final

from seekable.errors import WorkerHung
from seekable.loader.workers.messages import Closed
from seekable.loader.workers.process import WorkerProcess
from seekable.loader.workers.worker import Delivered, Failed, RunStart, Work
from seekable.parallel.pickling import serialized
from seekable.storage.addresses import is_address
from seekable.storage.far import far, handed_down

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.loader.batch_sources import Job, JobStart

__all__ = ["WorkerPool"]

_WAY_OUT = "workers=0 and worker_type='thread' send nothing"

_MOST_PATHS = 4
_MOST_DEATHS = 3
"""The number of workers that may die at one batch, one after the other, before that is an error."""


@final
class WorkerPool:
    """Worker processes, one for each job, which serve one run after another.

    Args:
        jobs: the jobs.
        most_batches: the most results that a worker makes ahead.
        most_bytes: the most bytes that these have, but for the last of them.
        timeout: the most seconds to wait for a result; None for any number.
        restart: replace a worker that dies.

    Raises:
        InvalidArgument: a job cannot be sent to another process.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        most_batches: int,
        most_bytes: int,
        timeout: float | None,
        restart: bool,
    ) -> None:
        self._jobs, self._most_batches = jobs, most_batches
        self._serialized = [serialized(Work(job, most_batches, most_bytes), way_out=_WAY_OUT) for job in jobs]
        self._stores = handed_down()
        self._timeout, self._restart = timeout, restart
        self._process = os.getpid()
        self._run = 0
        self.workers = [self._started(number) for number in range(len(jobs))]
        self._finalizer = weakref.finalize(self, _end, self.workers, self._process)

    @property
    def is_ours(self) -> bool:
        """True if this process started the workers, and not one that it was forked from."""
        return os.getpid() == self._process

    def leave(self) -> None:
        """Close the connections to the workers of another process; they end with that process."""
        for worker in self.workers:
            worker.connection.close()

    def run(self, starts: Sequence[JobStart]) -> list[Iterator[Any]]:
        """Begin a run, and return the results of each job; results made ahead for the run before are dropped.

        The iterators raise `WorkerDied` if a worker ended and is not replaced, `WorkerHung` if a result takes
        longer than ``timeout``, and each error of a job in the place of its result.
        """
        self._run += 1
        for number, (worker, start) in enumerate(zip(self.workers, starts, strict=True)):
            if not worker.usable:
                worker.end()
                self.workers[number] = self._started(number)
            self._send(number, RunStart(self._run, start))
        return [self._results(number, self._run, start) for number, start in enumerate(starts)]

    def close(self) -> None:
        """End the workers at once, also in the middle of a batch."""
        self._finalizer()

    def _results(self, number: int, run: int, start: JobStart) -> Iterator[Any]:
        while True:
            result = self._result(number, run, start)
            # Computed now: a worker that replaces this one begins after all that was received of it.
            start = self._jobs[number].after(start, result)
            yield result

    def _result(self, number: int, run: int, start: JobStart) -> Any:
        """Return the next result of a worker, or of one that takes its place and begins at ``start``."""
        for _ in range(_MOST_DEATHS):
            try:
                while (result := self._received(number, run, start)) is None:
                    pass
            except Closed:
                # All that it had sent was received before.
                died = self.workers[number].death(start.cursor)
            else:
                if isinstance(result, Failed):
                    raise result.error
                self._send(number, Delivered(run))
                return result
            if not self._restart:
                break
            self.workers[number] = self._started(number)
            self._send(number, RunStart(run, start))
        raise died

    def _received(self, number: int, run: int, start: JobStart) -> Any:
        try:
            return self.workers[number].receive(run, self._timeout, start.cursor)
        except WorkerHung as error:
            paths = sorted(self._jobs[number].paths(start.cursor))
            if paths:
                more = f" and {len(paths) - _MOST_PATHS:,} more" if len(paths) > _MOST_PATHS else ""
                error.add_note(f"the batch reads from {', '.join(paths[:_MOST_PATHS])}{more}")
            if any(is_address(path) for path in paths) and (oldest := far().reads.report().oldest):
                error.add_note(f"this process waits for the answer to its oldest request: {oldest}")
            raise

    def _started(self, number: int) -> WorkerProcess:
        return WorkerProcess(self._serialized[number], self._stores, buffers=self._most_batches)

    def _send(self, number: int, message: RunStart | Delivered) -> None:
        # That a worker is dead is seen when its result is waited for.
        with contextlib.suppress(Closed):
            self.workers[number].connection.send(message)


def _end(workers: list[WorkerProcess], process: int) -> None:
    # A forked child has these objects too, and must not end the workers of its parent.
    if os.getpid() == process:
        for worker in workers:
            worker.end()
