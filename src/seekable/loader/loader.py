"""Batches of a dataset or a stream, in its order, resumed at any point.

A `Loader` has a cursor, which says how far it has come (`Progress`), a producer of batches (`Producer`), and
at most one live iterator (`BatchIterator`), which takes batches of the producer and moves the cursor.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, Self

from seekable._arguments import checked_count, checked_flag
from seekable._lazy import lazy
from seekable.dataset.dataset import Dataset
from seekable.errors import EndlessDataset, InvalidArgument
from seekable.loader.arguments import checked_resume, checked_seconds, checked_steps
from seekable.loader.batch_sources import DatasetSource, LaneSource
from seekable.loader.collate import collate as default_collate
from seekable.loader.iteration import READ_AHEAD, REPLACED, BatchIterator, EpochSetter
from seekable.loader.producers import Producer, WorkerOptions, WorkerType
from seekable.loader.run_progress import Progress
from seekable.loader.states import DatasetState
from seekable.nodes.contract import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seekable.loader import lanes_state, step_plan
    from seekable.loader.arguments import Resume
    from seekable.loader.batch_sources import Source
    from seekable.loader.states import PipelineState
    from seekable.loader.step_plan import StepPlan
    from seekable.loader.steps import End
    from seekable.stream.stream import Stream
else:
    lanes_state = lazy("seekable.loader.lanes_state")
    step_plan = lazy("seekable.loader.step_plan")

__all__ = ["Loader"]


class Loader:
    """Batches of a dataset or a stream; each ``iter(loader)`` is the next run of ``epochs`` epochs.

    Args:
        dataset: the Dataset or Stream to deliver, in its order.
        batch_size: records in a batch, while there is one rank; None delivers the records themselves.
        global_batch_size: records in a batch over all ranks; a multiple of ``world_size``.
        rank: the number of this process among ``world_size``, from 0.
        world_size: the number of processes that share the batches.
        collate: makes a batch of the list of its records. The default collates dicts and tuples by their
            parts, and stacks numbers and arrays. A function with a true attribute ``columnar``, as the
            default has, gets the columns of tables that are decoded as ``"numpy"`` or ``"arrow"`` instead: a
            dict of arrays and lists, or a record batch.
        end: the last batch of a run is ``"short"``, is left out (``"drop"``), or is filled from the start of
            the run (``"pad"``).
        epochs: epochs of a run: 1, or without end where the dataset is endless.
        steps: the most batches of a run; bounds a run over endless data.
        prefetch: batches made ahead by a thread, or by each worker. With 0 a batch is made when it is
            requested; workers make one each ahead.
        max_holes: the most records that may be holes (``sk.HOLE``), which are left out of batches and counted
            in ``report()``; None for any number.
        workers: the number of workers that make batches; 0 for none. Neither batches nor order depend on it.
        worker_type: ``"process"``, or ``"thread"`` where decoding lets other threads run.
        timeout: the most seconds to wait for a batch of a worker process; None for any number.
        restart_workers: replace a worker process that dies; no batch is lost or comes twice.
        prefetch_bytes: the bytes, about, of the batches that worker processes may make ahead.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule.
        WrongType: ``dataset`` is neither a Dataset nor a Stream, or an argument has a wrong type.
        EndlessDataset: ``epochs`` was given for an endless dataset.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(5)).shuffle(seed=0), batch_size=2, collate=list)
        >>> run = iter(loader)
        >>> first, state = next(run), loader.state_dict()
        >>> rest = list(run)
        >>> again = sk.Loader(sk.from_sequence(range(5)).shuffle(seed=0), batch_size=2, collate=list)
        >>> again.load_state_dict(state)
        >>> list(again) == rest
        True
    """

    def __init__(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        dataset: Dataset | Stream,
        *,
        batch_size: int | None = 1,
        global_batch_size: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        collate: Callable[[list[Any]], Any] = default_collate,
        end: End = "short",
        epochs: int | None = None,
        steps: int | None = None,
        prefetch: int = 2,
        max_holes: int | None = None,
        workers: int = 0,
        worker_type: WorkerType = "process",
        timeout: float | None = None,
        restart_workers: bool = False,
        prefetch_bytes: int = 1 << 30,
    ) -> None:
        options = WorkerOptions(
            prefetch=checked_count("prefetch", prefetch, least=0),
            prefetch_bytes=checked_count("prefetch_bytes", prefetch_bytes, least=1),
            workers=checked_count("workers", workers, least=0),
            worker_type=worker_type,
            timeout=checked_seconds("timeout", timeout),
            restart=checked_flag("restart_workers", restart_workers),
        )
        division = checked_steps(
            dataset,
            batch_size=batch_size,
            global_batch_size=global_batch_size,
            rank=rank,
            world_size=world_size,
            end=end,
            epochs=epochs,
            steps=steps,
        )
        state: PipelineState
        source: Callable[..., Source]
        if isinstance(dataset, Dataset):
            state, source = DatasetState(dataset.node), DatasetSource
        else:
            # Slot s belongs to rank s % world_size, and to lane s % lanes.
            own = range(division.rank, dataset.lanes, division.world_size)
            state, source = lanes_state.LanesState(dataset, own), LaneSource
        if max_holes is not None:
            max_holes = checked_count("max_holes", max_holes, least=0)
        self._progress = Progress(division, state, max_holes=max_holes)
        single = batch_size is None and global_batch_size is None
        source_of = functools.partial(source, steps=division, collate=None if single else collate)
        self._producer = Producer(source_of, options)
        self._live: Callable[[], BatchIterator | None] = _nothing

    @property
    def dataset(self) -> Any:
        """The Dataset or the Stream that is delivered."""
        return _face(self._progress.state.pipeline)

    @property
    def of_state(self) -> Any:
        """The Dataset or the Stream that a state taken now is of.

        After ``resume="rows"`` it first delivers the rest of older orders.
        """
        return _face(self._progress.state.of_state(self._progress.cursor))

    @property
    def step(self) -> int:
        """The number of batches delivered and skipped so far."""
        return self._progress.cursor.step

    @property
    def epoch(self) -> int:
        """The first epoch of the present run; it moves on when the end of the run was seen."""
        return self._progress.cursor.epoch

    @property
    def rank(self) -> int:
        """The number of this process among ``world_size``, from 0."""
        return self._progress.steps.rank

    @property
    def world_size(self) -> int:
        """The number of processes that share the batches."""
        return self._progress.steps.world_size

    @property
    def sampler(self) -> EpochSetter:
        """An object whose ``set_epoch(k)`` lets run ``k`` come next; trainers look for this name."""
        return EpochSetter(self._set_run)

    batch_sampler = sampler
    """The same as ``sampler``: some trainers look for the one name, some for both."""

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        count = self._progress.steps.count
        if count is None:
            message = "a run over an endless dataset has no length: bound it with steps="
            raise EndlessDataset(message)
        return count

    def __iter__(self) -> Iterator[Any]:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends.

        Returns:
            An iterator over batches: whatever ``collate`` returned, or with ``batch_size=None`` single
            records. An error in its ``__next__`` leaves the state as it was after the batch before.

        Raises:
            InvalidArgument: worker processes are to be started, and the pipeline cannot be sent to them.
            CorruptRecord: from the iterator, a record cannot be decoded (see ``errors=`` of ``sk.open``).
            IndexStale: from the iterator, a file has changed since it was indexed.
            TooManyHoles: from the iterator, more records were holes than ``max_holes`` allows.
            NothingPassed: from the iterator, a batch has nothing but holes, or a stream has no item.
            WorkerDied: from the iterator, a worker process ended and is not replaced.
            WorkerHung: from the iterator, a worker process took longer than ``timeout`` for a batch.
            StoppedIterator: from the iterator, a later ``iter(loader)``, ``set_epoch`` or ``close`` ended it.
            ForkUnsafe: from the iterator, it was made before this process was forked.
            Exception: from the iterator, an error of your functions, in the place of its batch.
        """
        self._stop_live(REPLACED)
        self._progress.begin()
        iterator = BatchIterator(self._progress, self._producer)
        self._live = weakref.ref(iterator)
        return iterator

    def state_dict(self, *, partial: bool = False, rows: bool = True) -> dict[str, Any]:
        """Return the state after the batches delivered so far: a new dict, JSON-safe.

        Batches that were made ahead do not count. The state loads on any number of ranks, with any batch
        size. The state of a dataset is the same on all ranks.

        Args:
            partial: return this rank's share of the state, where ranks have different ones: those of a stream
                have lanes of their own, which ``sk.save_state`` and ``sk.load_state`` put together.
            rows: add the description of the pipeline, with the names of its files, as one string. Another
                pipeline needs it to load the state with ``resume="rows"``. The string is made once for a
                pipeline. Without it the state of a dataset has fewer than 200 bytes.

        Raises:
            NotResumable: a stage of a stream could not go on from it; or this is a share and ``partial`` is
                false.
        """
        return self._progress.document(partial=partial, rows=rows)

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go on where a state was taken: the next batches are those that would have followed.

        Nothing changes if this raises an error.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. ``{}``
                stands for no state and changes nothing. A live iterator moves there too.
            resume: ``"exact"``, the order continues record for record. With ``"rows"`` the state may be of
                another pipeline over the same sources, or fewer files of them: each source gives what was in
                flight, then the rest of its begun epoch in its old order, then its next epoch in the new one.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data; by rows, of sources that are
                not there any more, or the state carries no description of its pipeline.
            CorruptState: the document is not a state.
            InvalidArgument: by rows, something above a mixture hides how many rows each source gave, or rows
                were chosen by content that is not known any more.

        Example:
            >>> import seekable as sk
            >>> words = sk.from_sequence("abcdef")
            >>> loader = sk.Loader(words, batch_size=2, collate=list, prefetch=0)
            >>> next(iter(loader))
            ['a', 'b']
            >>> again = sk.Loader(words.map(str.upper).shuffle(seed=1), batch_size=3, collate=list)
            >>> again.load_state_dict(loader.state_dict(), resume="rows")
            >>> list(again)
            [['C', 'D', 'E'], ['F']]
        """
        resume = checked_resume(resume)
        if state == {}:
            return
        self._progress.load(state, resume=resume)
        self._restart_live()

    def skip_batches(self, count: int) -> None:
        """Leave out the next ``count`` batches, at most to the end of the run; they count as steps.

        Raises:
            InvalidArgument: ``count`` is no integer of at least 0.
        """
        count = checked_count("count", count, least=0)
        if self._live() is None:
            self._progress.begin()
        self._progress.skip(count)
        self._restart_live()

    def set_epoch(self, epoch: int) -> None:
        """Let the next run begin with an epoch; nothing changes if it does anyway.

        An iterator that has delivered batches ends.

        Raises:
            EndlessDataset: an endless dataset has no epochs but 0.
        """
        cursor = self._progress.cursor_of_epoch(epoch)
        if cursor is not None:
            if not self._progress.continues:
                self._stop_live(REPLACED)
            self._progress.move(cursor)
            self._restart_live()

    def locate(self, *, step: int) -> list[Any]:
        """Return where every record of a batch lies, over all ranks; nothing is read.

        Args:
            step: the number of the batch, from 0; the next one is ``loader.step``. Known are coming steps,
                and those since the batch size last changed, an epoch was set or a run was left.

        Returns:
            A ``Location`` for each record of the batch, in order.

        Raises:
            InvalidArgument: a step from before, or one that never comes; or the loader is over a stream.
        """
        return [record.place for record in self.plan(step=step).records]

    def plan(self, *, step: int) -> StepPlan:
        """Return the records of a batch, over all ranks: positions, ranks and places; nothing is read.

        Args:
            step: as of ``locate``.

        Raises:
            InvalidArgument: a step from before, or one that never comes; or the loader is over a stream.
        """
        step = checked_count("step", step, least=0)
        dataset = self.dataset
        if not isinstance(dataset, Dataset):
            message = (
                "which records make a step of a stream depends on what the records are: stream.locate(token) "
                "tells where an item came from"
            )
            raise InvalidArgument(message)
        return step_plan.plan_step(dataset.node, self._progress.steps, self._progress.cursor_of(step))

    def report(self) -> dict[str, int | float]:
        """Return the counts of batches and records delivered on this rank since the loader was made.

        Returns:
            Four ints, the numbers of ``batches`` delivered, of ``records`` in them, of ``holes`` left out of
            them and of batches ``skipped``; and ``wait_seconds``, a float, the seconds that ``next`` waited.
        """
        progress = self._progress
        return {
            "batches": progress.batches,
            "records": progress.records,
            "holes": progress.holes,
            "skipped": progress.skipped,
            "wait_seconds": progress.waited_seconds,
        }

    def close(self) -> None:
        """End the live iterator, its threads and the worker processes; the state stays."""
        self._stop_live(REPLACED)
        self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show the batches and the dataset."""
        steps = self._progress.steps
        ranks = "" if steps.world_size == 1 else f", rank {steps.rank} of {steps.world_size}"
        return f"<Loader at step {self.step}: batches of {steps.batch}{ranks}, of {self.dataset!r}>"

    def _set_run(self, number: int) -> None:
        """Let run ``number`` come next; see `EpochSetter`."""
        progress = self._progress
        epoch = progress.epoch_of_run(number)
        if epoch is not None:
            self.set_epoch(epoch)
        elif not progress.continues:
            self._stop_live(READ_AHEAD)
        elif progress.steps.left(progress.cursor) == 0:
            progress.end()
            self._restart_live()

    def _stop_live(self, why: str) -> None:
        iterator = self._live()
        if iterator is not None:
            iterator.stop(why)
        self._live = _nothing

    def _restart_live(self) -> None:
        iterator = self._live()
        if iterator is not None:
            iterator.restart()


def _face(pipeline: Node | Stream) -> Dataset | Stream:
    """Return the public object of a pipeline."""
    return Dataset(pipeline) if isinstance(pipeline, Node) else pipeline


def _nothing() -> None:
    """Return None: there is no live iterator."""
