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

import cloudpickle

from seekable.index.building.executor import as_sent
from seekable.loader.produce import produce
from seekable.loader.workers.message import Closed, Connection
from seekable.loader.workers.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.dataset.base import Dataset
    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor, Steps

__all__ = ["Begin", "Delivered", "Failed", "Job", "serve"]


@dataclass(frozen=True, slots=True)
class Job:
    """What all batches of a loader are made of."""

    dataset: Dataset
    steps: Steps
    collate: Callable[[list[Any]], Any] | None
    most_batches: int
    """How many batches may be made and not delivered."""
    most_bytes: int
    """How many bytes these may have, but for the last of them."""
    number: int = 0
    """Which of ``of`` workers this is: it makes the batches of steps ``t % of == number``."""
    of: int = 1


@dataclass(frozen=True, slots=True)
class Begin:
    """A request to make batches from a cursor on, and to drop what was made before."""

    run: int
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class Delivered:
    """A notice that a batch was delivered."""

    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An error in place of a batch."""

    error: BaseException


class _Desk:
    """What the thread that listens and the one that works share."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._begin: Begin | None = None
        self._sent: deque[int] = deque()
        """The bytes of each batch that is not delivered yet."""
        self._early = 0
        """Batches that were delivered before this side had noted how large they were."""

    def begin(self, begin: Begin) -> None:
        with self._changed:
            self._begin, self._sent, self._early = begin, deque(), 0
            self._changed.notify()

    def delivered(self, run: int) -> None:
        with self._changed:
            if self._begin is not None and run == self._begin.run:
                if self._sent:
                    self._sent.popleft()
                    self._changed.notify()
                else:
                    self._early += 1

    def sent(self, run: int, count: int) -> None:
        with self._changed:
            if self._begin is not None and run == self._begin.run:
                if self._early:
                    self._early -= 1
                else:
                    self._sent.append(count)

    def next_run(self, run: int) -> Begin:
        """Wait for a run after this one."""
        with self._changed:
            self._changed.wait_for(lambda: self._begin is not None and self._begin.run > run)
            assert self._begin is not None
            return self._begin

    def has_room(self, run: int, job: Job) -> bool:
        """Wait until one more batch may be made; return False if another run has begun instead."""
        with self._changed:
            assert self._begin is not None
            self._changed.wait_for(
                lambda: (
                    self._begin.run != run  # type: ignore[union-attr]
                    or (len(self._sent) < job.most_batches and sum(self._sent) < job.most_bytes)
                )
            )
            return self._begin.run == run


def serve(descriptor: int, stacks: int, memory: int, slots: int) -> None:
    """Make batches until the socket ends, which ends this process at once.

    Args:
        descriptor: the socket to the process that asked for batches.
        stacks: a file that the stacks of all threads are written to on SIGUSR1.
        memory: the memory that batches are put into, by slots.
        slots: how many slots it has, one for each batch that may be made and not delivered.
    """
    # An interrupt at the terminal goes to all processes there; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    connection = Connection(socket.socket(fileno=descriptor), Slots(memory, slots))
    os.close(memory)
    desk = _Desk()
    try:
        job: Job = cloudpickle.loads(connection.receive())
    except Closed:
        return
    except Exception as error:  # noqa: BLE001 - it is raised where the first batch would have come
        connection.send(Failed(as_sent(error)))
        return
    threading.Thread(target=_listen, args=(connection, desk), daemon=True).start()
    run = 0
    while True:
        begin = desk.next_run(run)
        run = begin.run
        _make(job, begin, connection, desk)


def _listen(connection: Connection, desk: _Desk) -> None:
    try:
        while True:
            message = connection.receive()
            if isinstance(message, Begin):
                desk.begin(message)
            else:
                desk.delivered(message.run)
    finally:
        os._exit(0)  # At once, even from the middle of a batch: nobody waits for it.


def _make(job: Job, begin: Begin, connection: Connection, desk: _Desk) -> None:
    made: Made | Failed
    batches = produce(job.dataset, job.steps, begin.cursor, job.collate, number=job.number, of=job.of)
    for slot in itertools.cycle(range(job.most_batches)):
        if not desk.has_room(begin.run, job):
            return
        try:
            made = next(batches)
        except StopIteration:
            return
        except BaseException as error:  # noqa: BLE001 - it is raised where the batch would have come
            made = Failed(as_sent(error))
        try:
            count = connection.send(made, tag=begin.run, slot=slot)
        except Closed:
            os._exit(0)
        except Exception as error:  # noqa: BLE001 - a batch that cannot be pickled
            made = Failed(as_sent(error))
            count = connection.send(made, tag=begin.run, slot=slot)
        desk.sent(begin.run, count)
        if isinstance(made, Failed):
            return
