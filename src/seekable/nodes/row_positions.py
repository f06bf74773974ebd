"""The positions at which a row of a file comes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from seekable.nodes.search import SearchRange

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.contract import Node

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
        InvalidArgument: there are more than 10 million such positions.
    """
    place = os.fspath(path)
    place = place if place.startswith("<") or "://" in place else os.path.abspath(place)
    size = node.size
    if size is None:
        ranges = [SearchRange(0, None, epoch) for epoch in epochs]
    elif epochs.step == 1:
        ranges = [SearchRange(epochs.start * size, epochs.stop * size, epochs.start)]
    else:
        ranges = [SearchRange(epoch * size, (epoch + 1) * size, epoch) for epoch in epochs]
    found = [node.find_within(lambda leaf: leaf.rows_of(place, row), each) for each in ranges]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
