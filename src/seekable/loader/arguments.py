"""Checks of the arguments of a loader."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from seekable._arguments import checked_choice, checked_count
from seekable._lazy import lazy
from seekable.dataset.dataset import Dataset
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.loader.ranks import checked_rank
from seekable.loader.steps import End, Steps
from seekable.nodes.node import node_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.loader import ramp as ramps
    from seekable.stream import stream as streams
else:
    ramps = lazy("seekable.loader.ramp")
    streams = lazy("seekable.stream.stream")

__all__ = [
    "BatchSizes",
    "Resume",
    "checked_batch",
    "checked_epochs",
    "checked_resume",
    "checked_steps",
    "no_loader",
]


Resume = Literal["exact", "rows"]
"""The way to go on from a state: record for record, or source by source."""

BatchSizes: TypeAlias = "int | Sequence[tuple[int, int]]"
"""The records of a batch over all ranks: one number, or pairs of a step and the number from there on."""

_ENDS = ("short", "drop", "pad")
_BATCH = 1 << 31
"""Batches are smaller: the positions of all that are planned together are 64-bit integers."""


def checked_steps(  # noqa: PLR0913 - the arguments of sk.Loader that decide on batches
    pipeline: Dataset | streams.Stream,
    *,
    batch_size: int | None,
    global_batch_size: BatchSizes | None,
    rank: int | None,
    world_size: int | None,
    end: End,
    epochs: int | None,
    steps: int | None,
) -> Steps:
    """Return the division of a dataset, or a stream's slots, into runs and batches.

    Raises:
        AmbiguousRank: the environment speaks of several ranks and ``rank`` was left out.
        InvalidArgument: an argument breaks a rule; or ranks do not divide the lanes of a stream evenly, or
            could make different numbers of steps.
        WrongType: ``pipeline`` is neither a Dataset nor a Stream.
        EndlessDataset: ``epochs`` was given for an endless dataset.
    """
    # A loader over a dataset must not import the code of streams: `Dataset` comes first.
    if not isinstance(pipeline, Dataset) and not isinstance(pipeline, streams.Stream):
        got = type(pipeline).__name__
        raise WrongType(f"a loader takes a Dataset or a Stream (got {got}): wrap it in sk.from_sequence")
    checked_choice("end", end, _ENDS)
    rank, world_size = checked_rank(rank, world_size)
    if isinstance(pipeline, Dataset):
        size, run = node_of(pipeline).size, checked_epochs(pipeline, epochs)
    else:
        _check_stream(pipeline, epochs, world_size)
        size = run = None
    return Steps(
        size=size,
        epochs=run,
        batch=checked_batch(batch_size, global_batch_size, world_size),
        end=end,
        limit=None if steps is None else checked_count("steps", steps, least=1),
        rank=rank,
        world_size=world_size,
    )


def _check_stream(stream: streams.Stream, epochs: int | None, world_size: int) -> None:
    """Refuse ``epochs=`` for a stream, and ranks that cannot divide its lanes or its steps."""
    if epochs is not None:
        raise InvalidArgument(
            f"a run over a stream goes to the stream's end (got epochs={epochs!r}): say epochs= to "
            f"ds.stream(), or bound a run with steps="
        )
    if stream.lanes % world_size:
        raise InvalidArgument(
            f"world_size must divide the lanes, of which the stream has {stream.lanes} (got {world_size}): "
            f"say lanes= to ds.stream(), a multiple of every world_size that you may want"
        )
    if world_size > 1 and not stream.endless:
        raise InvalidArgument(
            f"a stream that ends could end at different steps on {world_size} ranks, which would wait for "
            f"each other for ever. Let it go on (epochs=None) and bound runs with steps=, or choose rows "
            f"once with ds.filter() and give the loader that Dataset, of which all ranks make the same steps"
        )


def checked_epochs(dataset: Dataset, epochs: int | None) -> int | None:
    """Return the epochs of a run: 1 unless given, None for an endless dataset.

    Raises:
        EndlessDataset: ``epochs`` was given for an endless dataset.
    """
    if node_of(dataset).size is None:
        if epochs is not None:
            message = f"an endless dataset has no epochs (got epochs={epochs!r}): bound a run with steps="
            raise EndlessDataset(message)
        return None
    return 1 if epochs is None else checked_count("epochs", epochs, least=1)


def checked_batch(
    batch_size: int | None, global_batch_size: BatchSizes | None, world_size: int
) -> int | ramps.Ramp:
    """Return the records of a batch over all ranks.

    Raises:
        InvalidArgument: the batch is not a multiple of the ranks; or there are several ranks, and it was not
            given as ``global_batch_size``; or the steps of a ramp do not ascend from 0.
        WrongType: a size, or a step of a ramp, is not an integer.
    """
    if global_batch_size is not None:
        if isinstance(global_batch_size, list | tuple):
            return _checked_ramp(global_batch_size, world_size)
        return _checked_size("global_batch_size", global_batch_size, world_size)
    if batch_size is None:
        return world_size
    if isinstance(batch_size, list | tuple):
        raise WrongType(
            f"sizes that follow the step are counted over all ranks: pass global_batch_size={batch_size!r} "
            f"instead of batch_size=, also on one rank"
        )
    batch = checked_count("batch_size", batch_size, least=1, below=_BATCH)
    if world_size > 1:
        raise InvalidArgument(
            f"with several ranks the batch is counted over all of them, so that it stays the same when their "
            f"number changes: pass global_batch_size={batch * world_size} instead of batch_size={batch}"
        )
    return batch


def _checked_ramp(pairs: Sequence[object], world_size: int) -> int | ramps.Ramp:
    """Return the sizes from some steps on; of one size alone, that size."""
    name = "global_batch_size"
    example = "such as [(0, 256), (1000, 512)]"
    if not pairs:
        raise InvalidArgument(
            f"{name} needs at least one pair of a step and a size, {example} (got {pairs!r})"
        )
    checked: list[tuple[int, int]] = []
    for at, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:  # noqa: PLR2004 - a pair
            raise WrongType(
                f"{name}[{at}] must be a pair of a step and a size, {example} (got {pair!r:.100})"
            )
        step = checked_count(f"the step of {name}[{at}]", pair[0], least=0)
        checked.append((step, _checked_size(f"the size of {name}[{at}]", pair[1], world_size)))
    if checked[0][0]:
        raise InvalidArgument(
            f"the first size of {name} holds from step 0 on (got step {checked[0][0]}): begin with "
            f"(0, {checked[0][1]})"
        )
    for (before, _), (step, _) in pairwise(checked):
        if step <= before:
            raise InvalidArgument(f"the steps of {name} must ascend (got {step} after {before})")
    changes = checked[:1] + [new for old, new in pairwise(checked) if new[1] != old[1]]
    starts, sizes = zip(*changes, strict=True)
    return sizes[0] if len(sizes) == 1 else ramps.Ramp(starts, sizes)


def _checked_size(name: str, value: object, world_size: int) -> int:
    size = checked_count(name, value, least=1, below=_BATCH)
    if size % world_size:
        raise InvalidArgument(f"{name} must be a multiple of world_size={world_size} (got {size})")
    return size


def checked_resume(value: object) -> Resume:
    """Return the way to go on from a state, checked.

    Raises:
        InvalidArgument: the value is neither ``"exact"`` nor ``"rows"``.
    """
    return cast("Resume", checked_choice("resume", value, ("exact", "rows")))


def no_loader(got: object) -> WrongType:
    """Return the error for an argument that must be a loader.

    Example:
        >>> no_loader([1, 2])
        WrongType('loader must be a sk.Loader (got [1, 2] of type list): wrap data in sk.Loader(data, ...)')
    """
    message = f"loader must be a sk.Loader (got {got!r:.100} of type {type(got).__name__}): "
    return WrongType(f"{message}wrap data in sk.Loader(data, ...)")
