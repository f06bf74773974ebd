"""The positions at which a row of a file comes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from seekable._arguments import checked_path
from seekable.nodes.graph import SearchRange

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.node import Node

__all__ = ["positions_of_row"]


def positions_of_row(node: Node, path: str | os.PathLike[str], row: int, epochs: range) -> Int64s:
    """Return the sorted positions at which a row of a file comes in some epochs of a node.

    Consecutive epochs are one search: most of its cost is that of NumPy's calls, whatever their number.

    Args:
        node: the root of the graph to search.
        path: the file, as a path, an address, or the name in angle brackets of a sequence.
        row: the record's number in the file.
        epochs: the epochs of the node; of an endless node, epochs of the source.

    Raises:
        WrongType: the path is neither a text nor a path.
        InvalidArgument: there are more than 10 million such positions.
    """
    place = checked_path(path)
    place = place if place.startswith("<") or "://" in place else os.path.abspath(place)
    size = node.size
    runs = [epochs] if epochs.step == 1 else [range(epoch, epoch + 1) for epoch in epochs]
    found = []
    for run in runs:
        start, stop = (0, None) if size is None else (run.start * size, run.stop * size)
        found.append(node.find_within(lambda leaf: leaf.rows_of(place, row), SearchRange(start, stop, run)))
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
