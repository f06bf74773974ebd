"""The process of ``tests/remote/proxy.py``: passes HTTP on to servers, and harms some of the answers.

    python tests/remote/proxy_server.py

Prints the number of its control port, and ends with the first connection to it. Each line of that connection
is a JSON object that names a job, a method of ``Control``; each gets one JSON line. Only the standard library
is imported, so that the process starts in a tenth of a second.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PIECE = 256 << 10
REASONS = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 429: "TooManyRequests"}
REASONS |= {500: "InternalError", 503: "SlowDown"}
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Head:
    """The first line and the headers of a request or of an answer; names are in lower case."""

    line: str
    headers: dict[str, str]

    def encoded(self) -> bytes:
        lines = [self.line, *(f"{name}: {value}" for name, value in self.headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    @property
    def length(self) -> int | None:
        return int(self.headers["content-length"]) if "content-length" in self.headers else None


async def read_head(reader: asyncio.StreamReader) -> Head:
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = text[:-4].split("\r\n")
    pairs = (header.partition(":") for header in rest)
    return Head(line, {name.strip().lower(): value.strip() for name, _, value in pairs})


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    """Return a body that came in chunks, as one."""
    body = bytearray()
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return bytes(body)


@dataclass(slots=True)
class Front:
    """A port that passes requests on to one server, with the faults that were asked for."""

    upstream: tuple[str, int]
    always: dict[str, Any] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    seed: int = 0
    chances: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    most_in_a_row: int = 3
    log: list[dict[str, Any]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    heard: asyncio.Condition = field(default_factory=asyncio.Condition)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    in_a_row: dict[str, int] = field(default_factory=dict)
    times_asked: dict[str, int] = field(default_factory=dict)
    server: asyncio.Server | None = None

    def choose(self, method: str, target: str, span: str) -> dict[str, Any]:
        """Return the fault of a request: the first rule that fits decides, else chance."""
        for rule in self.rules:
            if not re.search(rule["target"], f"{method} {target} {span}") or not rule["count"]:
                continue
            if rule["skip"]:
                rule["skip"] -= 1
                continue
            rule["count"] -= 1
            fault: dict[str, Any] = rule["fault"]
            return self.always | fault
        return self.always | self._by_chance(f"{method} {target} {span}")

    def _by_chance(self, request: str) -> dict[str, Any]:
        """Return the fault that the seed gives to the n-th request of its kind, whenever it comes."""
        nth = self.times_asked[request] = self.times_asked.get(request, 0) + 1
        drawn = random.Random(f"{self.seed} {nth} {request}").random()
        for chance, fault in self.chances:
            drawn -= chance
            if drawn < 0 and self.in_a_row.get(request, 0) < self.most_in_a_row:
                self.in_a_row[request] = self.in_a_row.get(request, 0) + 1
                return fault
        self.in_a_row[request] = 0
        return {}

    async def listen(self) -> int:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    async def note(self, entry: dict[str, Any]) -> None:
        async with self.heard:
            self.log.append(entry)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.heard.notify_all()


class Connection(asyncio.StreamReaderProtocol):
    """One connection of a client. What is done for it ends with it."""

    def __init__(self, front: Front) -> None:
        self._mine: asyncio.Task[None] | None = None
        self._front = front
        super().__init__(asyncio.StreamReader(limit=4 * PIECE), self._begin)

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._mine = asyncio.current_task()
        assert self._mine is not None
        self._front.tasks.add(self._mine)
        client = Client(self._front, reader, writer)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await client.serve()
        finally:
            self._front.tasks.discard(self._mine)
            client.close()

    def eof_received(self) -> bool | None:
        if self._mine is not None:
            self._mine.cancel()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._mine is not None:
            self._mine.cancel()
        super().connection_lost(exc)


class Client:
    """Answers the requests of one connection, over one kept connection to the server."""

    def __init__(self, front: Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._front, self._reader, self._writer = front, reader, writer
        self._upstream: Streams | None = None

    async def serve(self) -> None:
        while True:
            head = await read_head(self._reader)
            if "chunked" in head.headers.pop("transfer-encoding", ""):
                body = await read_chunks(self._reader)
                head.headers["content-length"] = str(len(body))
            else:
                body = await self._reader.readexactly(head.length or 0)
            method, target, _ = head.line.split(" ")
            fault = self._front.choose(method, target, head.headers.get("range", ""))
            began = time.monotonic()
            entry = {"time": began, "method": method, "target": target, "sent": 0, "status": None}
            entry |= {"range": head.headers.get("range"), "pinned": head.headers.get("if-match")}
            entry |= {"fault": fault.get("name"), "seconds": None}
            await self._front.note(entry)
            try:
                await self._answer(head, body, fault, entry)
            finally:
                entry["seconds"] = time.monotonic() - began
                self._front.at_once -= 1

    def close(self) -> None:
        self._writer.close()
        self._leave()

    def _leave(self) -> None:
        """End the connection to the server."""
        if self._upstream is not None:
            self._upstream[1].close()
            self._upstream = None

    async def _answer(self, head: Head, body: bytes, fault: dict[str, Any], entry: dict[str, Any]) -> None:
        await asyncio.sleep(fault.get("latency", 0))
        if fault.get("hang"):
            await asyncio.Event().wait()
        if status := fault.get("status"):
            await self._refuse(status, fault, entry)
            return
        if fault.get("whole"):
            head.headers.pop("range", None)
        answer, length = await self._ask(head, body)
        entry["status"] = int(answer.line.split(" ")[1])
        left = await self._harm(answer, length, fault)
        self._writer.write(answer.encoded())
        began = time.monotonic()
        async for piece in self._pieces(length if left is None else min(left, length), length):
            self._writer.write(piece)
            await self._writer.drain()
            entry["sent"] += len(piece)
            if rate := fault.get("rate"):
                await asyncio.sleep(began + entry["sent"] / rate - time.monotonic())
        if self._is_ending:
            self._leave()
        await self._break_off(fault, length)

    async def _refuse(self, status: int, fault: dict[str, Any], entry: dict[str, Any]) -> None:
        code = fault.get("code", REASONS.get(status, "Error"))
        body = f"<Error><Code>{code}</Code><Message>by the proxy</Message></Error>".encode()
        head = Head(f"HTTP/1.1 {status} {code}", {"content-length": str(len(body))})
        if (seconds := fault.get("retry_after")) is not None:
            head.headers["retry-after"] = str(seconds)
        entry["status"], entry["sent"] = status, len(body)
        self._writer.write(head.encoded() + (b"" if entry["method"] == "HEAD" else body))
        await self._writer.drain()

    async def _ask(self, head: Head, body: bytes) -> tuple[Head, int]:
        """Return the head of the server's answer, and how many bytes of body follow it."""
        host, port = self._front.upstream
        head.headers["host"] = f"{host}:{port}"
        for is_last in (False, True):
            try:
                if self._upstream is None:
                    self._upstream = await asyncio.open_connection(host, port, limit=4 * PIECE)
                reader, writer = self._upstream
                writer.write(head.encoded() + body)
                await writer.drain()
                answer = await read_head(reader)
                break
            except (ConnectionError, asyncio.IncompleteReadError):  # A server ends kept connections.
                self._upstream = None
                if is_last:
                    raise
        self._body = b""
        if "chunked" in answer.headers.pop("transfer-encoding", ""):
            self._body = await read_chunks(reader)
            answer.headers["content-length"] = str(len(self._body))
        elif answer.length is None and not self._is_bare(head, answer):
            self._body, self._upstream = await reader.read(), None
            answer.headers["content-length"] = str(len(self._body))
        # Where the server ends the connection, the one to the client goes on.
        self._is_ending = answer.headers.pop("connection", "").lower() == "close"
        return answer, 0 if self._is_bare(head, answer) else answer.length or 0

    @staticmethod
    def _is_bare(request: Head, answer: Head) -> bool:
        """Return True for an answer that has no body, whatever its headers say."""
        return request.line.startswith("HEAD ") or answer.line.split(" ")[1] in {"204", "304"}

    async def _harm(self, answer: Head, length: int, fault: dict[str, Any]) -> int | None:
        """Change the headers of an answer; return how many bytes of its body are sent, None for all."""
        if "etag" in fault:
            answer.headers.pop("etag", None)
            if fault["etag"]:
                answer.headers["etag"] = fault["etag"]
        if fault.get("no_last_modified"):
            answer.headers.pop("last-modified", None)
        if "lie" in fault and length:
            shorter: int = max(0, length - fault["lie"])
            answer.headers["content-length"] = str(shorter)
            return shorter
        if fault.get("longer") and length:
            answer.headers["content-length"] = str(length + fault["longer"])
        if fault.get("no_length"):
            answer.headers.pop("content-length", None)
            answer.headers["connection"] = "close"
        breaks: list[int] = [
            fault[name] for name in ("reset_after", "close_after", "hang_after") if name in fault
        ]
        return min(breaks, default=None)

    async def _pieces(self, count: int, length: int) -> AsyncIterator[bytes]:
        """Yield so many bytes of the body; what is left of it is left behind with the connection."""
        if self._body:
            yield self._body[:count]
            return
        assert self._upstream is not None
        reader, left = self._upstream[0], count
        while left:
            piece = await reader.read(min(left, PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(piece)
            yield piece
        if count < length:
            self._leave()

    async def _break_off(self, fault: dict[str, Any], length: int) -> None:
        """Do what a fault says comes after the bytes of the body that were sent."""
        if fault.get("longer") and length:
            self._writer.write(b"\0" * fault["longer"])
            await self._writer.drain()
        if "reset_after" in fault:
            linger = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._writer.transport.abort()
            raise ConnectionResetError
        if "hang_after" in fault:
            await asyncio.Event().wait()
        if "close_after" in fault or fault.get("no_length"):
            raise ConnectionAbortedError


class Control:
    """The jobs of the control port, by the names of the methods."""

    def __init__(self) -> None:
        self._fronts: dict[int, Front] = {}
        self._numbers = itertools.count()

    async def open(self, host: str, port: int) -> dict[str, Any]:
        front, number = Front((host, port)), next(self._numbers)
        self._fronts[number] = front
        return {"front": number, "port": await front.listen()}

    async def set(self, front: int, **fields: Any) -> dict[str, Any]:
        """Set fields of a front: always, rules, seed, chances, most_in_a_row."""
        for name, value in fields.items():
            setattr(self._fronts[front], name, value)
        return {}

    async def rule(self, front: int, rule: dict[str, Any]) -> dict[str, Any]:
        self._fronts[front].rules.append(rule)
        return {}

    async def log(self, front: int, *, clear: bool) -> dict[str, Any]:
        found = self._fronts[front]
        answer = {"log": list(found.log), "most_at_once": found.most_at_once, "at_once": found.at_once}
        if clear:
            found.log, found.most_at_once = [], found.at_once
        return answer

    async def wait(self, front: int, requests: int, seconds: float) -> dict[str, Any]:
        """Wait until so many requests have come; the answer says whether they came in time."""
        found = self._fronts[front]

        async def wait() -> None:
            async with found.heard:
                await found.heard.wait_for(lambda: len(found.log) >= requests)

        with suppress(TimeoutError):
            await asyncio.wait_for(wait(), seconds)
        return {"came": len(found.log) >= requests}

    async def shut(self, front: int) -> dict[str, Any]:
        """End a front and its connections: further ones are refused."""
        found = self._fronts.pop(front)
        assert found.server is not None
        found.server.close()
        for task in list(found.tasks):
            task.cancel()
        return {}


async def main() -> None:
    """Do the jobs of one control connection, until it ends."""
    control, ended = Control(), asyncio.Event()

    async def obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                job = json.loads(line)
                answer = await getattr(control, job.pop("do"))(**job)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        finally:
            ended.set()

    server = await asyncio.start_server(obey, "127.0.0.1", 0, limit=1 << 24)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await ended.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
