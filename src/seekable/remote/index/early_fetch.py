"""Scans of small objects, each of which begins in a thread when the bytes of its object are here.

Of each object one request is under way before any thread works on it, so that few threads scan and none of
them waits.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from seekable.index.build.scan import scan_part
from seekable.index.surveyor import is_table_indexer
from seekable.remote.index import object_reader
from seekable.remote.index.pinned_object import begin_early

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.scan import ScanBatch, ScanJob

__all__ = ["submit"]

T = TypeVar("T")


def submit(executor: Executor, batch: ScanBatch, read: Callable[[ScanJob, int], None]) -> Future[Answer]:
    """Submit the scan of some parts to threads, and return its future, which can be cancelled.

    Args:
        executor: the threads.
        batch: the parts.
        read: is called with a part and the number of its bytes that were read since the last call.
    """
    work = partial(_scan, batch, read)
    job = batch.jobs[0]
    is_small = 0 < job.size <= object_reader.STREAMED_BYTES and "://" in job.path
    if len(batch.jobs) > 1 or not is_small or is_table_indexer(batch.scanner):
        return executor.submit(work)
    answer = begin_early(job.path, 0, job.size, size=job.size, identity=job.mtime_ns)
    return _submitted_after(answer, executor, work)


def _scan(batch: ScanBatch, read: Callable[[ScanJob, int], None]) -> Answer:
    return [scan_part(job, batch.scanner, on_bytes=partial(read, job)) for job in batch.jobs]


def _submitted_after(before: Future[Any], executor: Executor, work: Callable[[], T]) -> Future[T]:
    """Submit work when a future has ended, in any way; cancelling the work cancels that future too."""
    found: Future[T] = Future()
    waiting = [before]

    def begin(ended: Future[Any]) -> None:
        waiting.clear()  # Futures keep their callbacks: in a circle the bytes would stay for long.
        if not found.set_running_or_notify_cancel():
            return
        try:
            executor.submit(_answer, work, found, ended)
        except RuntimeError as error:  # The executor was shut down.
            found.set_exception(error)

    def cancel(_: Future[T]) -> None:
        if found.cancelled():
            for future in waiting:
                future.cancel()

    found.add_done_callback(cancel)
    before.add_done_callback(begin)
    return found


def _answer(work: Callable[[], T], found: Future[T], _: Future[Any]) -> None:
    """Do work, and give a future its result; the future of the bytes is an argument so that it exists."""
    try:
        found.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the answer is taken
        found.set_exception(error)
