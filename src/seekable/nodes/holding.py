"""The bytes of a plan in memory while it is read, where its files are objects of stores."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from seekable._lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from seekable.nodes import object_bytes
    from seekable.nodes.file_ranges import FileRanges
    from seekable.nodes.graph import Plan
else:
    object_bytes = lazy("seekable.nodes.object_bytes")

__all__ = ["held"]


def held(plan: Plan, ranges: Iterator[FileRanges] | None = None) -> AbstractContextManager[None]:
    """Return a context in which the bytes that a plan reads of objects of stores are in memory.

    Entering it fetches all that is missing together; where all files are local it does nothing.

    Args:
        plan: the plan.
        ranges: the ranges that are read of its files; None for all of the plan.
    """
    if not plan.from_stores:
        return _NOTHING
    return object_bytes.Holding(plan.ranges() if ranges is None else ranges)


_NOTHING = nullcontext()
