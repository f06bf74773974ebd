"""The guard over a real socket: who is refused, with which answer, and the headers of every page."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING, Any

import pytest

from seekable.viewer import server as room
from seekable.viewer.app import ROUTES

if TYPE_CHECKING:
    from seekable.viewer.server import Server

OWN = "http://127.0.0.1:7335"
NAVIGATES = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
SECRET = "the committee met"


def ask(
    viewer: Server, path: str, *, method: str = "GET", host: str | None = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    """Return the status, the headers and the text of an answer to a path that is sent as it stands."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{viewer.port}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:80", "[::1]:7335"])
def test_names_of_this_machine_are_let_in(viewer: Server, host: str) -> None:
    assert ask(viewer, f"/{viewer.token}/d/corpus/rows", host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:7335",
        "127.0.0.1.nip.io",
        "evil.example:127.0.0.1",
        "localhost:7335@evil.example",
        "localhost:80.evil.example",
        "[::1].evil.example",
        "[::1",
        "xlocalhost",
        "127.0.0.2",
        "0.0.0.0",
        "2130706433",
    ],
)
def test_other_hosts_are_refused_even_with_the_token(viewer: Server, host: str) -> None:
    status, _, text = ask(viewer, f"/{viewer.token}/d/corpus/rows", host=host)
    assert status in (400, 421)
    assert SECRET not in text
    assert viewer.token not in text


def test_a_foreign_origin_is_refused_even_with_the_token(viewer: Server) -> None:
    path = f"/{viewer.token}/d/corpus/rows"
    origins = {
        OWN: 200,
        "http://localhost": 200,
        "http://[::1]:8": 200,
        "null": 403,
        "": 403,
        "http://evil.example": 403,
        "https://127.0.0.1.evil.example": 403,
        "http://localhost@evil.example": 403,
        "http://evil.example/127.0.0.1": 403,
        "file://": 403,
        "127.0.0.1": 403,
    }
    assert {origin: ask(viewer, path, Origin=origin)[0] for origin in origins} == origins


def test_requests_of_other_sites_are_refused_unless_they_navigate_with_the_token(viewer: Server) -> None:
    path = f"/{viewer.token}/d/corpus/rows"
    for mode in ("cors", "no-cors", "websocket", "same-origin", ""):
        status, _, text = ask(viewer, path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode=mode)
        assert (status, SECRET in text) == (403, False), mode
    assert ask(viewer, path, **NAVIGATES)[0] == 200
    assert ask(viewer, "/wrong/d/corpus/rows", **NAVIGATES)[0] == 403
    for site in ("same-origin", "same-site", "none"):
        assert ask(viewer, path, Sec_Fetch_Site=site, Sec_Fetch_Mode="cors")[0] == 200, site


def test_nothing_is_changed_from_elsewhere(viewer: Server) -> None:
    path = f"/{viewer.token}/d/corpus/verify"
    before = len(viewer.opened.jobs.all())
    refused: tuple[dict[str, str], ...] = (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        NAVIGATES,
        {**NAVIGATES, "Origin": OWN},
    )
    for headers in refused:
        assert ask(viewer, path, method="POST", **headers)[0] == 403, headers
    assert ask(viewer, path, method="POST", host="evil.example", Origin=OWN)[0] == 421
    assert ask(viewer, path.replace(viewer.token, "wrong"), method="POST", Origin=OWN)[0] == 403
    assert ask(viewer, path, method="POST", Origin=OWN, Content_Length="4097")[0] == 413
    assert ask(viewer, path, method="POST", Origin=OWN, Content_Length="many")[0] in (400, 413)
    assert len(viewer.opened.jobs.all()) == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_pages_are_read_and_jobs_posted_alone(viewer: Server, method: str) -> None:
    assert ask(viewer, f"/{viewer.token}/d/corpus/rows", method=method)[0] == 405


def test_no_address_answers_without_the_token(viewer: Server) -> None:
    token = viewer.token
    paths = [
        "/",
        "//",
        "*",
        "/d/corpus/rows",
        "/view.js",
        f"/{token[:-1]}/d/corpus/rows",
        f"/{token}x/d/corpus/rows",
        f"/{token.upper()}X/d/corpus/rows",
        f"/x/{token}/d/corpus/rows",
        f"//{token}/d/corpus/rows",
        f"/?{token}",
        f"/x/../{token}/d/corpus/rows",
        f"/%2e/{token}/",
        "/%c3%a9%ff/",
    ]
    for path in paths:
        status, _, text = ask(viewer, path)
        assert status in (400, 403), path
        assert "corpus" not in text, path
        assert token not in text, path
    assert ask(viewer, f"/{token}/")[0] == 200


@pytest.mark.parametrize(
    "trick",
    [
        "d/corpus/../corpus/rows",
        "d/corpus/at/../../../../etc/passwd/0",
        "d/corpus/at/..%2f..%2fetc%2fpasswd/0",
        "d/corpus/at/..%2F..%2Fetc%2Fpasswd/0",
        "d/corpus/at/%2e%2e/%2e%2e/etc/passwd/0",
        "d/corpus/at/%2E%2E/part-0.jsonl/0",
        "d/corpus/at/..%5c..%5cetc%5cpasswd/0",
        "d/corpus/at/..\\part-0.jsonl/0",
        "d/corpus/at//etc/passwd/0",
        "d//corpus/rows",
        "d/corpus/at/./part-0.jsonl/0",
        "d/corpus/at/part-0.jsonl%00/0",
        "d/corpus/key/..",
        "d/corpus/key/.",
        "d/corpus/rows/..",
        "../view.js",
        "media/d/sounds/0/..%2f..%2fsecret.wav",
    ],
)
def test_tricks_with_paths_lead_nowhere(viewer: Server, trick: str) -> None:
    status, _, text = ask(viewer, f"/{viewer.token}/{trick}")
    assert (status, "There is no such page." in text) == (404, True)


def test_doubly_quoted_paths_are_names_and_no_paths(viewer: Server) -> None:
    for trick in ("%252e%252e/%252e%252e/etc/passwd", "%252fetc%252fpasswd", "%c0%ae%c0%ae/etc/passwd"):
        status, _, text = ask(viewer, f"/{viewer.token}/d/corpus/at/{trick}/0")
        assert (status, "there is no file" in text) == (404, True), trick


@pytest.mark.parametrize("route", ROUTES, ids=[route.path or "home" for route in ROUTES])
def test_every_answer_stays_on_its_page(viewer: Server, route: Any) -> None:
    _, headers, _ = ask(viewer, f"/{viewer.token}/{route.example}")
    policy = [part.split() for part in headers["Content-Security-Policy"].split(";")]
    directives = {name: values for name, *values in policy}
    assert directives["default-src"] == ["'none'"]
    if headers.get_content_type() == "text/html":
        assert directives["script-src"] == directives["style-src"] == directives["form-action"] == ["'self'"]
        assert directives["base-uri"] == ["'none'"]
        assert directives["frame-ancestors"] == ["'self'", "http://127.0.0.1:*", "http://localhost:*"]
    elif headers.get_content_type() in ("image/svg+xml", "image/png", "audio/wav"):
        assert "sandbox" in directives
    assert {"'unsafe-inline'", "'unsafe-eval'", "*"}.isdisjoint(directives.get("script-src", ()))
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Set-Cookie" not in headers
    assert "Server" not in headers


def test_refusals_have_the_headers_too(viewer: Server) -> None:
    for path, host in (("/", "127.0.0.1"), ("/", "evil.example"), (f"/{viewer.token}/x/../y", "127.0.0.1")):
        _, headers, _ = ask(viewer, path, host=host)
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_the_link_without_its_last_slash_leads_to_it_also_behind_a_prefix(viewer: Server) -> None:
    status, headers, _ = ask(viewer, f"/{viewer.token}")
    assert (status, headers["Location"]) == (307, f"{viewer.token}/")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    for address in ("d/corpus", "p/train", "s/checkpoints"):
        status, headers, _ = ask(viewer, f"/{viewer.token}/{address}")
        assert (status, headers["Location"]) == (303, f"../{address}/")
    assert ask(viewer, "/" + "0" * 32)[0] == 403


def test_idle_connections_of_strangers_leave_room_for_the_owner(viewer: Server) -> None:
    idle = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(70)]
    try:
        assert ask(viewer, f"/{viewer.token}/d/corpus/rows")[0] == 200
        idle[0].settimeout(20)
        assert idle[0].recv(1) == b""
    finally:
        for each in idle:
            each.close()


def test_a_head_that_does_not_come_ends_its_connection(
    viewer: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_HEAD_SECONDS", 0.01)
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=20) as late:
        late.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert late.recv(1) == b""


def test_a_refused_request_ends_its_connection(viewer: Server) -> None:
    assert ask(viewer, "/wrong/")[1]["Connection"] == "close"
