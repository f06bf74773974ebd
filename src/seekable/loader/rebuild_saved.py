"""From a saved state to a dataset in the same order, whose records are the places of the real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, StateMismatch
from seekable.loader.checkpoint_files import whole_description
from seekable.loader.compatibility import fingerprint_at
from seekable.resume.from_description import rebuild
from seekable.resume.relocate import FileSpan, find_again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.loader.checkpoint_files import Saved
    from seekable.nodes.files.leaf import FilesLeaf
    from seekable.nodes.node import Node

__all__ = ["Rebuilt", "rebuild_saved"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A dataset of places in the order of a saved pipeline."""

    dataset: Node

    unlocated: tuple[str, ...]
    """The reason for each source of files whose bytes are not known."""


def rebuild_saved(saved: Saved, *, roots: Sequence[str] = (), index_dir: str | None = None) -> Rebuilt:
    """Return a dataset of the places of the records of a saved pipeline, in its order.

    Places have byte offsets where the files are found again.

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
        return [source["runs"] for source in noted["sources"] if "runs" in source]
    except (KeyError, TypeError) as error:
        message = (
            f"what was noted of the sources cannot be read ({error!r}): remove the file, and give --root"
        )
        raise CorruptState(message) from error
