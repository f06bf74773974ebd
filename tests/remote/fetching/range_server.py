"""A web server of one object, in a process of its own, for clients that fork, hang or end.

    python tests/remote/fetching/range_server.py SIZE SECONDS

Prints its port, and ends with its standard input. Each answer is late by so many seconds; requests for
``/hang`` are never answered. ``GET /count`` says how many ranges were sent. Only the standard library is
imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ETAG = '"range-server"'


def content(size: int) -> bytes:
    cycle = bytes(index * 31 % 251 for index in range(251))
    return (cycle * (size // len(cycle) + 1))[:size]


@contextlib.contextmanager
def range_server(size: int, *, seconds: float = 0.0) -> Iterator[str]:
    """Start a server of ``content(size)``, and yield its address, ``http://127.0.0.1:PORT``."""
    command = [sys.executable, str(Path(__file__)), str(size), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


async def serve(size: int, seconds: float) -> None:
    whole = content(size)
    sent = 0
    never = asyncio.Event()  # referred to from here, so that those who wait are not collected

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                start, stop, status = 0, size, "200 OK"
                if path.startswith("/hang"):
                    await never.wait()
                if path == "/count":
                    writer.write(
                        f"HTTP/1.1 200 OK\r\nContent-Length: {len(str(sent))}\r\n\r\n{sent}".encode()
                    )
                    continue
                if "range" in headers:
                    first, last = headers["range"].removeprefix("bytes=").split("-")
                    start, stop, status = int(first), min(int(last) + 1, size), "206 Partial Content"
                    sent += 1
                if seconds:
                    await asyncio.sleep(seconds)
                lines = [
                    f"HTTP/1.1 {status}",
                    f"Content-Length: {stop - start}",
                    f"ETag: {ETAG}",
                    "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
                ]
                if "range" in headers:
                    lines.append(f"Content-Range: bytes {start}-{stop - 1}/{size}")
                writer.write("\r\n".join([*lines, "", ""]).encode())
                if method == "GET":
                    writer.write(memoryview(whole)[start:stop])
                await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
