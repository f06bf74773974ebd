"""One worker process, seen from its parent."""

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
from seekable.loader.workers.messages import Closed, Connection, SharedBuffers, memory_without_name
from seekable.loader.workers.worker import Ready
from seekable.parallel.processes import ending_of, start_interpreter

if TYPE_CHECKING:
    from seekable.loader.steps import Cursor

__all__ = ["WorkerProcess"]

_STACK_SECONDS = 2.0
_LOOK_SECONDS = 0.05


class WorkerProcess:
    """A new interpreter that runs `seekable.loader.workers.worker`.

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
                "seekable.loader.workers.worker",
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

    def receive(self, run: int, timeout: float | None, cursor: Cursor) -> Any:
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
        if not poll.poll(timeout * 1000 if timeout is not None and self._is_ready else None):
            hung = (
                f"{self._shown} has not made the {_batch(cursor)} within timeout={timeout:g} seconds. This "
                f"is what it is doing:\n{self._stack()}"
            )
            self.end()
            raise WorkerHung(hung)
        message = self.connection.receive(run)
        self._is_ready = True
        return None if isinstance(message, Ready) else message

    def death(self, cursor: Cursor) -> WorkerDied:
        """Wait until the process has ended, and return an error that says how it ended."""
        how = ending_of(self._process)
        self.end()
        memory = " Was memory short?" if -self._process.returncode == signal.SIGKILL else ""
        return WorkerDied(
            f"{self._shown} ended {how} before it had made the {_batch(cursor)}; what it wrote to stderr "
            f"tells more.{memory} restart_workers=True has another one take its place"
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


def _batch(cursor: Cursor) -> str:
    return f"batch of step {cursor.step} (position {cursor.position})"
