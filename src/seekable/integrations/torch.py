"""PyTorch: the order, the ranks and the exact resumption of seekable under torch's own loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from seekable._arguments import checked_count, explains_keywords
from seekable._other_words import BATCH_SAMPLER
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, MissingDependency, StoppedIterator, WrongType
from seekable.integrations.sampler_runs import MOVED, RunIterator, SamplerRuns
from seekable.loader.arguments import checked_rank, checked_resume, checked_steps
from seekable.loader.loader import Loader
from seekable.loader.summary import sizes_in_words
from seekable.state.document import has_row_offsets
from seekable.stream.iterator import StreamIterator
from seekable.stream.stream import Stream

try:
    from torch.utils.data import IterableDataset as TorchIterableDataset
    from torch.utils.data import Sampler, get_worker_info
except ImportError as error:
    message = "seekable.integrations.torch needs PyTorch: pip install 'seekable[torch]'"
    raise MissingDependency(message) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch.utils.data import DataLoader

    from seekable.loader.arguments import BatchSizes, Resume
    from seekable.loader.steps import End

__all__ = ["BatchSampler", "IterableDataset"]


@final
class BatchSampler(Sampler[list[int]]):
    """Batches of positions for torch's ``DataLoader`` and torchdata's ``StatefulDataLoader``.

    ``DataLoader(ds, batch_sampler=BatchSampler(ds, batch_size=32))`` delivers the records that
    ``sk.Loader(ds, batch_size=32)`` delivers, batch by batch, epoch after epoch: each ``iter`` of the
    DataLoader is the next run. Arguments have the same rules there and here, and states are interchangeable.

    A ``StatefulDataLoader`` saves and restores the sampler exactly, with its own state. A ``DataLoader`` has
    no state: save that of the sampler. With workers it requests batches before it delivers them, and does
    not say how many it has delivered. ``state_dict(delivered=n)`` is the state after ``n`` batches of the
    present iterator; ``counting(loader)`` counts them.

    Args:
        dataset: the one that the DataLoader reads; order and epochs are its own.
        batch_size: records in a batch, while there is one rank. With None single positions come, for
            ``DataLoader(ds, sampler=..., batch_size=None)``.
        global_batch_size: records in a batch over all ranks; a multiple of ``world_size``; or pairs
            ``(step, size)``, as of ``sk.Loader``.
        rank: the number of this process among ``world_size``, from 0.
        world_size: the number of processes that share the batches.
        end: the last batch of a run is ``"short"``, is left out (``"drop"``), or is filled from the start of
            the run (``"pad"``).
        epochs: epochs of a run: 1, or without end where the dataset is.
        steps: the most batches of a run; bounds a run over an endless dataset.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule.
        WrongType: ``dataset`` is not a Dataset.

    Example:
        >>> import seekable as sk
        >>> from seekable.integrations.torch import BatchSampler
        >>> from torch.utils.data import DataLoader
        >>> ds = sk.from_sequence(range(5)).shuffle(seed=0)
        >>> sampler = BatchSampler(ds, batch_size=2)
        >>> loader = DataLoader(ds, batch_sampler=sampler, collate_fn=list)
        >>> run = iter(loader)
        >>> first, state = next(run), sampler.state_dict(delivered=1)
        >>> again = sk.Loader(ds, batch_size=2, collate=list)
        >>> again.load_state_dict(state)
        >>> list(again) == list(run)
        True
    """

    @explains_keywords(BATCH_SAMPLER)
    def __init__(  # noqa: PLR0913 - the arguments of sk.Loader that decide which records come
        self,
        dataset: Dataset,
        *,
        batch_size: int | None = 1,
        global_batch_size: BatchSizes | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        end: End = "short",
        epochs: int | None = None,
        steps: int | None = None,
    ) -> None:
        if not isinstance(dataset, Dataset):
            message = f"BatchSampler takes a Dataset, which has positions (got {type(dataset).__name__})"
            raise WrongType(message)
        self._steps = checked_steps(
            dataset,
            batch_size=batch_size,
            global_batch_size=global_batch_size,
            rank=rank,
            world_size=world_size,
            end=end,
            epochs=epochs,
            steps=steps,
        )
        loader = Loader(
            dataset,
            batch_size=batch_size,
            global_batch_size=global_batch_size,
            rank=rank,
            world_size=world_size,
            end=end,
            epochs=epochs,
            steps=steps,
            prefetch=0,
        )
        self._dataset = dataset
        # Its cursor is the start of the present iterator; `sk.save_state` asks it which pipeline that is of.
        self._loader = loader
        self._is_single = batch_size is None and global_batch_size is None
        self._runs = SamplerRuns(loader, self._steps, single=self._is_single)

    @property
    def dataset(self) -> Dataset:
        """The dataset that the positions belong to."""
        return self._dataset

    @property
    def rank(self) -> int:
        """The number of this process among ``world_size``."""
        return self._steps.rank

    @property
    def world_size(self) -> int:
        """The number of processes that share the batches."""
        return self._steps.world_size

    @property
    def batch_size(self) -> int | None:
        """Records in a batch of this rank; None for single positions.

        Where it follows the step, it is that of the first batch of the present iterator, or of the next one
        once the end of this one was requested.
        """
        if self._is_single:
            return None
        return self._steps.size_at(self._runs.place.step) // self._steps.world_size

    @property
    def drop_last(self) -> bool:
        """True if an incomplete last batch is left out."""
        return self._steps.end == "drop"

    @property
    def sampler(self) -> BatchSampler:
        """This object: some trainers look for ``set_epoch`` on the sampler of a batch sampler."""
        return self

    @property
    def epoch(self) -> int:
        """The first epoch of the present run.

        It moves on when the end of the run was requested; while batches are counted, when it was delivered.
        """
        return self._runs.epoch

    @property
    def step(self) -> int:
        """The number of batches delivered and skipped so far.

        Raises:
            DeliveryUnknown: the number of delivered batches is not known.
        """
        step: int = self.state_dict(rows=False)["step"]
        return step

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        return len(self._runs)

    def __iter__(self) -> RunIterator:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends.

        A run that was left counts as over, and its other batches as skipped.

        Returns:
            An iterator over lists of positions, one for each batch; over positions with ``batch_size=None``.
            It has a ``state_dict`` and a ``load_state_dict`` for loaders that keep a state themselves.

        Raises:
            StoppedIterator: from the iterator, a later one was begun, or the sampler was moved.
            DeliveryUnknown: from the iterator, a run over data without an end was left before.
        """
        return RunIterator(self._runs)

    def counting(self, loader: DataLoader[Any]) -> Iterator[Any]:
        """Begin the next run of a DataLoader over this sampler, and count its batches as they are delivered.

        While batches are read through this iterator, ``state_dict()`` and ``step`` are exact without
        ``delivered``.

        Args:
            loader: a torch ``DataLoader`` with this object as its ``batch_sampler`` or ``sampler``.

        Returns:
            An iterator over the batches of the loader.

        Raises:
            InvalidArgument: the loader is of another sampler, delivers in another order (``in_order=False``),
                or keeps a state itself, as the loaders of Accelerate and torchdata do.
            StoppedIterator: from the iterator, a later one was begun, or the sampler was moved.

        Example:
            >>> import seekable as sk
            >>> from torch.utils.data import DataLoader
            >>> ds = sk.from_sequence(range(5))
            >>> sampler = BatchSampler(ds, batch_size=2)
            >>> loader = DataLoader(ds, batch_sampler=sampler, collate_fn=list)
            >>> [(batch, sampler.step) for batch in sampler.counting(loader)]
            [([0, 1], 1), ([2, 3], 2), ([4], 3)]
        """
        self._check_countable(loader)
        batches = iter(loader)
        self._runs.delivered = 0
        return self._counted(batches, self._runs.generation)

    def state_dict(
        self, *, partial: bool = False, rows: bool = True, delivered: int | None = None
    ) -> dict[str, Any]:
        """Return the state after the batches delivered so far: a new dict, JSON-safe.

        Batches that were requested and not delivered do not count. The state loads into an ``sk.Loader`` too,
        on any number of ranks, with any batch size and any number of workers.

        Args:
            partial: as of ``sk.Loader``; states of datasets are the same on all ranks.
            rows: as of ``sk.Loader``.
            delivered: the number of batches that were taken from the present iterator, which began with the
                last ``iter`` of the DataLoader. It may be left out before the first batch was requested,
                while batches are read through ``counting``, and while the DataLoader has no workers and is
                read in this thread.

        Raises:
            DeliveryUnknown: ``delivered`` was left out, and it is not known; the message says the ways out.
            InvalidArgument: fewer than ``delivered`` batches were requested.
        """
        runs = self._runs
        if delivered is not None:
            return runs.state_after(checked_count("delivered", delivered, least=0), rows=rows)
        return runs.delivered_state(self, rows=rows)

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go on where a state was taken: the next ``iter`` of the DataLoader continues there.

        A DataLoader's iterator that is under way still delivers the batches that it has requested, then ends.

        Args:
            state: a state of this class or of ``sk.Loader``, also after a JSON round trip; an empty one
                changes nothing.
            resume: ``"exact"``; ``"rows"`` needs ``sk.Loader``.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: the state is to be continued by rows, or was taken after that; or the document
                has a ``resume_state``.
        """
        if not state:
            return
        if checked_resume(resume) == "rows" or state.get("rows") or has_row_offsets(state):
            message = (
                "resume='rows' changes what comes at a position, as a resume_state does, and a DataLoader "
                "that is given positions reads the dataset that it was made with: use sk.Loader"
            )
            raise InvalidArgument(message)
        self._runs.load(state)

    def skip_batches(self, count: int) -> None:
        """Leave out the next batches, at most to the end of the run; they count as steps.

        The next ``iter`` of the DataLoader goes on after them.

        Raises:
            DeliveryUnknown: the number of delivered batches is not known.
        """
        count = checked_count("count", count, least=0)
        self._runs.skip_from(self.state_dict(rows=False), count)

    def set_epoch(self, epoch: int) -> None:
        """Let the next run be number ``epoch``, from 0; nothing changes if that run comes next anyway.

        Trainers that count their own passes call it before each pass.

        Raises:
            InvalidArgument: a loaded state lies in the middle of another run.
        """
        self._runs.set_run(epoch)

    def __repr__(self) -> str:
        """Show the batches and the dataset."""
        steps = self._steps
        ranks = "" if steps.world_size == 1 else f", rank {steps.rank} of {steps.world_size}"
        return f"<BatchSampler of batches of {sizes_in_words(steps)}{ranks}, of {self.dataset!r}>"

    def _counted(self, batches: Iterator[Any], generation: int) -> Iterator[Any]:
        """Yield batches, and count each as delivered while the sampler is in the generation of their run."""
        runs = self._runs
        for count, batch in enumerate(batches, start=1):
            if generation != runs.generation:
                raise StoppedIterator(MOVED)
            runs.delivered = count
            yield batch
        if generation == runs.generation:
            runs.end()

    def _check_countable(self, loader: DataLoader[Any]) -> None:
        """Refuse a loader whose deliveries are not this sampler's batches one by one."""
        of_this = any(getattr(loader, name, None) is self for name in ("batch_sampler", "sampler"))
        if not of_this or not getattr(loader, "in_order", True) or hasattr(loader, "state_dict"):
            message = (
                f"counting() takes a torch DataLoader over this sampler that delivers in order (got "
                f"{type(loader).__name__}): save the state of a StatefulDataLoader itself; count the batches "
                f"of other loaders yourself, state_dict(delivered=count)"
            )
            raise InvalidArgument(message)


class IterableDataset(TorchIterableDataset[Any]):
    """A stream for torch's ``DataLoader`` and torchdata's ``StatefulDataLoader``.

    Each worker of the DataLoader runs lanes of its own, and batches their items. So the order depends on how
    many workers there are, and a state of a StatefulDataLoader wants as many: that is torch's rule. Under
    ``sk.Loader`` neither holds.

    Args:
        stream: with at least as many lanes as there are ranks times workers.
        rank: which of ``world_size`` processes this one is.
        world_size: how many processes share the stream.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: there are fewer lanes than ranks, or, when it is iterated over, than workers.

    Example:
        >>> import seekable as sk
        >>> from seekable.integrations.torch import IterableDataset
        >>> from torch.utils.data import DataLoader
        >>> stream = sk.from_sequence(range(6)).stream(lanes=2, epochs=1)
        >>> list(DataLoader(IterableDataset(stream), batch_size=3, collate_fn=list))
        [[0, 1, 2], [3, 4, 5]]
    """

    def __init__(self, stream: Stream, *, rank: int | None = None, world_size: int | None = None) -> None:
        if not isinstance(stream, Stream):
            message = f"IterableDataset takes a Stream: make one of a Dataset with .stream() (got {stream!r})"
            raise WrongType(message)
        self._stream = stream
        self._rank, self._world_size = checked_rank(rank, world_size)
        self._own(0, 1)

    def __iter__(self) -> StreamIterator:
        """Begin at the first item of this rank's and this worker's lanes."""
        worker = get_worker_info()
        lanes = self._own(0, 1) if worker is None else self._own(worker.id, worker.num_workers)
        return StreamIterator(self._stream.stage, lanes)

    def _own(self, worker: int, workers: int) -> range:
        shares = self._world_size * workers
        if shares > self._stream.lanes:
            message = (
                f"{self._world_size} ranks of {workers} workers cannot share {self._stream.lanes} lanes: say "
                f"lanes= to ds.stream(), or take fewer workers"
            )
            raise InvalidArgument(message)
        return range(self._rank + worker * self._world_size, self._stream.lanes, shares)
