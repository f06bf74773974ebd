"""Checks of the arguments of a loader."""

from __future__ import annotations

from typing import Literal

from seekable._arguments import checked_count
from seekable.dataset.dataset import Dataset
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.loader.ranks import checked_rank
from seekable.loader.steps import End, Steps
from seekable.stream.stream import Stream

__all__ = ["Resume", "checked_batch", "checked_epochs", "checked_resume", "checked_seconds", "checked_steps"]

Resume = Literal["exact", "rows"]
"""The way to go on from a state: record for record, or source by source."""

_ENDS = ("short", "drop", "pad")


def checked_steps(  # noqa: PLR0913 - the arguments of sk.Loader that decide on batches
    pipeline: Dataset | Stream,
    *,
    batch_size: int | None,
    global_batch_size: int | None,
    rank: int | None,
    world_size: int | None,
    end: End,
    epochs: int | None,
    steps: int | None,
) -> Steps:
    """Return the division of a dataset, or of the slots of a stream, into runs and batches.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule; or ranks do not divide the lanes of a stream evenly, or
            could make different numbers of steps.
        WrongType: ``pipeline`` is neither a Dataset nor a Stream.
        EndlessDataset: ``epochs`` was given for an endless dataset.
    """
    if not isinstance(pipeline, Dataset | Stream):
        got = type(pipeline).__name__
        message = f"a loader takes a Dataset or a Stream (got {got}): wrap it in sk.from_sequence"
        raise WrongType(message)
    if end not in _ENDS:
        message = f"end must be one of {', '.join(map(repr, _ENDS))} (got {end!r})"
        raise InvalidArgument(message)
    rank, world_size = checked_rank(rank, world_size)
    if isinstance(pipeline, Stream):
        _check_stream(pipeline, epochs, world_size)
        size = run = None
    else:
        size, run = pipeline.size, checked_epochs(pipeline, epochs)
    return Steps(
        size=size,
        epochs=run,
        batch=checked_batch(batch_size, global_batch_size, world_size),
        end=end,
        limit=None if steps is None else checked_count("steps", steps, least=1),
        rank=rank,
        world_size=world_size,
    )


def _check_stream(stream: Stream, epochs: int | None, world_size: int) -> None:
    """Refuse ``epochs=`` for a stream, and ranks that cannot divide its lanes or its steps."""
    if epochs is not None:
        message = (
            f"a run over a stream goes to the stream's end (got epochs={epochs!r}): say epochs= to "
            f"ds.stream(), or bound a run with steps="
        )
        raise InvalidArgument(message)
    if stream.lanes % world_size:
        message = (
            f"world_size must divide the lanes, of which the stream has {stream.lanes} (got {world_size}): "
            f"say lanes= to ds.stream(), a multiple of every world_size that you may want"
        )
        raise InvalidArgument(message)
    if world_size > 1 and not stream.endless:
        message = (
            f"a stream that ends could end at different steps on {world_size} ranks, which would wait for "
            f"each other for ever. Let it go on (epochs=None) and bound runs with steps=, or choose rows "
            f"once with ds.filter() and give the loader that Dataset, of which all ranks make the same steps"
        )
        raise InvalidArgument(message)


def checked_epochs(dataset: Dataset, epochs: int | None) -> int | None:
    """Return the epochs of a run: 1 unless given, None for an endless dataset.

    Raises:
        EndlessDataset: ``epochs`` was given for an endless dataset.
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
        InvalidArgument: the number is no multiple of the ranks; or there are several ranks, and it was not
            given as ``global_batch_size``.
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


def checked_resume(value: object) -> Resume:
    """Return the way to go on from a state, checked.

    Raises:
        InvalidArgument: the value is neither ``"exact"`` nor ``"rows"``.
    """
    if value == "exact":
        return "exact"
    if value == "rows":
        return "rows"
    message = f"resume must be 'exact' or 'rows' (got {value!r})"
    raise InvalidArgument(message)


def checked_seconds(name: str, value: float | None) -> float | None:
    """Return a time in seconds, checked; None stands for any time.

    Raises:
        WrongType: the value is no number.
        InvalidArgument: the value is not above 0.
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
