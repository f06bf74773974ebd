"""What a worker process of a loader does: it makes its share of the batches, a few ahead of need."""

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

from seekable.loader.workers.message import Closed, Connection
from seekable.loader.workers.slots import Slots
from seekable.parallel.pickling import deserialized, portable_error
from seekable.parallel.processes import ignore_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.workers.job import Begin, Job

__all__ = ["Delivered", "Failed", "Run", "serve"]


@dataclass(frozen=True, slots=True)
class Run:
    """A request to make results from a point on, and to drop what was made before."""

    number: int
    begin: Begin


@dataclass(frozen=True, slots=True)
class Delivered:
    """A notice that a result was taken."""

    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An error in place of a batch."""

    error: BaseException


class _Desk:
    """What the thread that listens and the one that works share."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._current: Run | None = None
        self._sent: deque[int] = deque()
        """The bytes of each batch that is not delivered yet."""
        self._early = 0
        """Batches that were delivered before this side had noted how large they were."""

    def begin(self, run: Run) -> None:
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

    def next_run(self, run: int) -> Run:
        """Wait for a run after this one."""
        with self._changed:
            self._changed.wait_for(lambda: self._current is not None and self._current.number > run)
            assert self._current is not None
            return self._current

    def has_room(self, run: int, job: Job) -> bool:
        """Wait until one more batch may be made; return False if another run has begun instead."""
        with self._changed:
            assert self._current is not None
            self._changed.wait_for(
                lambda: (
                    self._current.number != run  # type: ignore[union-attr]
                    or (len(self._sent) < job.most_batches and sum(self._sent) < job.most_bytes)
                )
            )
            return self._current.number == run


def serve(descriptor: int, stacks: int, memory: int, slots: int) -> None:
    """Make batches until the socket ends, which ends this process at once.

    Args:
        descriptor: the socket to the process that asked for batches.
        stacks: a file that the stacks of all threads are written to on SIGUSR1.
        memory: the memory that batches are put into, by slots.
        slots: how many slots it has, one for each batch that may be made and not delivered.
    """
    ignore_interrupts()
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    connection = Connection(socket.socket(fileno=descriptor), Slots(memory, slots))
    os.close(memory)
    desk = _Desk()
    try:
        job: Job = deserialized(connection.receive())
    except Closed:
        return
    except Exception as error:  # noqa: BLE001 - it is raised where the first batch would have come
        connection.send(Failed(portable_error(error)))
        return
    threading.Thread(target=_listen, args=(connection, desk), daemon=True).start()
    number = 0
    while True:
        run = desk.next_run(number)
        number = run.number
        _make(job, run, connection, desk)


def _listen(connection: Connection, desk: _Desk) -> None:
    try:
        while True:
            message = connection.receive()
            if isinstance(message, Run):
                desk.begin(message)
            else:
                desk.delivered(message.run)
    finally:
        os._exit(0)  # At once, even from the middle of a batch: nobody waits for it.


def _make(job: Job, run: Run, connection: Connection, desk: _Desk) -> None:
    result: Any
    results = _opened(job, run.begin)
    for slot in itertools.cycle(range(job.most_batches)):
        if not desk.has_room(run.number, job):
            return
        try:
            result = next(results)
        except StopIteration:
            return
        except BaseException as error:  # noqa: BLE001 - it is raised where the result would have come
            result = Failed(portable_error(error))
        try:
            count = connection.send(result, tag=run.number, slot=slot)
        except Closed:
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - a result that cannot be pickled
            result = Failed(portable_error(error))
            count = connection.send(result, tag=run.number, slot=slot)
        desk.sent(run.number, count)
        if isinstance(result, Failed):
            return


def _opened(job: Job, begin: Begin) -> Iterator[Any]:
    """Return the results; what fails before the first of them fails where it would have come."""
    yield from job.results(begin)
