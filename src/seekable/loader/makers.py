"""Who makes the batches: the process itself, threads of it, or worker processes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, final

from seekable.errors import InvalidArgument
from seekable.loader.prefetch import Prefetched
from seekable.loader.produce import produce
from seekable.loader.streams.makers import LanesAlone, LanesInProcesses, LanesInThreads, LanesJob
from seekable.loader.workers.crew import Crew, CrewKeeper
from seekable.loader.workers.job import Begin, DatasetJob
from seekable.loader.workers.threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor, Steps
    from seekable.loader.streams.memory import OfStream
    from seekable.nodes.contract import Node
    from seekable.stream.stream import Stream

    Collate = Callable[[list[Any]], Any] | None

__all__ = ["Maker", "Making", "WorkerType", "maker_of", "stream_maker_of"]

WorkerType = Literal["process", "thread"]


class Maker(Protocol):
    """Makes the batches of a loader's runs."""

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make the batches from a cursor to the end of its run; the run before this one is over."""
        ...

    def close(self) -> None:
        """Give up what outlasts a run; it is made again for the next one."""
        ...


@dataclass(frozen=True, slots=True)
class Making:
    """In which way batches are to be made."""

    prefetch: int
    prefetch_bytes: int
    workers: int
    worker_type: WorkerType
    timeout: float | None
    restart: bool

    def __post_init__(self) -> None:
        """Refuse workers of a type that there is not.

        Raises:
            InvalidArgument: there are no workers of this type.
        """
        if self.worker_type not in ("process", "thread"):
            message = f"worker_type must be 'process' or 'thread' (got {self.worker_type!r})"
            raise InvalidArgument(message)

    def most(self, workers: int) -> tuple[int, int]:
        """Return how many batches, and bytes, each of some workers may have made ahead."""
        return max(1, self.prefetch), max(1, self.prefetch_bytes // workers)


def maker_of(dataset: Node, steps: Steps, collate: Collate, how: Making) -> Maker:
    """Return what makes the batches of a dataset."""
    workers = how.workers
    if not workers:
        return Alone(dataset, steps, collate, how.prefetch)
    if how.worker_type == "thread":
        return InThreads(dataset, steps, collate, how.prefetch, workers)
    most = how.most(workers)
    jobs = [DatasetJob(dataset, steps, collate, *most, number, workers) for number in range(workers)]
    return InProcesses(steps, CrewKeeper(jobs, timeout=how.timeout, restart=how.restart))


def stream_maker_of(stream: Stream, steps: Steps, collate: Collate, memory: OfStream, how: Making) -> Maker:
    """Return what makes the batches of a stream, of the lanes that are remembered."""
    if not how.workers:
        return LanesAlone(stream, steps, collate, how.prefetch, memory)
    if how.worker_type == "thread":
        return LanesInThreads(stream, steps, collate, how.prefetch, memory, how.workers)
    # A worker without a lane would have nothing to do.
    workers = min(how.workers, len(memory.lanes.stages))
    jobs = [LanesJob(stream, steps, *how.most(workers)) for _ in range(workers)]
    crew = CrewKeeper(jobs, timeout=how.timeout, restart=how.restart)
    return LanesInProcesses(stream, steps, collate, memory, crew)


@final
@dataclass(frozen=True, slots=True)
class Alone:
    """Makes batches in a thread that runs ahead, or when they are asked for."""

    dataset: Node
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

    dataset: Node
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
    """Makes batches in worker processes, which are started for the first run and serve the later ones too.

    Batch ``t`` is made by worker ``t % n`` and is a function of the positions alone, so neither the batches
    nor their order depend on how many workers there are.
    """

    def __init__(self, steps: Steps, crew: CrewKeeper) -> None:
        """Start nothing yet."""
        self._steps, self._crew = steps, crew

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        crew = self._crew.ready()
        return self._made(crew, crew.begin(lambda _: Begin(cursor)), cursor)

    def close(self) -> None:
        """End the workers."""
        self._crew.close()

    def _made(self, crew: Crew, run: int, cursor: Cursor) -> Iterator[Made]:
        left = self._steps.left(cursor)
        while left != 0:
            again = functools.partial(Begin, cursor)
            made: Made = crew.take(cursor.step % len(crew), run, cursor, again)
            yield made
            cursor = made.after
            left = self._steps.left(cursor)
