"""HTTP, and S3 for reads: nginx, which serves ranges at the speed of the disk.

An nginx on PATH is used; else Debian's package is unpacked into the environment, in a second, without root.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Any, final
from urllib.parse import quote

from tests.remote.servers.bucket import Bucket, StoreServer
from tests.remote.servers.debian import unpacked
from tests.remote.servers.process import ServerProcess

MISSING = "nginx is not there: apt-get install nginx-light"
PACKAGES = ("nginx-light", "nginx")

CONFIGURATION = """
daemon off;
worker_processes {workers};
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  default_type application/octet-stream;
  client_body_temp_path {folder}/temporary;
  proxy_temp_path {folder}/temporary;
  fastcgi_temp_path {folder}/temporary;
  uwsgi_temp_path {folder}/temporary;
  scgi_temp_path {folder}/temporary;
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    root {root};
    {extra}
  }}
}}
"""

_seconds = itertools.count(1_600_000_000)


def program() -> str | None:
    """Return the path of nginx; None if there is none and it cannot be had."""
    if found := shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return found
    folder = unpacked("nginx", PACKAGES, "usr/sbin/nginx")
    return None if folder is None else os.path.join(folder, "usr/sbin/nginx")


@final
@dataclass(frozen=True, slots=True)
class NginxBucket(Bucket):
    """A folder of nginx: an address of HTTP, or a bucket of S3 that has no lists."""

    root: str
    is_s3: bool = False

    @property
    def url(self) -> str:
        return f"s3://{self.name}" if self.is_s3 else f"http://{self.address}/{self.name}"

    @property
    def options(self) -> dict[str, Any]:
        return (
            {"endpoint": f"http://{self.address}", "region": "us-east-1", "anonymous": True}
            if self.is_s3
            else {}
        )

    def path(self, key: str) -> str:
        """Return the path of the file that is served as an object."""
        return os.path.join(self.root, self.name, key)

    def content(self, key: str) -> bytes:
        try:
            with open(self.path(key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise KeyError(key) from None

    def _put(self, key: str, content: bytes) -> None:
        path = self.path(key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.new", "wb") as file:
            file.write(content)
        # nginx makes etags of the size and the second of the last change.
        second = next(_seconds)
        os.utime(f"{path}.new", (second, second))
        os.replace(f"{path}.new", path)

    def _delete(self, key: str) -> None:
        os.remove(self.path(key))


@final
class Nginx(StoreServer):
    """nginx on a folder of its own; `extra` is put into its ``server``, for example "etag off;"."""

    def __init__(self, extra: str = "", *, root: str | None = None, workers: int = 1) -> None:
        path = program()
        assert path is not None, MISSING
        self._folder = tempfile.mkdtemp(prefix="seekable-nginx-")
        self._root = root or os.path.join(self._folder, "root")
        os.makedirs(self._root, exist_ok=True)
        self._fields = {"folder": self._folder, "root": self._root, "extra": extra, "workers": workers}
        self._process = ServerProcess.start_on_free_port(lambda port: [path, *self._arguments(port)])
        super().__init__(self._process.address)

    def stop(self) -> None:
        self._process.stop()
        shutil.rmtree(self._folder)

    def s3_bucket(self) -> NginxBucket:
        """Return a new and empty bucket of S3, for reads alone: it has no lists and accepts any signature."""
        made = self.bucket()
        return NginxBucket(made.name, made.server, made.address, self._root, is_s3=True)

    def _bucket(self, name: str) -> NginxBucket:
        os.makedirs(os.path.join(self._root, quote(name)))
        return NginxBucket(name, self.address, self.address, self._root)

    def _arguments(self, port: int) -> list[str]:
        configuration = os.path.join(self._folder, "nginx.conf")
        with open(configuration, "w", encoding="utf-8") as file:
            # Run by root, the workers of nginx are nobody, who may not read the folders of tests.
            user = "user root;" if os.getuid() == 0 else ""
            file.write(user + CONFIGURATION.format(port=port, **self._fields))
        return ["-p", self._folder, "-c", configuration, "-e", os.path.join(self._folder, "error.log")]
