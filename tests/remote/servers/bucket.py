"""One bucket, container or folder of a server, which a test has for itself."""

from __future__ import annotations

import http.client
import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.remote.proxy import Front

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def request(
    address: str, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> Answer:
    """Make one request without obstore, which must not be used before a test forks."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, target, body, dict(headers or {}))
        answer = connection.getresponse()
        return Answer(
            answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
        )
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Bucket(ABC):
    """Objects of a test, where they are, and what a client must be given to reach them.

    ``sk.open(bucket.url + "/*.jsonl", storage=sk.Storage(options=bucket.options))``
    """

    name: str
    server: str
    """HOST:PORT of the server itself, which uploads go to."""
    address: str
    """HOST:PORT that a client is given: the server's, or that of a proxy before it."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of the bucket, without a slash at the end."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The ``storage_options`` of the bucket."""

    @final
    def behind(self, front: Front) -> Bucket:
        """Return the same bucket with a proxy between a client and the server."""
        return replace(self, address=front.address)

    @final
    def upload(self, files: Mapping[str, bytes]) -> None:
        """Write objects; one that is written again has another etag."""
        for key, content in files.items():
            self._put(key, content)

    @final
    def delete(self, *keys: str) -> None:
        for key in keys:
            self._delete(key)

    @final
    def urls(self, *keys: str) -> list[str]:
        """Return the addresses of objects."""
        return [f"{self.url}/{key}" for key in keys]

    @abstractmethod
    def content(self, key: str) -> bytes:
        """Return the bytes of an object; KeyError without one."""

    @abstractmethod
    def _put(self, key: str, content: bytes) -> None: ...

    @abstractmethod
    def _delete(self, key: str) -> None: ...


class StoreServer(ABC):
    """A server of objects that runs."""

    def __init__(self, address: str) -> None:
        self.address = address

    @final
    def bucket(self) -> Bucket:
        """Return a new and empty bucket."""
        return self._bucket(f"bucket-{next(_numbers)}")

    @abstractmethod
    def stop(self) -> None:
        """End the server."""

    @abstractmethod
    def _bucket(self, name: str) -> Bucket: ...


def quoted(name: str, key: str) -> str:
    """Return the target of a request for an object in the bucket `name`."""
    return f"/{name}/{quote(key)}"


def succeeded(answer: Answer, key: str) -> Answer:
    """Return the answer of a request for an object, if it is a good one."""
    if answer.status == 404:
        raise KeyError(key)
    assert answer.status < 300, answer
    return answer
