"""States in a folder: saved whole or not at all, and the newest complete one found again."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Literal

from seekable.dataset.arguments import checked_count
from seekable.errors import CorruptState, InvalidArgument
from seekable.loader.matching import check_pipeline
from seekable.state.canonical import canonical_json
from seekable.state.document import RunState
from seekable.state.generations import Generation, generations, is_of_rank, state_name
from seekable.storage.atomic import TEMPORARY_SUFFIX, write_atomically

if TYPE_CHECKING:
    from seekable.loader.loader import Loader

__all__ = ["load_state", "save_state"]


def save_state(folder: str | os.PathLike[str], loader: Loader, *, keep: int = 3) -> str:
    """Write a loader's state into a folder, and beside it, once, what its pipeline is.

    Every rank calls it; the states of one step count when all are there. Files appear whole or not at all.
    Saved states of later steps, which a run that was taken up again from an earlier state has made untrue,
    are removed.

    Args:
        folder: made where it is not there.
        loader: the loader, at the batch delivered last.
        keep: how many complete generations stay, at least 1.

    Returns:
        The path of the state's file.

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
    state = loader.state_dict()
    description = os.path.join(folder, _description_name(state["fingerprint"]))
    if not os.path.exists(description):
        write_atomically(description, canonical_json(loader.dataset.describe(state["position"])))
    path = os.path.join(folder, state_name(state["step"], rank=loader.rank, ranks=loader.world_size))
    write_atomically(path, canonical_json(state))
    _remove_torn(folder, rank=loader.rank, ranks=loader.world_size)
    _remove_old(folder, state["step"], ranks=loader.world_size, keep=keep)
    return path


def load_state(folder: str | os.PathLike[str], loader: Loader, *, resume: Literal["exact"] = "exact") -> bool:
    """Load the newest complete state of a folder into a loader, of any number of ranks.

    Args:
        folder: where ``save_state`` wrote.
        loader: what goes on from there.
        resume: ``"exact"``, the order continues record for record.

    Returns:
        Whether there was one; where there was none, nothing changes.

    Raises:
        StateMismatch: it is of another pipeline or other data; the message names the node, the argument, the
            old and the new value, or the file.
        CorruptState: a state file cannot be read, or those of one step differ.
    """
    if resume != "exact":
        message = f"resume must be 'exact' (got {resume!r})"
        raise InvalidArgument(message)
    folder = os.path.abspath(folder)
    complete = [generation for generation in _generations(folder) if generation.complete]
    if not complete:
        return False
    state = _read_generation(folder, complete[-1])
    description = os.path.join(folder, _description_name(state.fingerprint))
    saved = _read_json(description) if os.path.exists(description) else None
    check_pipeline(loader.dataset, state, saved=saved)
    loader.load_state_dict(state.document())
    return True


def _generations(folder: str) -> list[Generation]:
    return generations(os.listdir(folder)) if os.path.isdir(folder) else []


def _read_generation(folder: str, generation: Generation) -> RunState:
    """Return the state that all ranks' files of one step hold."""
    states = {name: _read_json(os.path.join(folder, name)) for name in generation.names}
    first, *others = states
    for other in others:
        if states[other] != states[first]:
            message = (
                f"the ranks' states of step {generation.step} in {folder} differ ({first} and {other}): they "
                f"came to it by different ways; remove the files of this step to resume from the one before"
            )
            raise CorruptState(message)
    try:
        return RunState.parse(states[first])
    except CorruptState as error:
        message = f"{os.path.join(folder, first)}: {error}"
        raise CorruptState(message) from error


def _read_json(path: str) -> dict[str, Any]:
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


def _description_name(fingerprint: str) -> str:
    return f"pipeline-{fingerprint.rpartition(':')[2]}.json"


def _remove_old(folder: str, step: int, *, ranks: int, keep: int) -> None:
    """Remove what this save has made old, and what it has made untrue: other ways to here, or beyond."""
    found = _generations(folder)
    complete = [generation for generation in found if generation.complete and generation.step <= step]
    oldest = complete[-keep].step if len(complete) > keep else 0
    for generation in found:
        untrue = generation.step > step or (generation.step == step and generation.ranks != ranks)
        if untrue or generation.step < oldest:
            for name in generation.names:
                _remove(os.path.join(folder, name))


def _remove_torn(folder: str, *, rank: int, ranks: int) -> None:
    """Remove what killed saves of this rank left; other ranks may be writing theirs just now."""
    for name in os.listdir(folder):
        written, _, rest = name.partition(".json.")
        if rest.endswith(TEMPORARY_SUFFIX) and is_of_rank(f"{written}.json", rank=rank, ranks=ranks):
            _remove(os.path.join(folder, name))


def _remove(path: str) -> None:
    # Another rank may have been quicker.
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
