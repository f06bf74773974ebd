"""The passes of a trainer over a loader, as a torch dataset of numbered batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.loader import Loader

__all__ = ["Numbers", "Passes"]


class Passes:
    """A loader as a dataset of its batches, which torch's ``DataLoader`` reads by the numbers of a sampler.

    A trainer that resumes in the middle of a pass leaves out the numbers of the batches before that. Nothing
    is read for these, because the loader was restored to the place after them. A first number that does not
    match this place is refused.

    Args:
        loader: each of its runs is a pass of one epoch.
        batch: the number of records of a batch over all ranks.
        resumed: True if the loader was restored from a state.
        bound: the batches of a pass over data without an end. A trainer that knows no length counts wrongly
            when it resumes a run that it has finished.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(5)), batch_size=2, collate=list)
        >>> passes = Passes(loader, batch=2, resumed=False)
        >>> [passes[number] for [number] in passes.numbers]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, loader: Loader, *, batch: int, resumed: bool, bound: int | None = None) -> None:
        if not isinstance(loader.dataset, Dataset):
            message = (
                "a trainer that counts passes and batches needs a Dataset: the number of batches of a Stream "
                "is not known in advance"
            )
            raise WrongType(message)
        self.loader, self.dataset = loader, loader.dataset
        self.numbers = Numbers(self)
        self._batch, self.bound = batch, bound
        self._resumed = resumed
        self._pass: int | None = None
        self._run: Iterator[Any] | None = None

    def __len__(self) -> int:
        """Return how many records there are, not batches; a trainer reports it as the number of examples.

        Raises:
            EndlessDataset: the dataset has no end.
        """
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        """Return the next batch of the pass; only the first number of a pass is checked.

        Raises:
            InvalidArgument: the first number after a resume does not match the loader's place.
        """
        if self._run is None:
            if self._resumed:
                self._pass = self._pass_of(number)
            if self._pass is not None:
                self.loader.sampler.set_epoch(self._pass)
            self._resumed = False
            self._run = iter(self.loader)
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
        state, size = self.loader.state_dict(rows=False), self.dataset.size
        epoch = state["epoch"]
        records = state["position"] - epoch * (size or 0)
        if size is not None and (records >= size or records // self._batch >= len(self.loader)):
            return epoch + 1, 0
        return epoch, records / self._batch


class Numbers:
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
