"""The server of one viewer: a socket of this machine, the guard, and uvicorn in this or another thread."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.viewer.app import make_app
from seekable.viewer.connections import HeadProtocol
from seekable.viewer.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.viewer.guard import App
    from seekable.viewer.opened import Opened

PORT = 7335
"""SEEK on a telephone."""

_PORTS_TRIED = 20
_SECONDS_TO_END = 5.0
_BACKLOG = 128


class Listener:
    """An application on a port of this machine; it listens from the beginning, and answers from ``run`` on.

    Args:
        app: what answers requests.
        port: the port; if it is taken, the next free one; 0 for any.
        host: the address to listen on.

    Raises:
        InvalidArgument: no port is free.
    """

    def __init__(self, app: App, *, port: int = PORT, host: str = "127.0.0.1") -> None:
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
