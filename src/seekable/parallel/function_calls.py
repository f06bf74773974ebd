"""Requests answered by an executor and by this process, and calls of one function in an executor.

The processes of an executor are sent the function once, when they lack it. An executor of a cluster shares it
with all its workers: each fetches it at its first call. It travels by cloudpickle, through a pipe. So
functions of a script, lambdas and closures work there too, and a dataset over a long list is not sent again
and again.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seekable.errors import SeekableError, WorkerDied
from seekable.parallel.cluster import ClusterExecutor
from seekable.parallel.pickling import deserialized, portable_error, serialized

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from concurrent.futures import Executor

__all__ = ["WAY_OUT", "Answer", "FunctionCalls", "Tasks", "answered", "greeting", "offered", "run_tasks"]

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")

_IDLE_SECONDS = 0.1

WAY_OUT = "jobs=1 does everything in this process"

_MOST_COPIES = 4
"""The most requests under way that carry the function, which may be large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks(Generic[RequestT, AnswerT]):
    """The requests of one piece of work, and the functions that answer them."""

    take: Callable[[], RequestT | None]
    """Returns the next request, or None if there is none now. It is called again after each answer."""

    submit: Callable[[Executor, RequestT], Future[AnswerT]]
    """Submits a request to an executor."""

    here: Callable[[RequestT], AnswerT] | None
    """Answers a request in this process; None if this process is not to work."""

    idle: Callable[[], object]
    """Is called about ten times a second while this process only waits."""

    name: Callable[[RequestT], str]
    """Returns the subject of a request, for error messages."""


def run_tasks(
    tasks: Tasks[RequestT, AnswerT], *, executor: Executor | None, ahead: int
) -> Generator[tuple[RequestT, AnswerT]]:
    """Yield each request with its answer, as the answers come.

    This process answers a request itself only while no answer waits. Closing the generator cancels the
    requests that no worker has begun.

    Args:
        tasks: the requests.
        executor: answers requests, if there is one.
        ahead: the most requests under way in the executor.

    Raises:
        WorkerDied: the executor broke, or cancelled a request.
        Exception: the error that a request raised, with the name of the request among its notes.
    """
    running: dict[Future[AnswerT], RequestT] = {}
    try:
        while True:
            if done := [future for future in running if future.done()]:
                for future in done:
                    answer = _answer_of(future, tasks.name(running[future]), executor)
                    yield running.pop(future), answer
            elif executor and len(running) < ahead and (for_executor := tasks.take()) is not None:
                try:
                    future = tasks.submit(executor, for_executor)
                except BrokenExecutor as error:
                    raise _died(error, tasks.name(for_executor), executor) from error
                running[future] = for_executor
            elif tasks.here and (for_us := tasks.take()) is not None:
                yield for_us, tasks.here(for_us)
            elif running:
                wait(running, timeout=_IDLE_SECONDS, return_when=FIRST_COMPLETED)
                tasks.idle()
            else:
                return
    finally:
        for future in running:
            future.cancel()


def _answer_of(future: Future[AnswerT], name: str, executor: Executor | None) -> AnswerT:
    try:
        return future.result()
    except SeekableError:
        raise
    except (BrokenExecutor, CancelledError) as error:
        raise _died(error, name, executor) from error
    except Exception as error:
        error.add_note(f"raised by the executor {executor!r} while it worked on {name}")
        raise


def _died(error: BrokenExecutor | CancelledError, name: str, executor: Executor | None) -> WorkerDied:
    event = "cancelled the work on" if isinstance(error, CancelledError) else "broke while it worked on"
    return WorkerDied(
        f"the executor {executor!r} {event} {name}{f': {error}' if str(error) else ''}. "
        f"Finished work is kept; call again to continue, with another executor or with jobs=1"
    )


Arguments = TypeVar("Arguments", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class Answer:
    """The value or the error of a function, and the time it took."""

    made: Any
    error: BaseException | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCalls(Generic[Arguments]):
    """The calls of one function, and the executors that make them."""

    token: str
    """The name of the function in this process and in others; `offered` makes one."""

    function: Callable[..., Any]

    take: Callable[[], Arguments | None]
    """Returns the arguments of the next call, None if there is none now. It is called after each answer."""

    executor_of: Callable[[Arguments], Executor]
    """Returns the executor of a call."""

    name: Callable[[Arguments], str]
    """Returns the subject of a call, for error messages."""


@contextlib.contextmanager
def offered(function: Callable[..., Any]) -> Iterator[str]:
    """Yield a token of a function; threads, and processes that are forked from now on, have the function."""
    token = secrets.token_hex(8)
    _offered[token] = function
    try:
        yield token
    finally:
        del _offered[token]


def greeting(token: str, payload: bytes) -> tuple[Callable[..., object], tuple[Any, ...]]:
    """Return the argument ``first`` of `WorkerProcesses`, which gives each worker the function.

    Args:
        token: the token of the function.
        payload: the serialized function.
    """
    return _receive, (token, payload)


def answered(
    calls: FunctionCalls[Arguments], *, executor: Executor, ahead: int
) -> Generator[tuple[Arguments, Answer]]:
    """Yield the arguments and the answer of each call, as the answers come.

    Args:
        calls: the calls.
        executor: the executor that error messages name.
        ahead: the most calls under way.

    Raises:
        WorkerDied: a worker process or an executor ended too early.
    """
    line = _CallLine(calls, executor)
    tasks: Tasks[_Request[Arguments], Answer | None] = Tasks(
        take=line.take,
        submit=lambda _, request: calls.executor_of(request.arguments).submit(
            _run, calls.token, request.payload, request.arguments
        ),
        here=None,
        idle=int,
        name=lambda request: calls.name(request.arguments),
    )
    with closing(run_tasks(tasks, executor=executor, ahead=ahead)) as answers:
        for request, answer in answers:
            line.note(request, answer)
            if answer is not None:
                yield request.arguments, answer


@dataclass(frozen=True, slots=True)
class _Request(Generic[Arguments]):
    """The arguments of a call, with the function where the worker is known to lack it."""

    arguments: Arguments
    payload: bytes | Callable[[], bytes] | None = None
    """The function, or a function that fetches it."""


class _CallLine(Generic[Arguments]):
    """The calls that are sent, and those that are sent again because their worker lacked the function."""

    def __init__(self, calls: FunctionCalls[Arguments], executor: Executor) -> None:
        self._calls = calls
        self._cluster = executor if isinstance(executor, ClusterExecutor) else None
        self._payload: bytes | None = None
        self._shared: Callable[[], bytes] | None = None
        self._lacking: deque[_Request[Arguments]] = deque()
        self._copies = 0

    def take(self) -> _Request[Arguments] | None:
        """Return the next request: a new call, or one that is sent again with the function."""
        if self._lacking and self._copies < _MOST_COPIES:
            again = self._lacking.popleft()
            self._copies += 1
            return replace(again, payload=self._serialized())
        arguments = self._calls.take()
        if arguments is None or self._cluster is None:
            return None if arguments is None else _Request(arguments)
        self._shared = self._shared or self._cluster.shared(self._serialized())
        return _Request(arguments, self._shared)

    def _serialized(self) -> bytes:
        self._payload = self._payload or serialized(self._calls.function, way_out=WAY_OUT)
        return self._payload

    def note(self, request: _Request[Arguments], answer: Answer | None) -> None:
        """Take an answer; None is that of a worker without the function."""
        self._copies -= isinstance(request.payload, bytes)
        if answer is None:
            self._lacking.append(request)


_offered: dict[str, Callable[..., Any]] = {}
"""The functions that this process has others call, by token."""

_received: dict[str, Callable[..., Any]] = {}
"""The function that this process was sent last, by token."""


def _receive(token: str, payload: bytes) -> Callable[..., Any]:
    function: Callable[..., Any] = deserialized(payload)
    _received.clear()
    _received[token] = function
    return function


def _run(
    token: str, payload: bytes | Callable[[], bytes] | None, arguments: tuple[Any, ...]
) -> Answer | None:
    """Call a function: the request that an executor is sent.

    Returns:
        The answer; None if this process does not have the function and was not sent it.
    """
    own = _offered.get(token)
    function = own or _received.get(token)
    if function is None and payload is not None:
        function = _receive(token, payload() if callable(payload) else payload)
    if function is None:
        return None
    began = time.monotonic()
    try:
        made = function(*arguments)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is raised where the answer would have come
        return Answer(None, error if own else portable_error(error), time.monotonic() - began)
    return Answer(made, None, time.monotonic() - began)
