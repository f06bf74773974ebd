"""Checks of a loader's arguments."""

from __future__ import annotations

from seekable.dataset.arguments import checked_count
from seekable.dataset.base import Dataset
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.loader.ranks import checked_rank
from seekable.loader.steps import End, Steps

__all__ = ["checked_batch", "checked_epochs", "checked_seconds", "checked_steps"]

_ENDS = ("short", "drop", "pad")


def checked_steps(  # noqa: PLR0913 - one for each thing that a user may say of batches
    dataset: Dataset,
    *,
    batch_size: int | None,
    global_batch_size: int | None,
    rank: int | None,
    world_size: int | None,
    end: End,
    epochs: int | None,
    steps: int | None,
) -> Steps:
    """Return how a dataset is cut into runs and batches.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule.
        WrongType: there is no dataset.
    """
    if not isinstance(dataset, Dataset):
        message = f"a loader takes a Dataset (got {type(dataset).__name__}): wrap it in sk.from_sequence"
        raise WrongType(message)
    if end not in _ENDS:
        message = f"end must be one of {', '.join(map(repr, _ENDS))} (got {end!r})"
        raise InvalidArgument(message)
    rank, world_size = checked_rank(rank, world_size)
    return Steps(
        size=dataset.size,
        epochs=checked_epochs(dataset, epochs),
        batch=checked_batch(batch_size, global_batch_size, world_size),
        end=end,
        limit=None if steps is None else checked_count("steps", steps, least=1),
        rank=rank,
        world_size=world_size,
    )


def checked_epochs(dataset: Dataset, epochs: int | None) -> int | None:
    """Return the epochs of a run: 1 unless given, None for an endless dataset.

    Raises:
        EndlessDataset: epochs of an endless dataset were asked for.
    """
    if dataset.size is None:
        if epochs is not None:
            message = f"an endless dataset has no epochs (got epochs={epochs!r}): bound a run with steps="
            raise EndlessDataset(message)
        return None
    return 1 if epochs is None else checked_count("epochs", epochs, least=1)


def checked_batch(batch_size: int | None, global_batch_size: int | None, world_size: int) -> int:
    """Return the records of a batch over all ranks.

    Raises:
        InvalidArgument: it is no multiple of the ranks, or was not given as ``global_batch_size`` where
            there are several.
    """
    if global_batch_size is not None:
        batch = checked_count("global_batch_size", global_batch_size, least=1)
        if batch % world_size:
            message = f"global_batch_size must be a multiple of world_size={world_size} (got {batch})"
            raise InvalidArgument(message)
        return batch
    if batch_size is None:
        return world_size
    batch = checked_count("batch_size", batch_size, least=1)
    if world_size > 1:
        message = (
            f"with several ranks the batch is counted over all of them, so that it stays the same when their "
            f"number changes: pass global_batch_size={batch * world_size} instead of batch_size={batch}"
        )
        raise InvalidArgument(message)
    return batch


def checked_seconds(name: str, value: float | None) -> float | None:
    """Return a time in seconds, None for any.

    Raises:
        WrongType: it is no number.
        InvalidArgument: it is not above 0.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{name} must be a number of seconds, or None (got {value!r})"
        raise WrongType(message)
    if not value > 0:
        message = f"{name} must be above 0 seconds (got {value!r})"
        raise InvalidArgument(message)
    return float(value)
