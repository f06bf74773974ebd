"""One case of the fork matrix, in a process of its own.

    python fork_case.py URL SIZE {used,unused} {fork,forkserver,spawn} {cached,missing}

Prints how the child ended and whether this process can still read.
"""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

from tests.remote.fetching.range_server import ETAG, content

from seekable.remote.fetching import sending
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import ObjectRef
from seekable.remote.stores.object_store import Pin, identity_of

CACHED, MISSING = 1_000, 3_000_000

# On a busy machine the first request of a child is late, while its helper starts. Sent a second time it would
# count twice.
sending.may_hedge = lambda *_, **__: False


def read(url: str, size: int, start: int) -> bool:
    ref = ObjectRef(f"{url}/object", Pin(size, identity_of(ETAG, modified_ns=0, size=size)))
    return bytes(fetcher().range(ref, start, start + 500)) == content(size)[start : start + 500]


def child(url: str, size: int, start: int, results: multiprocessing.SimpleQueue[object]) -> None:
    try:
        results.put((read(url, size, start), read(url, size, start + 300_000)))
    except Exception as error:  # noqa: BLE001 - the test sees it
        results.put(repr(error))


def main() -> None:
    url, size, used, method, place = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    if used == "used":
        assert read(url, size, CACHED)
        assert read(url, size, CACHED + 300_000)
    context: Any = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    start = CACHED if place == "cached" else MISSING
    process = context.Process(target=child, args=(url, size, start, results))
    process.start()
    answer = results.get()
    process.join(100)
    sys.stdout.write(f"{answer} {process.exitcode} {read(url, size, 5_000_000)}\n")


if __name__ == "__main__":
    main()
