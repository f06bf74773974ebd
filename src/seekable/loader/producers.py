"""Batches are made in this thread, in a thread that runs ahead, in several threads, or in worker processes.

A `Producer` has a source, which divides the batches into jobs (`seekable.loader.batch_sources`), and an
execution, which runs the jobs. `Prefetched` is an iterator that a thread runs ahead.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from seekable._lazy import lazy
from seekable._typing import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.loader import devices
    from seekable.loader import worker_pool as pools
    from seekable.loader.arguments import Workers
    from seekable.loader.batch_sources import BatchSource, Job, JobStart
    from seekable.loader.batches import MadeBatch
    from seekable.loader.states import PipelineState
    from seekable.loader.steps import StepCursor
    from seekable.storage import abandoned
else:
    devices = lazy("seekable.loader.devices")
    pools = lazy("seekable.loader.worker_pool")
    abandoned = lazy("seekable.storage.abandoned")

__all__ = ["Prefetched", "PrefetchedWhenBusy", "Producer", "WorkerOptions"]


class WorkerOptions(Value, frozen=True):
    """The workers, and the bounds of the batches that they make ahead."""

    prefetch: int
    """The number of batches made ahead, by each worker if there are any."""
    prefetch_bytes: int
    """The bytes, about, of the batches that all worker processes make ahead."""
    workers: Workers


@final
class Producer:
    """Makes the batches of a loader, run after run.

    Args:
        source: returns the source of a pipeline.
        options: the workers.
        device: the device to which batches are copied; None for none.
    """

    def __init__(
        self, source: Callable[[Any], BatchSource], options: WorkerOptions, device: devices.Device | None
    ) -> None:
        self._source_of, self.device = source, device
        self._source: BatchSource | None = None
        self._execution: Inline | Threads | Processes
        self.options = options
        if not options.workers.count:
            self._execution = Inline(options.prefetch)
        elif options.workers.type == "thread":
            self._execution = Threads(options.workers.count, max(1, options.prefetch))
        else:
            self._execution = Processes(options)

    def begin(self, state: PipelineState, cursor: StepCursor) -> Iterator[MadeBatch]:
        """Begin to make the batches from a cursor to the end of its run; the run before this one is over.

        Args:
            state: the pipeline, and the states of its lanes at the cursor.
            cursor: the place of the first batch.

        Raises:
            InvalidArgument: the pipeline cannot be sent to worker processes.
        """
        if self._source is not None and self._source.pipeline is not state.pipeline:
            self.close()
            self._source = None
        if self._source is None:
            self._source = self._source_of(state.pipeline)
        source, execution = self._source, self._execution
        starts = source.starts(state, cursor, execution.workers)
        results = execution.run(source.jobs(len(starts), apart=execution.apart), starts)
        batches = source.batches(results, starts, cursor, apart=execution.apart)
        made = execution.ahead(_closing(batches, results), merges=source.merges)
        if self.device is None:
            return made
        way = self.device.begin()
        sent = devices.sent_to(way, made)
        return devices.OnDevice(Prefetched(sent, depth=1) if self.options.prefetch else sent, way)

    def close(self) -> None:
        """End the worker processes, if there are any; ``begin`` starts others."""
        self._execution.close()


@final
class Inline(Value, frozen=True):
    """Runs the only job in the caller's thread, or in one that runs ahead by ``prefetch`` batches."""

    prefetch: int
    workers = 1
    apart = False

    def run(self, jobs: Sequence[Job], starts: Sequence[JobStart]) -> list[Iterator[Any]]:
        """Return the results of each job."""
        return [job.results(start) for job, start in zip(jobs, starts, strict=True)]

    def ahead(self, batches: Iterator[MadeBatch], *, merges: bool) -> Iterator[MadeBatch]:
        """Return the batches, made ahead once the caller works between them."""
        return PrefetchedWhenBusy(batches, depth=self.prefetch) if self.prefetch else batches

    def close(self) -> None:
        """Do nothing: a thread ends with its run."""


@final
class Threads(Value, frozen=True):
    """Runs each job in a thread of its own, ``prefetch`` results ahead."""

    workers: int
    prefetch: int
    apart = False

    def run(self, jobs: Sequence[Job], starts: Sequence[JobStart]) -> list[Iterator[Any]]:
        """Return the results of each job."""
        return [
            Prefetched(job.results(start), depth=self.prefetch)
            for job, start in zip(jobs, starts, strict=True)
        ]

    def ahead(self, batches: Iterator[MadeBatch], *, merges: bool) -> Iterator[MadeBatch]:
        """Return the batches; those that are made of results are made ahead by one more thread."""
        return Prefetched(batches, depth=self.prefetch) if merges else batches

    def close(self) -> None:
        """Do nothing: threads end with their run."""


@final
class Processes:
    """Runs each job in a worker process; the processes serve one run after another.

    A forked child has the worker processes of its parent, and starts its own.
    """

    apart = True

    def __init__(self, options: WorkerOptions) -> None:
        self.workers = options.workers.count
        self._options = options
        self.pool: pools.WorkerPool | None = None

    def run(self, jobs: Sequence[Job], starts: Sequence[JobStart]) -> list[Iterator[Any]]:
        """Return the results of each job; processes are started for the first run.

        Raises:
            InvalidArgument: a job cannot be sent to another process.
        """
        if self.pool is not None and not self.pool.is_ours:
            self.pool.leave()
            self.pool = None
        if self.pool is None:
            self.pool = pools.WorkerPool(
                jobs,
                most_batches=max(1, self._options.prefetch),
                most_bytes=max(1, self._options.prefetch_bytes // len(jobs)),
                timeout=self._options.workers.timeout,
                restart=self._options.workers.restart,
            )
        return self.pool.run(starts)

    def ahead(self, batches: Iterator[MadeBatch], *, merges: bool) -> Iterator[MadeBatch]:
        """Return the batches: their processes run ahead."""
        return batches

    def close(self) -> None:
        """End the worker processes; `run` starts others."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None


def _closing(batches: Iterator[MadeBatch], results: Sequence[Iterator[Any]]) -> Iterator[MadeBatch]:
    """Yield the batches; when this is closed or ends, close the results."""
    try:
        yield from batches
    finally:
        for each in results:
            close = getattr(each, "close", None)
            if close is not None:
                close()


Item = TypeVar("Item")

_MOMENT = 0.2
"""The seconds after which a thread that waits for another one looks whether its own work is still needed."""
_PATIENCE_SECONDS = 5.0
"""The most seconds that ``close`` and the end of the program wait for an item that is being made."""

_HANDOVER_SECONDS = 50e-6
"""The time, about, that it costs to get an item from another thread: less work than this is not worth it."""
_SHARE = 1 / 8
"""The share of an item's own time from which on the consumer's time beside it counts."""
_BUSY, _IDLE, _ENOUGH = 2, 1, 3
"""What an item adds or takes after which the consumer was busy or not, and the sum that starts the thread.

Two busy items do, or two of three. One pause in many, of the garbage collector for example, does not.
"""


class Prefetched(Generic[Item]):
    """Iterates over a source, which a thread runs up to ``depth`` items ahead.

    An error of the source is raised in the place of its item. The thread ends with the source, with
    ``close()``, when this object is garbage, and at the end of the program.

    Example:
        >>> list(Prefetched(iter([1, 2, 3]), depth=2))
        [1, 2, 3]
    """

    def __init__(self, source: Iterator[Item], *, depth: int) -> None:
        self._buffer: _Buffer[Item] = _Buffer(depth)
        thread = threading.Thread(
            target=_fill, args=(source, self._buffer), name="seekable-prefetch", daemon=True
        )
        # The thread refers to the buffer and not to this object, so that this object can become garbage.
        self._finalizer = weakref.finalize(self, _stop, self._buffer, thread)
        thread.start()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        return self._buffer.take()

    @property
    def outlives_interrupts(self) -> bool:
        """True: an interrupt of the caller leaves the thread, and the items that it made."""
        return True

    def close(self) -> None:
        """End the thread and drop the items that it made."""
        self._finalizer()


@final
class PrefetchedWhenBusy(Generic[Item]):
    """Iterates over a source in the caller's thread, until a thread that runs ahead is of use.

    It is once the caller takes a noticeable time between items, several times in a row. A thread has its
    cost, of locks and of waiting for the interpreter, and a caller that only takes items gains nothing.

    Example:
        >>> list(PrefetchedWhenBusy(iter([1, 2, 3]), depth=2))
        [1, 2, 3]
    """

    def __init__(self, source: Iterator[Item], *, depth: int) -> None:
        self._source = source
        self._depth = depth
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._ahead: Prefetched[Item] | None = None
        self._score = 0
        self._took = self._returned = 0.0

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self._ahead is not None:
            return next(self._ahead)
        with self._lock:
            if self._ahead is None:
                began = perf_counter()
                if not self._is_busy(began):
                    item = next(self._source)
                    self._returned = perf_counter()
                    self._took = self._returned - began
                    return item
                self._ahead = Prefetched(self._source, depth=self._depth)
        return next(self._ahead)

    @property
    def outlives_interrupts(self) -> bool:
        """True once a thread makes the items; a generator ends by an interrupt."""
        return self._ahead is not None

    def close(self) -> None:
        """End the source and the thread, and drop the items that it made."""
        if self._ahead is not None:
            self._ahead.close()
            return
        if os.getpid() != self._process:
            return  # A thread of the parent may have been in the source at the fork.
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _is_busy(self, now: float) -> bool:
        """Return True once the caller was often busy after the items so far."""
        between = now - self._returned if self._returned else 0.0
        gained = min(between, self._took)
        is_worth_it = gained >= _HANDOVER_SECONDS and between >= _SHARE * self._took
        self._score = self._score + _BUSY if is_worth_it else max(0, self._score - _IDLE)
        return self._score >= _ENOUGH


class _Buffer(Generic[Item]):
    """The items made ahead, shared by the thread and the object that owns it."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._ended: BaseException | None = None
        self._waiting = False
        self._hands_over = True
        self.stopped = False
        self.process = os.getpid()

    def put(self, item: Item) -> None:
        """Wait for room and add an item; after ``stop`` add it at once."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or len(self._items) < self._depth)
            self._items.append(item)
            self._changed.notify_all()
            if self._hands_over and self._waiting:
                # This thread waits until its first item is taken. Otherwise the thread that waits for the
                # item, after a restart for example, would wait for the interpreter to switch threads too.
                self._hands_over = False
                self._changed.wait_for(lambda: self.stopped or not self._items)

    def end(self, reason: BaseException) -> None:
        """Note that no item follows, and the exception that says why."""
        with self._changed:
            self._ended = reason
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop all items, and note that no more are needed."""
        with self._changed:
            self.stopped = True
            self._items.clear()
            self._ended = self._ended or StopIteration()
            self._changed.notify_all()

    def take(self) -> Item:
        """Wait for the next item and return it, or raise the exception that says why there is none."""
        with self._changed:
            self._waiting = True
            while not self._changed.wait_for(lambda: self._items or self._ended, _MOMENT):
                abandoned.check_not_abandoned()
            self._waiting = False
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            assert self._ended is not None
            if isinstance(self._ended, StopIteration):
                # A new one: the one that was raised holds frames, and with them the files of the dataset.
                raise StopIteration
            raise self._ended


def _fill(source: Iterator[Item], buffer: _Buffer[Item]) -> None:
    reason: BaseException = StopIteration()
    try:
        for item in source:
            buffer.put(item)
            if buffer.stopped:
                break
    except BaseException as error:  # noqa: BLE001 - it is raised in the place of the item
        reason = error
    buffer.end(reason)


def _stop(buffer: _Buffer[Item], thread: threading.Thread) -> None:
    if os.getpid() != buffer.process:
        # A forked child has no such thread; and at the fork the thread may have held the lock of the buffer.
        return
    buffer.stop()
    if thread is not threading.current_thread() and thread.is_alive():
        abandoned.abandon(thread)
        thread.join(timeout=_PATIENCE_SECONDS)
