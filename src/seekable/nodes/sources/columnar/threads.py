"""Decoding in several threads: what decompresses lets other threads run meanwhile."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from seekable._optional import optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["in_threads"]

T = TypeVar("T")
R = TypeVar("R")

_pools: dict[int, ThreadPoolExecutor] = {}


def in_threads(job: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
    """Return what a job returns for each item, in their order.

    As many threads as pyarrow decodes with share the items (``pyarrow.set_cpu_count`` says how many); one
    item, or one thread, takes none.

    Example:
        >>> list(in_threads(str, [1, 2, 3]))
        ['1', '2', '3']
    """
    if len(items) <= 1 or pa.cpu_count() == 1:
        return map(job, items)
    pool = _pool(pa.cpu_count())
    futures = [pool.submit(job, item) for item in items]
    try:
        # All of them, also where one fails: nothing reads a file on behalf of a call that is over.
        wait(futures)
    finally:
        for future in futures:
            future.cancel()
        wait(futures)
    return [future.result() for future in futures]


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="seekable-decode")
    return _pools[threads]


# A child process has none of its parent's threads.
os.register_at_fork(after_in_child=_pools.clear)
