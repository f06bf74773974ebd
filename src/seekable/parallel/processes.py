"""Worker processes that run functions of this library, and of nothing else.

`concurrent.futures.ProcessPoolExecutor` either forks, which hangs in a process with threads, or runs
the user's main module again, which breaks in scripts without a main guard and in notebooks. These
workers are fresh interpreters that import only what the pickled requests name. Requests and answers
go over their standard input and output; a worker ends at once when its input ends, so none outlives
the process that started it, however that one ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, BinaryIO, ParamSpec, TypeVar

from seekable.errors import InvalidArgument, WorkerDied

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

P = ParamSpec("P")
T = TypeVar("T")

_HEADER_BYTES = 8
_ENDING_SECONDS = 5.0
_DEAD = (EOFError, OSError, pickle.UnpicklingError)
"""What talking to a worker raises that has ended."""

_BOOT = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from seekable.parallel.processes import serve; serve()"
)

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""There is a worker to each processor already; and numpy starts in half the time without its threads."""


def usable_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerProcesses(Executor):
    """Runs importable functions in worker processes, one request after the other in each.

    Example:
        >>> import operator
        >>> with WorkerProcesses(2) as workers:
        ...     workers.submit(operator.add, 20, 22).result()
        42
    """

    def __init__(
        self, jobs: int, *, first: tuple[Callable[..., object], tuple[Any, ...]] | None = None
    ) -> None:
        """Start the workers.

        Args:
            jobs: how many.
            first: a function and its arguments, called in each worker before any request; what it returns or
                raises is not told.

        Raises:
            InvalidArgument: fewer than one.
        """
        if jobs < 1:
            raise InvalidArgument(f"jobs must be at least 1, got {jobs}")
        self._requests: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        greeting = None if first is None else pickle.dumps((*first, {}), protocol=5)
        self._workers = [_start() for _ in range(jobs)]
        self._threads = [
            threading.Thread(target=_attend, args=(worker, self._requests, greeting), daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` in a worker; the signature is that of the base class."""
        future: Future[T] = Future()
        self._requests.put((future, pickle.dumps((fn, args, kwargs), protocol=5)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base class has it
        """End the workers: after all requests, or at once if ``cancel_futures``."""
        if cancel_futures:
            while (request := _take_now(self._requests)) is not None:
                request[0].cancel()
            for worker in self._workers:
                worker.kill()
        for _ in self._workers:
            self._requests.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the workers; at once if there was an error, an interrupt for instance."""
        self.shutdown(cancel_futures=error is not None)


def _take_now(
    requests: queue.SimpleQueue[tuple[Future[Any], bytes] | None],
) -> tuple[Future[Any], bytes] | None:
    with contextlib.suppress(queue.Empty):
        return requests.get_nowait()
    return None


def _start() -> subprocess.Popen[bytes]:
    # -P keeps the working folder off the path until the parent's own path is there. In a process group of its
    # own it gets no interrupt from the terminal, not even before it can ignore one.
    worker = subprocess.Popen(  # noqa: S603 - our own interpreter and our own text
        [sys.executable, "-P", "-c", _BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_ONE_THREAD | os.environ,
        process_group=0,
    )
    assert worker.stdin is not None
    with contextlib.suppress(
        BrokenPipeError
    ):  # A worker that is dead already is told of by its first request.
        worker.stdin.write(pickle.dumps(sys.path))
        worker.stdin.flush()
    return worker


def _attend(
    worker: subprocess.Popen[bytes],
    requests: queue.SimpleQueue[tuple[Future[Any], bytes] | None],
    greeting: bytes | None,
) -> None:
    """Pass requests to one worker until there are no more; runs in a thread of its own."""
    assert worker.stdin is not None
    with worker:
        if greeting is not None:
            with contextlib.suppress(*_DEAD):  # The first request tells.
                _ask(worker, greeting)
        while (request := requests.get()) is not None:
            future, message = request
            if not future.set_running_or_notify_cancel():
                continue
            try:
                failed, answer = _ask(worker, message)
            except _DEAD:
                future.set_exception(_death(worker))
                continue
            if failed:
                future.set_exception(answer)
            else:
                future.set_result(answer)
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.close()


def _ask(worker: subprocess.Popen[bytes], message: bytes) -> tuple[bool, Any]:
    """Send a request to a worker and return whether it failed, and the answer or the error."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(len(message).to_bytes(_HEADER_BYTES, "little"))
    worker.stdin.write(message)
    worker.stdin.flush()
    answer: tuple[bool, Any] = pickle.load(worker.stdout)  # noqa: S301 - from our own child
    return answer


def _death(worker: subprocess.Popen[bytes]) -> WorkerDied:
    try:
        # It has closed its end, so it is ending; killed at once, it could not say how.
        status = worker.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        status = worker.wait()
    how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
    return WorkerDied(
        f"a worker process (pid {worker.pid}) ended {how} before it gave its answer; what it wrote to "
        f"stderr tells more. Was memory short? Fewer jobs need less: jobs=1 starts no process at all"
    )


def serve() -> None:
    """Answer requests until standard input ends: what a worker process does."""
    # An interrupt at the terminal goes to all processes there; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Whatever prints must not print between the answers.
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests), daemon=True).start()
    while True:
        answers.write(_answer(requests.get()))
        answers.flush()


def _listen(messages: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    while header := messages.read(_HEADER_BYTES):
        requests.put(messages.read(int.from_bytes(header, "little")))
    os._exit(0)  # At once, even from the middle of a request: nobody waits for its answer.


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(message)  # noqa: S301 - from our own parent
        return pickle.dumps((False, function(*args, **kwargs)), protocol=5)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the caller's future raises it
        return pickle.dumps((True, as_sent(error)), protocol=5)


def as_sent(error: BaseException) -> BaseException:
    """Return an error as it can be sent to another process, with what it looked like here among its notes."""
    error.add_note(f"in a worker process (pid {os.getpid()}):\n{traceback.format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - an error that does not survive the journey is told as text
        told = RuntimeError(f"{type(error).__name__}: {error}")
        told.__notes__ = error.__notes__
        return told
    return error
