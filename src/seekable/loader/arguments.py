"""The arguments of a loader, checked: batches and epochs, workers, and the rank, given or around us."""

from __future__ import annotations

import os
import sys
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from seekable._arguments import (
    AT_ONCE,
    checked_choice,
    checked_count,
    checked_seconds,
    explains_fields,
)
from seekable._lazy import lazy
from seekable.dataset.dataset import Dataset
from seekable.errors import AmbiguousRank, EndlessDataset, InvalidArgument, WrongType
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
    "WorkerType",
    "Workers",
    "checked_batch",
    "checked_epochs",
    "checked_rank",
    "checked_resume",
    "checked_steps",
    "checked_workers",
    "no_loader",
    "rank_around",
]

WorkerType = Literal["process", "thread"]

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
        size = node_of(pipeline).size
        run = checked_epochs(size, epochs)
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


def checked_epochs(size: int | None, epochs: int | None) -> int | None:
    """Return the epochs of a run: 1 unless given, None for an endless dataset, whose size is None.

    Raises:
        EndlessDataset: ``epochs`` was given for an endless dataset.
    """
    if size is None:
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


def checked_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank of this process and the number of ranks, checked.

    Raises:
        AmbiguousRank: neither was given, and the environment, or an initialised torch.distributed, speaks of
            several.
        InvalidArgument: only one was given, or the rank is not below the number of ranks.
    """
    if rank is None and world_size is None:
        several = _ranks_around()
        if several:
            raise AmbiguousRank(
                f"{several}, and rank= and world_size= were left out: all would read the same records. "
                f"Write rank, world_size = sk.distributed() and pass rank=rank, world_size=world_size; "
                f"sk.distributed(mesh) where several ranks hold one copy of the model (tensor, pipeline or "
                f"context parallelism); or rank=0, world_size=1 where each rank is to read everything"
            )
        return 0, 1
    if rank is None or world_size is None:
        message = f"rank and world_size must be given together (got rank={rank!r}, world_size={world_size!r})"
        raise InvalidArgument(message)
    world_size = checked_count("world_size", world_size, least=1, below=AT_ONCE)
    rank = checked_count("rank", rank, least=0)
    if rank >= world_size:
        raise InvalidArgument(f"rank must be below world_size={world_size} (got {rank})")
    return rank, world_size


def rank_around() -> tuple[int, int]:
    """Return this process's rank and how many ranks there are, by torch or the environment; else ``(0, 1)``.

    Raises:
        AmbiguousRank: the environment names a number of ranks and not which of them this is, or no number.
    """
    return _of_torch() or _of_environment() or (0, 1)


def _ranks_around() -> str | None:
    """Return a text that says where several ranks are announced; None if there is one rank."""
    size = os.environ.get("WORLD_SIZE", "")
    if size.isdecimal() and int(size) > 1:
        return f"the environment says RANK={os.environ.get('RANK', '?')} of WORLD_SIZE={size}"
    ranks = _of_torch()
    if ranks is not None and ranks[1] > 1:
        return f"torch.distributed has {ranks[1]} ranks"
    return None


def _of_torch() -> tuple[int, int] | None:
    # torch is not imported here: if it is not imported already, it cannot be initialised.
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module.get_rank(), module.get_world_size()


def _of_environment() -> tuple[int, int] | None:
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if size is None:
        return None
    numbers = [int(text) if text is not None and text.isdecimal() else -1 for text in (rank, size)]
    if not 0 <= numbers[0] < numbers[1]:
        said = " and ".join(
            f"{name}={text!r}" if text is not None else f"no {name}"
            for name, text in (("RANK", rank), ("WORLD_SIZE", size))
        )
        raise AmbiguousRank(
            f"the environment does not say which rank this is: it has {said}. RANK counts from 0 to "
            f"WORLD_SIZE - 1; set both, or neither, or pass rank= and world_size= yourself"
        )
    return numbers[0], numbers[1]


@explains_fields("sk.Workers")
@dataclass(frozen=True, slots=True, repr=False)
class Workers:
    """Workers that make the batches of a loader. Neither batches, nor order, nor states depend on them.

    Args:
        count: the number of workers; 0 for none.
        timeout: the most seconds to wait for a batch of a worker process that has started; then
            ``WorkerHung`` is raised. None for any number. A thread may take any time.
        restart: the most worker processes that are replaced when they die, as where memory is short; no batch
            is lost or comes twice. The next one that dies raises ``WorkerDied``, and so does the third at
            one batch. None for any number.
        type: ``"process"``, or ``"thread"`` where decoding lets other threads run.

    Raises:
        InvalidArgument: a value breaks its rule.
        WrongType: a value has a wrong type.

    Example:
        >>> import seekable as sk
        >>> workers = sk.Workers(2, type="thread")
        >>> with sk.Loader(sk.from_sequence(range(5)), batch_size=2, collate=list, workers=workers) as loader:
        ...     list(loader)
        [[0, 1], [2, 3], [4]]
        >>> sk.Workers(4, timeout=60, restart=2)
        Workers(4, timeout=60.0, restart=2)
    """

    count: int
    _: KW_ONLY
    timeout: float | None = None
    restart: int | None = 0
    type: WorkerType = "process"

    def __post_init__(self) -> None:
        """Check the values."""
        count = checked_count("count", self.count, least=0, below=AT_ONCE)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "timeout", checked_seconds("timeout", self.timeout))
        if self.restart is not None:
            object.__setattr__(self, "restart", checked_count("restart", self.restart, least=0))
        checked_choice("type", self.type, ("process", "thread"))

    def __repr__(self) -> str:
        """Show the number, and what differs from the defaults."""
        texts = [repr(self.count)]
        if self.timeout is not None:
            texts.append(f"timeout={self.timeout!r}")
        if self.restart != 0:
            texts.append(f"restart={self.restart!r}")
        if self.type != "process":
            texts.append(f"type={self.type!r}")
        return f"Workers({', '.join(texts)})"


def checked_workers(value: object) -> Workers:
    """Return the ``workers=`` of a loader as a value.

    Raises:
        WrongType: it is neither a number nor a ``Workers``.
        InvalidArgument: the number is below 0, or too large.

    Example:
        >>> checked_workers(2)
        Workers(2)
    """
    if isinstance(value, Workers):
        return value
    try:
        count = checked_count("workers", value, least=0, below=AT_ONCE)
    except WrongType as error:
        raise WrongType(f"{error}: say how many, or sk.Workers(count, type='thread')") from None
    return Workers(count)
