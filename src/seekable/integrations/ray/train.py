"""Ray Train: the ranks, the checkpoints and the exact resumption of seekable in a training function.

The state lies in a folder ``seekable`` of each checkpoint. A dataset has one state for all ranks, which rank
0 writes. Of a stream each rank writes the state of its lanes, and Ray merges the folders of the ranks.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable._optional import optional
from seekable.dataset.dataset import Dataset
from seekable.errors import CorruptState, DataNotFound, InvalidArgument, NotResumable
from seekable.loader.arguments import checked_batch
from seekable.loader.checkpoint_files import generations, generations_in
from seekable.loader.checkpoints import load_state, save_state
from seekable.loader.loader import Loader

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ray.train as ray_train
    from pyarrow import fs
    from ray.train import collective
    from ray.train.v2.api.config import ScalingConfig

    from seekable.loader.arguments import BatchSizes, Resume
    from seekable.stream.stream import Stream
else:
    ray_train = optional("ray.train", extra="ray")
    collective = optional("ray.train.collective", extra="ray")
    fs = optional("pyarrow.fs", extra="ray")

__all__ = ["check_world_sizes", "loader", "report", "restore"]

_FOLDER = "seekable"
"""The folder of the state in a checkpoint."""


def loader(data: Dataset | Stream, *, global_batch_size: BatchSizes, **given: Any) -> Loader:
    """Return a ``sk.Loader`` for this worker of Ray Train: its rank and the world size are found.

    Outside of Ray Train the loader is one rank, so that a training function also runs alone.

    Args:
        data: the Dataset or Stream to deliver, in its order. All workers must see its files.
        global_batch_size: records in a batch over all ranks, or pairs ``(step, size)``. Every world size that
            the run may have must divide each of them: see `check_world_sizes`.
        given: further arguments of ``sk.Loader``, other than ``batch_size``, ``rank`` and ``world_size``.

    Raises:
        InvalidArgument: the world size does not divide the batch, or the lanes of a stream; or an argument
            breaks another rule.
        NotResumable: a stage of a stream could not go on from a state.

    Example:
        >>> import seekable as sk
        >>> from seekable.integrations.ray import loader
        >>> batches = loader(sk.from_sequence(range(5)), global_batch_size=2, collate=list)
        >>> list(batches)
        [[0, 1], [2, 3], [4]]
    """
    try:
        context = ray_train.get_context()
    except RuntimeError:
        place = {}
    else:
        place = {"rank": context.get_world_rank(), "world_size": context.get_world_size()}
    made = Loader(data, global_batch_size=global_batch_size, **place, **given)
    if not isinstance(data, Dataset):
        # What has no state is refused here, and not at the first report.
        made.state_dict(partial=True, rows=False)
    return made


def report(
    loader: Loader, metrics: Mapping[str, Any], *, folder: str | os.PathLike[str] | None = None
) -> None:
    """Report metrics to Ray Train, with a checkpoint of the batches delivered so far.

    All workers call it after the same batch; it returns when all have. If it raises, or a worker dies in it,
    the checkpoint before stays the newest.

    Args:
        loader: the loader of this worker, as `loader` returns it.
        metrics: the metrics, as of ``ray.train.report``.
        folder: a folder that holds what else belongs to the checkpoint, such as weights. No other worker may
            use it. Its files become part of the checkpoint; a folder ``seekable`` with the state is added.

    Raises:
        InvalidArgument: the loader has another rank or world size than the worker; or the folder is shared.
        NotResumable: the workers are at different batches, or have different pipelines; or a stage of a
            stream could not go on from the state.
        RuntimeError: this is no worker of Ray Train.

    Example:
        >>> from seekable.integrations.ray import report
        >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
        ...     torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
        ...     report(batches, {"loss": loss}, folder=folder)
    """
    _check_ranks(loader)
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="seekable-"))
        states = os.path.join(folder, _FOLDER)
        name = _save(loader, states)
        _check_agreement(loader)
        _check_own(states, name)
        ray_train.report(dict(metrics), ray_train.Checkpoint.from_directory(folder))


def restore(loader: Loader) -> bool:
    """Go on where the newest checkpoint of Ray Train was reported; return False if there is none yet.

    The checkpoint may have been written by any number of workers. After a failure Ray Train starts new
    workers with the newest one; so does a new process with the same ``name`` and ``storage_path``. Only the
    state is fetched, nothing else that lies in the checkpoint.

    Args:
        loader: the loader of this worker, as `loader` returns it.

    Raises:
        StateMismatch: the checkpoint is of another pipeline, or of other data.
        DataNotFound: the checkpoint was written without `report`, and has no state.
        CorruptState: the state of some workers is missing: a node was reclaimed while they wrote it.
        RuntimeError: this is no worker of Ray Train.

    Example:
        >>> from seekable.integrations.ray import restore
        >>> if restore(batches):  # doctest: +SKIP
        ...     with ray.train.get_checkpoint().as_directory() as folder:
        ...         model.load_state_dict(torch.load(os.path.join(folder, "model.pt")))
    """
    checkpoint = ray_train.get_checkpoint()
    if checkpoint is None:
        return False
    with tempfile.TemporaryDirectory(prefix="seekable-") as folder:
        _fetch(checkpoint, folder)
        found = generations_in(folder)
        if len(found) != 1 or not found[0].complete:
            names = ", ".join(name for generation in found for name in generation.names) or "no state"
            message = (
                f"the checkpoint {checkpoint.path!r} must have the states of all workers at one step (it has "
                f"{names}): a node was reclaimed while they were written. Start a run with another name, and "
                f"load the state of the checkpoint before it with sk.load_state(PATH + '/{_FOLDER}', loader)"
            )
            raise CorruptState(message)
        return bool(load_state(folder, loader))


def check_world_sizes(
    scaling_config: ScalingConfig,
    *,
    global_batch_size: BatchSizes,
    data: Dataset | Stream | None = None,
    workers_per_node: int = 1,
    **given: Any,
) -> list[int]:
    """Check that a run can go on with each number of workers that Ray Train may choose.

    Call it before ``fit``: a world size that fails is found there, not when a node is lost.

    Args:
        scaling_config: the ``ScalingConfig`` of the run; with ``num_workers=(least, most)`` Ray may choose
            every number between the two.
        global_batch_size: records in a batch over all ranks, or pairs ``(step, size)``.
        data: the Dataset or Stream of the run. With it, the lanes of a stream and the last batch of a dataset
            are checked too.
        workers_per_node: where each node has room for so many workers, world sizes are multiples of it.
        given: further arguments of ``sk.Loader``.

    Returns:
        The world sizes, ascending.

    Raises:
        InvalidArgument: some world sizes fail; the message names them, and the reason of the first.

    Example:
        >>> import ray.train
        >>> from seekable.integrations.ray import check_world_sizes
        >>> check_world_sizes(ray.train.ScalingConfig(num_workers=(2, 4)), global_batch_size=24)
        [2, 3, 4]
    """
    checked_batch(None, global_batch_size, world_size=1)
    of_node = checked_count("workers_per_node", workers_per_node, least=1)
    workers = scaling_config.num_workers
    least, most = workers if isinstance(workers, tuple) else (workers, workers)
    sizes = [size for size in range(max(least, 1), max(most, 1) + 1) if size % of_node == 0]
    failed = {size: why for size in sizes if (why := _why_not(size, global_batch_size, data, given))}
    if failed or not sizes:
        first = next(iter(failed.values()), f"no multiple of workers_per_node={of_node} is among them")
        message = (
            f"num_workers={workers!r} allows the world sizes {sizes}, of which {list(failed)} cannot train: "
            f"{first}. Choose a global_batch_size, and for a stream lanes, that all world sizes divide; or "
            f"another num_workers. Where each node has several workers, say workers_per_node="
        )
        raise InvalidArgument(message)
    return sizes


def _why_not(
    size: int, batch: BatchSizes, data: Dataset | Stream | None, given: Mapping[str, Any]
) -> str | None:
    """Return the reason why a world size fails, None if it does not."""
    try:
        checked_batch(None, batch, size)
    except InvalidArgument:
        return f"{size} does not divide global_batch_size={batch}"
    if data is None:
        return None
    try:
        Loader(data, global_batch_size=batch, rank=size - 1, world_size=size, **{**given, "prefetch": 0})
    except InvalidArgument as error:
        return str(error)
    return None


@dataclass(frozen=True)
class _OnlyRank:
    """A loader over a dataset as the only one of its ranks, all of which have the same state."""

    _loader: Loader
    rank: int = 0
    world_size: int = 1

    @property
    def step(self) -> int:
        return self._loader.step

    def state_dict(self, *, partial: bool, rows: bool) -> dict[str, Any]:
        return self._loader.state_dict(partial=partial, rows=rows)

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume) -> None:
        self._loader.load_state_dict(state, resume=resume)


def _save(loader: Loader, folder: str) -> str | None:
    """Write what this worker has of the state; return the name of the file, None if rank 0 has it all."""
    is_dataset = isinstance(loader.dataset, Dataset)
    name = None
    if not is_dataset or loader.rank == 0:
        name = os.path.basename(save_state(folder, _OnlyRank(loader) if is_dataset else loader, keep=1))
    if os.path.isdir(folder):
        _remove_others(folder, (loader.step, 1 if is_dataset else loader.world_size), first=loader.rank == 0)
    return name


def _remove_others(folder: str, own: tuple[int, int], *, first: bool) -> None:
    """Remove states that are not of this step and these ranks, and what rank 0 writes for all."""
    names = os.listdir(folder)
    found = generations(names)
    kept = {
        name
        for generation in found
        if (generation.step, generation.ranks) == own
        for name in generation.names
    }
    states = {name for generation in found for name in generation.names}
    for name in (states if first else set(names)) - kept:
        with suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))


def _check_ranks(loader: Loader) -> None:
    """Refuse a loader whose batches are not those of this worker."""
    context = ray_train.get_context()
    rank, ranks = context.get_world_rank(), context.get_world_size()
    if (loader.rank, loader.world_size) != (rank, ranks):
        message = (
            f"this worker has rank {rank} of {ranks}, and its loader rank {loader.rank} of "
            f"{loader.world_size}: the workers would repeat or leave out records. Make the loader with "
            f"seekable.integrations.ray.loader"
        )
        raise InvalidArgument(message)


def _check_agreement(loader: Loader) -> None:
    """Wait for all workers, and refuse a state that is of another step than that of rank 0.

    Where a node is reclaimed, ``ray.train.report`` does not wait for its workers; this does. So each
    checkpoint is of a step that all workers made.
    """
    state = loader.state_dict(partial=True, rows=False)
    own = [state["step"], state["fingerprint"]]
    first = collective.broadcast_from_rank_zero(own)
    if own != first:
        message = (
            f"rank {loader.rank} reports step {own[0]} of the pipeline {own[1]}, and rank 0 step {first[0]} "
            f"of {first[1]}: all workers must report after the same batch of the same pipeline"
        )
        raise NotResumable(message)


def _check_own(folder: str, name: str | None) -> None:
    """Refuse a folder into which another worker has written too."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [state for generation in generations(names) for state in generation.names]
    if found != ([] if name is None else [name]):
        message = (
            f"folder= must be a folder of this worker alone ({os.path.dirname(folder)!r} is used by another "
            f"worker too): make it with tempfile.TemporaryDirectory(), or name it for the rank"
        )
        raise InvalidArgument(message)


def _fetch(checkpoint: ray_train.Checkpoint, folder: str) -> None:
    """Copy the files of the state of a checkpoint into a folder."""
    source, filesystem = f"{checkpoint.path}/{_FOLDER}", checkpoint.filesystem
    assert filesystem is not None  # Ray finds that of a path.
    if filesystem.get_file_info(source).type != fs.FileType.Directory:
        message = (
            f"the checkpoint {checkpoint.path!r} has no folder {_FOLDER!r}, so no state of a loader: it was "
            f"written without seekable.integrations.ray.report, and its order cannot go on"
        )
        raise DataNotFound(message)
    for info in filesystem.get_file_info(fs.FileSelector(source)):
        with filesystem.open_input_file(info.path) as file:
            content = file.readall()
        with open(os.path.join(folder, info.base_name), "wb") as copy:
            copy.write(content)
