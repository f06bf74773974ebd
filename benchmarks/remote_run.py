"""A process that reads from a store once, as a job of its own: what it fetched before is not there.

    python benchmarks/remote_run.py < JOB

``JOB`` is a JSON object: the name of a function below as "job", and its arguments. The figures come as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    sys.path[0] = ROOT

import msgspec  # noqa: E402 - a script is given its own folder, not the root
from benchmarks.pipelines import BATCH  # noqa: E402
from benchmarks.workers import private  # noqa: E402

import seekable as sk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAMPLED_SECONDS = 0.02


def download(keys: Sequence[str], *, at_once: int, decode: bool, bucket: str, endpoint: str) -> Any:
    """Get whole objects by obstore, so many at once, and decode their lines in order."""
    import obstore
    from obstore.store import S3Store

    options: Any = {"region": "us-east-1", "skip_signature": True, "client_options": {"allow_http": True}}
    store = S3Store(bucket, endpoint=endpoint, **options)
    parsed = msgspec.json.Decoder().decode

    async def run() -> None:
        places = asyncio.Semaphore(at_once)

        async def whole(key: str) -> bytes:
            async with places:
                return bytes(await (await obstore.get_async(store, key)).bytes_async())

        waiting = deque(asyncio.ensure_future(whole(key)) for key in keys)
        while waiting:
            text = await waiting.popleft()
            if decode:
                deque(map(parsed, text.splitlines()), maxlen=0)

    began = time.perf_counter()
    asyncio.run(run())
    return {"seconds": time.perf_counter() - began}


def index(source: Sequence[str], *, warm: str | None = None, **given: Any) -> Any:
    """Open data, whose index may have to be built; before that, one object whose index is thrown away."""
    if warm is not None:
        with tempfile.TemporaryDirectory() as folder:
            _opened([warm], **{**given, "index_dir": folder})
    began = time.perf_counter()
    _opened(source, **given)
    return {"seconds": time.perf_counter() - began}


def epochs(
    source: Sequence[str],
    *,
    shuffle: dict[str, Any],
    count: int = 1,
    steps: int | None = None,
    rank: int = 0,
    world_size: int = 1,
    budget: int = 1 << 30,
    **given: Any,
) -> Any:
    """Read epochs, or the first steps of one, in batches of lists; each is measured by itself."""
    dataset = _opened(source, **given).shuffle(**shuffle)
    place: Any = {"rank": rank, "world_size": world_size, "global_batch_size": BATCH * world_size}
    loader = sk.Loader(dataset, batch_size=None, collate=list, steps=steps, prefetch_bytes=budget, **place)
    memory = _Memory()
    measured = [_measured(loader) for _ in range(count)]
    return {"epochs": measured, "memory": memory.most(), "seconds": measured[0]["seconds"]}


def first_batch(
    source: Sequence[str], *, shuffle: dict[str, Any], position: int, warm: str, **given: Any
) -> Any:
    """Open data, whose index is there, and take the batch at a position. The store was reached before."""
    _opened([warm], **given)[0]

    def new() -> sk.Loader:
        dataset = _opened(source, **given).shuffle(**shuffle)
        repeated = dataset.repeat(position // len(dataset) + 2)
        return sk.Loader(repeated, batch_size=BATCH, collate=list)

    loader = new()
    loader.skip_batches(position // BATCH)
    state = loader.state_dict()
    _, before = _fetched(loader)
    began = time.perf_counter()
    loader = new()
    loader.load_state_dict(state)
    next(iter(loader))
    took = time.perf_counter() - began
    return {"seconds": took, "bytes": _fetched(loader)[1] - before}


def one_record(source: Sequence[str], *, row: int, warm: str, **given: Any) -> Any:
    """Read one record. The store was reached before."""
    _opened([warm], **given)[0]
    dataset = _opened(source, **given)
    began = time.perf_counter()
    dataset[row]
    return {"seconds": time.perf_counter() - began}


def _measured(loader: sk.Loader) -> dict[str, Any]:
    (requests, _), cpu, began = _fetched(loader), _cpu(), time.perf_counter()
    first, records = 0.0, 0
    for batch in loader:
        first = first or time.perf_counter() - began
        records += len(batch)
    took = time.perf_counter() - began
    return {
        "seconds": took,
        "first": first,
        "records": records,
        "cpu": _cpu() - cpu,
        "requests": _fetched(loader)[0] - requests,
    }


def _opened(
    source: Sequence[str],
    *,
    index_dir: str | None = None,
    storage_options: dict[str, Any] | None = None,
    refresh: bool = True,
) -> sk.Dataset:
    """Open data by values that a document of JSON can have."""
    storage = sk.Storage(options=storage_options, refresh=refresh)
    return sk.open(source, index=sk.Index(folder=index_dir), storage=storage)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class _Memory:
    """The most private memory above that of the beginning, looked at from time to time."""

    def __init__(self) -> None:
        self._before = private(os.getpid())
        self._most = self._before
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def most(self) -> int:
        """End, and return it in bytes."""
        self._over.set()
        self._thread.join()
        return self._most - self._before

    def _look(self) -> None:
        while not self._over.wait(_SAMPLED_SECONDS):
            self._most = max(self._most, private(os.getpid()))


def _fetched(loader: sk.Loader) -> tuple[int, int]:
    """Return the requests of this process, and their bytes."""
    report = loader.report().get("remote")
    return (report.requests, report.fetched_bytes) if report else (0, 0)


JOBS = {job.__name__: job for job in (download, index, epochs, first_batch, one_record)}

if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(JOBS[asked.pop("job")](**asked)))
