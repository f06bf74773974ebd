"""Web servers whose answers are odd each time, and the settings of the client: certificates and proxies."""

from __future__ import annotations

import asyncio
import http.server
import threading
from typing import TYPE_CHECKING

import pytest
from tests.remote.stores.stub_server import CONTENT, stub_server
from tests.remote.stores.test_mounts import read

import seekable as sk
from seekable.errors import AccessDenied, InvalidArgument, Unreachable
from seekable.remote.mounts import mount, store_of
from seekable.remote.stores.object_store import Pin
from seekable.remote.stores.obstore_clients import client_of
from seekable.remote.stores.storage_options import checked_options
from seekable.storage.addresses import UrlSecrets, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEM = """\
-----BEGIN CERTIFICATE-----
MIIBbjCCARWgAwIBAgIUPM5vITV193D9jpumTxtvgg14E+YwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAgFw0yNjExMjgxNTQxMjNaGA8yMTI2MTEwNDE1NDEyM1ow
DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABAtfMKVf4mfG
WjdLHpev5TKDCNMHU1wuLP/AaTUykbaJgH1REMELLLD5sBWKTw6Ly1IBkxHpEMBZ
xcnk5Ia7ozOjUzBRMB0GA1UdDgQWBBQNnmX4jBAgTdXlIj10Kt7YSgRpAzAfBgNV
HSMEGDAWgBQNnmX4jBAgTdXlIj10Kt7YSgRpAzAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0cAMEQCIAV02COMrzba9+JDnU2Ph2wmFCbNkmaw3ksQVYNIpWVo
AiAgXmOlR/c+Z3Iwh99sWO43YszPvq845vZA0aqkdusFfA==
-----END CERTIFICATE-----
"""


class Odd(http.server.BaseHTTPRequestHandler):
    """Answers as the first part of the path says."""

    def do_GET(self) -> None:
        how = self.path.split("/")[1]
        first, _, last = (self.headers.get("Range") or "").removeprefix("bytes=").partition("-")
        has_range = bool(first) and how != "all"
        body = CONTENT[int(first) : int(last) + 1] if has_range else CONTENT
        if how in ("loop", "login"):
            self.send_response(302)
            self.send_header("Location", "/loop/a" if how == "loop" else "/page/log-in")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if has_range else 200)
        if has_range and how != "none":
            self.send_header(
                "Content-Range", f"bytes {first}-{last}/{'*' if how == 'star' else len(CONTENT)}"
            )
        if how != "long":
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html; charset=utf-8" if how == "page" else "text/plain")
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_size_is_that_of_the_file_also_where_head_has_none(odd: str) -> None:
    assert read(mount(f"{odd}/plain/a.txt")) == CONTENT[1:]


@pytest.mark.parametrize("how", ["all", "star", "none"])
def test_a_file_of_a_server_without_ranges_is_read_whole(odd: str, how: str) -> None:
    store, key = store_of(mount(f"{odd}/{how}/a.txt"))

    async def whole() -> bytes:
        stat = await store.stat(key)
        return bytes(memoryview(await store.read(key, 0, stat.size, pin=Pin(stat.size, stat.identity))))

    assert asyncio.run(whole()) == CONTENT
    with pytest.raises(Unreachable, match=r"sends no byte ranges|does not say how long the file is"):
        read(mount(f"{odd}/{how}/a.txt"))


@pytest.mark.parametrize(
    ("path", "kind", "says"),
    [
        ("loop/a.txt", Unreachable, "redirects of the server lead nowhere"),
        ("long/a.txt", Unreachable, "does not say how long the file is"),
        ("login/a.txt", AccessDenied, r"a web page \(text/html; charset=utf-8\) in the place of the file"),
        ("page/a.txt", AccessDenied, "one that asks for a log-in"),
    ],
)
def test_what_will_not_pass_is_said_at_once(odd: str, path: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        read(mount(f"{odd}/{path}"))


def test_a_page_that_is_meant_is_read(odd: str) -> None:
    assert read(mount(f"{odd}/page/a.html")) == CONTENT[1:]


def test_certificates_are_pem_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(address: str = "https://host", **given: object) -> None:
        found = parse(address)
        client_of(found, checked_options(found.scheme, {"anonymous": True, **given}), UrlSecrets("", ""))

    for variable in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    bundle = tmp_path / "bundle.pem"
    connect(root_certificate=PEM)
    connect(root_certificate=PEM.encode())
    with pytest.raises(InvalidArgument, match=r"root_certificate' is no PEM and no file"):
        connect(root_certificate=str(bundle))
    bundle.write_text(PEM)
    connect(root_certificate=bundle)
    bundle.write_text("no certificate")
    for variable, address in (("AWS_CA_BUNDLE", "s3://bucket"), ("REQUESTS_CA_BUNDLE", "https://host")):
        monkeypatch.setenv(variable, str(bundle))
        with pytest.raises(InvalidArgument, match="No certificates found"):
            connect(address)
        monkeypatch.setenv(variable, str(tmp_path / "none.pem"))
        with pytest.raises(InvalidArgument, match=f"{variable} is no PEM and no file"):
            connect(address)
        monkeypatch.delenv(variable)


def test_no_proxy_of_all_hosts_is_of_addresses_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with stub_server(lambda _: (200, b"")) as address:
        with pytest.raises(sk.SeekableError):
            sk.open(f"http://{address}/a.txt", storage=sk.Storage(options={"retries": 0}))
        monkeypatch.setenv("NO_PROXY", "*")
        assert read(mount(f"http://{address}/b.txt", {"user_agent": "other"})) == CONTENT[1:]
