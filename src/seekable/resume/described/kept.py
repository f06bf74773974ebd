"""Where the rows lie that filters kept: for who goes on by rows after the filter has changed.

A description has the digest of such rows alone, and so has the fingerprint. Where the user named their file,
its path may stand beside the digest; it decides nothing, so it is taken out before digests are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.nodes.filter.node import Filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.nodes.contract import Node

__all__ = ["kept_paths", "with_paths", "without_paths"]


def kept_paths(node: Node) -> dict[str, str]:
    """Return, by digest, the files of the rows that the filters of a dataset kept, where they are named."""
    found = {} if not isinstance(node, Filter) or not node.rows.named else {node.rows.digest: node.rows.path}
    for child in node.children:
        found |= kept_paths(child)
    return found


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
