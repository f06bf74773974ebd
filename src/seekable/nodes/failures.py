"""The place of a record, as errors name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import SeekableError
from seekable.index.location import Location

if TYPE_CHECKING:
    from seekable.nodes.contract import Node


__all__ = ["add_place", "place_of"]


def add_place(error: Exception, function: str, dataset: Node, position: int) -> None:
    """Add a note to an error of a user's function: which function, and which record it was called with.

    Args:
        error: what the function raised.
        function: what it is, as the note names it.
        dataset: what the record is of.
        position: its position there.
    """
    try:
        place = dataset.plan(np.array([position], dtype=np.int64)).locate()[0]
    except SeekableError as lost:
        # The function's own error is what the user has to see.
        place = f"a place that cannot be told: {lost}"
    error.add_note(f"in {function}, called with the record at {place} (position {position})")


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
