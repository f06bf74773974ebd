"""Whether reading a graph calls functions of the user: overviews show records only where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.node import Leaf, OrderNode
from seekable.nodes.sequence_source import SequenceSource

if TYPE_CHECKING:
    from seekable.nodes.node import Node

__all__ = ["calls_functions"]

_OWN_RECORDS = frozenset(
    {
        "alias",
        "batch",
        "drop_columns",
        "fill",
        "partitions",
        "rename",
        "select_columns",
        "source_column",
        "zip",
    }
)
"""The kinds of nodes that make records without a function of the user."""

_BUILT_IN = (list, tuple, str, bytes, range, np.ndarray)


def calls_functions(node: Node) -> bool:
    """Return True if the reading of a record may call a function of the user, or a method of their object.

    What is not known to call none counts as calling one.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence([3, 1, 2]).shuffle(seed=1)
        >>> calls_functions(ds.node), calls_functions(ds.map(abs).take(2).node)
        (False, True)
    """
    pending, seen = [node], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Leaf):
            if not _is_plain(node):
                return True
        elif not isinstance(node, OrderNode) and node.kind not in _OWN_RECORDS:
            return True
        pending.extend(node.children)
    return False


def _is_plain(leaf: Leaf) -> bool:
    """Return True if the records of a source are decoded by the library, and an error reaches the caller."""
    if isinstance(leaf, SequenceSource):
        return type(leaf.sequence) in _BUILT_IN
    return isinstance(leaf, FilesLeaf) and leaf.errors is None and leaf.decodes_itself
