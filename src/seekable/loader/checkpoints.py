"""States in a folder: saved whole or not at all, and loaded again.

Beside the states lie the specs and the paths of the files of the pipeline, and later weights of its schedule.
They are not part of the fingerprint, because they decide no order that has begun. ``seekable plan`` reads
them, to find the bytes that a step will read.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import structs

from seekable._arguments import checked_count, explains_keywords
from seekable._lazy import lazy
from seekable._log import LOG
from seekable._other_words import LOAD_STATE, SAVE_STATE
from seekable.errors import CorruptState, StateMismatch
from seekable.loader.arguments import checked_resume
from seekable.loader.checkpoint_files import (
    description_name,
    each_at_once,
    excluded_name,
    generations,
    has_other_description,
    is_unfinished,
    read_json,
    read_state,
    source_paths_name,
    state_name,
    unfinished_in_words,
    whole_description,
    with_files_beside,
)
from seekable.loader.positioned import loader_of, pipeline_of_state, resumed_of
from seekable.loader.states import described, log_anew
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.node import LeafNode, Node
from seekable.state.canonical import canonical_json
from seekable.state.descriptions import PipelineDescription
from seekable.state.document import RunState, parse_state
from seekable.state.journal import in_brief
from seekable.storage.addresses import is_address, shown
from seekable.storage.paths import output_of, output_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.loader.arguments import Resume
    from seekable.loader.checkpoint_files import Generation, Saved
    from seekable.loader.states import Resumed
    from seekable.nodes import evaluated
    from seekable.resume import report
    from seekable.state import excluded_rows
    from seekable.state.document import State
    from seekable.storage import addresses
    from seekable.storage.access import Storage
    from seekable.stream import iterator as stream_iterator
    from seekable.stream.stream import Stream
else:
    addresses = lazy("seekable.storage.addresses")
    evaluated = lazy("seekable.nodes.evaluated")
    report = lazy("seekable.resume.report")
    excluded_rows = lazy("seekable.state.excluded_rows")
    stream_iterator = lazy("seekable.stream.iterator")


__all__ = ["Stateful", "load_state", "save_state", "source_paths_of", "with_description"]

_SOURCES_SCHEMA = 1
"""The version of the file of source paths."""

_TORN_SECONDS = 3600
"""The age from which a temporary file is one of a save that was killed: a save takes far less."""


class Stateful(Protocol):
    """A loader, or an object with one as its ``_loader``, such as a batch sampler, whose states are saved."""

    @property
    def rank(self) -> int:
        """The number of this process among ``world_size``, from 0."""
        ...

    @property
    def world_size(self) -> int:
        """The number of processes that share the batches."""
        ...

    @property
    def step(self) -> int:
        """The number of batches delivered and skipped so far."""
        ...

    def state_dict(self, *, partial: bool, rows: bool) -> dict[str, Any]:
        """Return the state after the batches delivered so far."""
        ...

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume) -> None:
        """Go on where a state was taken."""
        ...


@explains_keywords(SAVE_STATE)
def save_state(
    folder: str | os.PathLike[str],
    loader: Stateful,
    *,
    keep: int = 3,
    storage: Storage | None = None,
) -> str:
    """Write the state of a loader into a folder, and beside it the description of its pipeline.

    Every rank calls it; the states of one step count when those of all ranks are there. The ranks need not be
    in step. Several processes may save as one rank, as those of one copy of a model do: a state is written
    once, by whichever comes first. Files appear whole or not at all. Each rank removes
    its own saved states of later steps: they belong to a run that was left, when this one was resumed from an
    earlier state.

    Args:
        folder: the folder; it is made if there is none. Or its address in a store, such as
            ``s3://bucket/run``.
        loader: a ``sk.Loader`` or a ``BatchSampler``.
        keep: the number of complete generations that stay, at least 1. Where no state of a dataset is
            complete, because one rank alone saves, it is the number of states of this rank that stay.
        storage: how the store is reached, ``sk.Storage(options=...)``.

    Returns:
        The path of the file of the state.

    Raises:
        NotResumable: a stage of a stream could not go on from the state.
        InvalidArgument: ``keep`` is below 1.
        WrongType: ``loader`` is not a loader.

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
    positioned = loader_of(loader)
    folder = output_path(folder, storage)
    output_of(folder).make_folder(folder)
    # The description lies beside the states, once for all of them.
    state = loader.state_dict(partial=True, rows=False)
    pipeline = pipeline_of_state(positioned)
    description = os.path.join(folder, description_name(state["fingerprint"]))
    if output_of(description).size(description) is None:
        output_of(description).write(description, canonical_json(described(pipeline, parse_state(state))))
    if loader.rank == 0:
        sources = os.path.join(folder, source_paths_name(state["fingerprint"]))
        _write_once(sources, canonical_json(source_paths_of(pipeline)))
    _write_listed_rows(folder, state)
    path = os.path.join(folder, state_name(state["step"], rank=loader.rank, ranks=loader.world_size))
    _write_once(path, canonical_json(state))
    if not is_address(folder):
        _remove_torn(folder, written=path)
    _remove_old(folder, state, rank=loader.rank, ranks=loader.world_size, keep=keep)
    return shown(path)


@explains_keywords(LOAD_STATE)
def load_state(
    folder: str | os.PathLike[str],
    loader: Stateful,
    *,
    resume: Resume = "exact",
    storage: Storage | None = None,
) -> Resumed | Literal[False]:
    """Load the newest complete state of a folder into a loader with any number of ranks.

    The state of a dataset is the same on all ranks, so that it loads where one rank alone has saved: if no
    state is complete, the newest step counts that each rank which has saved came to, and a warning in the log
    names the ranks that are missing.

    Args:
        folder: the folder that ``save_state`` wrote into; or a JSON file: one state of it, or a checkpoint
            with ``resume_state`` or ``sample_index`` (see ``Loader.load_state_dict``). Its path, or its
            address in a store.
        loader: a ``sk.Loader`` or a ``BatchSampler``, which goes on from there.
        resume: ``"exact"``, the order continues record for record; ``"rows"``, each source goes on with the
            rest of its begun epoch (``Loader.load_state_dict``), whatever has changed above the sources.
        storage: how the store is reached, ``sk.Storage(options=...)``.

    Returns:
        An object that is true, with the sources as they are there: ``sources`` is what ``loader.sources()``
        returned, and as text it is the lines of the log, one for each source. False if the folder has no
        state: then nothing changes, and the log says that the run begins anew.

    Raises:
        StateMismatch: the state is of another pipeline or other data; the message names the node, the
            argument, the old and the new value, or the file. By rows, of sources that are not there any more.
        CorruptState: a state file cannot be read, or those of one step differ; or of a stream the files of
            some ranks are missing.
        InvalidArgument: by rows, the rows that each source delivered are not known.
        WrongType: ``loader`` is not a loader.
    """
    resume = checked_resume(resume)
    positioned = loader_of(loader)
    folder = output_path(folder, storage)
    is_file = output_of(folder).size(folder) is not None and not os.path.isdir(folder)
    unfinished = [] if is_file else unfinished_in_words(folder)
    if unfinished is None:
        log_anew(f"no saved state in {shown(folder)}")
        return False
    document = read_json(folder) if is_file else {}
    if is_file and "seekable" not in document:
        loader.load_state_dict(document, resume=resume)
    else:
        _load(read_state(folder), loader, resume)
    for text in unfinished:
        LOG.warning("%s", text)
    resumed = resumed_of(positioned)
    assert resumed is not None
    return resumed


def _load(saved: Saved, loader: Stateful, resume: Resume) -> None:
    """Load a saved state; the description beside it is read only where it matters."""
    assert saved.state is not None
    if resume == "exact":
        # Only if the state is of another pipeline, the description says in what it differs.
        with contextlib.suppress(StateMismatch):
            loader.load_state_dict(saved.state.document(), resume=resume)
            return
    whole = with_description(with_files_beside(saved), resume)
    loader.load_state_dict(whole.document(), resume=resume)


def with_description(saved: Saved, resume: Resume) -> State:
    """Return a saved state with the description of its pipeline, if this lies beside it."""
    state, description = saved.state, saved.description
    assert state is not None
    if resume == "rows" and description is not None and isinstance(state, RunState):
        # The order of the rest depends on later weights of a schedule too.
        description = whole_description(saved)
    if description is None:
        return state
    row_files = (saved.noted or {}).get("kept", {})
    return structs.replace(state, pipeline=PipelineDescription(description, row_files).text())


def _write_once(path: str, data: bytes) -> None:
    """Write a file, unless it has these bytes already: several processes may save the same state."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # writing says that it is a folder
        if output_of(path).read(path) == data:
            return
    output_of(path).write(path, data)


def _write_listed_rows(folder: str, state: dict[str, Any]) -> None:
    """Write the long lists of rows that a run leaves out, and put their digests into the state instead."""
    if "journal" not in state:
        return
    brief = in_brief(state["journal"], most=excluded_rows.MOST_INLINE)
    for entry, short in zip(state["journal"], brief, strict=True):
        if short is not entry:
            path = os.path.join(folder, excluded_name(short["exclude"]["digest"]))
            if output_of(path).size(path) is None:
                output_of(path).write(path, canonical_json(entry["exclude"]))
    state["journal"] = brief


def _remove_old(folder: str, state: Mapping[str, Any], *, rank: int, ranks: int, keep: int) -> None:
    """Remove generations beyond ``keep``, and files of runs that were left, from the step of a state on.

    Other ranks may be ahead: of a later generation of as many ranks only the file of this rank goes, and
    files of other pipelines. It stays while no generation up to this step is usable. Where no generation is
    complete, those of a dataset with a file of this rank are usable, and of old ones only this file goes.
    """
    step, names = state["step"], output_of(folder).names(folder)
    found = generations(names)
    alone = "lanes" not in state and not any(each.complete for each in found)
    usable = [each for each in found if each.step <= step and (each.complete or (alone and each.has(rank)))]
    oldest = usable[-keep].step if len(usable) > keep else 0
    may_differ = has_other_description(names, state["fingerprint"])
    for generation in found:
        removed: set[str] = set()
        if generation.ranks != ranks and _is_left(generation, step, usable):
            removed.update(generation.names)
        elif generation.step < oldest:
            removed.update([generation.name_of(rank)] if alone else generation.names)
        elif generation.ranks == ranks and generation.step >= step:
            if may_differ:
                removed.update(_of_other_pipelines(folder, generation, state["fingerprint"]))
            if usable and generation.step > step:
                removed.add(generation.name_of(rank))
        each_at_once(
            output_of(folder).delete, [os.path.join(folder, name) for name in removed & {*generation.names}]
        )


def _is_left(generation: Generation, step: int, usable: Sequence[Generation]) -> bool:
    """Return True if a generation with another number of ranks has no use any more.

    It is later than the step and an earlier one is usable, or one with this number of ranks replaces it.
    """
    if generation.step == step:
        return any(one.step == step and one.ranks != generation.ranks for one in usable)
    return generation.step > step and bool(usable)


def _of_other_pipelines(folder: str, generation: Generation, fingerprint: str) -> list[str]:
    """Return the names of a generation's files whose pipeline has another fingerprint."""
    found = []
    for name in generation.names:
        # Another rank may remove its file at this moment; a file that is not a state stays for its reader.
        with contextlib.suppress(FileNotFoundError, CorruptState):
            if read_json(os.path.join(folder, name)).get("fingerprint") != fingerprint:
                found.append(name)
    return found


def _remove_torn(folder: str, *, written: str) -> None:
    """Remove the temporary files of killed saves: those older by an hour than a file written just now.

    Younger ones may be of other savers at work, which may also be of this rank: where ranks share records
    (tensor or pipeline parallelism), several processes save one state. The file system says both times.
    """
    with contextlib.suppress(FileNotFoundError):  # another saver may have removed or replaced it
        youngest = os.stat(written).st_mtime - _TORN_SECONDS
        for name in filter(is_unfinished, os.listdir(folder)):
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_mtime < youngest:
                    output_of(path).delete(path)


def source_paths_of(pipeline: Node | Stream) -> dict[str, Any]:
    """Return the argument of ``sk.open`` and the paths of each source, and the row files, JSON-safe.

    For a pipeline with a schedule, the whole description is in it too.

    Example:
        >>> import seekable as sk
        >>> source_paths_of(sk.from_sequence("abc").shuffle(seed=1)._node)["sources"]
        [{'kind': 'sequence', 'spec': 'from_sequence(<builtins.str of 3>)'}]
    """
    datasets = _datasets_of(pipeline)
    leaves = [leaf for dataset in datasets for leaf in _leaves(dataset)]
    noted: dict[str, Any] = {
        "seekable_sources": _SOURCES_SCHEMA,
        "sources": [_noted(leaf) for leaf in leaves],
    }
    paths = {digest: path for dataset in datasets for digest, path in evaluated.row_files_of(dataset).items()}
    if paths:
        noted["kept"] = {digest: path for digest, path in paths.items() if _as_text(path)}
    if isinstance(pipeline, Node) and pipeline.scheduled:
        return {**noted, "description": pipeline.describe(None)}
    return noted


def _datasets_of(pipeline: Node | Stream) -> list[Node]:
    return [pipeline] if isinstance(pipeline, Node) else [*stream_iterator.datasets_of(pipeline.stage)]


def _noted(leaf: LeafNode) -> dict[str, Any]:
    spec = report.spec_of(leaf)
    asked = {} if spec is None or _as_text(spec) is None else {"spec": spec}
    rows = leaf.parts[0]
    if not isinstance(rows, FilesLeaf):
        return {"kind": leaf.kind, **asked}
    runs = [
        {
            "root": _as_text(_without_suffix(root)),
            "index": _as_text(folder),
            "files": files,
        }
        for root, folder, files in rows.files.runs
    ]
    return {"kind": leaf.kind, **asked, "runs": runs}


def _without_suffix(root: str) -> str:
    """Return a folder as the user named it: an address without the suffix that mounts may add."""
    return addresses.shown(root) if "://" in root else root


def _as_text(path: str) -> str | None:
    """Return a path, None if it has bytes that are not UTF-8, which JSON cannot hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return path


def _leaves(node: Node) -> Iterator[LeafNode]:
    """Yield the sources in the order of the description."""
    if isinstance(node, LeafNode):
        yield node
    for child in node.children:
        yield from _leaves(child)
