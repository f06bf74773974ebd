"""What a record is called in errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import SeekableError
from seekable.index.location import Location

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["place_of"]


def place_of(dataset: Node, row: int) -> str:
    """Return the row of a record, and the file, row and byte where it lies, if that can be told.

    Example:
        >>> import seekable as sk
        >>> place_of(sk.from_sequence("ab").take(2).node, 1)
        "row 1 (at Location(path='<builtins.str>', row=1, offset=0, length=0))"
    """
    try:
        place = dataset.plan(np.array([row], dtype=np.int64)).locate()[0]
    except SeekableError as lost:
        return f"row {row:,} (at a place that cannot be told: {lost})"
    if isinstance(place, Location) and not place.path.startswith("<"):
        return f"row {row:,} (record {place.row:,} of {place.path}, at byte {place.offset:,})"
    return f"row {row:,} (at {place})"
