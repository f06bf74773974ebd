"""The Trainer of Hugging Face: seekable datasets in their own order, and exact resumption."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.dataset.dataset import Dataset
from seekable.errors import DataNotFound, EndlessDataset, InvalidArgument, MissingDependency, WrongType
from seekable.loader.checkpoints import load_state, save_state
from seekable.loader.data_parallel import distributed
from seekable.loader.loader import Loader
from seekable.loader.positioned import move_silently
from seekable.loader.stateful import whole_state
from seekable.nodes.node import node_of
from seekable.stream.stream import Stream

try:
    import transformers
    from torch.utils.data import DataLoader
    from transformers.trainer_utils import get_last_checkpoint
except ImportError as error:
    message = "seekable.integrations.transformers needs the Trainer: pip install 'transformers[torch]'"
    raise MissingDependency(message) from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Base = transformers.Trainer
else:
    _Base = object

__all__ = ["Trainer", "TrainerMixin"]

_FOLDER = "seekable"
"""The folder of the state in a checkpoint."""


class Passes:
    """A loader as a dataset of its batches, which torch's ``DataLoader`` reads by the numbers of a sampler.

    A trainer that resumes in the middle of a pass leaves out the numbers of the batches before that. Nothing
    is read for these, because the loader was restored to the place after them. A first number that does not
    match this place is refused.

    Args:
        loader: each of its runs is a pass of one epoch.
        batch: the number of records of a batch over all ranks.
        resumed: True if the loader was restored from a state.
        bound: the batches of the one pass over data without an end, as a stream is. A trainer that knows no
            length counts wrongly when it resumes a run that it has finished.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(5)), batch_size=2, collate=list)
        >>> passes = Passes(loader, batch=2, resumed=False)
        >>> [passes[number] for [number] in passes.numbers]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, loader: Loader, *, batch: int, resumed: bool, bound: int | None = None) -> None:
        self.loader, self.dataset = loader, loader.dataset
        self._batches = loader.stateful()
        self.numbers = BatchNumbers(self)
        self._batch, self.bound = batch, bound
        self._resumed = resumed
        self._pass: int | None = None
        self._run: Iterator[Any] | None = None

    def __len__(self) -> int:
        """Return how many records there are, not batches; a trainer reports it as the number of examples.

        Raises:
            EndlessDataset: the data has no end.
        """
        if isinstance(self.dataset, Stream):
            raise EndlessDataset("the items of a stream are not counted ahead: bound the run with max_steps")
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        """Return the next batch of the pass; only the first number of a pass is checked.

        Raises:
            InvalidArgument: the first number after a resume does not match the loader's place.
            NotResumable: before the first batch of a stream, no state of all ranks can be taken.
        """
        if self._run is None:
            if self._resumed:
                self._pass = self._pass_of(number)
            if self._pass is not None:
                self._batches.sampler.set_epoch(self._pass)
            self._resumed = False
            self._run = iter(self._batches)
        return next(self._run)

    def begin(self) -> None:
        """Begin a pass: the next one, or after a resume the one in which the state was taken."""
        self._run = None

    def announce(self, number: int) -> None:
        """Set the number of the next pass; without a call, passes follow one another."""
        self._pass = number

    def _pass_of(self, number: int) -> int:
        """Return the pass to resume in, of which the trainer requests the batch ``number`` first.

        Raises:
            InvalidArgument: the loader is at another place.
        """
        stands = self._place()
        begins = (stands[0] if self._pass is None else self._pass, number)
        if stands != begins:
            message = (
                f"the checkpoint's data goes on in epoch {stands[0]} after {stands[1]:g} batches of "
                f"{self._batch} records, and its count of optimizer steps says epoch {begins[0]} after "
                f"{begins[1]}: keep the product of per_device_train_batch_size, gradient_accumulation_steps "
                f"and the number of ranks as it was when the checkpoint was written, and dataloader_drop_last"
            )
            raise InvalidArgument(message)
        return stands[0]

    def _place(self) -> tuple[int, float]:
        """Return the pass of the loader's place, and the number of its batches before that place."""
        state = self.loader.state_dict(partial=True, rows=False)
        if isinstance(self.dataset, Stream):
            return 0, state["slot"] / self._batch
        size = node_of(self.dataset).size
        epoch = state["epoch"]
        records = state["position"] - epoch * (size or 0)
        if size is not None and (records >= size or records // self._batch >= len(self.loader)):
            return epoch + 1, 0
        return epoch, records / self._batch


class BatchNumbers:
    """The batch sampler of passes: each ``iter`` begins a pass, and yields the numbers of its batches."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass."""
        self._passes.announce(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        """Begin a pass, and yield its batch numbers, each as a list of one number."""
        self._passes.begin()
        return ([number] for number in range(len(self)))

    def __len__(self) -> int:
        """Return the number of batches of a pass.

        Raises:
            EndlessDataset: it has no end, and no bound.
        """
        passes = self._passes
        return len(passes.loader) if passes.bound is None else passes.bound


class TrainerMixin(_Base):
    """Lets a subclass of ``transformers.Trainer`` train on a seekable dataset: write it before that class.

    ``train_dataset`` is a seekable dataset, or a stream without an end, and its own order holds, shuffled or
    not: ``seed``, ``data_seed`` and ``train_sampling_strategy`` do not touch it. The trainer's epoch ``k`` is
    the dataset's epoch ``k``. Data without an end needs ``max_steps``, which are its one epoch.
    Batches are made by a ``sk.Loader``, with the arguments that the trainer has: batch size, ranks, collator,
    ``dataloader_num_workers``, ``dataloader_prefetch_factor`` and ``dataloader_drop_last``. Without the last,
    an incomplete batch stays short on one rank, and is filled from the start of the epoch on several.

    Where Accelerate has a mesh (``parallelism_config``), the copies of the model are the ranks: processes
    that hold one copy get the same records.

    Each checkpoint has the loader's state, in a folder ``seekable``. ``train(resume_from_checkpoint=...)``
    goes on there: no batch is read again, whatever the step, on as many ranks as divide the batch. What the
    trainer counts and what the state says are compared. With ``ignore_data_skip=True`` the epoch in hand is
    begun anew, as the trainer does then.

    Raises:
        WrongType: from ``train``, ``train_dataset`` is no seekable dataset or stream.
        InvalidArgument: from ``train``, the trainer would share out batches in ways that are not known here,
            or an optimizer step has other records than in the checkpoint; or a stream has an end.
        NotResumable: from ``train``, before the first batch, no state of a stream could be resumed from.
        StateMismatch: from ``train``, the checkpoint is of another pipeline, or of other data.
        DataNotFound: from ``train``, the checkpoint has no state of a loader.

    Example:
        >>> import transformers
        >>> class Seq2SeqTrainer(TrainerMixin, transformers.Seq2SeqTrainer):
        ...     "Generates while it evaluates, and trains on seekable datasets."
    """

    _resumed_from: str | None = None

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,  # noqa: FBT001 - the signature is the trainer's
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Train as ``transformers.Trainer`` does; a checkpoint is resumed exactly."""
        folder = resume_from_checkpoint or None
        self._resumed_from = get_last_checkpoint(self.args.output_dir) if folder is True else folder  # type: ignore[no-untyped-call]
        try:
            return super().train(resume_from_checkpoint, *args, **kwargs)
        finally:
            self._resumed_from = None
            passes = self._passes()
            if passes is not None:
                passes.loader.close()

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return a DataLoader over numbered batches of a ``sk.Loader``; to resume, numbers are left out.

        Accelerate does not prepare it: it would share out the batches again, and read one ahead.

        Raises:
            DataNotFound: the checkpoint has no state of a loader.
        """
        loader = self._loader()
        resumed = self._resumed_from is not None and not self.args.ignore_data_skip
        if resumed:
            folder = os.path.join(str(self._resumed_from), _FOLDER)
            if not load_state(folder, loader):
                message = (
                    f"there is no state of a loader in {folder}: the checkpoint was written by a trainer "
                    f"without seekable, whose order cannot go on. ignore_data_skip=True begins the epoch anew"
                )
                raise DataNotFound(message)
        args = self.args
        is_bounded = _is_endless(loader.dataset) and args.max_steps > 0
        bound = args.max_steps * args.gradient_accumulation_steps if is_bounded else None
        passes = Passes(loader, batch=self._records_of_batch, resumed=resumed, bound=bound)
        return _Batches(passes)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature is the trainer's
        """Save the model; in a checkpoint, save the state of the loader first."""
        passes = self._passes()
        if _internal_call and output_dir is not None and passes is not None:
            # All ranks put the state together, and one of them writes it, as the only one.
            state = whole_state(passes.loader)
            if self.args.should_save:
                whole = Loader(passes.loader.dataset, rank=0, world_size=1, prefetch=0)
                move_silently(whole, state)
                save_state(os.path.join(output_dir, _FOLDER), whole, keep=1)
        super().save_model(output_dir, _internal_call)

    @property
    def _ranks(self) -> tuple[int, int]:
        """The data-parallel rank of this process, and the count of these ranks.

        Accelerate has a mesh where several processes hold one copy of the model.
        """
        mesh = getattr(self.accelerator, "torch_device_mesh", None)
        if mesh is None:
            return (self.args.process_index if self.args.world_size > 1 else 0), self.args.world_size
        if not any(name.startswith("dp") for name in mesh.mesh_dim_names):
            return 0, 1  # all processes hold the one copy
        return distributed(mesh)

    @property
    def _records_of_batch(self) -> int:
        """Records of a batch over all ranks."""
        return int(self._train_batch_size * self._ranks[1])

    def _passes(self) -> Passes | None:
        """Return the passes that the trainer reads; None if it has not begun to train."""
        passes = getattr(self.callback_handler.train_dataloader, "dataset", None)
        return passes if isinstance(passes, Passes) else None

    def _loader(self) -> Loader:
        dataset, args = _checked_data(self.train_dataset), self.args
        _check_order(getattr(args, "train_sampling_strategy", "random"))
        rank, ranks = self._ranks
        records = self._records_of_batch * args.gradient_accumulation_steps
        if self.get_total_train_batch_size(args) != records:
            message = (
                f"an optimizer step of {ranks} ranks must have {records} records, and the trainer counts "
                f"{self.get_total_train_batch_size(args)}: some of the {args.world_size} processes are to "
                f"share records (tensor or sequence parallelism of DeepSpeed), and no mesh says which: say "
                f"it by parallelism_config=, of which Accelerate makes a mesh, or train without"
            )
            raise InvalidArgument(message)
        return Loader(
            dataset,
            global_batch_size=self._records_of_batch,
            rank=rank,
            world_size=ranks,
            collate=self._get_collator_with_removed_columns(self.data_collator, description="Training"),
            end="drop" if args.dataloader_drop_last else "pad" if ranks > 1 else "short",
            workers=args.dataloader_num_workers,
            prefetch=args.dataloader_prefetch_factor or 2,
        )


class Trainer(TrainerMixin, transformers.Trainer):
    """``transformers.Trainer`` for seekable datasets; see `TrainerMixin`.

    Example:
        >>> import tempfile, torch, transformers, seekable as sk
        >>> data = sk.from_sequence([{"input": float(n)} for n in range(9)]).shuffle(seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     args = transformers.TrainingArguments(folder, per_device_train_batch_size=4, use_cpu=True)
        ...     trainer = Trainer(torch.nn.Linear(1, 1), args, train_dataset=data)
        ...     batches = trainer.get_train_dataloader()
        ...     [len(batch["input"]) for batch in batches]
        [4, 4, 1]
    """


class _Batches(DataLoader[Any]):
    """A DataLoader over the batches of passes, by their numbers.

    To leave out the first numbers, the trainer makes another DataLoader of its parts.
    """

    def __init__(self, passes: Passes) -> None:
        # At run time torch needs __len__ and __getitem__ alone; its types also want its own base class.
        super().__init__(passes, batch_sampler=passes.numbers, collate_fn=_only)  # type: ignore[arg-type]
        self._numbers = passes.numbers

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass."""
        self._numbers.set_epoch(epoch)


def _is_endless(dataset: Dataset | Stream) -> bool:
    return isinstance(dataset, Stream) or node_of(dataset).size is None


def _checked_data(dataset: object) -> Dataset | Stream:
    """Return the data to train on, unless it is a stream that ends: batches are numbered in advance."""
    if isinstance(dataset, Stream) and not dataset.endless:
        message = (
            f"a stream as train_dataset must have no end, as the trainer numbers its batches in advance, "
            f"and how many a stream gives is known when they have come (got {dataset!r:.200}): leave epochs= "
            f"of ds.stream() out, and bound the run with max_steps; or choose and pack the rows in the "
            f"dataset itself (ds.filter(), ds.flatten(), ds.pack())"
        )
        raise InvalidArgument(message)
    if not isinstance(dataset, Dataset | Stream):
        message = (
            f"train_dataset must be a seekable dataset or stream (got {type(dataset).__name__}): wrap it in "
            f"sk.from_sequence, or use the trainer without seekable"
        )
        raise WrongType(message)
    return dataset


def _check_order(strategy: str) -> None:
    """Refuse a strategy that chooses an order; the default only means that data is shuffled."""
    if strategy not in {"random", "sequential"}:
        message = (
            f"train_sampling_strategy={strategy!r} chooses an order, and here the dataset's own holds: leave "
            f"it out, and order the dataset"
        )
        raise InvalidArgument(message)


def _only(batches: list[Any]) -> Any:
    """Return the only element of a list of one batch."""
    [batch] = batches
    return batch
