"""A server of one object, in a thread, that answers as a function says: for headers and statuses."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Answering = Callable[["http.server.BaseHTTPRequestHandler"], tuple[int, bytes]]

CONTENT = b"0123456789"


@contextmanager
def stub_server(answer: Answering) -> Iterator[str]:
    """Serve `CONTENT`, or what `answer` returns if its status is not 200; yield HOST:PORT."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = answer(self)
            start, stop = 0, len(CONTENT)
            if status == 200:
                body = CONTENT
                if (wanted := self.headers.get("Range")) is not None:
                    first, last = wanted.removeprefix("bytes=").split("-")
                    status, start, stop = 206, int(first), int(last) + 1
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(CONTENT)}")
                body = CONTENT[start:stop]
            self.send_header("ETag", '"stub"')
            self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_PUT = do_GET  # noqa: N815 - names of the base class

        def log_message(self, *args: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
