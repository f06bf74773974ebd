"""Batches are made in this thread, in a thread that runs ahead, in several threads, or in worker processes.

A `Producer` has a source, which divides the batches into jobs (`seekable.loader.batch_sources`), and an
execution, which runs the jobs. How a thread runs ahead is in `seekable.loader.prefetch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from seekable._arguments import checked_choice
from seekable._lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.loader import prefetch as prefetching
    from seekable.loader.batch_sources import Job, JobStart, Source
    from seekable.loader.batches import Batch
    from seekable.loader.states import PipelineState
    from seekable.loader.steps import Cursor
    from seekable.loader.workers import pool as pools
else:
    pools = lazy("seekable.loader.workers.pool")
    prefetching = lazy("seekable.loader.prefetch")


__all__ = ["Producer", "WorkerOptions", "WorkerType"]


WorkerType = Literal["process", "thread"]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The number and the kind of workers, and the bounds of the batches that they make ahead."""

    prefetch: int
    """The number of batches made ahead, by each worker if there are any."""
    prefetch_bytes: int
    """The bytes, about, of the batches that all worker processes make ahead."""
    workers: int
    worker_type: WorkerType
    timeout: float | None
    """The most seconds to wait for a batch of a worker process; None for any number."""
    restart: bool
    """Replace a worker process that dies."""

    def __post_init__(self) -> None:
        """Check the kind of workers.

        Raises:
            InvalidArgument: there are no workers of this kind.
        """
        checked_choice("worker_type", self.worker_type, ("process", "thread"))


@final
class Producer:
    """Makes the batches of a loader, run after run.

    Args:
        source: returns the source of a pipeline.
        options: the workers.
    """

    def __init__(self, source: Callable[[Any], Source], options: WorkerOptions) -> None:
        self._source_of = source
        self._source: Source | None = None
        self._execution: Inline | Threads | Processes
        if not options.workers:
            self._execution = Inline(options.prefetch)
        elif options.worker_type == "thread":
            self._execution = Threads(options.workers, max(1, options.prefetch))
        else:
            self._execution = Processes(options)

    def begin(self, state: PipelineState, cursor: Cursor) -> Iterator[Batch]:
        """Begin to make the batches from a cursor to the end of its run; the run before this one is over.

        Args:
            state: the pipeline, and the states of its lanes at the cursor.
            cursor: the place of the first batch.

        Raises:
            InvalidArgument: the pipeline cannot be sent to worker processes.
        """
        if self._source is None or self._source.pipeline is not state.pipeline:
            self.close()
            self._source = self._source_of(state.pipeline)
        source, execution = self._source, self._execution
        starts = source.starts(state, cursor, execution.workers)
        results = execution.run(source.jobs(len(starts), apart=execution.apart), starts)
        batches = source.batches(results, cursor, apart=execution.apart)
        return execution.ahead(_closing(batches, results), merges=source.merges)

    def close(self) -> None:
        """End the worker processes, if there are any; ``begin`` starts others."""
        self._execution.close()


@final
@dataclass(frozen=True, slots=True)
class Inline:
    """Runs the only job in the caller's thread, or in one that runs ahead by ``prefetch`` batches."""

    prefetch: int
    workers = 1
    apart = False

    def run(self, jobs: Sequence[Job], starts: Sequence[JobStart]) -> list[Iterator[Any]]:
        """Return the results of each job."""
        return [job.results(start) for job, start in zip(jobs, starts, strict=True)]

    def ahead(self, batches: Iterator[Batch], *, merges: bool) -> Iterator[Batch]:
        """Return the batches, made ahead once the caller works between them."""
        return prefetching.PrefetchedWhenBusy(batches, depth=self.prefetch) if self.prefetch else batches

    def close(self) -> None:
        """Do nothing: a thread ends with its run."""


@final
@dataclass(frozen=True, slots=True)
class Threads:
    """Runs each job in a thread of its own, ``prefetch`` results ahead."""

    workers: int
    prefetch: int
    apart = False

    def run(self, jobs: Sequence[Job], starts: Sequence[JobStart]) -> list[Iterator[Any]]:
        """Return the results of each job."""
        return [
            prefetching.Prefetched(job.results(start), depth=self.prefetch)
            for job, start in zip(jobs, starts, strict=True)
        ]

    def ahead(self, batches: Iterator[Batch], *, merges: bool) -> Iterator[Batch]:
        """Return the batches; those that are made of results are made ahead by one more thread."""
        return prefetching.Prefetched(batches, depth=self.prefetch) if merges else batches

    def close(self) -> None:
        """Do nothing: threads end with their run."""


@final
class Processes:
    """Runs each job in a worker process; the processes serve one run after another.

    A forked child has the worker processes of its parent, and starts its own.
    """

    apart = True

    def __init__(self, options: WorkerOptions) -> None:
        self.workers = options.workers
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
                timeout=self._options.timeout,
                restart=self._options.restart,
            )
        return self.pool.run(starts)

    def ahead(self, batches: Iterator[Batch], *, merges: bool) -> Iterator[Batch]:
        """Return the batches: their processes run ahead."""
        return batches

    def close(self) -> None:
        """End the worker processes; `run` starts others."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None


def _closing(batches: Iterator[Batch], results: Sequence[Iterator[Any]]) -> Iterator[Batch]:
    """Yield the batches; when this is closed or ends, close the results."""
    try:
        yield from batches
    finally:
        for each in results:
            close = getattr(each, "close", None)
            if close is not None:
                close()
