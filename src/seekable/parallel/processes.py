"""Worker processes that run functions of this library, and of nothing else.

`concurrent.futures.ProcessPoolExecutor` either forks, which hangs in a process with threads, or runs
the user's main module again, which breaks in scripts without a main guard and in notebooks. These
workers are fresh interpreters that import only what the pickled requests name. Requests and answers
go over their standard input and output; a worker ends at once when its input ends, so none outlives
the process that started it, however that one ends.

The workers of a `seekable.Loader`, and the helper that reads stores for a forked process, are started in the
same way; they talk over sockets. All of them get the stores of this process with their secrets beside their
work, by the same pipe or socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NoReturn, ParamSpec, TypeVar

from seekable.errors import InvalidArgument, WorkerDied
from seekable.parallel.pickling import portable_error
from seekable.storage.far import handed_down, take_over

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType, TracebackType

__all__ = [
    "DEAD",
    "HEAD_BYTES",
    "WorkerProcesses",
    "answer_requests",
    "ending_of",
    "exchange",
    "head_of",
    "ignore_interrupts",
    "leave_signals_to_parent",
    "length_in",
    "serve",
    "start_interpreter",
    "usable_cpus",
]

P = ParamSpec("P")
T = TypeVar("T")

HEAD_BYTES = 8
_ENDING_SECONDS = 5.0
DEAD = (EOFError, OSError)
"""The errors of talking to a worker that has ended."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from {module} import serve; serve(*map(int, sys.argv[1:]))"
)

_OF_JOBS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""The signals that clusters and service managers send to all processes of a job at once."""

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""There is a worker to each processor already; and numpy starts in half the time without its threads."""


def usable_cpus() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_interpreter(
    module: str, *numbers: int, stdin: int, stdout: int | None = None, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a fresh interpreter that calls the function ``serve`` of a module.

    It is no fork, which would hang where this process has threads, and does not run the user's main module.

    Args:
        module: an importable module; the interpreter has the ``sys.path`` of this process.
        numbers: the arguments of ``serve``.
        stdin: the standard input, as for `subprocess.Popen`.
        stdout: the standard output, as for `subprocess.Popen`.
        pass_fds: the descriptors that the interpreter inherits.
    """
    # What a thread blocks, its child blocks too: none of these ends it early.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_JOBS)
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, and a command made of constants
            # -P keeps the working folder off the path until the path of this process is there.
            [
                *(sys.executable, "-P", "-c", _BOOT.format(module=module)),
                *(*map(str, numbers), json.dumps(sys.path)),
            ],
            stdin=stdin,
            stdout=stdout,
            env=_ONE_THREAD | os.environ,
            pass_fds=pass_fds,
            # A group of its own gets no interrupt from the terminal, not even before it can ignore one.
            process_group=0,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def head_of(message: bytes) -> bytes:
    """Return the bytes that go before a message on its way to an interpreter, or from it: its length."""
    return len(message).to_bytes(HEAD_BYTES, "little")


def length_in(head: bytes) -> int:
    """Return the length of the message that follows a head of ``HEAD_BYTES`` bytes."""
    return int.from_bytes(head, "little")


def ignore_interrupts() -> None:
    """Ignore interrupts: one at the terminal goes to all processes there, and the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave_signals_to_parent() -> None:
    """Live on at the signals that all processes of a terminal or a job get: the parent handles them.

    It may need its workers until it has come to an end, and they end with it. An interpreter that
    `start_interpreter` has started calls this, which lets the signals through that were blocked.
    """
    ignore_interrupts()
    for number in _OF_JOBS:
        # Not SIG_IGN: programs that are started here would ignore them too.
        signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _OF_JOBS)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


def ending_of(process: subprocess.Popen[bytes]) -> str:
    """Wait until a process that has closed its end has ended, and return how: "by signal SIGKILL", say."""
    try:
        # It is ending; killed at once, it could not say how.
        status = process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    return f"by signal {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"


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
            jobs: the number of workers.
            first: a function and its arguments, called in each worker before any request; what it returns or
                raises is dropped.

        Raises:
            InvalidArgument: ``jobs`` is less than 1.
        """
        if jobs < 1:
            raise InvalidArgument(f"jobs must be at least 1, got {jobs}")
        self._requests: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._closed = False
        greeting = None if first is None else _pickled((*first, {}))
        self._workers = [
            start_interpreter(__name__, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(jobs)
        ]
        self._threads = [
            threading.Thread(target=_attend, args=(worker, self._requests, greeting), daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` in a worker, and return its future.

        Raises:
            RuntimeError: the workers were shut down.
        """
        if self._closed:
            message = "cannot submit to worker processes that were shut down"
            raise RuntimeError(message)
        future: Future[T] = Future()
        self._requests.put((future, _pickled((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base class has it
        """End the workers: after all requests, or at once if ``cancel_futures``."""
        self._closed = True
        if cancel_futures:
            while (request := _take_now(self._requests)) is not None:
                if request[0].cancel():
                    request[0].set_running_or_notify_cancel()
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


def _attend(
    worker: subprocess.Popen[bytes],
    requests: queue.SimpleQueue[tuple[Future[Any], bytes] | None],
    greeting: bytes | None,
) -> None:
    """Pass requests to one worker until there are no more; runs in a thread of its own."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker:
        told = b""
        if greeting is not None:
            with contextlib.suppress(*DEAD):  # The first request raises it again.
                told = _told(worker.stdin, worker.stdout, told)
                exchange(worker.stdin, worker.stdout, greeting)
        while (request := requests.get()) is not None:
            future, message = request
            if not future.set_running_or_notify_cancel():
                continue
            try:
                told = _told(worker.stdin, worker.stdout, told)
                failed, answer = exchange(worker.stdin, worker.stdout, message)
            except DEAD:
                future.set_exception(_death(worker))
                continue
            except Exception as error:  # noqa: BLE001 - whoever waits for the future is to know
                future.set_exception(error)
                continue
            if failed:
                future.set_exception(answer)
            else:
                future.set_result(answer)
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.close()


def _told(requests: IO[bytes], answers: IO[bytes], told: bytes) -> bytes:
    """Tell a worker the stores of this process, unless it was told these; return what it knows then.

    Raises:
        EOFError, OSError: the worker has ended.
    """
    stores = handed_down()
    if stores != told:
        exchange(requests, answers, _pickled((take_over, (stores,), {})))
    return stores


def exchange(requests: IO[bytes], answers: IO[bytes], message: bytes) -> tuple[bool, Any]:
    """Send a request to a worker, and return True and the error if it failed, or False and the answer.

    A result that cannot be unpickled here is an error too: the class of the caller may raise anything then.

    Args:
        requests: the way to the worker, which runs `answer_requests`.
        answers: the way back.
        message: the pickled function, its arguments and its keyword arguments.

    Raises:
        EOFError, OSError: the worker has ended; these are ``DEAD``.
    """
    requests.write(head_of(message))
    requests.write(message)
    requests.flush()
    answer = _whole(answers, length_in(_whole(answers, HEAD_BYTES)))
    try:
        failed, found = pickle.loads(answer)  # noqa: S301 - from a worker of this process
    except Exception as error:  # noqa: BLE001 - the future of the caller raises it
        error.add_note("raised while the result of a worker process was unpickled")
        return True, error
    return failed, found


def _whole(answers: IO[bytes], count: int) -> bytes:
    """Read so many bytes.

    Raises:
        EOFError: there are fewer.
    """
    data = answers.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _death(worker: subprocess.Popen[bytes]) -> WorkerDied:
    return WorkerDied(
        f"a worker process (pid {worker.pid}) ended {ending_of(worker)} before it gave its answer; see what "
        f"it wrote to stderr. Was memory short? Fewer jobs need less: jobs=1 starts no process at all"
    )


def serve() -> None:
    """Answer requests until standard input ends: the main function of a worker process."""
    leave_signals_to_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a function prints must not come between the answers.
    answer_requests(sys.stdin.buffer, answers)


def answer_requests(messages: BinaryIO, answers: BinaryIO) -> NoReturn:
    """Answer the requests of `exchange`, one after the other; end this process at once when they end.

    Args:
        messages: the requests; at their end, also in the middle of a request, the process ends.
        answers: the way back.
    """
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(messages, requests), daemon=True).start()
    while True:
        answer = _answer(requests.get())
        answers.write(head_of(answer))
        answers.write(answer)
        answers.flush()


def _listen(messages: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(OSError):  # A connection that was reset has ended too.
        while head := messages.read(HEAD_BYTES):
            requests.put(messages.read(length_in(head)))
    os._exit(0)  # At once, even from the middle of a request: the parent has gone.


def _pickled(message: object) -> bytes:
    return pickle.dumps(message, protocol=5)


def _answer(message: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(message)  # noqa: S301 - from the parent of this process
        return _pickled((False, function(*args, **kwargs)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the future of the caller raises it
        return pickle.dumps((True, portable_error(error)), protocol=5)
