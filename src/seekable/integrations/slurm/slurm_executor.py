"""`SlurmExecutor`, the job array behind it, and the threads that pass requests to its elements."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.integrations.slurm.elements import (
    Element,
    Shared,
    SlurmRequest,
    SlurmRequests,
    accepted,
    offered,
)
from seekable.parallel.pickling import serialized
from seekable.parallel.processes import DEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

__all__ = ["SlurmExecutor"]

P = ParamSpec("P")
T = TypeVar("T")

_LOOK_SECONDS = 5.0
_MOST_LOOK_SECONDS = 60.0
"""The time to the first look into the queue of Slurm while no element is connected, and the most between two
looks. It doubles: each look is work for the one server of the cluster."""

_PROBE_SECONDS = 60.0
"""The time that a call on each node may take: a disk that does not answer must not stop a job for ever."""

_MOST_BACKLOG = 1024
_LOG_TAIL_BYTES = 2000
_WAY_OUT = "jobs=1 does everything in this process"

# The interpreter reads the program with the key from its standard input: nobody else can.
_SCRIPT = """#!/bin/sh
exec {python} -P - <<'END_OF_PROGRAM'
import sys
sys.path[:] = {path!r}
from seekable.integrations.slurm.elements import serve
serve({host!r}, {port!r}, {key!r})
END_OF_PROGRAM
"""


class SlurmExecutor(Executor):
    """Runs functions in the elements of a job array of Slurm.

    Requests wait until the first element has started; elements that start later join then. The requests of an
    element that dies go to other elements, and an element that Slurm queues again comes back.
    """

    def __init__(
        self, tasks: int, *, options: Sequence[str] = (), retries: int = 2, host: str | None = None
    ) -> None:
        """Submit the job array.

        Args:
            tasks: the number of elements of the array; each answers one request at a time.
            options: options of ``sbatch``, ``["--cpus-per-task=4", "--time=2:00:00"]`` for instance. What the
                elements print goes to ``seekable-<job>.log`` in the folder of the call, unless ``--output``
                is among them.
            retries: how often a request is given to another element, because the one before died.
            host: the name or the address by which the nodes reach this machine; None for its host name.

        Raises:
            MissingDependency: the commands of Slurm are not on PATH.
            WrongType: ``options`` is one string.
            InvalidArgument: ``tasks`` is less than 1, ``retries`` is less than 0, or ``sbatch`` refused the
                options.

        Example:
            >>> with SlurmExecutor(64, options=["--time=2:00:00"]) as executor:  # doctest: +SKIP
            ...     ds = sk.open("/shared/corpus/*.jsonl", index=sk.Index(executor=executor))
        """
        checked_count("tasks", tasks, least=1)
        checked_count("retries", retries, least=0)
        if isinstance(options, str):
            raise WrongType(f"options must be a list of options of sbatch (got the string {options!r})")
        if missing := [name for name in ("sbatch", "squeue", "scancel") if shutil.which(name) is None]:
            raise MissingDependency(
                f"this needs the commands of Slurm, and {', '.join(missing)} is not on PATH: run it on a "
                f"machine that submits jobs to the cluster"
            )
        self.most = 2 * tasks
        """The number of requests that keeps all elements busy."""
        self._tasks = tasks
        server = socket.create_server(("", 0), backlog=min(tasks, _MOST_BACKLOG))
        key = secrets.token_bytes(32)
        script = _SCRIPT.format(
            python=shlex.quote(sys.executable),
            path=sys.path,
            host=host or socket.gethostname(),
            port=server.getsockname()[1],
            key=key.hex(),
        )
        try:
            self._job = _Job.submit(script, tasks, options)
        except BaseException:
            server.close()
            raise
        self._requests = SlurmRequests(retries)
        self._finalizer = weakref.finalize(self, _end, self._requests, server, self._job, os.getpid())
        _in_background(_accept, server, key, self._requests)
        self._keeper = _in_background(_keep, self._requests, self._job, self._finalizer)

    def __repr__(self) -> str:
        """Return the job and the number of elements that are connected now."""
        here = len(self._requests.alive())
        return f"<SlurmExecutor: job {self._job.number}, {here} of {self._tasks} elements connected>"

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` in an element, and return its future.

        The future raises ``BrokenExecutor`` if no element is left.

        Raises:
            InvalidArgument: the function or its arguments cannot be sent.
            RuntimeError: the executor was shut down.
        """
        request = SlurmRequest(serialized((fn, args, kwargs), way_out=_WAY_OUT))
        self._requests.put(request)
        return request.future

    def shared(self, data: bytes) -> Callable[[], bytes]:
        """Return a function that returns ``data``, here and in the elements, which fetch them from here.

        The data are kept for as long as the function is.
        """
        handle = Shared(secrets.token_hex(8))
        offered[handle.token] = data
        weakref.finalize(handle, offered.pop, handle.token, None)
        return handle

    def on_each_node(self, function: Callable[..., T], /, *args: Any) -> dict[str, T | BaseException]:
        """Call a function once on each node that has an element now; wait until there is one.

        Returns:
            What the function returned or raised, by the name of the node; `TimeoutError` if it took a minute.

        Raises:
            BrokenExecutor: the job array has ended.
        """
        message = serialized((function, args, {}), way_out=_WAY_OUT)
        asked = [SlurmRequest(message, node) for node in self._requests.nodes()]
        for request in asked:
            self._requests.put(request)
        wait([request.future for request in asked], timeout=_PROBE_SECONDS)
        return {str(request.node): _value_or_error(request.future) for request in asked}

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base class has it
        """End the job: after all requests, or at once if ``cancel_futures``."""
        self._requests.close(cancel=cancel_futures)
        if cancel_futures:
            self._finalizer()
        if wait:
            self._keeper.join()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the job; at once if there was an error, an interrupt for instance."""
        self.shutdown(cancel_futures=error is not None)


@dataclass(frozen=True, slots=True)
class _Job:
    """A job array in the queue of Slurm."""

    number: str
    cluster: str
    """The cluster that it was submitted to; empty for that of this machine."""
    log: str
    """The file of what its elements print, unless the user has named another one."""

    @classmethod
    def submit(cls, script: str, tasks: int, options: Sequence[str]) -> Self:
        """Submit a job array.

        Raises:
            InvalidArgument: ``sbatch`` refused it.
        """
        command = [
            *(
                "sbatch",
                "--parsable",
                "--job-name=seekable",
                "--output=seekable-%A.log",
                "--open-mode=append",
            ),
            *options,
            f"--array=0-{tasks - 1}",
        ]
        done = _run(command, script)
        if done.returncode:
            raise InvalidArgument(
                f"sbatch refused {tasks} elements with options={list(options)}: {done.stderr.strip()}"
            )
        number, _, cluster = done.stdout.strip().partition(";")
        return cls(number, cluster, os.path.abspath(f"seekable-{number}.log"))

    def cancel(self) -> None:
        """Take it off the queue; remove its log if that is empty."""
        _run(["scancel", *self._on_cluster(), self.number])
        with contextlib.suppress(FileNotFoundError):
            if not os.path.getsize(self.log):
                os.remove(self.log)

    def is_over(self) -> bool:
        """Return True if no element of it is in the queue, waiting or running."""
        done = _run(["squeue", "--noheader", *self._on_cluster(), f"--jobs={self.number}"])
        # It forgets jobs that ended some minutes ago. Any other error says nothing of the job.
        return not done.stdout.strip() if done.returncode == 0 else "Invalid job id" in done.stderr

    def ending(self) -> str:
        """Return an error message that says that it is over, with the end of its log."""
        message = f"no element of the Slurm job {self.number} is left"
        try:
            with open(self.log, "rb") as log:
                log.seek(max(0, os.path.getsize(self.log) - _LOG_TAIL_BYTES))
                printed = log.read().decode(errors="replace").strip()
        except OSError:
            printed = ""
        if not printed:
            return f"{message}; `sacct --jobs={self.number}` may say why"
        return f"{message}; {self.log} ends with:\n{printed}"

    def _on_cluster(self) -> list[str]:
        return [f"--clusters={self.cluster}"] if self.cluster else []


def _value_or_error(future: Future[T]) -> T | BaseException:
    if not future.done():
        return TimeoutError(f"no answer within {_PROBE_SECONDS:.0f} seconds")
    return future.exception() or future.result()


def _run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    # An interrupt at the terminal is for this process: scancel must still run then.
    return subprocess.run(  # noqa: S603 - commands of Slurm, with the options of the user
        command, input=text, capture_output=True, text=True, check=False, process_group=0
    )


def _in_background(function: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def _accept(server: socket.socket, key: bytes, requests: SlurmRequests) -> None:
    """Give a thread to each element that connects, until the end."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # The end, or too many open files.
            if requests.wait_for_end(1.0):
                return
        else:
            _in_background(_attend, connection, key, requests)


def _attend(connection: socket.socket, key: bytes, requests: SlurmRequests) -> None:
    """Pass requests to one element until there are no more."""
    with connection:
        if (greeting := accepted(connection, key)) is None:
            return
        element = Element(greeting.node, connection)
        requests.join(element)
        try:
            while (request := requests.take(element)) is not None and _answered(request, element, requests):
                pass
        finally:
            requests.leave(element)


def _answered(request: SlurmRequest, element: Element, requests: SlurmRequests) -> bool:
    """Have an element answer a request; return False if the element has ended."""
    if element.has_ended():
        requests.give_back(request, element)
        return False
    if request.begin():
        try:
            failed, answer = element.exchange(request.message)
        except DEAD:
            request.deaths += 1
            requests.give_back(request, element)
            return False
        if failed:
            request.future.set_exception(answer)
        else:
            request.future.set_result(answer)
    requests.finish()
    return True


def _keep(requests: SlurmRequests, job: _Job, end: Callable[[], object]) -> None:
    """Wait for the end of an executor, and look from time to time whether its job is over before that."""
    seconds = _LOOK_SECONDS
    while not requests.wait_for_end(seconds):
        if requests.alive():
            seconds = _LOOK_SECONDS
        elif job.is_over() and not requests.alive():
            requests.end(job.ending())
        else:
            seconds = min(2 * seconds, _MOST_LOOK_SECONDS)
    end()


def _end(requests: SlurmRequests, server: socket.socket, job: _Job, process: int) -> None:
    """End an executor and its job, in the process that started it."""
    if os.getpid() == process:
        requests.end("the executor was shut down")
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # Wakes the thread that accepts.
        server.close()
        job.cancel()
