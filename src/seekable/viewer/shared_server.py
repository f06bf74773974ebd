"""The one server of a process: it listens while anything is shown, each of which has a token of its own."""

from __future__ import annotations

import hmac
import os
import secrets
import threading
from typing import TYPE_CHECKING

from seekable.viewer.app import make_app
from seekable.viewer.guard import Guard
from seekable.viewer.server import Listener

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.viewer.guard import Receive, Scope, Send
    from seekable.viewer.opened import Opened


class Shown:
    """The objects that the server of this process shows under one token.

    Attributes:
        port: where the server listens.
        token: the first part of its addresses.
    """

    def __init__(self, server: _SharedServer, opened: Opened, *, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self._server = server
        self._opened = opened
        self._process = os.getpid()
        self.is_open = True

    @property
    def is_ours(self) -> bool:
        """False in a child made by fork, which has no server."""
        return os.getpid() == self._process

    def close(self) -> None:
        """Stop serving, and end the jobs; nothing in a child, and nothing the second time."""
        if self.is_open and self.is_ours:
            self.is_open = False
            self._server.remove(self.token)
            self._opened.jobs.close()


class _SharedServer:
    """The applications of a process behind one socket."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._doors: dict[str, Guard] = {}
        self._refusing = Guard(_nothing, secrets.token_hex(16))
        self._listener: Listener | None = None
        self._forgets = False

    def add(self, opened: Opened, *, hosts: Sequence[str], frames: Sequence[str]) -> Shown:
        token = secrets.token_hex(16)
        door = Guard(make_app(opened), token, hosts=hosts, frames=frames)
        with self._lock:
            if self._listener is None:
                self._listener = Listener(self, port=0)
                self._listener.start()
                if not self._forgets:
                    os.register_at_fork(after_in_child=self._forget)
                    self._forgets = True
            self._doors = {**self._doors, token: door}
            return Shown(self, opened, port=self._listener.port, token=token)

    def remove(self, token: str) -> None:
        with self._lock:
            self._doors = {each: door for each, door in self._doors.items() if each != token}
            ended = None if self._doors else self._listener
            if ended is not None:
                self._listener = None
        if ended is not None:
            ended.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by what its token belongs to."""
        asked = scope.get("path", "").removeprefix("/").partition("/")[0].encode("utf-8", "surrogatepass")
        door = self._refusing
        for token, each in self._doors.items():
            if hmac.compare_digest(asked, token.encode()):
                door = each
        await door(scope, receive, send)

    def _forget(self) -> None:
        """Drop the socket in a child, so that the port is free when the parent ends."""
        self._lock = threading.Lock()
        listener, self._listener, self._doors = self._listener, None, {}
        if listener is not None:
            listener.drop()


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Is never reached: no request has the token of the guard before it."""


_SERVER = _SharedServer()


def add(opened: Opened, *, hosts: Sequence[str], frames: Sequence[str]) -> Shown:
    """Show something until it is closed; the server begins to listen with the first one.

    Args:
        opened: what is shown.
        hosts: names under which it may be asked for, besides those of this machine.
        frames: origins whose pages may show it in a frame, besides those of this machine.
    """
    return _SERVER.add(opened, hosts=hosts, frames=frames)
