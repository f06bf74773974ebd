"""PyTorch: seekable's order, ranks and exact resumption under torch's own loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable.dataset.dataset import Dataset
from seekable.errors import DeliveryUnknown, InvalidArgument, MissingDependency, WrongType
from seekable.integrations.asked import Asked, AskedCourse, Asks, caller, follow, is_torchdata
from seekable.loader.arguments import checked_steps
from seekable.loader.ranks import checked_rank
from seekable.loader.resumable import Resumable
from seekable.loader.runs import Runs, RunSetter
from seekable.stream.iterator import StreamIterator
from seekable.stream.stream import Stream

try:
    from torch.utils.data import IterableDataset as TorchIterableDataset
    from torch.utils.data import Sampler, get_worker_info
except ImportError as error:
    message = "seekable.integrations.torch needs PyTorch: pip install 'seekable[torch]'"
    raise MissingDependency(message) from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.steps import End

__all__ = ["BatchSampler", "IterableDataset"]


class BatchSampler(Resumable[AskedCourse], Sampler[list[int]]):
    """Batches of positions for torch's ``DataLoader`` and torchdata's ``StatefulDataLoader``.

    ``DataLoader(ds, batch_sampler=BatchSampler(ds, batch_size=32))`` delivers the records that
    ``sk.Loader(ds, batch_size=32)`` delivers, batch by batch, epoch after epoch: each ``iter`` of the
    DataLoader is the next run. Arguments have the same rules there and here, and states are interchangeable.

    Args:
        dataset: the one that the DataLoader reads; order and epochs are its own.
        batch_size: records in a batch, while there is one rank. With None single positions come, for
            ``DataLoader(ds, sampler=..., batch_size=None)``.
        global_batch_size: records in a batch over all ranks; a multiple of ``world_size``.
        rank: which of ``world_size`` processes this one is.
        world_size: how many processes share the batches.
        end: the last batch of a run is ``"short"``, is left out (``"drop"``), or is filled from the start of
            the run (``"pad"``).
        epochs: epochs of a run: 1, or without end where the dataset is.
        steps: the most batches of a run; what bounds a run over an endless dataset.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule.

    Example:
        >>> import seekable as sk
        >>> from seekable.integrations.torch import BatchSampler
        >>> from torch.utils.data import DataLoader
        >>> ds = sk.from_sequence(range(5)).shuffle(seed=0)
        >>> sampler = BatchSampler(ds, batch_size=2)
        >>> loader = DataLoader(ds, batch_sampler=sampler, collate_fn=list)
        >>> run = iter(loader)
        >>> first, state = next(run), sampler.state_dict()
        >>> again = sk.Loader(ds, batch_size=2, collate=list)
        >>> again.load_state_dict(state)
        >>> list(again) == list(run)
        True
    """

    def __init__(  # noqa: PLR0913 - the arguments of sk.Loader that decide which records come
        self,
        dataset: Dataset,
        *,
        batch_size: int | None = 1,
        global_batch_size: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        end: End = "short",
        epochs: int | None = None,
        steps: int | None = None,
    ) -> None:
        if not isinstance(dataset, Dataset):
            message = f"BatchSampler takes a Dataset, which has positions (got {type(dataset).__name__})"
            raise WrongType(message)
        steps_of = checked_steps(
            dataset,
            batch_size=batch_size,
            global_batch_size=global_batch_size,
            rank=rank,
            world_size=world_size,
            end=end,
            epochs=epochs,
            steps=steps,
        )
        self._single = batch_size is None and global_batch_size is None
        self._course = AskedCourse(dataset.node, steps_of, maker=Asks(steps_of, single=self._single))
        self._runs = Runs(self._course, run=self._begun)

    @property
    def batch_size(self) -> int | None:
        """Records in a batch of this rank; None for single positions."""
        steps = self._course.steps
        return None if self._single else steps.batch // steps.world_size

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete last batch is left out."""
        return self._course.steps.end == "drop"

    @property
    def sampler(self) -> RunSetter:
        """What trainers look for: its ``set_epoch`` is that of the batch sampler."""
        return RunSetter(self._runs)

    def set_epoch(self, epoch: int) -> None:
        """Let the next run be the ``epoch``-th; where that is the one to go on in, nothing changes.

        Trainers that count their own passes call it before each of them.
        """
        self._runs.set_run(epoch)

    def __iter__(self) -> Iterator[Any]:
        """Begin the next run, or go on where a loaded state was taken; an earlier iterator ends."""
        run = self._runs.begin()
        assert isinstance(run, Asked)
        follow(run, caller())
        return run

    def state_dict(
        self, *, partial: bool = False, rows: bool = True, delivered: int | None = None
    ) -> dict[str, Any]:
        """Return the state after the batches that the DataLoader delivered: a new dict, JSON-safe.

        What it asked for ahead does not count. The state loads into an ``sk.Loader`` too, on any number of
        ranks, with any batch size and any number of workers.

        Args:
            partial: as of ``sk.Loader``; states of datasets are the same on all ranks.
            rows: as of ``sk.Loader``.
            delivered: how many batches were really taken since the present iterator began, or was moved by
                loading or skipping; where something between the DataLoader and the training reads ahead.

        Raises:
            DeliveryUnknown: nobody can tell how many were delivered; the message says why and what to do.
            InvalidArgument: so many were not asked for.
        """
        course = self._course
        if delivered is not None:
            count = checked_count("delivered", delivered, least=0)
            return course.document(course.after(count), rows=rows)
        # torchdata also saves the state of the iterator, which is exact whatever was delivered.
        if course.asked and course.doubt and not is_torchdata(caller()):
            message = (
                f"it is not known which batches were delivered: {course.doubt}. Count those that you train "
                f"on since iter(), and call state_dict(delivered=count); or read from sk.Loader, or from a "
                f"DataLoader over this sampler with nothing in between"
            )
            raise DeliveryUnknown(message)
        return super().state_dict(partial=partial, rows=rows)

    def __repr__(self) -> str:
        """Show the batches and the dataset."""
        steps = self._course.steps
        ranks = "" if steps.world_size == 1 else f", rank {steps.rank} of {steps.world_size}"
        return f"<BatchSampler at step {self.step}: batches of {steps.batch}{ranks}, of {self.dataset!r}>"

    def _begun(self) -> Asked:
        return Asked(self._course, self._runs)


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
