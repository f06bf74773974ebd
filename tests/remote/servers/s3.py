"""S3: moto, of the group ``dev``.

For contracts, never for speed: it copies the whole object for each range.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, final

from tests.remote.servers.bucket import Bucket, StoreServer, quoted, request, succeeded
from tests.remote.servers.process import ServerProcess

# moto serves signed requests alone, and verifies no signature.
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, Signature=x"}
MAIN = "import sys; from moto.server import main; main(sys.argv[1:])"


@final
@dataclass(frozen=True, slots=True)
class S3Bucket(Bucket):
    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    @property
    def options(self) -> dict[str, Any]:
        return {
            "endpoint": f"http://{self.address}",
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
        }

    def content(self, key: str) -> bytes:
        return succeeded(request(self.server, "GET", quoted(self.name, key), headers=SIGNED), key).body

    def _put(self, key: str, content: bytes) -> None:
        succeeded(request(self.server, "PUT", quoted(self.name, key), content, SIGNED), key)

    def _delete(self, key: str) -> None:
        succeeded(request(self.server, "DELETE", quoted(self.name, key), headers=SIGNED), key)


@final
class Moto(StoreServer):
    """A server that is S3 with lists, conditions and versions."""

    def __init__(self) -> None:
        self._process = ServerProcess.start_on_free_port(
            lambda port: [sys.executable, "-I", "-c", MAIN, "-H", "127.0.0.1", "-p", str(port)]
        )
        super().__init__(self._process.address)

    def stop(self) -> None:
        self._process.stop()

    def _bucket(self, name: str) -> S3Bucket:
        assert request(self.address, "PUT", f"/{name}", headers=SIGNED).status == 200
        return S3Bucket(name, self.address, self.address)
