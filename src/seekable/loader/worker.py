"""The program of a worker process: it makes the results of its job, a few ahead of need."""

from __future__ import annotations

import faulthandler
import itertools
import os
import signal
import socket
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.loader.worker_messages import Closed, Connection, SharedBuffers
from seekable.parallel.pickling import deserialized, portable_error
from seekable.parallel.processes import leave_signals_to_parent
from seekable.storage.far import take_over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.batch_sources import Job, JobStart

__all__ = ["Delivered", "Ready", "RunStart", "Work", "WorkerFailure", "serve"]


@dataclass(frozen=True, slots=True)
class Work:
    """The job of a worker, which is sent once, and the bounds of the results made ahead."""

    job: Job
    most_batches: int
    """The most results that are made and not delivered."""
    most_bytes: int
    """The most bytes that these have, but for the last of them."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """A message to a worker: make the results of a run from ``start`` on, and drop earlier ones."""

    number: int
    start: JobStart


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message to a worker: one more result of a run was taken."""

    run: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The first message from a worker: it has started, and begins to work."""


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """A message from a worker: an error in the place of a result."""

    error: BaseException


class _RunQueue:
    """The present run of a worker, shared by its thread that listens and its thread that works."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._current: RunStart | None = None
        self._sent: deque[int] = deque()
        """The bytes of each result that is not delivered yet."""
        self._early = 0
        """The number of results that were delivered before their bytes were counted."""

    def begin(self, run: RunStart) -> None:
        with self._changed:
            self._current, self._sent, self._early = run, deque(), 0
            self._changed.notify()

    def delivered(self, run: int) -> None:
        with self._changed:
            if self._current is not None and run == self._current.number:
                if self._sent:
                    self._sent.popleft()
                    self._changed.notify()
                else:
                    self._early += 1

    def sent(self, run: int, count: int) -> None:
        with self._changed:
            if self._current is not None and run == self._current.number:
                if self._early:
                    self._early -= 1
                else:
                    self._sent.append(count)

    def next_run(self, run: int) -> RunStart:
        """Wait for a run after run number ``run``, and return it."""
        with self._changed:
            self._changed.wait_for(lambda: self._current is not None and self._current.number > run)
            assert self._current is not None
            return self._current

    def has_room(self, run: int, work: Work) -> bool:
        """Wait until one more result may be made; return False if another run has begun instead."""
        with self._changed:
            assert self._current is not None
            self._changed.wait_for(
                lambda: (
                    self._current.number != run  # type: ignore[union-attr]
                    or (len(self._sent) < work.most_batches and sum(self._sent) < work.most_bytes)
                )
            )
            return self._current.number == run


def serve(descriptor: int, stacks: int, memory: int, buffers: int) -> None:
    """Make results until the socket ends, which ends this process at once.

    Args:
        descriptor: the socket to the parent process.
        stacks: a file that the stacks of all threads are written to on SIGUSR1.
        memory: the shared memory that results are written to.
        buffers: the number of buffers in it, one for each result that may be made and not delivered.
    """
    leave_signals_to_parent()
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    connection = Connection(socket.socket(fileno=descriptor), SharedBuffers(memory, buffers))
    os.close(memory)
    runs = _RunQueue()
    try:
        stores, sent = connection.receive()
        take_over(stores)
        work: Work = deserialized(sent)
    except Closed:
        return
    except Exception as error:  # noqa: BLE001 - it is raised where the first result would have come
        connection.send(WorkerFailure(portable_error(error)))
        return
    connection.send(Ready())
    threading.Thread(target=_listen, args=(connection, runs), daemon=True).start()
    number = 0
    while True:
        run = runs.next_run(number)
        number = run.number
        _make(work, run, connection, runs)


def _listen(connection: Connection, runs: _RunQueue) -> None:
    try:
        while True:
            message = connection.receive()
            if isinstance(message, RunStart):
                runs.begin(message)
            else:
                runs.delivered(message.run)
    finally:
        os._exit(0)  # At once, even from the middle of a batch: the parent process waits for none.


def _make(work: Work, run: RunStart, connection: Connection, runs: _RunQueue) -> None:
    """Make and send the results of a run, until it ends, an error comes or another run begins."""
    result: Any
    results = _opened(work.job, run.start)
    for buffer in itertools.cycle(range(work.most_batches)):
        if not runs.has_room(run.number, work):
            return
        try:
            result = next(results)
        except StopIteration:
            return
        except BaseException as error:  # noqa: BLE001 - it is raised where the result would have come
            result = WorkerFailure(portable_error(error))
        try:
            count = connection.send(result, tag=run.number, buffer=buffer)
        except Closed:
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - a result that cannot be pickled
            result = WorkerFailure(portable_error(error))
            count = connection.send(result, tag=run.number, buffer=buffer)
        runs.sent(run.number, count)
        if isinstance(result, WorkerFailure):
            return


def _opened(job: Job, start: JobStart) -> Iterator[Any]:
    """Yield the results; an error before the first of them is raised where that would have come."""
    yield from job.results(start)
