"""States in a folder: saved whole or not at all, and read again, also without their pipeline."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from seekable._arguments import checked_count
from seekable.dataset.dataset import Dataset
from seekable.errors import CorruptState, DataNotFound, InvalidArgument
from seekable.loader.arguments import checked_resume
from seekable.loader.compatibility import described
from seekable.loader.source_paths import whereabouts, whereabouts_name
from seekable.resume.rebuild import has_schedule
from seekable.state.canonical import canonical_json, fingerprint_of
from seekable.state.descriptions import Description
from seekable.state.document import RunState
from seekable.state.generations import Generation, generations, is_of_rank, state_name
from seekable.state.stream import State, StreamState, merged, parse_state
from seekable.storage.files import TEMPORARY_SUFFIX, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.arguments import Resume
    from seekable.nodes.contract import Node
    from seekable.stream.stream import Stream


__all__ = [
    "Saved",
    "Stateful",
    "description_name",
    "generations_in",
    "load_state",
    "read_generation",
    "read_json",
    "read_saved",
    "save_state",
    "whole_description",
]


class Stateful(Protocol):
    """A loader, or a batch sampler, whose states are saved."""

    @property
    def of_state(self) -> Any:
        """The Dataset or the Stream that a state taken now is of."""
        ...

    @property
    def rank(self) -> int:
        """The number of this process among ``world_size``, from 0."""
        ...

    @property
    def world_size(self) -> int:
        """The number of processes that share the batches."""
        ...

    def state_dict(self, *, partial: bool, rows: bool) -> dict[str, Any]:
        """Return the state after the batches delivered so far."""
        ...

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume) -> None:
        """Go on where a state was taken."""
        ...


def save_state(folder: str | os.PathLike[str], loader: Stateful, *, keep: int = 3) -> str:
    """Write the state of a loader into a folder, and beside it the description of its pipeline.

    Every rank calls it; the states of one step count when those of all ranks are there. Files appear whole or
    not at all. Saved states of later steps are removed: they belong to a run that was left, when this one was
    resumed from an earlier state.

    Args:
        folder: the folder; it is made if there is none.
        loader: a ``sk.Loader`` or a ``BatchSampler``.
        keep: the number of complete generations that stay, at least 1.

    Returns:
        The path of the file of the state.

    Raises:
        NotResumable: a stage of a stream could not go on from the state.
        InvalidArgument: ``keep`` is below 1.

    Example:
        >>> import tempfile, seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(9)), batch_size=2, collate=list, prefetch=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = iter(loader)
        ...     first = next(run)
        ...     path = sk.save_state(folder, loader)
        ...     again = sk.Loader(sk.from_sequence(range(9)), batch_size=2, collate=list, prefetch=0)
        ...     found = sk.load_state(folder, again)
        ...     next(iter(again))
        [2, 3]
    """
    keep = checked_count("keep", keep, least=1)
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    # The description lies beside the states, once for all of them.
    state = loader.state_dict(partial=True, rows=False)
    description = os.path.join(folder, description_name(state["fingerprint"]))
    if not os.path.exists(description):
        write_atomically(description, canonical_json(described(_pipeline_of(loader), parse_state(state))))
    if loader.rank == 0:
        _write_whereabouts(os.path.join(folder, whereabouts_name(state["fingerprint"])), loader)
    path = os.path.join(folder, state_name(state["step"], rank=loader.rank, ranks=loader.world_size))
    write_atomically(path, canonical_json(state))
    _remove_torn(folder, rank=loader.rank, ranks=loader.world_size)
    _remove_old(folder, state["step"], ranks=loader.world_size, keep=keep)
    return path


def load_state(folder: str | os.PathLike[str], loader: Stateful, *, resume: Resume = "exact") -> bool:
    """Load the newest complete state of a folder into a loader, of any number of ranks.

    Args:
        folder: the folder that ``save_state`` wrote into.
        loader: a ``sk.Loader`` or a ``BatchSampler``, which goes on from there.
        resume: ``"exact"``, the order continues record for record; ``"rows"``, each source goes on with the
            rest of its begun epoch (``Loader.load_state_dict``), whatever has changed above the sources.

    Returns:
        True; False if the folder has no complete state, and then nothing changes.

    Raises:
        StateMismatch: the state is of another pipeline or other data; the message names the node, the
            argument, the old and the new value, or the file. By rows, of sources that are not there any more.
        CorruptState: a state file cannot be read, or those of one step differ.
        InvalidArgument: by rows, the rows that each source delivered are not known.
    """
    resume = checked_resume(resume)
    folder = os.path.abspath(folder)
    if not any(generation.complete for generation in generations_in(folder)):
        return False
    saved = read_saved(folder)
    state, description = saved.state, saved.description
    assert state is not None
    if resume == "rows" and description is not None and isinstance(state, RunState):
        # The order of the rest depends on later weights of a schedule too.
        description = whole_description(saved)
    if description is not None:
        row_files = (saved.noted or {}).get("kept", {})
        state = replace(state, pipeline=Description(description, row_files).text())
    loader.load_state_dict(state.document(), resume=resume)
    return True


def _pipeline_of(loader: Stateful) -> Node | Stream:
    """Return the node of the dataset, or the Stream, that a state taken now is of."""
    pipeline: Dataset | Stream = loader.of_state
    return pipeline.node if isinstance(pipeline, Dataset) else pipeline


def _write_whereabouts(path: str, loader: Stateful) -> None:
    """Write where the files are, if that is not written yet; other ranks may see other paths."""
    noted = canonical_json(whereabouts(_pipeline_of(loader)))
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        if file.read() == noted:
            return
    write_atomically(path, noted)


def _remove_old(folder: str, step: int, *, ranks: int, keep: int) -> None:
    """Remove generations beyond ``keep``, those of later steps, and those of this step on other ranks."""
    found = generations_in(folder)
    complete = [generation for generation in found if generation.complete and generation.step <= step]
    oldest = complete[-keep].step if len(complete) > keep else 0
    for generation in found:
        untrue = generation.step > step or (generation.step == step and generation.ranks != ranks)
        if untrue or generation.step < oldest:
            for name in generation.names:
                _remove(os.path.join(folder, name))


def _remove_torn(folder: str, *, rank: int, ranks: int) -> None:
    """Remove temporary files of killed saves of this rank; other ranks may be writing theirs."""
    for name in os.listdir(folder):
        written, _, rest = name.partition(".json.")
        if rest.endswith(TEMPORARY_SUFFIX) and is_of_rank(f"{written}.json", rank=rank, ranks=ranks):
            _remove(os.path.join(folder, name))


def _remove(path: str) -> None:
    # Another rank may have removed it already.
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved state, with the files beside it."""

    path: str
    """The file of the state, or the folder of its generation."""

    state: State | None
    """The state; None if the file is a description."""

    description: Mapping[str, Any] | None
    """The description of the pipeline, if the state carries one or one lies beside it."""

    noted: Mapping[str, Any] | None
    """The paths of the sources, if these lie beside the state; see `seekable.loader.source_paths`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the pipeline."""
        return self.state.fingerprint if self.state else fingerprint_of(self.description)


def read_saved(path: str | os.PathLike[str]) -> Saved:
    """Return the newest complete state of a folder, the state of a file, or a description.

    Raises:
        DataNotFound: there is no such path, or the folder has no complete generation.
        CorruptState: the file cannot be read, or holds something else.
    """
    path = os.path.abspath(path)
    if os.path.isdir(path):
        complete = [generation for generation in generations_in(path) if generation.complete]
        if not complete:
            message = f"there is no complete saved state in {path!r}: sk.save_state writes them"
            raise DataNotFound(message)
        return _beside(path, path, read_generation(path, complete[-1]))
    if not os.path.exists(path):
        message = f"there is no {path!r}: a state is a file, or a folder that sk.save_state wrote into"
        raise DataNotFound(message)
    document, folder = read_json(path), os.path.dirname(path)
    if "kind" in document:
        return Saved(path, None, document, _read_if_there(folder, whereabouts_name(fingerprint_of(document))))
    return _beside(path, folder, _parsed(document, path))


def generations_in(folder: str) -> list[Generation]:
    """Return the generations of states in a folder, oldest first; none if there is no such folder."""
    return generations(os.listdir(folder)) if os.path.isdir(folder) else []


def read_generation(folder: str, generation: Generation) -> State:
    """Return the state in the files of one step; of a stream the shares of all ranks, put together.

    Raises:
        CorruptState: one of the files cannot be read, or they differ.
    """
    states = {name: read_json(os.path.join(folder, name)) for name in generation.names}
    first, *others = states
    if len(states) > 1 and "lanes" in states[first]:
        shares = {name: _parsed(state, os.path.join(folder, name)) for name, state in states.items()}
        return merged({name: share for name, share in shares.items() if isinstance(share, StreamState)})
    for other in others:
        if states[other] != states[first]:
            message = (
                f"the ranks' states of step {generation.step} in {folder} differ ({first} and {other}): they "
                f"came to it by different ways; remove the files of this step to resume from the one before"
            )
            raise CorruptState(message)
    return _parsed(states[first], os.path.join(folder, first))


def read_json(path: str) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        CorruptState: the file holds something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except ValueError as error:
        message = f"{path} is not JSON ({error}): remove it to resume from the state before"
        raise CorruptState(message) from error
    if not isinstance(document, dict):
        message = f"{path} holds no object but a {type(document).__name__}: remove it to use the state before"
        raise CorruptState(message)
    return document


def description_name(fingerprint: str) -> str:
    """Return the file name of the description of the pipeline with this fingerprint.

    Example:
        >>> description_name("xxh3:0123")
        'pipeline-0123.json'
    """
    return f"pipeline-{fingerprint.rpartition(':')[2]}.json"


def _beside(path: str, folder: str, state: State) -> Saved:
    description = _read_if_there(folder, description_name(state.fingerprint))
    if description is None and state.pipeline is not None:
        description = dict(Description.parse(state.pipeline).tree)
    return Saved(path, state, description, _read_if_there(folder, whereabouts_name(state.fingerprint)))


def _read_if_there(folder: str, name: str) -> dict[str, Any] | None:
    path = os.path.join(folder, name)
    return read_json(path) if os.path.exists(path) else None


def _parsed(document: Mapping[str, Any], path: str) -> State:
    try:
        return parse_state(document)
    except CorruptState as error:
        message = f"{path}: {error}"
        raise CorruptState(message) from error


def whole_description(saved: Saved) -> Mapping[str, Any]:
    """Return the description of a saved pipeline, with all weights of a schedule, also later ones.

    Raises:
        InvalidArgument: there is none, or later weights are missing; the message says what to do.
    """
    whole = (saved.noted or {}).get("description")
    description: Mapping[str, Any] | None = whole or saved.description
    if description is None:
        message = (
            f"beside {saved.path!r} there is no description of its pipeline (pipeline-...json): "
            f"sk.save_state writes it; give the pipeline itself, as module:function"
        )
        raise InvalidArgument(message)
    # The description beside a state ends with the weights at its position; sources-...json has all weights.
    carried = saved.state is not None and saved.state.pipeline is not None
    if whole is None and saved.noted is None and not carried and has_schedule(description):
        message = (
            "the description has a schedule of weights only as far as it had come, so no step can be told "
            "from it alone: sources-...json beside it has all of it. Or give the pipeline itself, as "
            "module:function"
        )
        raise InvalidArgument(message)
    return description
