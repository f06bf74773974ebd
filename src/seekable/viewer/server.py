"""Serves viewers on a port of this machine: the one of the command, or all of a process behind one socket.

Whoever knows the token sends the head of a request at once. Other users of the machine may connect too, and
their idle connections must leave some for the owner: few may wait for a head, and not for long.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.viewer.app import make_app
from seekable.viewer.guard import Guard

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from seekable.viewer.opened import Opened

PORT = 7335
"""SEEK on a telephone."""

_PORTS_TRIED = 20
_SECONDS_TO_END = 5.0
_BACKLOG = 128
_HEAD_SECONDS = 10.0
_MOST_WAITING = 32


class HeadProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose first head takes longer than 10 seconds.

    Where more than 32 connections wait for theirs, the oldest is closed, so that a new one always comes
    through. Refused requests close their connections too (``guard``).
    """

    late: asyncio.TimerHandle | None = None
    """Drops the connection later, as long as it waits."""

    if TYPE_CHECKING:
        connections: set[Any]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of the first request."""
        super().connection_made(transport)
        self.late = self.loop.call_later(_HEAD_SECONDS, self.drop)
        waiting = {each: each.late.when() for each in self.connections if each.late is not None}
        if len(waiting) > _MOST_WAITING:
            min(waiting, key=waiting.__getitem__).drop()

    def handle_events(self) -> None:
        """Take what came, and wait no more once there is a head."""
        super().handle_events()
        if self.cycle is not None:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_no_more(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def drop(self) -> None:
        """Close the connection at once."""
        self._wait_no_more()
        self.transport.abort()


class Listener:
    """An application on a port of this machine; it listens from the beginning, and answers from ``run`` on.

    Args:
        app: what answers requests.
        port: the port; if it is taken, the next free one; 0 for any.
        host: the address to listen on.

    Raises:
        InvalidArgument: no port is free.
    """

    def __init__(self, app: ASGIApp, *, port: int = PORT, host: str = "127.0.0.1") -> None:
        self._socket = _listening(host, checked_count("port", port, least=0))
        self.port: int = self._socket.getsockname()[1]
        self._process = os.getpid()
        config = uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            http=HeadProtocol,
            loop="asyncio",
            timeout_graceful_shutdown=2,
            limit_concurrency=64,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until the process is interrupted, or ``close`` is called."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()  # Or a request would wait for ever for a server that failed.

    def start(self) -> None:
        """Serve in a thread until ``close``."""
        # uvicorn imports modules late. A fork while the thread imports one leaves half of it to the child.
        self._server.config.load()
        self._server.config.get_loop_factory()
        self._thread = threading.Thread(target=self.run, name="seekable-view", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving. A forked child has no server, and nothing to close."""
        if os.getpid() != self._process:
            return
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_SECONDS_TO_END)
        self._socket.close()

    def drop(self) -> None:
        """Close the socket of a forked child, so that the port is free when its parent ends."""
        self._socket.close()


class Server:
    """A viewer that listens.

    Args:
        opened: what it shows.
        port: the port; if it is taken, the next free one; 0 for any.
        host: the address to listen on.
        hosts: names under which it may be asked for, besides those of this machine.
        frames: origins whose pages may show it in a frame.
        token: the first part of each address; a new secret if None.

    Raises:
        InvalidArgument: a port or a token that cannot be used, or no port is free.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        port: int = PORT,
        host: str = "127.0.0.1",
        hosts: Sequence[str] = (),
        frames: Sequence[str] = (),
        token: str | None = None,
    ) -> None:
        self.opened = opened
        self.token = _checked_token(token)
        app = Guard(make_app(opened), self.token, hosts=hosts, frames=frames)
        self._listener = Listener(app, port=port, host=host)
        self.port = self._listener.port

    @property
    def url(self) -> str:
        """The link that opens the viewer."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until the process is interrupted."""
        try:
            self._listener.run()
        finally:
            self.opened.jobs.close()

    def start(self) -> None:
        """Serve in a thread until ``close``."""
        self._listener.start()

    def close(self) -> None:
        """Stop serving; jobs end too."""
        self._listener.close()
        self.opened.jobs.close()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port, or on one of the next ones."""
    last: OSError | None = None
    for each in range(port, min(port + _PORTS_TRIED, 1 << 16)) if port else (0,):
        # asyncio sets TCP_NODELAY only where the protocol is named; without it a page takes 40 ms more.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, each))
            made.listen(_BACKLOG)
        except OSError as error:
            made.close()
            last = error
        else:
            return made
    message = f"the viewer cannot listen on {host}, port {port} and the {_PORTS_TRIED - 1} after it: {last}"
    raise InvalidArgument(message)


def _checked_token(token: str | None) -> str:
    if token is None:
        return secrets.token_hex(16)
    if not token or not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
        message = f"a token is made of ASCII letters, digits, '-' and '_' (got {token!r})"
        raise InvalidArgument(message)
    return token


@contextmanager
def redirect_page(url: str) -> Iterator[str]:
    """Give the address of a file that leads a browser to a URL, and that this user alone can read.

    Every user of a machine can read command lines, so the URL must not be in one. The file lasts as long as
    the block.

    Example:
        >>> with redirect_page("http://127.0.0.1:7335/secret/") as page:
        ...     page.startswith("file:///"), "secret" in page
        (True, False)
    """
    link = escape(url)
    handle, path = tempfile.mkstemp(prefix="seekable-view-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>seekable</title>'
            f'<meta http-equiv="refresh" content="0; url={link}"></head>'
            f'<body><p><a href="{link}">Open the viewer</a></p></body></html>'
        )
    try:
        yield Path(path).as_uri()
    finally:
        with suppress(OSError):
            os.unlink(path)


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
    """The viewers of a process, which share one socket."""

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
        """Answer a request by the viewer that its token belongs to."""
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
    """Never runs: no request has the token of the guard before it."""


_SERVER = _SharedServer()


def share(opened: Opened, *, hosts: Sequence[str], frames: Sequence[str]) -> Shown:
    """Show something by the one server of this process, until it is closed.

    The server listens while anything is shown; each thing has a token of its own.

    Args:
        opened: what is shown.
        hosts: names under which it may be asked for, besides those of this machine.
        frames: origins whose pages may show it in a frame, besides those of this machine.
    """
    return _SERVER.add(opened, hosts=hosts, frames=frames)
