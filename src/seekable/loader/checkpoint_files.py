"""The files of saved states in a folder: their names, reading them, and their pipeline made again.

Each rank writes one file a save, ``state-<step>-<rank>-of-<ranks>.json``. The files of one step are a
*generation*, which is complete when the files of all ranks exist. Beside them lie the description of the
pipeline, ``pipeline-<digest>.json``, the paths of its sources, ``sources-<digest>.json``, and long lists of
rows that the run leaves out, ``excluded-<digest>.json``.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from seekable._lazy import lazy
from seekable.errors import CorruptState, DataNotFound, InvalidArgument, StateMismatch
from seekable.state.canonical import fingerprint_of
from seekable.state.descriptions import PipelineDescription
from seekable.state.document import WITH_JOURNAL, RunState, State, StreamState, merged, parse_state
from seekable.state.journal import check_same_journal, described_upto
from seekable.storage.abandoned import abandoned_at_errors
from seekable.storage.addresses import is_address, shown
from seekable.storage.files import TEMPORARY_SUFFIX
from seekable.storage.paths import output_of, output_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seekable.nodes.files.leaf import FilesLeaf
    from seekable.nodes.node import Node
    from seekable.resume import from_description, relocate
    from seekable.storage.access import Storage
else:
    from_description = lazy("seekable.resume.from_description")
    relocate = lazy("seekable.resume.relocate")

__all__ = [
    "Generation",
    "Rebuilt",
    "Saved",
    "description_name",
    "each_at_once",
    "excluded_name",
    "generations",
    "generations_in",
    "has_other_description",
    "in_words",
    "is_unfinished",
    "read_generation",
    "read_json",
    "read_saved",
    "read_state",
    "rebuild_saved",
    "resumable",
    "source_paths_name",
    "state_name",
    "unfinished_in_words",
    "whole_description",
    "with_files_beside",
]

_NAME = re.compile(r"state-(\d{12})-(\d{5})-of-(\d{5})\.json")
_DESCRIPTION = re.compile(r"pipeline-[0-9a-z]+\.json")
_UNFINISHED = re.compile(
    rf"(state-\d{{12}}-\d{{5}}-of-\d{{5}}|(pipeline|sources|excluded)-[0-9a-z]+|stop)\.json\.[0-9a-f]{{16}}"
    rf"{re.escape(TEMPORARY_SUFFIX)}"
)

_AT_ONCE = 32
"""The files of a store that are read or deleted at once."""

_MOST_NAMED = 8
"""The ranks that a message lists."""

T = TypeVar("T")


@dataclass(frozen=True, order=True, slots=True)
class Generation:
    """The state files of one step."""

    step: int
    ranks: int
    names: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True if the files of all ranks exist."""
        return len(self.names) == self.ranks

    def name_of(self, rank: int) -> str:
        """Return the file name of the state of a rank, which may be missing."""
        return state_name(self.step, rank=rank, ranks=self.ranks)

    def has(self, rank: int) -> bool:
        """Return True if the file of a rank exists."""
        return self.name_of(rank) in self.names

    @property
    def ranks_in_it(self) -> list[int]:
        """The ranks whose files exist, ascending."""
        return sorted(int(match[2]) for name in self.names if (match := _NAME.fullmatch(name)))

    @property
    def ranks_there(self) -> str:
        """The ranks whose files exist, in words, and those whose files are missing.

        Example:
            >>> Generation(9, 4, (state_name(9, rank=0, ranks=4), state_name(9, rank=1, ranks=4))).ranks_there
            'of its 4 ranks 0 and 1 are there, 2 and 3 are missing'
        """
        there = self.ranks_in_it
        missing = sorted({*range(self.ranks)}.difference(there))
        return f"of its {self.ranks} ranks {in_words(there)} there, {in_words(missing)} missing"


def state_name(step: int, *, rank: int, ranks: int) -> str:
    """Return the file name of one rank's state.

    Example:
        >>> state_name(40, rank=0, ranks=2)
        'state-000000000040-00000-of-00002.json'
    """
    return f"state-{step:012d}-{rank:05d}-of-{ranks:05d}.json"


def is_unfinished(name: str) -> bool:
    """Return True for the name of a file that a save makes before it gets its own name.

    Example:
        >>> name = state_name(40, rank=1, ranks=2)
        >>> is_unfinished(f"{name}.0123456789abcdef.tmp"), is_unfinished(name), is_unfinished("notes.tmp")
        (True, False, False)
    """
    return _UNFINISHED.fullmatch(name) is not None


def generations(names: Iterable[str]) -> list[Generation]:
    """Return the generations among file names, oldest step first, complete or not.

    Example:
        >>> names = [state_name(9, rank=0, ranks=1), state_name(10, rank=1, ranks=2)]
        >>> [(generation.step, generation.complete) for generation in generations(names)]
        [(9, True), (10, False)]
    """
    found: dict[tuple[int, int], list[str]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match:
            step, _, ranks = (int(part) for part in match.groups())
            found.setdefault((step, ranks), []).append(name)
    return sorted(Generation(step, ranks, tuple(sorted(files))) for (step, ranks), files in found.items())


def resumable(found: Sequence[Generation]) -> list[Generation]:
    """Return the generations that a run may go on from, oldest first.

    Those are the complete ones. Only if none is complete, others count: the state of a dataset is the same on
    all ranks, so that the file of one rank is enough. Those of a step count to which each rank came that has
    saved at all: a rank may be ahead of others. Of a stream `read_generation` refuses them.

    Example:
        >>> names = [state_name(9, rank=0, ranks=1), state_name(10, rank=1, ranks=2)]
        >>> [each.step for each in resumable(generations(names))]
        [9]
        >>> [each.step for each in resumable(generations(names[1:]))]
        [10]
    """
    if complete := [each for each in found if each.complete]:
        return complete
    # Of runs with another number of ranks, as before a resume, only the last one says how far ranks came.
    last = [each for each in found if each.ranks == found[-1].ranks]
    newest = {rank: each.step for each in last for rank in each.ranks_in_it}
    return [each for each in found if each.step <= min(newest.values())]


def source_paths_name(fingerprint: str) -> str:
    """Return the name of the file with the source paths of the pipeline with a fingerprint.

    Example:
        >>> source_paths_name("xxh3:0123")
        'sources-0123.json'
    """
    return f"sources-{fingerprint.rpartition(':')[2]}.json"


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved state, with the files beside it."""

    path: str
    """The file of the state, or the folder of its generation."""

    state: State | None
    """The state; None if the file is a description."""

    folder: str
    """The folder of the files beside it."""

    description: Mapping[str, Any] | None = None
    """The description of the pipeline, if the state carries one or one lies beside it."""

    noted: Mapping[str, Any] | None = None
    """The paths of the sources, if these lie beside the state; see `seekable.loader.checkpoints`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the pipeline."""
        return self.state.fingerprint if self.state else fingerprint_of(self.description)


def read_saved(path: str | os.PathLike[str], storage: Storage | None = None) -> Saved:
    """Return the newest state of a folder (`resumable`), the state of a file, or a description.

    Args:
        path: the folder or the file; its path, or its address in a store.
        storage: how the store is reached.

    Raises:
        DataNotFound: there is no such path, or the folder has no state.
        CorruptState: the file cannot be read, or holds something else; or the folder has no complete state of
            a stream.
    """
    return with_files_beside(read_state(path, storage))


def read_state(path: str | os.PathLike[str], storage: Storage | None = None) -> Saved:
    """Return what `read_saved` does, but for what lies beside the state, which is large for many files."""
    path = output_path(path, storage)
    is_file = output_of(path).size(path) is not None and not os.path.isdir(path)
    if not is_file and output_of(path).has_folder(path):
        found = resumable(generations_in(path))
        if not found:
            raise DataNotFound(f"there is no saved state in {shown(path)!r}: sk.save_state writes them")
        return Saved(path, read_generation(path, found[-1]), path)
    if not is_file:
        message = f"there is no {shown(path)!r}: a state is a file, or a folder that sk.save_state wrote into"
        raise DataNotFound(message)
    document, folder = read_json(path), os.path.dirname(path)
    if "kind" in document:
        return Saved(path, None, folder, document)
    return Saved(path, _parsed(document, path), folder)


def generations_in(folder: str) -> list[Generation]:
    """Return the generations of states in a folder, oldest first; none if there is no such folder."""
    return generations(output_of(folder).names(folder)) if output_of(folder).has_folder(folder) else []


def read_generation(folder: str, generation: Generation) -> State:
    """Return the state in the files of one step; the shares of a stream's ranks are put together.

    Raises:
        CorruptState: one of the files cannot be read, or they differ, or of a stream some are missing.
    """
    paths = [os.path.join(folder, name) for name in generation.names]
    states = dict(zip(generation.names, each_at_once(read_json, paths), strict=True))
    first, *others = states
    if "lanes" in states[first] and not generation.complete:
        raise CorruptState(
            f"the state of step {generation.step} in {shown(folder)} is not whole: {generation.ranks_there}. "
            f"Of a stream each rank has lanes of its own, so all ranks must call sk.save_state, with one "
            f"folder. Put the missing files there, or remove state-*.json to begin the run anew"
        )
    if len(states) > 1 and "lanes" in states[first]:
        shares = {name: _parsed(state, os.path.join(folder, name)) for name, state in states.items()}
        return merged({name: share for name, share in shares.items() if isinstance(share, StreamState)})
    for other in others:
        if states[other] != states[first]:
            check_same_journal(first, states[first].get("journal"), other, states[other].get("journal"))
            raise CorruptState(
                f"the ranks' states of step {generation.step} in {shown(folder)} differ ({first} and "
                f"{other}): they came to it by different ways; remove the files of this step to resume from "
                f"the one before"
            )
    return _parsed(states[first], os.path.join(folder, first))


def unfinished_in_words(folder: str) -> list[str] | None:
    """Return a text for each newer state of a folder that is not whole; None if no state can be loaded."""
    found = generations_in(folder)
    usable = resumable(found)
    if not usable:
        return None
    last = usable[-1].step
    return [
        f"the state of step {generation.step} in {shown(folder)} is not whole: {generation.ranks_there}; "
        f"step {last} was loaded. All ranks are to call sk.save_state"
        for generation in found
        if not generation.complete and generation.step >= last
    ]


def in_words(ranks: Sequence[int]) -> str:
    """Return some numbers, and the verb that follows them; of many the first ones, and how many there are.

    Example:
        >>> in_words([3]), in_words([0, 1, 3]), in_words(range(512))
        ('3 is', '0, 1 and 3 are', '0, 1, 2, 3, 4, 5, 6, 7 and 504 more are')
    """
    *others, last = map(str, ranks[:_MOST_NAMED])
    if len(ranks) > _MOST_NAMED:
        return f"{', '.join(others)}, {last} and {len(ranks) - _MOST_NAMED} more are"
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"


def each_at_once(do: Callable[[str], T], paths: Sequence[str]) -> list[T]:
    """Return what a function returns for each path; in threads if the paths are addresses.

    Each request of a store takes a round trip, and a step of 512 ranks has 512 files.
    """
    if len(paths) <= 1 or not all(map(is_address, paths)):
        return list(map(do, paths))
    with abandoned_at_errors(_AT_ONCE, "seekable-states") as threads:
        return list(threads.map(do, paths))


def _instead_of(path: str) -> str:
    """Return what to do about a damaged state; a file of another name may be anything, as the user's data."""
    if _NAME.fullmatch(os.path.basename(path)):
        return "remove it to resume from the state before"
    return "name a state, or the folder that sk.save_state wrote into"


def read_json(path: str) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        CorruptState: the file holds something else.
    """
    try:
        document = json.loads(output_of(path).read(path))
    except IsADirectoryError:
        message = f"{shown(path)} is a folder, and a state is a file: remove it, or name another one"
        raise CorruptState(message) from None
    except (ValueError, RecursionError) as error:
        raise CorruptState(f"{shown(path)} is not JSON ({error}): {_instead_of(path)}") from error
    if not isinstance(document, dict):
        message = f"{shown(path)} holds no object but a {type(document).__name__}: {_instead_of(path)}"
        raise CorruptState(message)
    return document


def description_name(fingerprint: str) -> str:
    """Return the file name of the description of the pipeline with this fingerprint.

    Example:
        >>> description_name("xxh3:0123")
        'pipeline-0123.json'
    """
    return f"pipeline-{fingerprint.rpartition(':')[2]}.json"


def has_other_description(names: Iterable[str], fingerprint: str) -> bool:
    """Return True if the description of a pipeline with another fingerprint is among file names.

    Example:
        >>> has_other_description(["pipeline-0123.json", "notes.txt"], "xxh3:0123")
        False
    """
    own = description_name(fingerprint)
    return any(name != own and _DESCRIPTION.fullmatch(name) for name in names)


def with_files_beside(saved: Saved) -> Saved:
    """Return a saved state with the description of its pipeline and the paths of its sources, where known."""
    state, description = saved.state, saved.description
    if state is not None:
        description = _read_if_there(saved.folder, description_name(state.fingerprint))
        if description is None and state.pipeline is not None:
            description = dict(PipelineDescription.parse(state.pipeline).tree)
    noted = _read_if_there(saved.folder, source_paths_name(saved.fingerprint))
    return replace(saved, description=description, noted=noted)


def _read_if_there(folder: str, name: str) -> dict[str, Any] | None:
    path = os.path.join(folder, name)
    return read_json(path) if output_of(path).size(path) is not None else None


def _parsed(document: Mapping[str, Any], path: str) -> State:
    try:
        return parse_state(_with_listed_rows(document, os.path.dirname(path)))
    except CorruptState as error:
        raise CorruptState(f"{shown(path)}: {error}") from error


def excluded_name(digest: str) -> str:
    """Return the name of the file with a long list of rows that a run leaves out.

    Example:
        >>> excluded_name("xxh3:0123")
        'excluded-0123.json'
    """
    return f"excluded-{digest.rpartition(':')[2]}.json"


def _with_listed_rows(document: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
    """Return a state with the lists of rows that lie beside it in the entries of its journal.

    Raises:
        CorruptState: such a file is missing, or holds other rows.
    """
    entries = document.get("journal")
    if document.get("seekable") != WITH_JOURNAL or not isinstance(entries, list):
        return document
    whole = []
    for entry in entries:
        listed = entry.get("exclude") if isinstance(entry, dict) else None
        if isinstance(listed, dict) and isinstance(listed.get("digest"), str):
            path = os.path.join(folder, excluded_name(listed["digest"]))
            whole.append({**entry, "exclude": _listed_rows(path, listed["digest"])})
        else:
            whole.append(entry)
    return {**document, "journal": whole}


def _listed_rows(path: str, digest: str) -> dict[str, Any]:
    if output_of(path).size(path) is None:
        raise CorruptState(
            f"the rows that the run leaves out are missing: {shown(path)} is not there. Copy it from where "
            f"the state was saved"
        )
    listed = read_json(path)
    if fingerprint_of(listed) != digest:
        raise CorruptState(f"{shown(path)} holds other rows than the run leaves out: something changed it")
    return listed


def whole_description(saved: Saved) -> Mapping[str, Any]:
    """Return the description of a saved pipeline, with all weights of a schedule, also later ones.

    Raises:
        InvalidArgument: there is none, or later weights are missing; the message says what to do.
    """
    whole = (saved.noted or {}).get("description")
    description: Mapping[str, Any] | None = whole or saved.description
    if description is None:
        raise InvalidArgument(
            f"beside {shown(saved.path)!r} there is no description of its pipeline (pipeline-...json): "
            f"sk.save_state writes it; give the pipeline itself, as module:function"
        )
    # The description beside a state ends with the weights at its position; sources-...json has all weights.
    carried = saved.state is not None and saved.state.pipeline is not None
    if whole is None and saved.noted is None and not carried and from_description.has_schedule(description):
        raise InvalidArgument(
            "the description has a schedule of weights only as far as it had come, so no step can be "
            "found from it alone: sources-...json beside it has all of it. Or give the pipeline itself, as "
            "module:function"
        )
    return description


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A dataset of places in the order of a saved pipeline."""

    dataset: Node

    unlocated: tuple[str, ...]
    """The reason for each source of files whose bytes are not known."""


def rebuild_saved(saved: Saved, *, roots: Sequence[str] = (), index_dir: str | None = None) -> Rebuilt:
    """Return a dataset whose records are the places of a saved pipeline's records, in its order.

    Places have byte offsets where the files are found again. Nothing is scanned or written.

    Args:
        saved: the state and what lies beside it.
        roots: absolute folders in which the files may be now, before those that were noted.
        index_dir: where indexes are kept, if not beside the data.

    Raises:
        InvalidArgument: a node stands in the way, or there is no description.
        StateMismatch: the description is that of another pipeline than the state's.
        CorruptState: the description cannot be read.
    """
    finder = _Finder(_noted_runs(saved.noted), roots, index_dir)
    dataset = from_description.rebuild(whole_description(saved), find=finder)
    state = saved.state
    if state is not None:
        upto = described_upto(state.position, state.journal) if isinstance(state, RunState) else None
        _check_same(dataset.fingerprint if upto is None else dataset.fingerprint_at(upto), saved)
    return Rebuilt(dataset, tuple(finder.unlocated))


def _check_same(described: str, saved: Saved) -> None:
    if described != saved.fingerprint:
        raise StateMismatch(
            f"what lies beside {saved.path!r} describes a pipeline with the fingerprint {described}, and "
            f"the state is of {saved.fingerprint}; save the state again, or give the pipeline itself, as "
            "module:function"
        )


class _Finder:
    """Finds the files of the sources of a description, one source after the other."""

    def __init__(
        self, noted: Sequence[Sequence[Mapping[str, Any]]], roots: Sequence[str], index_dir: str | None
    ) -> None:
        self.unlocated: list[str] = []
        self._noted = list(noted)
        self._roots = tuple(roots)
        self._index_dir = index_dir

    def __call__(self, description: Mapping[str, Any]) -> FilesLeaf | None:
        runs = self._runs(description)
        found = relocate.find_again(description, runs, index_dir=self._index_dir)
        if isinstance(found, str):
            self.unlocated.append(found)
            return None
        return found

    def _runs(self, description: Mapping[str, Any]) -> list[relocate.FileSpan]:
        noted = self._noted.pop(0) if self._noted else []
        if not noted:
            return [relocate.FileSpan(self._roots, None, len(description["files"]))]
        return [
            relocate.FileSpan(
                (*self._roots, *([run["root"]] if run["root"] else [])), run["index"], run["files"]
            )
            for run in noted
        ]


def _noted_runs(noted: Mapping[str, Any] | None) -> list[list[Mapping[str, Any]]]:
    if noted is None:
        return []
    try:
        return [source["runs"] for source in noted["sources"] if "runs" in source]
    except (KeyError, TypeError) as error:
        raise CorruptState(
            f"what was noted of the sources cannot be read ({error!r}): remove the file, and give --root"
        ) from error
