"""The requests of an executor, and the elements of its job array that take them."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import deque
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from typing import Any

from seekable.parallel.processes import exchange

__all__ = ["Element", "Request", "Requests"]

_IDLE_SECONDS = 1.0
"""The time after which elements are looked at again: those without a request may have ended unseen."""


@dataclass(slots=True, eq=False)
class Request:
    """A pickled function with its arguments, and the future of its answer."""

    message: bytes
    node: str | None = None
    """The node that must answer; None for any."""
    future: Future[Any] = field(default_factory=Future)
    deaths: int = 0
    """The number of elements that died at it."""
    has_begun: bool = False

    def begin(self) -> bool:
        """Return False if the caller has cancelled it."""
        self.has_begun = self.has_begun or self.future.set_running_or_notify_cancel()
        return self.has_begun

    def break_off(self, reason: str) -> None:
        """Let the caller have an error."""
        if self.begin():
            self.future.set_exception(BrokenExecutor(reason))


@dataclass(slots=True, eq=False)
class Element:
    """A connected element of the array."""

    node: str
    connection: socket.socket
    is_idle: bool = True

    def exchange(self, message: bytes) -> tuple[bool, Any]:
        """Send a request, and return True and the error if it failed, or False and the answer.

        Raises:
            EOFError, OSError, pickle.UnpicklingError: the element has ended.
        """
        with self.connection.makefile("wb") as requests, self.connection.makefile("rb") as answers:
            return exchange(requests, answers, message)

    def has_ended(self) -> bool:
        """Return True if the element, which has nothing to answer, has closed its connection."""
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        return bool(poll.poll(0))

    def end(self) -> None:
        """Break the connection, also where a forked process has it open: the element ends."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class Requests:
    """The requests that wait, and the elements that take them: what the threads of an executor share."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        """Notified of requests that wait."""
        self._events = threading.Condition(lock)
        """Notified of a new element, of the last answer, and of the end."""
        self._waiting: deque[Request] = deque()
        self._under_way = 0
        self._is_closed = False
        self._end = ""
        """The reason why nothing is answered any more; empty until then."""
        self._elements: set[Element] = set()

    def put(self, request: Request) -> None:
        """Add a request; it is broken at once if no element is left.

        Raises:
            RuntimeError: the executor was shut down.
        """
        with self._work:
            if self._is_closed:
                raise RuntimeError("this executor was shut down: it takes no more requests")
            reason = self._end
            if not reason:
                self._waiting.append(request)
                self._wake_for(request)
        if reason:
            request.break_off(reason)

    def take(self, element: Element) -> Request | None:
        """Wait for a request that an element may answer; return None at the end."""
        with self._work:
            element.is_idle = True
            while not self._end:
                for number, request in enumerate(self._waiting):
                    if request.node in (None, element.node):
                        del self._waiting[number]
                        self._under_way += 1
                        element.is_idle = False
                        return request
                self._work.wait()
            return None

    def finish(self) -> None:
        """Note that a request that was taken has its answer, or needs none."""
        with self._events:
            self._under_way -= 1
            self._events.notify_all()

    def give_back(self, request: Request, element: Element) -> None:
        """Let another element answer a request, before those that wait, if it may be tried again."""
        with self._work:
            self._under_way -= 1
            self._events.notify_all()
            reason = self._end
            if not reason and request.deaths > self._retries:
                reason = (
                    f"{request.deaths} elements died at the same request, one after the other, the last of "
                    f"them on the node {element.node}; was memory short (--mem=)? More than "
                    f"retries={self._retries} may help if the nodes were at fault"
                )
            if not reason:
                self._waiting.appendleft(request)
                self._wake_for(request)
        if reason:
            request.break_off(reason)

    def join(self, element: Element) -> None:
        """Add an element that has connected, so that it gets requests."""
        with self._events:
            self._elements.add(element)
            self._events.notify_all()

    def leave(self, element: Element) -> None:
        """Remove an element; requests that its node alone may answer are broken if it was the last there."""
        with self._work:
            self._elements.discard(element)
            is_last = all(other.node != element.node for other in self._elements)
            lost = [one for one in self._waiting if is_last and one.node == element.node]
            for request in lost:
                self._waiting.remove(request)
        for request in lost:
            request.break_off(f"the last element on the node {element.node} has ended")

    def alive(self) -> list[Element]:
        """Return the elements that are connected now."""
        with self._work:
            return self._alive()

    def nodes(self) -> list[str]:
        """Wait for the first element, and return the nodes of all that are connected."""
        with self._events:
            while not self._end:
                if alive := self._alive():
                    return sorted({element.node for element in alive})
                self._events.wait(_IDLE_SECONDS)
        raise BrokenExecutor(self._end)

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until nothing more is to be answered; return whether that is so."""
        with self._events:
            return self._events.wait_for(self._is_over, seconds)

    def close(self, *, cancel: bool) -> None:
        """Take no more requests; cancel those that wait if ``cancel``."""
        with self._events:
            self._is_closed = True
            cancelled = list(self._waiting) if cancel else []
            for request in cancelled:
                self._waiting.remove(request)
            self._events.notify_all()
        for request in cancelled:
            request.future.cancel()

    def end(self, reason: str) -> None:
        """Answer nothing any more: break the requests that are left, and end the elements."""
        with self._work:
            self._end = self._end or reason
            left, elements = list(self._waiting), list(self._elements)
            self._waiting.clear()
            self._work.notify_all()
            self._events.notify_all()
        for request in left:
            request.break_off(self._end)
        for element in elements:
            element.end()

    def _alive(self) -> list[Element]:
        return [element for element in self._elements if not (element.is_idle and element.has_ended())]

    def _is_over(self) -> bool:
        return bool(self._end) or (self._is_closed and not self._waiting and not self._under_way)

    def _wake_for(self, request: Request) -> None:
        self._work.notify(1 if request.node is None else max(1, len(self._elements)))
