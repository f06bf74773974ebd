"""Makes the loader of a pipeline whose steps are planned: from a saved state, a file or a function.

A saved state has the steps and the records that were delivered, so two states of one run tell how many
records a batch has. The files of a state have the number of ranks in their names.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.dataset.dataset import Dataset
from seekable.dataset.pipeline.pipeline_file import is_pipeline_file, read_pipeline
from seekable.errors import DataNotFound, InvalidArgument, WrongType
from seekable.loader.checkpoint_files import (
    generations_in,
    read_generation,
    read_saved,
    rebuild_saved,
    resumable,
)
from seekable.loader.loader import Loader
from seekable.loader.step_plan import reads_of
from seekable.nodes.node import node_of
from seekable.state.document import RunState
from seekable.storage.paths import absolute, exists, output_path
from seekable.viewer.facts.json_documents import json_safe, place_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.loader.checkpoint_files import Generation
    from seekable.loader.step_plan import FileReads, PlannedRecord, StepPlan

_MOST_READ = 16
"""The states that are read at most: those nearest to the step that is asked for."""


@dataclass(frozen=True, slots=True)
class StateBatches:
    """The batch size, ranks and epochs of a run, as found in a folder of states."""

    batch: int | None
    """The records of a batch over all ranks; None if the states do not tell."""

    world_size: int | None
    """The number of ranks; None without a state."""


def generation_at(found: Sequence[Generation], step: int | None) -> Generation | None:
    """Return the newest state at or before a step, else the oldest; None if there is none.

    Only complete ones count, unless none is complete (`resumable`).

    Args:
        found: the states of a folder, the oldest first.
        step: the step; None for the newest state.
    """
    usable = resumable(found)
    before = [generation for generation in usable if step is None or generation.step <= step]
    return before[-1] if before else next(iter(usable), None)


def state_batches(folder: str, *, size: int | None, step: int | None = None) -> StateBatches:
    """Return the records of a batch and the ranks at a step, from the states of a folder.

    Args:
        folder: the folder that ``sk.save_state`` wrote into.
        size: the records of an epoch; None without end.
        step: the step; None for that of the newest state.

    Raises:
        CorruptState: a state cannot be read.
    """
    folder = output_path(folder)
    usable = resumable(generations_in(folder))
    chosen = generation_at(usable, step)
    if chosen is None:
        return StateBatches(None, None)
    at = usable.index(chosen)
    near = usable[max(0, at - 1) : at + _MOST_READ]
    found = [read_generation(folder, generation) for generation in near]
    states = [state for state in found if isinstance(state, RunState)]
    return StateBatches(batch_of(states, size=size, at=chosen.step), chosen.ranks)


def batch_of(states: Sequence[RunState], *, size: int | None, at: int) -> int | None:
    """Return how many records a batch has, from the states of a run; None if they do not tell.

    Args:
        states: the states, the oldest first.
        size: the records of an epoch; None without end.
        at: the step of the state from which the batches are counted: those after it count first.

    Example:
        >>> states = [RunState("xxh3:0", step=4, epoch=0, position=128)]
        >>> batch_of(states, size=1000, at=4), batch_of(states, size=128, at=4)
        (32, None)
    """
    start = RunState("", step=0, epoch=0, position=0)
    pairs = list(itertools.pairwise([start, *states]))
    later = [pair for pair in pairs if pair[0].step >= at]
    for old, new in [*later, *reversed([pair for pair in pairs if pair not in later])]:
        records, steps = new.position - old.position, new.step - old.step
        may_be_short = size is not None and size > 0 and new.position % size == 0
        if steps > 0 and old.epoch == new.epoch and not may_be_short and records % steps == 0:
            return records // steps or None
    return None


@dataclass(frozen=True, slots=True)
class Batches:
    """The arguments of a loader that a state does not contain."""

    arguments: dict[str, Any]
    """Arguments of ``Loader`` by name; None for those that were left out."""

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that are not None."""
        return {name: value for name, value in self.arguments.items() if value is not None}

    @property
    def has_batch(self) -> bool:
        """True if the number of records in a batch is among them."""
        return not {"batch_size", "global_batch_size"}.isdisjoint(self.given)


@dataclass(frozen=True, slots=True)
class PlannedPipeline:
    """A loader whose steps can be planned."""

    loader: Loader
    notes: tuple[str, ...]
    """Facts that are not known, with their reasons."""


def pipeline_of(
    target: str,
    batches: Batches,
    *,
    state: str | None,
    roots: list[str],
    index_dir: str | None,
    step: int | None = None,
) -> PlannedPipeline:
    """Return the loader that a saved state, a pipeline file or a function stands for.

    Args:
        target: a state file, a folder of states, a description, a pipeline file, or ``module:function``.
        batches: the arguments of the loader that ``target`` lacks.
        state: what to load into the loader of a function or of a pipeline file.
        roots: folders in which the files of a saved pipeline are looked for.
        index_dir: the user's folder for indexes; None for those beside the data.
        step: the step that will be planned: of a folder, the newest state at or before it counts.

    Raises:
        DataNotFound: there is no such file, module or function.
        InvalidArgument: an argument is missing, or is given twice.
    """
    if exists(target):
        if is_pipeline_file(target):
            return _of_file(target, batches, state=state, roots=roots, index_dir=index_dir)
        if state is not None:
            raise InvalidArgument("--state goes with module:function; a saved state is itself the state")
        roots = [absolute(root) for root in roots]
        return _of_saved(target, batches, roots=roots, index_dir=index_dir, step=step)
    if ":" not in target or "://" in target:
        message = f"there is no {target!r}: name a state, a folder of states, a pipeline, or module:function"
        raise DataNotFound(message)
    return _at_state(_of_function(target, batches), state)


def made_by(target: str, what: str = "a pipeline") -> Any:
    """Call the function that ``module:function`` names, and return its result.

    Args:
        target: the names of the module and of the function.
        what: what the function is to return, in words for the error.

    Raises:
        DataNotFound: there is no such module or function.
        WrongType: the name is not a function.
    """
    # Output of the user's program must not mix with the output of the command.
    with contextlib.redirect_stdout(sys.stderr):
        return _function(target, what)()


def _of_file(
    target: str, batches: Batches, *, state: str | None, roots: list[str], index_dir: str | None
) -> PlannedPipeline:
    if not batches.has_batch:
        message = f"{target!r} holds a Dataset: say with --batch-size how many records make a batch"
        raise InvalidArgument(message)
    node = read_pipeline(
        target,
        functions=None,
        sequences=None,
        root=roots,
        allow_changed=False,
        index_dir=index_dir,
        progress=None,
        order_only=True,
    )
    return _at_state(_loader(Dataset(node), batches), state)


def _at_state(loader: Loader, state: str | None) -> PlannedPipeline:
    if state is not None and (saved := read_saved(state)).state:
        loader.load_state_dict(saved.state.document())
    return PlannedPipeline(loader, ())


def _of_saved(
    target: str, batches: Batches, *, roots: list[str], index_dir: str | None, step: int | None
) -> PlannedPipeline:
    folder = output_path(target)
    found = generations_in(folder) if os.path.isdir(folder) or "://" in folder else []
    generation = generation_at(found, step)
    saved = read_saved(target if generation is None else os.path.join(folder, generation.names[0]))
    rebuilt = rebuild_saved(saved, roots=roots, index_dir=index_dir)
    dataset = Dataset(rebuilt.dataset)
    of_states = StateBatches(None, None)
    if found:
        of_states = state_batches(folder, size=node_of(dataset).size, step=step)
    arguments = _completed(batches, of_states, saved.state, node_of(dataset).size)
    loader = _loader(dataset, arguments)
    if saved.state:
        loader.load_state_dict(saved.state.document())
    return PlannedPipeline(
        loader, tuple(dict.fromkeys(f"bytes are not known: {why}" for why in rebuilt.unlocated))
    )


def _completed(batches: Batches, found: StateBatches, state: Any, size: int | None) -> Batches:
    """Return the arguments of a loader, with what the saved states tell in place of what is missing.

    Raises:
        InvalidArgument: neither says how many records make a batch.
    """
    arguments, ramp = dict(batches.given), state.ramp if isinstance(state, RunState) else None
    if not batches.has_batch:
        if ramp is None and found.batch is None:
            message = (
                "the saved states do not tell how many records make a batch (two states of one run do): say "
                "it with --batch-size, or with --global-batch-size over all ranks"
            )
            raise InvalidArgument(message)
        sizes = [found.batch or 1] if ramp is None else [size for _, size in ramp]
        arguments["global_batch_size"] = found.batch if ramp is None else ramp
        arguments.setdefault("world_size", found.world_size)
        if any(size % (arguments["world_size"] or 1) for size in sizes):
            arguments["world_size"] = None
    if "epochs" not in arguments and isinstance(state, RunState) and size:
        # The run of the state goes on over the end of its first epoch.
        is_longer = state.position > (state.epoch + 1) * size
        arguments["epochs"] = -(-state.position // size) - state.epoch if is_longer else None
    return Batches(arguments)


def _of_function(target: str, batches: Batches) -> Loader:
    made = made_by(target)
    if isinstance(made, Loader):
        if batches.given:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in batches.given)
            message = f"{target} returns a Loader, which has {options} already: leave it out"
            raise InvalidArgument(message)
        return made
    if not isinstance(made, Dataset):
        message = f"{target} must return a Dataset or a Loader (got {type(made).__name__})"
        raise WrongType(message)
    if not batches.has_batch:
        message = f"{target} returns a Dataset: say with --batch-size how many records make a batch"
        raise InvalidArgument(message)
    return _loader(made, batches)


def is_function(target: str) -> bool:
    """Return True if a text is ``module:function``, and no path, and nothing such as ``kaldi:FOLDER``.

    Example:
        >>> is_function("train:make_loader"), is_function("kaldi:data/train"), is_function("s3://bucket/a")
        (True, False, False)
    """
    module, colon, name = target.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts) or exists(target):
        return False
    _find_modules_here()
    return not exists(name) or importlib.util.find_spec(parts[0]) is not None


def _find_modules_here() -> None:
    """Put the working folder on Python's path."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _function(target: str, what: str) -> Any:
    """Import the function that ``module:function`` names, with the working folder on Python's path."""
    module_name, _, name = target.partition(":")
    _find_modules_here()
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        message = f"there is no module {module_name!r} in {os.getcwd()!r} or on Python's path ({error})"
        raise DataNotFound(message) from error
    for part in name.split("."):
        if not hasattr(found, part):
            message = f"{module_name!r} has no {name!r}: name a function that returns {what}"
            raise DataNotFound(message)
        found = getattr(found, part)
    if not callable(found):
        message = f"{target} is not a function (got {found!r:.60} of type {type(found).__name__})"
        raise WrongType(message)
    return found


def _loader(dataset: Dataset, batches: Batches) -> Loader:
    ranks = {"rank": 0, "world_size": batches.given.get("world_size", 1)}
    return Loader(dataset, collate=list, prefetch=0, **{**batches.given, **ranks})


def step_document(planned: StepPlan) -> dict[str, Any]:
    """Return the records of a step, and the bytes that it reads from each file, JSON-safe."""
    return {
        "step": planned.step,
        "batch": planned.batch,
        "world_size": planned.world_size,
        "records": [_record(record) for record in planned.records],
        "files": [_reads(reads) for reads in reads_of(planned.records)],
    }


def _record(record: PlannedRecord) -> dict[str, Any]:
    return {
        "position": record.position,
        "epoch": record.epoch,
        "rank": record.rank,
        "location": place_as_json(record.place),
    }


def _reads(reads: FileReads) -> dict[str, Any]:
    return {
        "path": json_safe(reads.path),
        "records": reads.records,
        "bytes": reads.bytes,
        "start": reads.start,
        "stop": reads.stop,
    }
