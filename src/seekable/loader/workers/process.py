"""One worker process, as its parent sees it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any

from seekable.errors import WorkerDied, WorkerHung
from seekable.loader.workers.message import Closed, Connection
from seekable.loader.workers.slots import Slots, memory_without_name
from seekable.parallel.processes import ending_of, start_interpreter

if TYPE_CHECKING:
    from seekable.loader.steps import Cursor

__all__ = ["WorkerProcess"]

_STACK_SECONDS = 2.0
_LOOK_SECONDS = 0.05


class WorkerProcess:
    """A fresh interpreter that was sent a job.

    It is no fork, which would hang where this process has threads, and does not run the main module again,
    which would go wrong in a script without a main guard and in a notebook.
    """

    def __init__(self, job: bytes, *, slots: int) -> None:
        """Start it, with some slots of memory for the messages that it will send."""
        ours, theirs = socket.socketpair()
        memory = memory_without_name()
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process lives
        with theirs:
            descriptors = (theirs.fileno(), self._stacks.fileno(), memory)
            self._process = start_interpreter(
                "seekable.loader.workers.worker",
                *(*descriptors, slots),
                stdin=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
        self.connection = Connection(ours, Slots(memory, slots))
        os.close(memory)
        with contextlib.suppress(
            Closed
        ):  # One that is dead already is found to be so by whoever waits for it.
            self.connection.send(job)

    @property
    def usable(self) -> bool:
        """Whether the process lives, and whole messages alone went to and fro."""
        return self.connection.whole and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def receive(self, run: int, timeout: float | None, cursor: Cursor) -> Any:
        """Wait for a message and return it, or None if it is of an earlier run.

        Raises:
            Closed: the process has ended.
            WorkerHung: nothing came in time.
        """
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            message = (
                f"{self._shown} has not made the {_batch(cursor)} within timeout={timeout:g} seconds. This "
                f"is what it is doing:\n{self._stack()}"
            )
            self.end()
            raise WorkerHung(message)
        return self.connection.receive(run)

    def death(self, cursor: Cursor) -> WorkerDied:
        """Wait until the process has ended, and return what there is to say of that."""
        how = ending_of(self._process)
        self.end()
        memory = " Was memory short?" if -self._process.returncode == signal.SIGKILL else ""
        return WorkerDied(
            f"{self._shown} ended {how} before it had made the {_batch(cursor)}; what it wrote to stderr "
            f"tells more.{memory} restart_workers=True has another one take its place"
        )

    def end(self) -> None:
        """End the process at once, if it has not ended."""
        self.connection.close()
        self._process.kill()
        self._process.wait()
        self._stacks.close()

    @property
    def _shown(self) -> str:
        return f"a worker process (pid {self._process.pid})"

    def _stack(self) -> str:
        """Have the process write what all of its threads are doing, and return it."""
        before = os.fstat(self._stacks.fileno()).st_size
        self._process.send_signal(signal.SIGUSR1)
        give_up, seen = time.monotonic() + _STACK_SECONDS, before
        while time.monotonic() < give_up:
            time.sleep(_LOOK_SECONDS)
            size = os.fstat(self._stacks.fileno()).st_size
            if size == seen > before:
                break
            seen = size
        return os.pread(self._stacks.fileno(), seen - before, before).decode(errors="replace") or "not told"


def _batch(cursor: Cursor) -> str:
    return f"batch of step {cursor.step} (position {cursor.position})"
