"""A store with faults: a proxy in a process of its own, between a client and any HTTP server.

    with Proxies() as proxies:
        front = proxies.before("127.0.0.1:8080")  # front.address: "127.0.0.1:43211"
        front.always(Fault(latency=0.03, rate=30e6))  # each request; the rate is of a connection
        front.rule(Fault(status=503, retry_after=1), target="a.jsonl", count=2)  # the next two that fit
        front.by_chance(7, {Fault(reset_after=1000): 0.01, Fault(status=503): 0.01})
        ...
        assert len(front.log()) <= 1.1 * planned

Without faults and rules everything is passed on as it is, with Host of the server. The log has every request:
when, method, target, range, If-Match, status, bytes of body sent, fault. ``front.wait(n)`` returns once n
requests have come, so that a test needs no sleep before it sends a signal. A request that waits or hangs is
given up when its client goes. The process ends with the ``with``, or with the process that started it.

``Proxies`` needs the standard library alone; the benchmarks and the demos use it too.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from tests.remote.servers.process import ServerProcess, python

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "proxy_server.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request. Fields that are None or False do nothing; bytes are those of the body."""

    latency: float | None = None
    """Seconds before the request is passed on."""
    rate: float | None = None
    """Bytes a second."""
    status: int | None = None
    """Answered by the proxy itself: 403, 404, 412, 429, 500, 503 with the code SlowDown, ..."""
    code: str | None = None
    """The code in the body that goes with the status, as ``ExpiredToken``; the usual one if None."""
    retry_after: float | None = None
    """Goes with the status, in seconds."""
    reset_after: int | None = None
    """The connection is reset after so many bytes."""
    close_after: int | None = None
    """The connection ends in order after so many bytes, too early."""
    hang: bool = False
    """No answer comes, not even its head."""
    hang_after: int | None = None
    """Nothing comes after so many bytes."""
    etag: str | None = None
    """The etag of the answer instead of the server's; "" for none at all."""
    no_last_modified: bool = False
    lie: int | None = None
    """Content-Length, and the body, are so many bytes shorter than Content-Range says."""
    longer: int | None = None
    """Content-Length, and the body, are so many bytes longer than Content-Range says."""
    no_length: bool = False
    """There is no Content-Length: the end of the connection is the end of the body."""
    whole: bool = False
    """The whole object is sent, status 200, whatever range was asked for."""

    def encoded(self) -> dict[str, Any]:
        """Return what the process of the proxy is sent."""
        fields = {
            name: value for name, value in asdict(self).items() if value is not None and value is not False
        }
        return (
            {**fields, "name": ", ".join(f"{name}={value}" for name, value in fields.items())}
            if fields
            else {}
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, and what came of it."""

    time: float
    """Of a monotonic clock, in seconds."""
    method: str
    target: str
    range: str | None
    pinned: str | None
    """If-Match."""
    status: int | None
    """None if there was no answer."""
    sent: int
    """Bytes of body."""
    fault: str | None
    seconds: float | None
    """None while it goes on."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The range asked for, its end excluded; None without one."""
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.range or "")
        return (int(found[1]), int(found[2]) + 1) if found else None


class Front:
    """One port of the proxy, before one server."""

    def __init__(self, proxies: Proxies, number: int, port: int) -> None:
        self._proxies, self._number = proxies, number
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"

    def always(self, fault: Fault) -> None:
        """Give every request the latency, the rate and the faults of `fault`; other faults come on top."""
        self._set(always={name: value for name, value in fault.encoded().items() if name != "name"})

    def rule(self, fault: Fault, *, target: str = "", count: int = 1, skip: int = 0) -> None:
        """Give a fault to the next requests in whose "METHOD TARGET RANGE" the pattern `target` is found.

        The first `skip` of them pass. Rules that were given before come first, while they have a count left.
        """
        fields = {"fault": fault.encoded(), "target": target, "count": count, "skip": skip}
        self._proxies.ask("rule", front=self._number, rule=fields)

    def by_chance(self, seed: int, chances: Mapping[Fault, float], *, most_in_a_row: int = 3) -> None:
        """Give faults by chance: to the n-th request for the same range the same fault, for the same seed.

        A request that had `most_in_a_row` faults one after the other has none the next time.
        """
        pairs = [(chance, fault.encoded()) for fault, chance in chances.items()]
        self._set(seed=seed, chances=pairs, most_in_a_row=most_in_a_row, times_asked={}, in_a_row={})

    def calm(self) -> None:
        """Take away all faults, latency and rate."""
        self._set(always={}, rules=[], chances=[])

    def log(self, *, clear: bool = False) -> list[Exchange]:
        """Return the requests so far, or since the log was cleared."""
        return [Exchange(**entry) for entry in self._log(clear=clear)["log"]]

    @property
    def most_at_once(self) -> int:
        """The highest number of requests that went on at the same time."""
        most: int = self._log(clear=False)["most_at_once"]
        return most

    @property
    def at_once(self) -> int:
        """The number of requests that go on now."""
        number: int = self._log(clear=False)["at_once"]
        return number

    def wait(self, requests: int, *, seconds: float = 30) -> None:
        """Wait until the log has so many requests; AssertionError if they do not come."""
        answer = self._proxies.ask("wait", front=self._number, requests=requests, seconds=seconds)
        assert answer["came"], f"{requests} requests did not come in {seconds} s: {self.log()}"

    def shut(self) -> None:
        """End the port and its connections: further ones are refused."""
        self._proxies.ask("shut", front=self._number)

    def _log(self, *, clear: bool) -> dict[str, Any]:
        return self._proxies.ask("log", front=self._number, clear=clear)

    def _set(self, **fields: Any) -> None:
        self._proxies.ask("set", front=self._number, **fields)


class Proxies:
    """The process of the proxy; any number of servers may be behind it, each with a port of its own."""

    def __enter__(self) -> Self:
        self._process = ServerProcess.start(python(PROGRAM))
        self._connection = socket.create_connection(("127.0.0.1", self._process.port), timeout=60)
        self._lines = self._connection.makefile("rwb")
        self._turn = threading.Lock()
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.close()
        self._connection.close()
        self._process.stop()

    def before(self, server: str) -> Front:
        """Return a new port before a server, "HOST:PORT"."""
        host, _, port = server.rpartition(":")
        answer = self.ask("open", host=host, port=int(port))
        return Front(self, answer["front"], answer["port"])

    def ask(self, job: str, **arguments: Any) -> dict[str, Any]:
        """Have the process do a job; return what it answers."""
        with self._turn:
            self._lines.write(json.dumps({"do": job, **arguments}).encode() + b"\n")
            self._lines.flush()
            answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer
