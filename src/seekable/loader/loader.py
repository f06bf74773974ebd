"""Batches of a dataset or a stream, in its order, resumed at any point.

A `Loader` has a cursor, which says how far it has come (`RunProgress`), a producer of batches (`Producer`),
and at most one live iterator (`BatchIterator`), which takes batches of the producer and moves the cursor.
Questions about the cursor, and its moves, are in a base class (`Positioned`), and what its owner changes
while it runs in another one (`Steerable`).
"""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import TYPE_CHECKING, Any, Self

from seekable._arguments import checked_count, checked_function, explains_keywords
from seekable._lazy import lazy
from seekable._other_words import LOADER
from seekable.dataset.dataset import Dataset
from seekable.errors import EndlessDataset, InvalidArgument
from seekable.loader.arguments import checked_steps, checked_workers
from seekable.loader.batch_sources import DatasetSource, LaneSource
from seekable.loader.collate import collate as default_collate
from seekable.loader.iteration import REPLACED, BatchIterator
from seekable.loader.producers import Producer, WorkerOptions
from seekable.loader.run_progress import RunProgress
from seekable.loader.states import DatasetState
from seekable.loader.steerable import Steerable, checked_journal
from seekable.nodes.bases import positions_of_row
from seekable.nodes.node import node_of
from seekable.storage.far import far

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    import jax
    import torch

    from seekable.loader import devices, lanes_state, stateful, step_plan, summary
    from seekable.loader.arguments import BatchSizes, Workers
    from seekable.loader.batch_sources import BatchSource
    from seekable.loader.stateful import StatefulLoader
    from seekable.loader.states import PipelineState
    from seekable.loader.step_plan import Coming, StepPlan
    from seekable.loader.steps import End
    from seekable.stream.stream import Stream
else:
    devices = lazy("seekable.loader.devices")
    lanes_state = lazy("seekable.loader.lanes_state")
    stateful = lazy("seekable.loader.stateful")
    step_plan = lazy("seekable.loader.step_plan")
    summary = lazy("seekable.loader.summary")

__all__ = ["Loader"]


class Loader(Steerable):
    """Batches of a dataset or a stream; each ``iter(loader)`` is the next run of ``epochs`` epochs.

    So each run over a shuffled dataset has another order. For validation, give data that is not shuffled, or
    ``shuffle(seed=..., fixed=True)``.

    Args:
        dataset: the Dataset or Stream to deliver, in its order.
        batch_size: records in a batch, while there is one rank; None delivers the records themselves.
        global_batch_size: records in a batch over all ranks; a multiple of ``world_size``. A list of pairs
            ``(step, size)`` says from which steps on which size holds: ``[(0, 256), (1000, 512)]``.
        rank: the number of this process among ``world_size``, from 0.
        world_size: the number of processes that share the batches.
        collate: makes a batch of the list of its records. The default collates dicts and tuples by their
            parts, and stacks numbers and arrays. A function with a true attribute ``columnar``, as the
            default has, gets the columns of tables that are decoded as ``"numpy"`` or ``"arrow"`` instead: a
            dict of arrays and lists, or a record batch.
        end: the last batch of a run is ``"short"``, is left out (``"drop"``), or is filled from the start of
            the run (``"pad"``).
        epochs: epochs of a run: 1, or without end where the dataset is endless. A stream has no end, unless
            ``ds.stream(epochs=)`` gives it one.
        steps: the most batches of a run; bounds a run over endless data. Over data with an end, the rest of
            the epochs of a run is left out: the next run begins with the epoch after them.
        prefetch: batches made ahead by a thread, which starts once the caller is busy between batches, or by
            each worker. With 0 a batch is made when it is requested; workers make one each ahead.
        max_holes: the most records that may be holes (``sk.HOLE``), which are left out of batches and counted
            in ``report()``; None for any number.
        workers: the number of worker processes that make batches; 0 for none. Neither batches nor order
            depend on it. ``sk.Workers(4, timeout=60, restart=2)`` says more: threads instead of processes,
            how long a batch may take, and what happens when a process dies.
        prefetch_bytes: the bytes, about, of the batches that worker processes may make ahead.
        journal: what is changed in the run, and when: the ``journal`` of a loader, or that of a state. It is
            not needed to go on from a state, which has its own.
        device: where batches are delivered: the name of a device of PyTorch, such as ``"cuda"``, a
            ``torch.device``, or a ``Device`` or ``Sharding`` of JAX. Arrays of numbers become tensors there,
            and tensors are copied, wherever they stand in a batch, up to two batches ahead by a thread; with
            ``prefetch=0`` when a batch is requested. All else stays as it is.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule, or there is no such ``device``.
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

    @explains_keywords(LOADER)
    def __init__(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        dataset: Dataset | Stream,
        *,
        batch_size: int | None = 1,
        global_batch_size: BatchSizes | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        collate: Callable[[list[Any]], Any] = default_collate,
        end: End = "short",
        epochs: int | None = None,
        steps: int | None = None,
        prefetch: int = 2,
        max_holes: int | None = None,
        workers: int | Workers = 0,
        prefetch_bytes: int = 1 << 30,
        journal: Iterable[Any] | None = None,
        device: str | torch.device | jax.Device | jax.sharding.Sharding | None = None,
    ) -> None:
        options = WorkerOptions(
            prefetch=checked_count("prefetch", prefetch, least=0),
            prefetch_bytes=checked_count("prefetch_bytes", prefetch_bytes, least=1),
            workers=checked_workers(workers),
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
        source: Callable[..., BatchSource]
        if isinstance(dataset, Dataset):
            state, source = DatasetState(node_of(dataset)), DatasetSource
        else:
            # Slot s belongs to rank s % world_size, and to lane s % lanes.
            own = range(division.rank, dataset.lanes, division.world_size)
            state, source = lanes_state.LanesState(dataset, own), LaneSource
        if max_holes is not None:
            max_holes = checked_count("max_holes", max_holes, least=0)
        single = batch_size is None and global_batch_size is None
        progress = RunProgress(division, state, max_holes=max_holes)
        super().__init__(progress, single=single)
        if journal is not None:
            state.journal = checked_journal(progress, journal)
        made = None if single else checked_function("collate", collate)
        source_of = functools.partial(source, steps=division, collate=made)
        on = None if device is None else devices.checked_device(device)
        self._producer = Producer(source_of, options, on)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; the arguments of a loader cannot be changed.

        Raises:
            InvalidArgument: the name is that of an argument.
        """
        if name in _FIXED:
            raise InvalidArgument(
                f"a loader keeps its arguments (got loader.{name} = {value!r:.100}): make another one with "
                f"{name}={value!r:.100}, and load the state of this one, load_state_dict(loader.state_dict())"
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Where the batch size follows the step, runs differ: it is the number of the present run, from its
        first batch on. Between two runs it is that of the next one, as soon as the end of the last was seen.

        Raises:
            EndlessDataset: a run has no end, or is over a stream, whose items are not counted ahead.
        """
        count = self._progress.steps.count(self._progress.cursor)
        if count is None:
            message = "a run over an endless dataset or a stream has no known length: bound it with steps="
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

    def locate(self, *, step: int) -> list[Any]:
        """Return where every record of a batch lies, over all ranks; nothing is read.

        Args:
            step: the index of the batch; the next one is ``loader.step``. Known are coming steps,
                and those since the batch size last changed, an epoch was set or a run was left.

        Returns:
            A ``Location`` for each record of the batch, in order.

        Raises:
            InvalidArgument: a step from before, or one that never comes; or the loader is over a stream.
        """
        return [record.place for record in self.plan(step=step).records]

    def plan(self, *, step: int, rank: int | None = None) -> StepPlan:
        """Return the records of a batch: their positions, ranks and places. No record is decoded.

        Args:
            step: as of ``locate``.
            rank: the rank whose records to return; by default those of all ranks.

        Raises:
            InvalidArgument: a step from before, one that never comes, or no rank; or the loader is over a
                stream.

        Example:
            >>> import seekable as sk
            >>> loader = sk.Loader(sk.from_sequence(range(12)), global_batch_size=4, rank=0, world_size=2)
            >>> [(record.rank, record.position) for record in loader.plan(step=1).records]
            [(0, 4), (1, 5), (0, 6), (1, 7)]
            >>> [record.position for record in loader.plan(step=1, rank=1).records]
            [5, 7]
        """
        step = checked_count("step", step, least=0)
        dataset = self.dataset
        if not isinstance(dataset, Dataset):
            raise InvalidArgument(
                "which records make a step of a stream depends on what the records are: stream.locate(token) "
                "tells where an item came from"
            )
        rank = None if rank is None else checked_count("rank", rank, least=0)
        progress = self._progress
        made_by = progress.pieces(step).at(step)
        return step_plan.plan_step(made_by, progress.steps, progress.cursor_of(step), rank=rank)

    def when(
        self, path: str | os.PathLike[str], row: int, *, epochs: int | range | None = None
    ) -> list[Coming]:
        """Return the steps at which a row of a file comes, over all ranks: the inverse of ``locate``.

        The order is inverted, not searched: the cost does not grow with the number of records.

        Args:
            path: the file, as a path or an address.
            row: the record's number in the file, from 0.
            epochs: a number of epochs from epoch 0 on, or a range of epochs; by default those of a run. Of
                an endless dataset they are the epochs of the source, by default its first.

        Returns:
            A ``Coming`` for each place at which it comes, with its ``step``, ``position``, ``epoch`` and
            ``rank``, in order. Known are the steps that ``locate`` knows.

        Raises:
            InvalidArgument: an argument is below 0, or the loader is over a stream.
            WrongType: an argument has a wrong type.

        Example:
            >>> import seekable as sk
            >>> loader = sk.Loader(sk.from_sequence(range(100), version=1).shuffle(seed=1), batch_size=8)
            >>> place = loader.locate(step=7)[3]
            >>> [coming.step for coming in loader.when(place.path, place.row)]
            [7]
            >>> [coming.epoch for coming in loader.when(place.path, place.row, epochs=range(3))]
            [0, 1, 2]
        """
        dataset, progress = self.dataset, self._progress
        if not isinstance(dataset, Dataset):
            raise InvalidArgument(
                "when a row of a stream comes depends on what the records are: run the stream, and compare "
                "with stream.locate(token)"
            )
        searched = step_plan.searched_epochs(epochs, progress.steps, progress.anchor)
        row = checked_count("row", row, least=0)
        found: list[Coming] = []
        for made_by, first, until in progress.pieces().from_step(progress.anchor.step):
            positions = positions_of_row(made_by, path, row, searched)
            comings = step_plan.comings(progress.steps, progress.anchor, positions)
            found += [each for each in comings if first <= each.step and (until is None or each.step < until)]
        return found

    def stateful(self, *, group: Any = None) -> StatefulLoader:
        """Return this loader as frameworks save it: with one state for all ranks, which is the same on each.

        For ``torch.distributed.checkpoint``, Lightning and Accelerate, which save the state of one rank or
        one entry of a name, while each rank has its own lanes of a stream. A state loads on any number of
        ranks. Of a stream on several ranks, ``torch.distributed`` puts it together: when it is taken, and
        before the first batch, all processes of the group wait for each other.

        Args:
            group: the process group of ``torch.distributed`` with all ranks of this loader; None for all
                processes.

        Returns:
            An object to iterate over as over this loader, with a ``state_dict`` and a ``load_state_dict``
            for trainers; its ``loader`` is this one.

        Example:
            >>> import seekable as sk
            >>> stream = sk.from_sequence(range(6)).stream(lanes=2)
            >>> saved = sk.Loader(stream, batch_size=2, steps=3, collate=list, prefetch=0).stateful()
            >>> run = iter(saved)
            >>> next(run), next(run)
            ([0, 1], [2, 3])
            >>> again = sk.Loader(stream, batch_size=2, steps=3, collate=list).stateful()
            >>> again.load_state_dict(saved.state_dict())
            >>> list(again)
            [[4, 5]]
        """
        return stateful.StatefulLoader(self, group)

    def explain(self) -> str:
        """Return the batches, the run and the workers in words, and below them the pipeline as a tree.

        Example:
            >>> import seekable as sk
            >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=4, workers=2)
            >>> print(loader.explain())
            batches: of 4 records
            a run: 3 batches, 1 epoch of 10 records; the last batch has 2
            workers: 2 processes, each up to 2 batches ahead
            sequence(type='builtins.range', length=10): 10 records
        """
        progress = self._progress
        lines = summary.explained(
            progress.steps,
            progress.cursor,
            self._producer.options,
            endless=progress.state.endless,
            single=self._single,
        )
        device = self._producer.device
        lines += [] if device is None else [f"device: {device}"]
        lines += [f"journal: {entry}" for entry in self.journal]
        return "\n".join([*lines, self.dataset.explain()])

    def report(self) -> dict[str, Any]:
        """Return the counts of batches and records delivered on this rank since the loader was made.

        Returns:
            Four ints, the numbers of ``batches`` delivered, of ``records`` in them, of ``holes`` left out of
            them and of batches ``skipped``; and ``wait_seconds``, a float, the seconds that ``next`` waited.
            Where object stores are read also ``remote``, a ``FetchReport``: the requests of this process to
            all stores since it began, their bytes, waits, tries and latencies, and the oldest one under way.
        """
        progress = self._progress
        counts = {
            "batches": progress.batches,
            "records": progress.records,
            "holes": progress.holes,
            "skipped": progress.skipped,
            "wait_seconds": progress.waited_seconds,
        }
        if progress.state.reads_objects:
            return {**counts, "remote": far().reads.report()}
        return counts

    def close(self) -> None:
        """End the live iterator, its threads and the worker processes; the state stays."""
        self._stop_live(REPLACED)
        self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show the batches, whether a run ends, and the dataset."""
        steps = self._progress.steps
        ranks = "" if steps.world_size == 1 else f", rank {steps.rank} of {steps.world_size}"
        run = summary.run_in_words(steps, self._progress.cursor, endless=self._progress.state.endless)
        sizes = summary.sizes_in_words(steps)
        return f"<Loader at step {self.step}: batches of {sizes}{ranks}, {run}, of {self.dataset!r}>"


_FIXED = frozenset(inspect.signature(Loader.__init__).parameters) - {"self"}
"""The names of the arguments of a loader."""
