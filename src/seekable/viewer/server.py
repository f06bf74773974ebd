"""Serves viewers on a port of this machine: the one of the command, or all of a process on one socket.

A guard is the outermost ASGI application. It lets a request through if its Host is a name of this machine or
one that the user allowed (so DNS that is rebound leads nowhere), its Origin too where one is sent, and the
first part of its path is the token. It adds headers to each answer that keep pages to themselves.

Whoever knows the token sends the head of a request at once. Other users of the machine may connect too, and
their idle connections must leave some for the owner: few may wait for a head, and not for long.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.viewer.app import make_app

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from seekable.viewer.opened import Opened


_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_TRICK = re.compile(rb"%2f|%5c|%00|%2e|\\|//|/\.{1,2}(/|$)", re.IGNORECASE)
_NETLOC = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@/\s]+)(:\d*)?", re.IGNORECASE)
_BODY_MOST = 4096

_REFUSED = {
    "host": (421, "This address does not belong to the viewer. Open the link that seekable view printed."),
    "origin": (403, "Another site asked for this page. Open the link that seekable view printed."),
    "token": (
        403,
        "Open the link that seekable view printed: it holds a secret that is new each run.",
    ),
    "method": (405, "Pages are read by GET; jobs are started and stopped by POST."),
    "path": (404, "There is no such page."),
    "length": (413, "The form is too long."),
}


class Guard:
    """Lets requests with the right host, origin and token through to an application.

    Args:
        app: answers addresses without the token.
        token: the first part of each path.
        hosts: names besides those of this machine.
        frames: origins whose pages may show the viewer in a frame, besides those of this machine.
    """

    def __init__(
        self, app: ASGIApp, token: str, *, hosts: Iterable[str] = (), frames: Iterable[str] = ()
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = _OWN_NAMES | frozenset(host.lower() for host in hosts)
        self._headers = _headers(frames)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, by the application or with a refusal."""
        if scope["type"] != "http":
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        why, path = self._refusal(scope, headers)
        if why is not None:
            await _refusal_page(why, self._headers)(scope, receive, send)
            return
        if "/" not in scope["path"].removeprefix("/"):
            # Links are relative to a slash after the token. This one is too, so prefixes of proxies stay.
            leads_on = Response(None, 307, {"location": f"{self._token.decode()}/", **self._headers})
            await leads_on(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    given.setdefault(name, value)
            await send(message)

        inner = {**scope, "path": path, "raw_path": path.encode("utf-8", "surrogatepass"), "root_path": ""}
        await self._app(inner, receive, with_headers)

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> tuple[str | None, str]:
        """Return the reason to refuse a request, or None, and the path without the token."""
        if _host_of(headers.get(b"host", "")) not in self._hosts:
            return "host", ""
        token, _, path = scope["path"].removeprefix("/").partition("/")
        is_ours = hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token)
        if not self._may_ask(scope["method"], headers, is_ours=is_ours):
            return "origin", ""
        if not is_ours:
            return "token", ""
        return self._odd(scope, headers), "/" + path

    @staticmethod
    def _odd(scope: Scope, headers: dict[bytes, str]) -> str | None:
        """Return the reason to refuse a request with the token, or None."""
        raw = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return "method"
        if _TRICK.search(raw):
            return "path"
        is_long = scope["method"] == "POST" and not _is_short(headers.get(b"content-length", "0"))
        return "length" if is_long else None

    def _may_ask(self, method: str, headers: dict[bytes, str], *, is_ours: bool) -> bool:
        origin = headers.get(b"origin")
        if origin is not None and _host_of(urlsplit(origin).netloc) not in self._hosts:
            return False
        if headers.get(b"sec-fetch-site") != "cross-site":
            return True
        # A frame of a notebook is another site, but it navigates, by GET and with the token.
        return method == "GET" and headers.get(b"sec-fetch-mode") == "navigate" and is_ours


def _host_of(netloc: str) -> str:
    """Return the host of a netloc, without its port; nothing if it is something else."""
    found = _NETLOC.fullmatch(netloc)
    return "" if found is None else found[1].lower()


def _is_short(length: str) -> bool:
    return length.isascii() and length.isdigit() and int(length) <= _BODY_MOST


def _headers(frames: Iterable[str]) -> dict[str, str]:
    ancestors = " ".join(["'self'", "http://127.0.0.1:*", "http://localhost:*", *frames])
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + ancestors
    )
    return {
        "content-security-policy": policy.encode().decode("latin-1"),  # the encoding of headers
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "same-origin",
        "cache-control": "no-store",
    }


def _refusal_page(why: str, headers: dict[str, str]) -> Response:
    status, text = _REFUSED[why]
    body = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>seekable</title></head>'
        f"<body><main><h1>{status}</h1><p>{text}</p></main></body></html>"
    )
    return HTMLResponse(body, status, {"connection": "close", **headers})


PORT = 7335
"""The default port: the letters SEEK on the keys of a telephone."""

_PORTS_TRIED = 20
_SECONDS_TO_END = 5.0
_BACKLOG = 128
_HEAD_SECONDS = 10.0
_MOST_WAITING = 32


class HeadProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose first head takes longer than 10 seconds.

    Where more than 32 connections wait for theirs, the oldest is closed, so that a new one always comes
    through. Refused requests close their connections too.
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
        """Take received data, and stop the timer once the head is complete."""
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
