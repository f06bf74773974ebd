"""A store with as many objects as a test likes, for listing them."""

from __future__ import annotations

import json
import os
from typing import Any, Self, final

from tests.remote.servers.bucket import request
from tests.remote.servers.process import ServerProcess, python

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "many_keys_server.py")


@final
class ManyKeys:
    """A server of `count` objects, ``s3://any/corpus/0000/0000000.jsonl`` and so on, each of one record."""

    url = "s3://any"

    def __init__(self, count: int, *, latency: float = 0) -> None:
        self._process = ServerProcess.start(python(PROGRAM, str(count), str(latency)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.stop()

    @property
    def options(self) -> dict[str, Any]:
        """The ``storage_options`` that reach the objects."""
        return {"endpoint": f"http://{self._process.address}", "region": "us-east-1", "anonymous": True}

    def log(self) -> list[str]:
        """Return the targets of the requests since the last call."""
        targets: list[str] = json.loads(request(self._process.address, "GET", "/-/log").body)
        return targets
