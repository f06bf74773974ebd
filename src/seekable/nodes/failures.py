"""At which record a user's function failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import SeekableError

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["add_place"]


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
