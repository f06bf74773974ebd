"""A Hub on this machine: repositories of datasets, served as huggingface_hub asks for them.

Large files are redirected to another address, as those in LFS or Xet are. Every request is noted, and answers
can be told to go wrong.
"""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import importlib
import json
import os
import pickle
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

import seekable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

ROOT = Path(__file__).parents[1]
LARGE = 1 << 10
PAGE = 3
"""How many entries of a tree one answer has."""


@dataclass
class Repo:
    """The files of one repository by commit, and the commits of its branches."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    card: dict[str, Any] | None = None
    token: str | None = None
    gated: bool = False

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        sha = hashlib.sha1(json.dumps([branch, sorted(files), len(self.commits)]).encode()).hexdigest()
        self.commits[sha] = files
        self.branches[branch] = sha
        return sha


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    range: str | None
    has_token: bool
    sent: int = 0


@dataclass
class Hub:
    """What is served, what was asked, and what shall go wrong next."""

    repos: dict[str, Repo] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    faults: deque[str] = field(default_factory=deque)
    """Of the requests for data, in turn: "500", "cut" (the connection ends), "short" (fewer bytes)."""
    swapped: dict[bytes, bytes] = field(default_factory=dict)
    """What is sent instead of the content of a file, under its etag."""
    endpoint: str = ""
    elsewhere: str = ""
    """Where data is: another host, as far as names tell."""
    on_request: Callable[[int], None] = lambda _: None
    """Is called with the number of each request, before it is answered."""

    @property
    def data(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.path.startswith("/cdn/")]

    @property
    def bytes_sent(self) -> int:
        return sum(asked.sent for asked in self.data)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Head and body of an answer are sent as one: the second of two small packets would wait for 40 ms."""
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        asked = Asked(self.command, self.path, self.headers.get("Range"), "Authorization" in self.headers)
        self.hub.asked.append(asked)
        self.hub.on_request(len(self.hub.asked))
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/cdn/"):
            self.send_data(asked, path.removeprefix("/cdn/"))
            return
        place = re.fullmatch(
            r"/(?:api/)?datasets/(.+?)/(revision|tree|resolve)/(refs%2F[^/]+%2F[^/]+|[^/]+)/?(.*)",
            urlsplit(self.path).path,
        )
        if place is None:
            self.send_text(404, b"", {})
            return
        name, kind, revision, rest = (unquote(part) for part in place.groups())
        repo = self.hub.repos.get(name)
        wrong = self.refusal(repo)
        if repo is None or wrong:
            code, error = wrong or (401, "RepoNotFound")
            self.send_text(code, b"{}", {"X-Error-Code": error})
            return
        sha = repo.branches.get(revision, revision)
        if sha not in repo.commits:
            self.send_text(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return
        files = repo.commits[sha]
        if kind == "revision":
            self.send_json({"id": name, "sha": sha, "cardData": repo.card, "siblings": []})
        elif kind == "tree":
            self.send_tree(files)
        elif rest not in files:
            self.send_text(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        else:
            data = files[rest]
            etag = digest(data)
            headers = {"X-Repo-Commit": sha, "X-Linked-ETag": f'"{etag}"', "X-Linked-Size": str(len(data))}
            self.send_text(302, b"", {**headers, "Location": f"{self.hub.elsewhere}/cdn/{etag}"})

    def refusal(self, repo: Repo | None) -> tuple[int, str] | None:
        if repo is None:
            return 401, "RepoNotFound"
        if repo.gated:
            return 403, "GatedRepo"
        if repo.token and self.headers.get("Authorization") != f"Bearer {repo.token}":
            return 401, "RepoNotFound"
        return None

    def send_tree(self, files: dict[str, bytes]) -> None:
        query = dict(part.split("=", 1) for part in urlsplit(self.path).query.split("&") if "=" in part)
        first = int(query.get("cursor", "0"))
        names = sorted(files)
        entries = [
            {
                "type": "file",
                "path": name,
                "size": len(files[name]),
                "oid": hashlib.sha1(files[name]).hexdigest(),
                "lfs": {"oid": digest(files[name]), "size": len(files[name]), "pointerSize": 130},
            }
            for name in names[first : first + PAGE]
        ]
        headers = {}
        if first + PAGE < len(names):
            base = f"{self.hub.endpoint}{urlsplit(self.path).path}"
            headers["Link"] = f'<{base}?recursive=true&cursor={first + PAGE}>; rel="next"'
        self.send_json(entries, headers)

    def send_data(self, asked: Asked, etag: str) -> None:
        fault = self.hub.faults.popleft() if self.hub.faults else ""
        if fault == "500":
            self.send_text(500, b"", {})
            return
        repos = list(self.hub.repos.values())
        data = next(
            data
            for repo in repos
            for files in repo.commits.values()
            for data in files.values()
            if digest(data) == etag
        )
        data = self.hub.swapped.get(data, data)
        code, headers = 200, {"ETag": '"something else"', "Accept-Ranges": "bytes"}
        part = data
        if asked.range is not None:
            start, end = (int(number) for number in asked.range.removeprefix("bytes=").split("-"))
            part = data[start : end + 1]
            code, headers["Content-Range"] = 206, f"bytes {start}-{start + len(part) - 1}/{len(data)}"
        asked.sent = len(part)
        if fault == "cut":
            self.send_response(code)
            self.send_header("Content-Length", str(len(part)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(part[: len(part) // 2])
            self.close_connection = True
            return
        self.send_text(code, part[: len(part) // 2] if fault == "short" else part, headers)

    def send_json(self, document: object, headers: dict[str, str] | None = None) -> None:
        self.send_text(
            200, json.dumps(document).encode(), {"Content-Type": "application/json", **(headers or {})}
        )

    def send_text(self, code: int, text: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)


@functools.cache
def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def serving() -> Iterator[tuple[Hub, ThreadingHTTPServer]]:
    """A Hub that answers until the end, or until its server is closed."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    hub.elsewhere = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub, server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment(endpoint: str, home: Path, **more: str) -> dict[str, str]:
    """The variables of a process that knows no other Hub, and no other folder."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    for name in (
        "HF_TOKEN",
        "HF_HUB_OFFLINE",
        "SEEKABLE_INDEX_DIR",
        "SEEKABLE_REMOTE_BYTES",
        "SEEKABLE_REMOTE_DIR",
        "SSL_CERT_FILE",
    ):
        kept.pop(name, None)
    folders = {"HF_HOME": str(home / "hf"), "XDG_CACHE_HOME": str(home / "cache")}
    # Requests to this machine are not encrypted: each process would read all certificates in vain.
    hub = {"HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_TELEMETRY": "1", "SSL_CERT_DIR": str(home)}
    return {**kept, **folders, **hub, **more}


PREAMBLE = """
import functools, json, os, sys
import seekable as sk
from seekable.remote.fetching import fetcher, sending

fetcher.Patience = functools.partial(sending.Patience, first_wait=0.001)

def tell(found):
    print("TOLD " + json.dumps(found))
"""


@dataclass(frozen=True)
class Child:
    """A process that runs some code, forked from a warm one."""

    number: int
    warm: Warm

    def kill(self) -> None:
        os.kill(self.number, signal.SIGKILL)

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code, and what was printed as output and as errors."""
        return self.warm.end(self.number)

    def told(self) -> Any:
        """Return what the process told, once it has ended well."""
        code, out, err = self.end()
        assert code == 0, err
        lines = [line for line in out.splitlines() if line.startswith("TOLD ")]
        return json.loads(lines[-1].removeprefix("TOLD "))


class Warm:
    """A process that has imported seekable and huggingface_hub, and forks to run code.

    Each fork has its own variables of the environment, and nothing of another's in memory. huggingface_hub
    reads the variables when its constants are imported: each fork imports these anew.
    """

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from tests.hub import serve_forks; serve_forks()"],
            cwd=ROOT,
            # Threads do not survive a fork.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *error: object) -> None:
        with self._server:
            assert self._server.stdin is not None
            self._server.stdin.close()

    def start(self, code: str, env: dict[str, str], *args: str) -> Child:
        """Run some code after PREAMBLE in a process of its own."""
        number: int = self._ask("start", PREAMBLE + code, env, args)
        return Child(number, self)

    def run(self, code: str, env: dict[str, str], *args: str) -> Any:
        """Return what some code tells, in a process of its own."""
        return self.start(code, env, *args).told()

    def end(self, number: int) -> tuple[int, str, str]:
        """Wait for a fork; return its exit code, and what it printed as output and as errors."""
        found: tuple[int, str, str] = self._ask("end", number)
        return found

    def _ask(self, *order: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        pickle.dump(order, self._server.stdin)
        self._server.stdin.flush()
        return pickle.load(self._server.stdout)


def serve_forks() -> None:
    """Start and await forks, as standard input says, until it ends. A fork returns from here as well."""
    _import_ahead()
    gc.collect()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    printed: dict[int, tuple[IO[bytes], IO[bytes]]] = {}
    while True:
        try:
            order, *given = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if order == "start":
            files = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_ended`
            child = os.fork()
            if not child:
                answers.close()
                _run_in_fork(files, *given)
                return
            printed[child] = files
            answer: Any = child
        else:
            answer = _ended(given[0], *printed.pop(given[0]))
        pickle.dump(answer, answers)
        answers.flush()


def _import_ahead() -> None:
    for module in pkgutil.walk_packages(seekable.__path__, "seekable."):
        if not module.name.startswith(("seekable.integrations", "seekable.__main__")):
            importlib.import_module(module.name)
    hub = ("huggingface_hub.hf_api", "huggingface_hub.file_download", "huggingface_hub.repocard")
    for name in ("pyarrow.parquet", *hub):
        importlib.import_module(name)
    with suppress(ImportError):
        importlib.import_module("pandas")  # pyarrow imports it if it is there.


def _run_in_fork(files: tuple[IO[bytes], ...], code: str, env: dict[str, str], args: tuple[str, ...]) -> None:
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for descriptor, file in enumerate(files, start=1):
        os.dup2(file.fileno(), descriptor)
    os.environ.clear()
    os.environ.update(env)
    importlib.reload(sys.modules["huggingface_hub.constants"])
    sys.argv = ["-c", *args]
    status = 1
    try:
        exec(compile(code, "<code of a test>", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    # The end of an interpreter that has all of this loaded takes longer than the code of most tests.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _ended(child: int, out: IO[bytes], err: IO[bytes]) -> tuple[int, str, str]:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with out, err:
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(), err.read().decode()
