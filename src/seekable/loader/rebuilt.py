"""From a saved state to a loader of the same order, whose records are the places of the real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, StateMismatch
from seekable.loader.matching import fingerprint_at
from seekable.resume.rebuild import has_schedule, rebuild
from seekable.resume.relocate import FileSpan, find_again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.loader.saved import Saved
    from seekable.nodes.contract import Node
    from seekable.nodes.sources.files import FileSource
    from seekable.nodes.sources.tables import TableSource

__all__ = ["Rebuilt", "rebuild_saved", "whole_description"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A dataset of places in the order of a saved pipeline."""

    dataset: Node

    unlocated: tuple[str, ...]
    """For each source of files whose bytes are not known, why."""


def rebuild_saved(saved: Saved, *, roots: Sequence[str] = (), index_dir: str | None = None) -> Rebuilt:
    """Return the order of a saved pipeline, with places that have bytes where the files are found again.

    Nothing is scanned or written.

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
    dataset = rebuild(whole_description(saved), find=finder)
    if saved.state is not None:
        _check_same(fingerprint_at(dataset, saved.state), saved)
    return Rebuilt(dataset, tuple(finder.unlocated))


def _check_same(described: str, saved: Saved) -> None:
    if described != saved.fingerprint:
        message = (
            f"what lies beside {saved.path!r} describes a pipeline with the fingerprint {described}, and "
            f"the state is of {saved.fingerprint}; save the state again, or give the pipeline itself, as "
            "module:function"
        )
        raise StateMismatch(message)


class _Finder:
    """Finds the files of one source of a description after the other."""

    def __init__(
        self, noted: Sequence[Sequence[Mapping[str, Any]]], roots: Sequence[str], index_dir: str | None
    ) -> None:
        self.unlocated: list[str] = []
        self._noted = list(noted)
        self._roots = tuple(roots)
        self._index_dir = index_dir

    def __call__(self, description: Mapping[str, Any]) -> FileSource | TableSource | None:
        runs = self._runs(description)
        found = find_again(description, runs, index_dir=self._index_dir)
        if isinstance(found, str):
            self.unlocated.append(found)
            return None
        return found

    def _runs(self, description: Mapping[str, Any]) -> list[FileSpan]:
        noted = self._noted.pop(0) if self._noted else []
        if not noted:
            return [FileSpan(self._roots, None, len(description["files"]))]
        return [
            FileSpan((*self._roots, *([run["root"]] if run["root"] else [])), run["index"], run["files"])
            for run in noted
        ]


def _noted_runs(noted: Mapping[str, Any] | None) -> list[list[Mapping[str, Any]]]:
    if noted is None:
        return []
    try:
        return [source["runs"] for source in noted["sources"] if source["kind"] == "files"]
    except (KeyError, TypeError) as error:
        message = (
            f"what was noted of the sources cannot be read ({error!r}): remove the file, and give --root"
        )
        raise CorruptState(message) from error


def whole_description(saved: Saved) -> Mapping[str, Any]:
    """Return the description of a saved pipeline, of a scheduled one with all that is still to come.

    Raises:
        InvalidArgument: it is not there.
    """
    whole = (saved.noted or {}).get("description")
    description: Mapping[str, Any] | None = whole or saved.description
    if description is None:
        message = (
            f"beside {saved.path!r} there is no description of its pipeline (pipeline-...json): "
            f"sk.save_state writes it; give the pipeline itself, as module:function"
        )
        raise InvalidArgument(message)
    # What is noted beside it has the whole, wherever there is more than what had come.
    carried = saved.state is not None and saved.state.pipeline is not None
    if whole is None and saved.noted is None and not carried and has_schedule(description):
        message = (
            "the description has a schedule of weights only as far as it had come, so no step can be told "
            "from it alone: sources-...json beside it has all of it. Or give the pipeline itself, as "
            "module:function"
        )
        raise InvalidArgument(message)
    return description
