"""Azure Blob Storage: azurite, which ``make nightly`` installs with npm into the environment's folder."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, final
from urllib.parse import parse_qsl, quote, urlsplit

from tests.remote.servers.bucket import Answer, Bucket, StoreServer, request, succeeded
from tests.remote.servers.process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = "azurite is not there: make nightly installs it, or: npm install -g azurite@3.37.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The documented key of azurite."""


def program() -> str | None:
    """Return the path of the server, of the environment or of PATH; None without it."""
    own = os.path.join(sys.prefix, "apart", "servers", "azurite", "node_modules", ".bin", "azurite-blob")
    if os.access(own, os.X_OK) and shutil.which("node"):
        return own
    return shutil.which("azurite-blob")


def signed_request(address: str, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
    """Make one request, signed with the account's key."""
    ours = {name.replace("_", "-"): value for name, value in headers.items()}
    ours["x-ms-date"] = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    ours["x-ms-version"] = "2023-11-03"
    ours["Authorization"] = f"SharedKey {ACCOUNT}:{_signature(method, target, len(body), ours)}"
    return request(address, method, target, body, ours)


def _signature(method: str, target: str, length: int, headers: Mapping[str, str]) -> str:
    parts = urlsplit(target)
    standard = ["", "", str(length or ""), *[""] * 8]  # of these headers, only Content-Length is sent
    own = [f"{name}:{value}" for name, value in sorted(headers.items())]
    named = [f"{name}:{value}" for name, value in sorted(parse_qsl(parts.query))]
    text = "\n".join([method, *standard, *own, f"/{ACCOUNT}{parts.path}", *named])
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


@final
@dataclass(frozen=True, slots=True)
class AzureBucket(Bucket):
    @property
    def url(self) -> str:
        return f"az://{self.name}"

    @property
    def options(self) -> dict[str, Any]:
        endpoint = f"http://{self.address}/{ACCOUNT}"
        return {"endpoint": endpoint, "account_name": ACCOUNT, "account_key": KEY}

    def content(self, key: str) -> bytes:
        return succeeded(signed_request(self.server, "GET", self._target(key)), key).body

    def _put(self, key: str, content: bytes) -> None:
        answer = signed_request(self.server, "PUT", self._target(key), content, x_ms_blob_type="BlockBlob")
        succeeded(answer, key)

    def _delete(self, key: str) -> None:
        succeeded(signed_request(self.server, "DELETE", self._target(key)), key)

    def _target(self, key: str) -> str:
        return f"/{ACCOUNT}/{self.name}/{quote(key)}"


@final
class Azurite(StoreServer):
    """A server that is Azure Blob Storage, in memory."""

    def __init__(self) -> None:
        path = program()
        assert path is not None, MISSING
        self._process = ServerProcess.start_on_free_port(
            lambda port: [
                *(path, "--blobHost", "127.0.0.1", "--blobPort", str(port)),
                *("--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"),
            ]
        )
        super().__init__(self._process.address)

    def stop(self) -> None:
        self._process.stop()

    def _bucket(self, name: str) -> AzureBucket:
        answer = signed_request(self.address, "PUT", f"/{ACCOUNT}/{name}?restype=container")
        assert answer.status == 201, answer
        return AzureBucket(name, self.address, self.address)
