"""Another server of this machine, whose pages a browser opens."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Handler = http.server.BaseHTTPRequestHandler


@contextmanager
def serving(answer: Callable[[Handler], tuple[str, bytes]]) -> Iterator[int]:
    """Serve what a function answers, on a port of this machine."""

    class Answers(Handler):
        def do_GET(self) -> None:  # noqa: N802 - the name that the server calls
            kind, body = answer(self)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
