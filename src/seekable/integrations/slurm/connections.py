"""Connections between an executor and the elements of its job array: both sides of them.

A side proves to the other one that it has the key, without sending it. Then the element says why it connects:
to answer requests, or to fetch shared data.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import TYPE_CHECKING

from seekable.parallel.pickling import at_place
from seekable.parallel.processes import answer_requests, ignore_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Greeting", "Shared", "accepted", "offered", "serve"]

_MOST_GREETING_BYTES = 4096

_SILENT_SECONDS = 60
"""The time after which the machine at the other end must answer, or the connection has ended."""

_STRANGER = (OSError, EOFError, AuthenticationError, AssertionError, ValueError)
"""The errors of talking to something that is no element of ours, or has ended."""

offered: dict[str, bytes] = {}
"""The shared data of this process, by token."""

_driver: list[tuple[str, int, bytes]] = []
"""In an element: the host, the port and the key of its executor."""


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
