"""The store of the benchmarks: nginx as S3, behind a proxy that makes each request wait. Both run here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.data import dealt
from tests.remote.proxy import Fault, Proxies
from tests.remote.servers.nginx import Nginx, program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.data import Data
    from tests.remote.proxy import Front
    from tests.remote.servers.bucket import Bucket

LATENCY = 0.03
"""The seconds that each request waits."""

Answer = dict[str, Any]

_FILES = 64
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "remote_run.py")
_FAULTS = {
    Fault(reset_after=300_000): 0.01,
    Fault(status=503): 0.01,
    Fault(latency=5): 0.005,
}


@dataclass(frozen=True, slots=True)
class Store:
    """A bucket with the records, where the same files lie on the disk, and an index of them."""

    bucket: Bucket
    front: Front
    folder: str
    """A folder of this run; what is fetched is kept below it."""

    paths: tuple[str, ...]
    """The files on the disk."""

    converted: str
    """The folder of other libraries' shards; it is the folder ``converted`` of the bucket too."""

    @property
    def keys(self) -> list[str]:
        """The objects with the records."""
        return [f"lines/{os.path.basename(path)}" for path in self.paths]

    @property
    def bytes(self) -> int:
        """The number of bytes of the records."""
        return sum(map(os.path.getsize, self.paths))

    @property
    def indexed(self) -> dict[str, Any]:
        """The arguments of a job that take the index, and look at nothing else."""
        return {**self.addressed(os.path.join(self.folder, "index")), "refresh": False}

    @property
    def source(self) -> list[str]:
        """The addresses of the objects with the records."""
        return self.bucket.urls(*self.keys)

    def addressed(self, index_dir: str) -> dict[str, Any]:
        """Return the arguments of a job with an index folder."""
        return {"storage_options": self.bucket.options, "index_dir": index_dir}

    def run(self, job: str, *, cache: int | None = None, **arguments: Any) -> Answer:
        """Run a job of ``remote_run`` in a process with an empty cache, whose limit is ``cache``.

        Returns:
            The figures of the job, and those of the proxy: the requests for bytes ("gets") and "others", the
            bytes "sent", and the "most" requests at once.
        """
        (answer,) = self.run_all(job, [arguments], cache=cache)
        return answer

    def run_all(
        self, job: str, several: Sequence[Mapping[str, Any]], *, cache: int | None = None
    ) -> list[Answer]:
        """Run processes at the same time, which share a cache that is empty at first."""
        self.front.log(clear=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as kept:
            limit = {} if cache is None else {"SEEKABLE_REMOTE_BYTES": str(cache)}
            answers = answers_of(job, several, {"SEEKABLE_REMOTE_DIR": kept, **limit})
        most = self.front.most_at_once
        log = self.front.log(clear=True)
        gets = [exchange for exchange in log if exchange.method == "GET"]
        sent = sum(exchange.sent for exchange in gets)
        counted = {"gets": len(gets), "others": len(log) - len(gets), "sent": sent, "most": most}
        return [{**answer, **counted} for answer in answers]

    @contextlib.contextmanager
    def faults(self, seed: int) -> Iterator[None]:
        """Break 1 % of the connections, refuse 1 % of the requests, and leave 0.5 % waiting for 5 s."""
        self.front.by_chance(seed, _FAULTS)
        try:
            yield
        finally:
            self.front.calm()
            self.front.always(Fault(latency=LATENCY))


def is_there() -> bool:
    """Return True if the server is installed."""
    return program() is not None


@contextlib.contextmanager
def served(data: Data) -> Iterator[Store]:
    """Start the server and the proxy, and index the records."""
    paths = dealt(data.long, data.folder, data.sizes, min(_FILES, data.sizes.sources))
    converted = os.path.join(data.folder, "remote")
    os.makedirs(converted, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Proxies() as proxies:
        server = Nginx(root=os.path.join(folder, "served"))
        try:
            bucket = server.s3_bucket()
            own = os.path.join(folder, "served", bucket.name)
            os.symlink(os.path.dirname(paths[0]), os.path.join(own, "lines"))
            os.symlink(converted, os.path.join(own, "converted"))
            front = proxies.before(server.address)
            front.always(Fault(latency=LATENCY))
            store = Store(bucket.behind(front), front, folder, paths, converted)
            store.run("index", source=store.source, **store.addressed(os.path.join(folder, "index")))
            yield store
        finally:
            server.stop()


def answers_of(job: str, several: Sequence[Mapping[str, Any]], variables: Mapping[str, str]) -> list[Answer]:
    """Run a job in several processes at the same time, and return the figures of each."""
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_started(job, arguments, variables)) for arguments in several]
        printed = [process.communicate() for process in processes]
    for process, (_, complaint) in zip(processes, printed, strict=True):
        if process.returncode:
            message = f"{job} ended with status {process.returncode}:\n{complaint[-2000:]}"
            raise RuntimeError(message)
    return [json.loads(answer) for answer, _ in printed]


def _started(job: str, arguments: Mapping[str, Any], variables: Mapping[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **variables},
        text=True,
    )
    assert process.stdin
    process.stdin.write(json.dumps({"job": job, **arguments}))
    process.stdin.close()
    process.stdin = None  # `communicate` would write to it
    return process
