"""The description of a saved pipeline: read from a state, held to it, and with the row files that it uses.

The rows that a filter kept are in a description, and in the fingerprint, by their digest alone. Where the
user named their file, ``resume="rows"`` can still read them after the filter has changed: its path then
stands beside the digest. A path decides nothing, so it is taken out before digests are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, StateMismatch
from seekable.nodes.filter.node import Filter
from seekable.state.description_text import Description

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.state.stream import State

__all__ = ["check_described", "description_of", "with_paths", "without_paths"]


def with_paths(description: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a description with the paths of kept rows beside their digests.

    Example:
        >>> source = {"kind": "sequence", "type": "builtins.list", "length": 3}
        >>> described = {"kind": "filter", "count": 1, "rows": "xxh3:0", "of": [source]}
        >>> with_paths(described, {"xxh3:0": "/kept.u64"})["path"]
        '/kept.u64'
        >>> without_paths(with_paths(described, {"xxh3:0": "/kept.u64"})) == described
        True
    """
    whole = dict(description)
    if whole["kind"] == Filter.kind and whole.get("rows") in paths:
        whole["path"] = paths[whole["rows"]]
    if "of" in whole:
        whole["of"] = [with_paths(below, paths) for below in whole["of"]]
    return whole


def without_paths(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description as it was made."""
    whole = {
        key: value
        for key, value in description.items()
        if key != "path" or description.get("kind") != Filter.kind
    }
    if "of" in whole:
        whole["of"] = [without_paths(below) for below in whole["of"]]
    return whole


def description_of(state: State) -> dict[str, Any]:
    """Return the description of the pipeline that a state was taken of, with the paths of its row files.

    Raises:
        StateMismatch: the state carries none; the message says what to do.
        CorruptState: the state carries something else.
    """
    if state.pipeline is None:
        message = (
            f"resume='rows' needs the description of the pipeline that the state was taken of "
            f"({state.fingerprint}), and this state carries none: it was taken with rows=False, or by an "
            f"older version. If sk.save_state wrote it, use sk.load_state(folder, loader, resume='rows'). "
            f"Else load it with resume='exact' into the pipeline that it was taken of, and take a state there"
        )
        raise StateMismatch(message)
    description = Description.parse(state.pipeline)
    return with_paths(description.tree, description.row_files)


def check_described(fingerprint: str, state: State) -> None:
    """Refuse a description that is not of the state's pipeline.

    Args:
        fingerprint: the digest of the description.
        state: the state that carries the description.

    Raises:
        CorruptState: the fingerprints differ.
    """
    if fingerprint != state.fingerprint:
        message = (
            f"the description that comes with the state is of {fingerprint}, and the state of "
            f"{state.fingerprint}: one of them is of another run"
        )
        raise CorruptState(message)
