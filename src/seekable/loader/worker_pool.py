"""The worker processes of a loader, and the results that each makes in its order."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from typing import TYPE_CHECKING, Any, final

from seekable.errors import WorkerDied, WorkerHung
from seekable.loader.worker import Delivered, Ready, RunStart, Work, WorkerFailure
from seekable.loader.worker_messages import Closed, Connection, SharedBuffers, memory_without_name
from seekable.parallel.pickling import serialized
from seekable.parallel.processes import ending_of, start_interpreter
from seekable.storage import abandoned
from seekable.storage.addresses import is_address
from seekable.storage.far import far, handed_down

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.loader.batch_sources import Job, JobStart
    from seekable.loader.steps import StepCursor

__all__ = ["WorkerPool", "WorkerProcess"]

_MOMENT = 0.2
"""The seconds after which a thread that waits looks whether its work is still needed."""
_STACK_SECONDS = 2.0
_LOOK_SECONDS = 0.05


class WorkerProcess:
    """A new interpreter that runs `seekable.loader.worker`.

    It is not forked: a fork hangs where this process has threads. It does not run the main module again: that
    goes wrong in a script without a main guard and in a notebook.

    Args:
        work: the pickled `Work` of the process.
        stores: what it takes over of `seekable.storage.far`.
        buffers: the number of shared buffers for the messages that it sends.
    """

    def __init__(self, work: bytes, stores: bytes, *, buffers: int) -> None:
        ours, theirs = socket.socketpair()
        memory = memory_without_name()
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process lives
        with theirs:
            descriptors = (theirs.fileno(), self._stacks.fileno(), memory)
            self._process = start_interpreter(
                "seekable.loader.worker",
                *(*descriptors, buffers),
                stdin=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
        self._is_ready = False
        self.connection = Connection(ours, SharedBuffers(memory, buffers))
        os.close(memory)
        # That the process is dead already is seen when its first result is waited for.
        with contextlib.suppress(Closed):
            self.connection.send((stores, work))

    @property
    def usable(self) -> bool:
        """True if the process is alive, and no message was interrupted in its middle."""
        return self.connection.whole and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def receive(self, run: int, timeout: float | None, cursor: StepCursor) -> Any:
        """Wait for a result and return it; return None if another message came, or one of an earlier run.

        Args:
            run: the number of the present run.
            timeout: the most seconds to wait, once the process has started; None for any number.
            cursor: the place of the batch that is waited for, for errors.

        Raises:
            Closed: the process has ended.
            WorkerHung: no message came within ``timeout``; the error has the stacks of the process.
        """
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        # A start takes seconds where modules are large or lie on a slow disk, and says nothing of a batch.
        give_up = math.inf if timeout is None or not self._is_ready else time.monotonic() + timeout
        # In a thread that copies batches to a device, the wait ends with the run.
        while not poll.poll(1000 * min(_MOMENT, max(0, give_up - time.monotonic()))):
            abandoned.check_not_abandoned()
            if time.monotonic() < give_up:
                continue
            hung = (
                f"{self._shown} has not made the {_batch(cursor)} within timeout={timeout:g} seconds. This "
                f"is what it is doing:\n{self._stack()}"
            )
            self.end()
            raise WorkerHung(hung)
        message = self.connection.receive(run)
        self._is_ready = True
        return None if isinstance(message, Ready) else message

    def death(self, cursor: StepCursor) -> WorkerDied:
        """Wait until the process has ended, and return an error that says how it ended."""
        how = ending_of(self._process)
        self.end()
        memory = " Was memory short?" if -self._process.returncode == signal.SIGKILL else ""
        return WorkerDied(
            f"{self._shown} ended {how} before it had made the {_batch(cursor)}; what it wrote to stderr "
            f"tells more.{memory} workers=sk.Workers(..., restart=2) lets others take the place of two"
        )

    def end(self) -> None:
        """Kill the process, if it has not ended."""
        self.connection.close()
        self._process.kill()
        self._process.wait()
        self._stacks.close()

    @property
    def _shown(self) -> str:
        return f"a worker process (pid {self._process.pid})"

    def _stack(self) -> str:
        """Return the stacks of all threads of the process, which writes them when it gets a signal."""
        before = os.fstat(self._stacks.fileno()).st_size
        self._process.send_signal(signal.SIGUSR1)
        give_up, seen = time.monotonic() + _STACK_SECONDS, before
        while time.monotonic() < give_up:
            time.sleep(_LOOK_SECONDS)
            size = os.fstat(self._stacks.fileno()).st_size
            if size == seen > before:
                break
            seen = size
        return os.pread(self._stacks.fileno(), seen - before, before).decode(errors="replace") or "unknown"


def _batch(cursor: StepCursor) -> str:
    return f"batch of step {cursor.step} (position {cursor.position})"


_WAY_OUT = "workers=0 and workers=sk.Workers(..., type='thread') send nothing"

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
        restart: the most workers that are replaced when they die; None for any number.

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
        restart: int | None,
    ) -> None:
        self._jobs, self._most_batches = jobs, most_batches
        self._serialized = [serialized(Work(job, most_batches, most_bytes), way_out=_WAY_OUT) for job in jobs]
        self._stores = handed_down()
        self._timeout, self._replaceable = timeout, restart
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
                if isinstance(result, WorkerFailure):
                    raise result.error
                self._send(number, Delivered(run))
                return result
            if self._replaceable == 0:
                break
            if self._replaceable is not None:
                self._replaceable -= 1
            self.workers[number] = self._started(number)
            self._send(number, RunStart(run, start))
        raise died

    def _received(self, number: int, run: int, start: JobStart) -> Any:
        try:
            return self.workers[number].receive(run, self._timeout, start.cursor)
        except WorkerHung as error:
            paths = sorted(self._jobs[number].paths(start))
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
