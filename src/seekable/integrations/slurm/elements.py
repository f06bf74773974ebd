"""The elements of a job array: their connections to an executor, and the requests that they take.

A side proves to the other one that it has the key, without sending it. Then the element says why it connects:
to answer requests, or to fetch shared data.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import threading
from collections import deque
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import TYPE_CHECKING, Any

from seekable.parallel.pickling import at_place
from seekable.parallel.processes import answer_requests, exchange, ignore_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Element", "Greeting", "Shared", "SlurmRequest", "SlurmRequests", "accepted", "offered", "serve"]

_MOST_GREETING_BYTES = 4096

_SILENT_SECONDS = 60
"""The time after which the machine at the other end must answer, or the connection has ended."""

_STRANGER = (OSError, EOFError, AuthenticationError, AssertionError, ValueError)
"""The errors of talking to something that is no element of ours, or has ended."""

offered: dict[str, bytes] = {}
"""The shared data of this process, by token."""

_driver: list[tuple[str, int, bytes]] = []
"""In an element: the host, the port and the key of its executor."""

_IDLE_SECONDS = 1.0
"""The time after which elements are looked at again: those without a request may have ended unseen."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first message of an element."""

    node: str
    """The name of its node in Slurm."""
    wanted: str = ""
    """The token of shared data that it wants instead of requests."""


@dataclass(frozen=True)
class Shared:
    """A function that returns shared data, in the process that has them and in elements."""

    token: str

    def __call__(self) -> bytes:
        """Return the data.

        Raises:
            EOFError, OSError: the executor has ended, or the data are not kept any more.
        """
        if self.token in offered:
            return offered[self.token]
        with _connected(self.token) as connection, _messages(connection) as messages:
            return messages.recv_bytes()


def accepted(connection: socket.socket, key: bytes) -> Greeting | None:
    """Return the greeting of the element that has connected; None if it is none, or wanted data and has them.

    Args:
        connection: a connection to the port of the executor, from anywhere.
        key: the key of the executor.
    """
    with contextlib.suppress(*_STRANGER), _messages(connection) as messages:
        deliver_challenge(messages, key)
        answer_challenge(messages, key)
        _keep_alive(connection)
        greeting = Greeting(**json.loads(messages.recv_bytes(_MOST_GREETING_BYTES)))
        if not greeting.wanted:
            return greeting
        if greeting.wanted in offered:
            messages.send_bytes(offered[greeting.wanted])
    return None


def serve(host: str, port: int, key: str) -> None:
    """Answer the requests of an executor until it closes the connection: the main function of an element.

    Args:
        host: the machine of the executor.
        port: its port there.
        key: the key of the executor, in hexadecimal digits.
    """
    ignore_interrupts()
    _driver[:] = [(host, port, bytes.fromhex(key))]
    try:
        connection = _connected("")
    except _STRANGER as error:
        sys.exit(
            f"{_node()}: no connection to the executor at {host}:{port}, which may have ended "
            f"({type(error).__name__}: {error})"
        )
    with connection.makefile("rb") as requests, connection.makefile("wb") as answers, at_place(_node()):
        answer_requests(requests, answers)


def _connected(wanted: str) -> socket.socket:
    """Return a new connection to the executor of this element."""
    host, port, key = _driver[0]
    connection = socket.create_connection((host, port))
    with _messages(connection) as messages:
        answer_challenge(messages, key)
        deliver_challenge(messages, key)
        _keep_alive(connection)
        messages.send_bytes(json.dumps({"node": _node(), "wanted": wanted}).encode())
    return connection


@contextlib.contextmanager
def _messages(connection: socket.socket) -> Iterator[Connection]:
    """Yield what sends and receives whole messages over a socket, which stays open."""
    with Connection(os.dup(connection.fileno())) as messages:
        yield messages


def _keep_alive(connection: socket.socket) -> None:
    """Let a connection end when the machine at the other end is off, or has lost its network."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _SILENT_SECONDS // 4)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def _node() -> str:
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


@dataclass(slots=True, eq=False)
class SlurmRequest:
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
            EOFError, OSError: the element has ended.
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


class SlurmRequests:
    """The requests that wait, and the elements that take them: what the threads of an executor share."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        """Notified of requests that wait."""
        self._events = threading.Condition(lock)
        """Notified of a new element, of the last answer, and of the end."""
        self._waiting: deque[SlurmRequest] = deque()
        self._under_way = 0
        self._is_closed = False
        self._end = ""
        """The reason why nothing is answered any more; empty until then."""
        self._elements: set[Element] = set()

    def put(self, request: SlurmRequest) -> None:
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

    def take(self, element: Element) -> SlurmRequest | None:
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

    def give_back(self, request: SlurmRequest, element: Element) -> None:
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

    def _wake_for(self, request: SlurmRequest) -> None:
        self._work.notify(1 if request.node is None else max(1, len(self._elements)))
