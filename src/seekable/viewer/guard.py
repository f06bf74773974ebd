"""Refuses requests without the token of the link, for other hosts, or from pages of other sites.

The guard is the outermost ASGI application. A request comes through if its Host is a name of this machine or
one that the user allowed (so DNS that is rebound leads nowhere), its Origin too where one is sent, and the
first part of its path is the token. Headers that keep pages to themselves are added to each answer.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
