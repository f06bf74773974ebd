"""States in a folder: saved whole or not at all, and the newest complete one found again."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from seekable._arguments import checked_count
from seekable.loader.arguments import checked_resume
from seekable.loader.matching import described
from seekable.loader.rebuilt import whole_description
from seekable.loader.saved import description_name, generations_in, read_saved
from seekable.loader.whereabouts import whereabouts, whereabouts_name
from seekable.state.canonical import canonical_json
from seekable.state.description_text import Description
from seekable.state.document import RunState
from seekable.state.generations import is_of_rank, state_name
from seekable.state.stream import parse_state
from seekable.storage.files import TEMPORARY_SUFFIX, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.arguments import Resume

__all__ = ["load_state", "save_state"]


class Checkpointed(Protocol):
    """An object whose states lie in a folder: a ``Loader``, or a batch sampler of the integrations."""

    @property
    def of_state(self) -> Any:
        """The dataset or the stream that states belong to."""
        ...

    @property
    def rank(self) -> int:
        """The number of this process among ``world_size``."""
        ...

    @property
    def world_size(self) -> int:
        """The number of processes that share the batches."""
        ...

    def state_dict(self, *, partial: bool = False, rows: bool = True) -> dict[str, Any]:
        """Return the state of the batches delivered so far."""
        ...

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go on where a state was taken."""
        ...


def save_state(folder: str | os.PathLike[str], loader: Checkpointed, *, keep: int = 3) -> str:
    """Write a loader's state into a folder, and beside it what its pipeline is and where its files are.

    Every rank calls it; the states of one step count when all are there. Files appear whole or not at all.
    Saved states of later steps, which a run that was taken up again from an earlier state has made untrue,
    are removed.

    Args:
        folder: made where it is not there.
        loader: the loader, or the batch sampler of one, at the batch delivered last.
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
    # The description lies beside the states, once for all of them.
    state = loader.state_dict(partial=True, rows=False)
    description = os.path.join(folder, description_name(state["fingerprint"]))
    if not os.path.exists(description):
        write_atomically(description, canonical_json(described(loader.of_state, parse_state(state))))
    if loader.rank == 0:
        _write_whereabouts(os.path.join(folder, whereabouts_name(state["fingerprint"])), loader)
    path = os.path.join(folder, state_name(state["step"], rank=loader.rank, ranks=loader.world_size))
    write_atomically(path, canonical_json(state))
    _remove_torn(folder, rank=loader.rank, ranks=loader.world_size)
    _remove_old(folder, state["step"], ranks=loader.world_size, keep=keep)
    return path


def load_state(folder: str | os.PathLike[str], loader: Checkpointed, *, resume: Resume = "exact") -> bool:
    """Load the newest complete state of a folder into a loader, of any number of ranks.

    Args:
        folder: where ``save_state`` wrote.
        loader: what goes on from there.
        resume: ``"exact"``, the order continues record for record; ``"rows"``, each source goes on with the
            rest of its begun epoch (``Loader.load_state_dict``), whatever has changed above the sources.

    Returns:
        Whether there was one; where there was none, nothing changes.

    Raises:
        StateMismatch: it is of another pipeline or other data; the message names the node, the argument, the
            old and the new value, or the file. By rows, of sources that are not there any more.
        CorruptState: a state file cannot be read, or those of one step differ.
        InvalidArgument: by rows, how much each source gave cannot be told.
    """
    resume = checked_resume(resume)
    folder = os.path.abspath(folder)
    if not any(generation.complete for generation in generations_in(folder)):
        return False
    saved = read_saved(folder)
    state, description = saved.state, saved.description
    assert state is not None
    if resume == "rows" and description is not None and isinstance(state, RunState):
        # Up to where a schedule had come, order depends on what comes next.
        description = whole_description(saved)
    if description is not None:
        row_files = (saved.noted or {}).get("kept", {})
        state = replace(state, pipeline=Description(description, row_files).text())
    loader.load_state_dict(state.document(), resume=resume)
    return True


def _write_whereabouts(path: str, loader: Checkpointed) -> None:
    """Note where the files are, anew where they moved; one rank does, because others may see other paths."""
    noted = canonical_json(whereabouts(loader.of_state))
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        if file.read() == noted:
            return
    write_atomically(path, noted)


def _remove_old(folder: str, step: int, *, ranks: int, keep: int) -> None:
    """Remove what this save has made old, and what it has made untrue: other ways to here, or beyond."""
    found = generations_in(folder)
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
