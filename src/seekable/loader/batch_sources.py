"""The batches of a pipeline, divided into jobs for workers.

A *source* divides the batches of a run into jobs, one for each worker, and puts the results of all jobs
together again. A result is a function of the job and of its start alone: neither the batches nor their order
depend on the number of workers, and the job of a worker that died goes on in another one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, final

from msgspec import field, structs

from seekable._lazy import lazy
from seekable._typing import Value
from seekable.loader.batches import LastPieces, dataset_batches, fetched_ahead
from seekable.nodes.bases import caches_of
from seekable.state.journal import placed
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.loader import lane_batches
    from seekable.loader.batches import MadeBatch
    from seekable.loader.lane_batches import LaneStates
    from seekable.loader.steps import StepCursor, Steps
    from seekable.nodes.node import Node
    from seekable.state.journal import Journal
    from seekable.stream.stream import Stream

    Collate = Callable[[list[Any]], Any] | None
else:
    lane_batches = lazy("seekable.loader.lane_batches")

__all__ = ["BatchSource", "DatasetSource", "Job", "JobStart", "LaneSource"]


class JobStart(Value, frozen=True):
    """The point at which a job begins, or goes on in a worker that replaces another one."""

    cursor: StepCursor
    """The cursor of the first batch that the job makes, or has items for."""
    lanes: LaneStates | None = None
    """Of a stream the lanes of the job, and their states."""
    journal: Journal = ()
    """What changes in the run; the position of each change is known."""


@final
class DatasetSource(Value, frozen=True):
    """The batches of a dataset: step ``t`` belongs to job ``t % jobs``, which makes the whole batch."""

    pipeline: Node
    steps: Steps
    collate: Collate
    last: LastPieces = field(default_factory=LastPieces)
    """The pieces of the last run, with which those of the next one begin."""
    merges = False

    def starts(self, state: Any, cursor: StepCursor, workers: int) -> list[JobStart]:
        """Return for each job the first step of its own."""
        journal = state.journal
        if journal:
            # Counted from here: a job may begin after an entry that has not come yet.
            journal = placed(journal, lambda at: self.steps.after(cursor, at - cursor.step).position)
        return [
            JobStart(self.steps.after(cursor, (number - cursor.step) % workers), journal=journal)
            for number in range(workers)
        ]

    def jobs(self, count: int, *, apart: bool) -> list[DatasetJob]:
        """Return a job for each share of the steps."""
        fetches = not (apart and self._fetches_for_workers)
        return [
            DatasetJob(self.pipeline, self.steps, self.collate, number, count, fetches, self.last)
            for number in range(count)
        ]

    def batches(
        self,
        results: Sequence[Iterator[MadeBatch]],
        starts: Sequence[JobStart],
        cursor: StepCursor,
        *,
        apart: bool,
    ) -> Iterator[MadeBatch]:
        """Yield the batches of the jobs, which have begun at ``starts``, in turn."""
        first = cursor.step % len(results)
        turns = itertools.cycle([*results[first:], *results[:first]])
        batches = (next(turn) for turn in itertools.islice(turns, self.steps.left(cursor)))
        if apart and self._fetches_for_workers:
            pieces = self.last.of(self.pipeline, starts[0].journal)
            return fetched_ahead(batches, pieces, self.steps, cursor)
        return batches

    @property
    def _fetches_for_workers(self) -> bool:
        """True if this process fetches what the jobs read of object stores in other processes."""
        return any(far().reads.is_cache_shared(cache) for cache in caches_of(self.pipeline))


@final
class DatasetJob(Value, frozen=True):
    """The batches of those steps ``t`` for which ``t % of == number``."""

    dataset: Node
    steps: Steps
    collate: Collate
    number: int
    of: int
    fetches_ahead: bool
    """False if another process fetches what the next batches are read from."""
    last: LastPieces

    def results(self, start: JobStart) -> Iterator[MadeBatch]:
        """Yield the batches of this job."""
        return dataset_batches(
            self.last.of(self.dataset, start.journal),
            self.steps,
            start.cursor,
            self.collate,
            number=self.number,
            of=self.of,
            fetches_ahead=self.fetches_ahead,
        )

    def after(self, start: JobStart, result: MadeBatch) -> JobStart:
        """Return the start at the next step of this job."""
        return structs.replace(start, cursor=self.steps.after(result.after, self.of - 1))

    def paths(self, start: JobStart) -> set[str]:
        """Return the files of the first batch."""
        positions, _ = self.steps.positions(start.cursor, 1, all_ranks=False)
        return self.last.of(self.dataset, start.journal).at(start.cursor.step).plan(positions).paths


@final
class LaneSource(Value, frozen=True):
    """The batches of a stream: the jobs share the rank's lanes, and their items become batches."""

    pipeline: Stream
    steps: Steps
    collate: Collate
    merges = True

    def starts(self, state: Any, cursor: StepCursor, workers: int) -> list[JobStart]:
        """Return the lanes of each job, and their states; no job is without a lane."""
        lanes = list(state.lanes.stages)
        shares = [lanes[number::workers] for number in range(min(workers, len(lanes)))]
        journal = lane_batches.with_slots(state.journal, self.steps, cursor)
        return [JobStart(cursor, state.lanes.copy_of(share), journal) for share in shares]

    def jobs(self, count: int, *, apart: bool) -> list[LanesJob]:
        """Return a job for each share of the lanes; the lanes are in its start."""
        return [LanesJob(self.pipeline, self.steps)] * count

    def batches(
        self,
        results: Sequence[Iterator[Any]],
        starts: Sequence[JobStart],
        cursor: StepCursor,
        *,
        apart: bool,
    ) -> Iterator[MadeBatch]:
        """Yield the batches made of all jobs' items; each job fetches ahead for its lanes."""
        rounds = zip(*results, strict=False)
        return lane_batches.merge_lanes(rounds, self.pipeline, self.steps, cursor, self.collate)


@final
class LanesJob(Value, frozen=True):
    """The items that some lanes of a rank have for each batch, and the changes of these lanes."""

    stream: Stream
    steps: Steps

    def results(self, start: JobStart) -> Iterator[Any]:
        """Yield the items for one batch after another, without end."""
        lanes = _lanes_of(start)
        pad = self.steps.end == "pad"
        reader = lane_batches.LaneReader(self.stream, lanes, pad=pad, journal=start.journal)
        for first, stop in self.steps.spans(start.cursor):
            yield reader.read(first, stop)

    def after(self, start: JobStart, result: Any) -> JobStart:
        """Return the start one batch later; the states of its lanes change with the result."""
        lanes = _lanes_of(start)
        lanes.apply(result.deltas)
        cursor = start.cursor
        stop = cursor.position + self.steps.size_at(cursor.step)
        return structs.replace(
            start, cursor=structs.replace(cursor, step=cursor.step + 1, position=stop), lanes=lanes
        )

    def paths(self, start: JobStart) -> set[str]:
        """Return no file: which records come next depends on their contents."""
        return set()


Job = DatasetJob | LanesJob
"""The share of one worker in the batches of a run. Results depend only on the job and its start."""

BatchSource = DatasetSource | LaneSource
"""The batches of one pipeline, divided into jobs."""


def _lanes_of(start: JobStart) -> LaneStates:
    assert start.lanes is not None
    return start.lanes
