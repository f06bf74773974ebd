"""Who makes the batches of a stream: the process itself, threads of it, or worker processes."""

from __future__ import annotations

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from seekable.loader.prefetch import Prefetched
from seekable.loader.streams.join import joined
from seekable.loader.streams.produce import produce_items
from seekable.loader.streams.pull import Puller
from seekable.loader.workers.job import Begin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor, Steps
    from seekable.loader.streams.lanes import Lanes
    from seekable.loader.streams.memory import OfStream
    from seekable.loader.streams.pull import Pulled
    from seekable.loader.workers.crew import Crew, CrewKeeper
    from seekable.stream.stream import Stream

    Collate = Callable[[list[Any]], Any] | None

__all__ = ["LanesAlone", "LanesInProcesses", "LanesInThreads", "LanesJob", "dealt"]


@final
@dataclass(frozen=True, slots=True)
class LanesAlone:
    """Runs all lanes of this rank in a thread that runs ahead, or when they are asked for."""

    stream: Stream
    steps: Steps
    collate: Collate
    prefetch: int
    memory: OfStream

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        lanes = self.memory.lanes.part(list(self.memory.lanes.stages))
        made = produce_items(self.stream, self.steps, cursor, lanes, self.collate)
        return Prefetched(made, depth=self.prefetch) if self.prefetch else made

    def close(self) -> None:
        """Do nothing: a thread ends with its run."""


@final
@dataclass(frozen=True, slots=True)
class LanesInThreads:
    """Runs the lanes of this rank in several threads, one batch of all of them after another."""

    stream: Stream
    steps: Steps
    collate: Collate
    prefetch: int
    memory: OfStream
    threads: int

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        parts = [
            self.memory.lanes.part(lanes) for lanes in dealt(list(self.memory.lanes.stages), self.threads)
        ]
        made = joined(self._pulls(parts, cursor), self.stream, self.steps, cursor, self.collate)
        return Prefetched(made, depth=max(1, self.prefetch))

    def close(self) -> None:
        """Do nothing: threads end with their run."""

    def _pulls(self, parts: Sequence[Lanes], cursor: Cursor) -> Iterator[list[Pulled]]:
        pullers = [Puller(self.stream, lanes, pad=self.steps.end == "pad") for lanes in parts]
        with ThreadPoolExecutor(len(pullers), thread_name_prefix="seekable-lanes") as threads:
            for first in itertools.count(cursor.position, self.steps.batch):
                stop = first + self.steps.batch
                pulled = [threads.submit(puller.pull, first, stop) for puller in pullers]
                yield [each.result() for each in pulled]


@final
@dataclass(frozen=True, slots=True)
class LanesJob:
    """Some lanes of a rank, in a worker process: what they have for each batch, and what becomes of them."""

    stream: Stream
    steps: Steps
    most_batches: int
    most_bytes: int

    def results(self, begin: Begin) -> Iterator[Pulled]:
        """Pull the lanes that the run begins with."""
        puller = Puller(self.stream, begin.memory, pad=self.steps.end == "pad")
        for first in itertools.count(begin.cursor.position, self.steps.batch):
            yield puller.pull(first, first + self.steps.batch)

    def paths(self, cursor: Cursor) -> set[str]:
        """Return nothing: which records come next depends on what they are."""
        return set()


@final
class LanesInProcesses:
    """Runs the lanes of this rank in worker processes, each its share of them.

    Lanes do not depend on each other, and batches are put together of them here: so neither the batches nor
    their order depend on how many workers there are.
    """

    def __init__(
        self, stream: Stream, steps: Steps, collate: Collate, memory: OfStream, crew: CrewKeeper
    ) -> None:
        """Start nothing yet; the crew has a job for each share of the lanes."""
        self._stream, self._steps, self._collate = stream, steps, collate
        self._memory, self._crew = memory, crew

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        crew = self._crew.ready()
        parts = [
            self._memory.lanes.part(lanes) for lanes in dealt(list(self._memory.lanes.stages), len(crew))
        ]
        run = crew.begin(lambda number: Begin(cursor, parts[number]))
        return joined(self._pulls(crew, run, cursor, parts), self._stream, self._steps, cursor, self._collate)

    def close(self) -> None:
        """End the workers."""
        self._crew.close()

    def _pulls(self, crew: Crew, run: int, cursor: Cursor, parts: Sequence[Lanes]) -> Iterator[list[Pulled]]:
        for first in itertools.count(cursor.position, self._steps.batch):
            here = replace(cursor, position=first)
            pulled: list[Pulled] = []
            for number, lanes in enumerate(parts):
                # A worker that takes the place of one that died begins where the batches before this left it.
                pulled.append(crew.take(number, run, here, functools.partial(Begin, here, lanes)))
            for lanes, part in zip(parts, pulled, strict=True):
                lanes.apply(part.changes)
            yield pulled


def dealt(lanes: Sequence[int], workers: int) -> list[Sequence[int]]:
    """Deal lanes to workers, at least one to each: there may be fewer workers than were asked for.

    Example:
        >>> dealt([0, 2, 4], 2), dealt([0], 4)
        ([[0, 4], [2]], [[0]])
    """
    return [lanes[number::workers] for number in range(min(workers, len(lanes)))]
