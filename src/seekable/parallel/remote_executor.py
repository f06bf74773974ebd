"""The part that executors of clusters have in common: calls that wait here, run there, and have ended.

One thread of this process sends the calls and takes the answers, so threads share no state but a queue of
events. Calls beyond the most that may be under way wait in this process. A call travels as bytes: by sockets,
or through the object store of a cluster that works for this process. With it go the variables of this process
that say how data is read, credentials among them; they are in no file and in no log.
"""

from __future__ import annotations

import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar

from seekable.parallel.pickling import at_place, deserialized, portable_error, serialized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

__all__ = ["RemoteExecutor", "answer_call", "broken", "handed_on", "outcome_of", "packed_call", "shared_here"]

_PREFIXES = ("SEEKABLE_", "AWS_", "AZURE_", "GOOGLE_")
_NAMES = frozenset({"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})

P = ParamSpec("P")
T = TypeVar("T")


class _Variables(dict[str, str]):
    """Variables that no log shows: some clusters log the arguments of a call that fails."""

    def __repr__(self) -> str:
        return f"<{len(self)} variables>"


def handed_on() -> dict[str, str]:
    """Return the variables of this process that its workers on other machines need.

    These are the ones of this library, and the credentials and settings of object stores and of the Hub.

    Example:
        >>> os.environ["SEEKABLE_EXAMPLE"] = "value"
        >>> variables = handed_on()
        >>> "PATH" in variables, variables["SEEKABLE_EXAMPLE"], "value" in repr(variables)
        (False, 'value', False)
        >>> del os.environ["SEEKABLE_EXAMPLE"]
    """
    return _Variables(
        (name, value) for name, value in os.environ.items() if name.startswith(_PREFIXES) or name in _NAMES
    )


def packed_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Return the bytes of a call, for ``answer_call``.

    Raises:
        InvalidArgument: the function or an argument cannot be sent.
    """
    return serialized((function, args, kwargs), way_out="send functions and arguments that can be pickled")


def answer_call(call: bytes, *, environment: Mapping[str, str], place: str) -> bytes:
    """Make a call in this process, and return the bytes of its outcome.

    Args:
        call: the bytes of ``packed_call``, from the process that this one works for.
        environment: the variables that this process gets from that one; they stay.
        place: the name of this machine, for errors.

    Example:
        >>> outcome_of(answer_call(packed_call(divmod, (7, 2), {}), environment={}, place="here"))
        (3, 1)
    """
    os.environ.update(environment)
    with at_place(place):
        try:
            function, args, kwargs = deserialized(call)
            made = function(*args, **kwargs)
            return serialized((True, made), way_out="return something that can be pickled")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is raised in the other process
            return serialized((False, portable_error(error)), way_out="")


def outcome_of(answer: bytes) -> Any:
    """Return what a call returned, of the bytes of ``answer_call``.

    Raises:
        BaseException: the error of the call, with the place and the stack among its notes.
    """
    succeeded, made = deserialized(answer)
    if not succeeded:
        raise made
    return made


class RemoteExecutor(Executor, ABC):
    """An executor over a cluster; a class for each kind of cluster says how a call is sent and cancelled.

    A context manager: it ends when all calls have, or at once if there was an error.
    """

    def __init__(self, *, most: int) -> None:
        """Begin to take calls: the derived class does this last.

        Args:
            most: the most calls under way.
        """
        self.most = most
        self._closed = False
        self._lock = threading.Lock()
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._attend, name="seekable-cluster", daemon=True)
        self._thread.start()

    @abstractmethod
    def _put(self, data: bytes) -> Any:
        """Put bytes where all workers can fetch them, and return their reference."""

    @abstractmethod
    def _get(self, reference: Any) -> bytes:
        """Return the bytes of a reference, in this process."""

    @abstractmethod
    def _send(self, call: bytes, shared: list[Any]) -> Any:
        """Send a call and the references of its shared bytes to a worker, and return its handle."""

    @abstractmethod
    def _when_ended(self, handle: Any, then: Callable[[Any], object]) -> None:
        """Call a function, in any thread, when a call has ended; its argument is for ``_outcome``."""

    @abstractmethod
    def _outcome(self, ended: Any) -> tuple[Any, BaseException | None]:
        """Return what a call returned, or None and its error."""

    @abstractmethod
    def _cancel(self, handle: Any, *, force: bool) -> None:
        """Cancel a call; with ``force`` also by the end of its worker."""

    @abstractmethod
    def _disconnect(self) -> None:
        """End what this executor made beside the calls."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` in a worker, and return its future.

        Raises:
            InvalidArgument: the function or an argument cannot be pickled.
            RuntimeError: the executor was shut down.
        """
        shared = [arg for arg in args if isinstance(arg, _Shared)]
        sent = tuple(_SharedThere(shared.index(arg)) if isinstance(arg, _Shared) else arg for arg in args)
        call = packed_call(fn, sent, kwargs)
        task = _Task(_Future(self._events), call, [handle.reference for handle in shared])
        with self._lock:
            if self._closed:
                message = "cannot submit to an executor that was shut down"
                raise RuntimeError(message)
            self._events.put(_Event(task=task))
        return task.future

    def shared(self, data: bytes) -> Callable[[], bytes]:
        """Put bytes where all workers can fetch them, and return a function that fetches them.

        The function is an argument of ``submit``. The bytes are kept until it is dropped. A cluster that is
        short of memory writes what it keeps to disk, so they must have no secrets.
        """
        return _Shared(self._put(data), self._get)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base class has it
        """End the executor, and the cluster or the connection that it has made.

        Args:
            wait: True to return when all calls have ended.
            cancel_futures: True to cancel all calls that have not ended, those that run too.
        """
        with self._lock:
            self._closed = True
        self._events.put(_Event(last="cancel" if cancel_futures else "finish"))
        if wait:
            self._thread.join()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the executor; at once if there was an error, an interrupt for instance."""
        self.shutdown(cancel_futures=error is not None)

    def _attend(self) -> None:
        """Handle events until the executor is shut down and no call is left; runs in a thread of its own."""
        waiting: deque[_Task] = deque()
        running: dict[_Future, Any] = {}
        closed = False
        while not closed or running or waiting:
            event = self._events.get()
            if event.task is not None:
                waiting.append(event.task)
            elif event.ended is not None:
                future, ended = event.ended
                del running[future]
                future.settle(*self._outcome(ended))
                del ended
            elif event.cancelled is not None:
                if event.cancelled in running:
                    self._cancel(running[event.cancelled], force=False)
            else:
                closed = True
                if event.last == "cancel":
                    self._cancel_all(waiting, running)
            # Nothing of an ended call is kept while this thread waits for the next event.
            del event
            self._send_some(waiting, running)
        self._disconnect()

    def _send_some(self, waiting: deque[_Task], running: dict[_Future, Any]) -> None:
        while waiting and len(running) < self.most:
            task = waiting.popleft()
            if task.future.cancelled():
                continue
            try:
                handle = self._send(task.call, task.shared)
                running[task.future] = handle
                self._when_ended(handle, partial(self._note_end, task.future))
            except Exception as error:  # noqa: BLE001 - whatever the cluster raises, the caller waits for the future
                running.pop(task.future, None)
                task.future.settle(None, broken(error))

    def _note_end(self, future: _Future, ended: Any) -> None:
        self._events.put(_Event(ended=(future, ended)))

    def _cancel_all(self, waiting: deque[_Task], running: dict[_Future, Any]) -> None:
        for future in [*running, *(task.future for task in waiting)]:
            future.cancel()
        # Nothing else needs the workers, so they need not reach a point where Python can interrupt them.
        for handle in running.values():
            self._cancel(handle, force=True)


@dataclass(frozen=True, slots=True, repr=False)
class _Shared:
    """Bytes that all workers can fetch; an argument of ``submit``, where a worker gets what fetches them."""

    reference: Any
    """What the cluster has for the bytes."""

    get: Callable[[Any], bytes]

    def __call__(self) -> bytes:
        """Fetch the bytes in the process that shared them."""
        return self.get(self.reference)

    def __reduce__(self) -> NoReturn:
        message = "what `shared` returns can be an argument of `submit`, but no part of an argument"
        raise TypeError(message)


@contextmanager
def shared_here(fetches: Sequence[Callable[[], bytes]]) -> Iterator[None]:
    """Let the call that is made inside, in a worker, fetch what was shared with it."""
    before = _fetches.set(fetches)
    try:
        yield
    finally:
        _fetches.reset(before)


def broken(error: BaseException) -> BrokenExecutor:
    """Return the error of a call that a cluster lost."""
    lost = BrokenExecutor(f"the cluster lost a call: {type(error).__name__}: {error}")
    lost.__cause__ = error
    return lost


_fetches: ContextVar[Sequence[Callable[[], bytes]]] = ContextVar("fetches")


@dataclass(frozen=True, slots=True, repr=False)
class _SharedThere:
    """Shared bytes, as the worker of a call sees them."""

    number: int

    def __call__(self) -> bytes:
        """Fetch the bytes in a worker."""
        return _fetches.get()[self.number]()


class _Future(Future[Any]):
    """A future that stays pending until its call has ended, so that it can be cancelled until then."""

    def __init__(self, events: queue.SimpleQueue[_Event]) -> None:
        super().__init__()
        self._events = events
        self._first_cancel = threading.Lock()

    def cancel(self) -> bool:
        """Cancel the call, if it has not ended."""
        if not super().cancel():
            return False
        if self._first_cancel.acquire(blocking=False):
            self.set_running_or_notify_cancel()
            self._events.put(_Event(cancelled=self))
        return True

    def settle(self, made: Any, error: BaseException | None) -> None:
        """Take the outcome of the call, unless it was cancelled."""
        with self._condition:
            if self.cancelled():
                return
            self.set_running_or_notify_cancel()
        if error is None:
            self.set_result(made)
        else:
            self.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Task:
    future: _Future
    call: bytes
    shared: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """Something that the thread of an executor handles: just one of these."""

    task: _Task | None = None
    """A new call."""

    cancelled: _Future | None = None
    """The future of a call that is cancelled."""

    ended: tuple[_Future, Any] | None = None
    """The future of a call that has ended, and what gives its outcome."""

    last: Literal["finish", "cancel"] | None = None
    """The executor is shut down: its calls go on to their end, or are cancelled."""
