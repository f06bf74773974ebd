"""Who makes the batches: the process itself, threads of it, or worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, final

from seekable.errors import InvalidArgument
from seekable.loader.prefetch import Prefetched
from seekable.loader.produce import produce
from seekable.loader.workers.crew import Crew
from seekable.loader.workers.threads import in_threads
from seekable.loader.workers.worker import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.dataset.base import Dataset
    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor, Steps

    Collate = Callable[[list[Any]], Any] | None

__all__ = ["Maker", "WorkerType", "maker_of"]

WorkerType = Literal["process", "thread"]


class Maker(Protocol):
    """Makes the batches of a loader's runs."""

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make the batches from a cursor to the end of its run; the run before this one is over."""
        ...

    def close(self) -> None:
        """Give up what outlasts a run; it is made again for the next one."""
        ...


def maker_of(  # noqa: PLR0913 - one for each thing that a user may say of it
    dataset: Dataset,
    steps: Steps,
    collate: Collate,
    *,
    prefetch: int,
    prefetch_bytes: int,
    workers: int,
    worker_type: WorkerType,
    timeout: float | None,
    restart: bool,
) -> Maker:
    """Return what makes batches in the way that a user asks for.

    Raises:
        InvalidArgument: there are no workers of this type.
    """
    if worker_type not in ("process", "thread"):
        message = f"worker_type must be 'process' or 'thread' (got {worker_type!r})"
        raise InvalidArgument(message)
    if not workers:
        return Alone(dataset, steps, collate, prefetch)
    if worker_type == "thread":
        return InThreads(dataset, steps, collate, prefetch, workers)
    job = Job(dataset, steps, collate, max(1, prefetch), max(1, prefetch_bytes // workers))
    return InProcesses(job, workers, timeout=timeout, restart=restart)


@final
@dataclass(frozen=True, slots=True)
class Alone:
    """Makes batches in a thread that runs ahead, or when they are asked for."""

    dataset: Dataset
    steps: Steps
    collate: Collate
    prefetch: int

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        made = produce(self.dataset, self.steps, cursor, self.collate)
        return Prefetched(made, depth=self.prefetch) if self.prefetch else made

    def close(self) -> None:
        """Do nothing: a thread ends with its run."""


@final
@dataclass(frozen=True, slots=True)
class InThreads:
    """Makes batches in several threads."""

    dataset: Dataset
    steps: Steps
    collate: Collate
    prefetch: int
    threads: int

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        depth = max(1, self.prefetch)
        return in_threads(self.dataset, self.steps, cursor, self.collate, threads=self.threads, depth=depth)

    def close(self) -> None:
        """Do nothing: threads end with their run."""


@final
class InProcesses:
    """Makes batches in worker processes, which are started for the first run and serve the later ones too."""

    def __init__(self, job: Job, workers: int, *, timeout: float | None, restart: bool) -> None:
        """Start nothing yet."""
        self._job, self._workers, self._timeout, self._restart = job, workers, timeout, restart
        self._crew: Crew | None = None

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        if self._crew is not None and not self._crew.is_ours:
            # A forked child has its parent's workers, and starts its own.
            self._crew.leave()
            self._crew = None
        if self._crew is None:
            self._crew = Crew(self._job, self._workers, timeout=self._timeout, restart=self._restart)
        return self._crew.batches(cursor)

    def close(self) -> None:
        """End the workers."""
        if self._crew is not None:
            self._crew.close()
            self._crew = None
