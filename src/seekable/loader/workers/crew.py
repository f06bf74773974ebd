"""The worker processes of a loader, and the batches that they make, in their order."""

from __future__ import annotations

import contextlib
import os
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

from seekable.dataset.sending import sent
from seekable.errors import WorkerHung
from seekable.loader.workers.message import Closed
from seekable.loader.workers.process import WorkerProcess
from seekable.loader.workers.worker import Begin, Delivered, Failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor
    from seekable.loader.workers.worker import Job

__all__ = ["Crew"]

_WAY_OUT = "workers=0 and worker_type='thread' send nothing"

_MOST_PATHS = 4
_MOST_DEATHS = 3
"""Workers that may die at one and the same batch before that is an error, even if they are replaced."""


class Crew:
    """Some worker processes, started once and used for one run after another.

    Batch ``t`` is made by worker ``t % n`` and is a function of the positions alone, so neither the batches
    nor their order depend on how many workers there are.
    """

    def __init__(self, job: Job, workers: int, *, timeout: float | None, restart: bool) -> None:
        """Start the workers.

        Args:
            job: what batches are made of.
            workers: how many.
            timeout: how many seconds to wait for a batch; None for as long as it takes.
            restart: whether a worker that dies is replaced.

        Raises:
            InvalidArgument: the pipeline cannot be sent to another process.
        """
        self._job = job
        self._jobs = [
            sent(replace(job, number=number, of=workers), way_out=_WAY_OUT) for number in range(workers)
        ]
        self._timeout, self._restart = timeout, restart
        self._process = os.getpid()
        self._run = 0
        self._workers = [self._started(number) for number in range(workers)]
        self._finalizer = weakref.finalize(self, _end, self._workers, self._process)

    @property
    def is_ours(self) -> bool:
        """Whether this process started the workers, and not one that it was forked from."""
        return os.getpid() == self._process

    def leave(self) -> None:
        """Let go of another process's workers, which then end with that process."""
        for worker in self._workers:
            worker.connection.close()

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Yield the batches of a run from a cursor on; whatever was made before is dropped.

        Raises:
            WorkerDied: a worker ended, and is not to be replaced.
            WorkerHung: a batch took longer than ``timeout``.
        """
        self._run += 1
        for number, worker in enumerate(self._workers):
            if not worker.usable:
                worker.end()
                self._workers[number] = self._started(number)
            self._tell(number, Begin(self._run, cursor))
        return self._made(self._run, cursor)

    def close(self) -> None:
        """End the workers."""
        self._finalizer()

    def _made(self, run: int, cursor: Cursor) -> Iterator[Made]:
        left = self._job.steps.left(cursor)
        while left != 0:
            number = cursor.step % len(self._workers)
            made = self._receive(number, run, cursor)
            if isinstance(made, Failed):
                raise made.error
            self._tell(number, Delivered(run))
            yield made
            cursor = made.after
            left = self._job.steps.left(cursor)

    def _receive(self, number: int, run: int, cursor: Cursor) -> Made | Failed:
        """Return the batch at a cursor, from whoever makes it in the end."""
        for _ in range(_MOST_DEATHS):
            worker = self._workers[number]
            try:
                while True:
                    made = self._wait(worker, run, cursor)
                    if made is not None:
                        return made
            except Closed:
                # All that it had sent was received before.
                died = worker.death(cursor)
            if not self._restart:
                break
            self._workers[number] = self._started(number)
            self._tell(number, Begin(run, cursor))
        raise died

    def _wait(self, worker: WorkerProcess, run: int, cursor: Cursor) -> Made | Failed | None:
        try:
            made: Made | Failed | None = worker.receive(run, self._timeout, cursor)
        except WorkerHung as error:
            positions, _ = self._job.steps.positions(cursor, 1, all_ranks=False)
            paths = sorted(self._job.dataset.plan(positions).paths)
            if paths:
                more = f" and {len(paths) - _MOST_PATHS:,} more" if len(paths) > _MOST_PATHS else ""
                error.add_note(f"the batch reads from {', '.join(paths[:_MOST_PATHS])}{more}")
            raise
        return made

    def _started(self, number: int) -> WorkerProcess:
        return WorkerProcess(self._jobs[number], slots=self._job.most_batches)

    def _tell(self, number: int, message: Begin | Delivered) -> None:
        # One that is dead is found to be so when its batch is waited for.
        with contextlib.suppress(Closed):
            self._workers[number].connection.send(message)


def _end(workers: list[WorkerProcess], process: int) -> None:
    # A forked child has the objects too, and not the right to end its parent's workers.
    if os.getpid() == process:
        for worker in workers:
            worker.end()
