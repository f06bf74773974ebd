"""Where a pipeline that goes on by rows begins: so that its epochs end with those of its sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.nodes.batch import Batch
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.slice import Slice
from seekable.resume.sources import parts_of, passes_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.dataset.base import Dataset

__all__ = ["Begin", "beginning", "draws_before"]


@dataclass(frozen=True, slots=True)
class Begin:
    """A place, and whose it is."""

    position: int

    epoch: int
    """The epoch that is gone on with, or begun."""


def beginning(
    root: Dataset, rests: Sequence[tuple[int, int, int]], *, draws: int, gone: int
) -> tuple[int, int]:
    """Return the position at which a pipeline begins, and the epoch at which its run does.

    A part begins so far before the end of an epoch as it has rows left. A mixture that ends begins at the
    draw at which the source that limits it has as much left; one without end goes on counting draws.

    Args:
        root: the pipeline.
        rests: for each part, how many of its epochs were begun, how many rows are left of the last of them,
            and how many rows an epoch has now.
        draws: how often the older pipeline was drawn from.
        gone: how many epochs of its run it had come through.

    Example:
        >>> import seekable as sk
        >>> beginning(sk.from_sequence(range(10)), [(3, 4, 10)], draws=26, gone=1)
        (26, 1)
    """
    begin = _begin(root, list(rests), draws, later=0)
    if root.size is None:
        return begin.position, 0
    if begin.epoch < gone:
        begin = _begin(root, list(rests), draws, later=gone - begin.epoch)
    return begin.position, max(0, begin.epoch - gone)


def draws_before(root: Dataset, position: int) -> int:
    """Return how often was drawn, before a position, from the topmost mixture, or from the one part."""
    while passes_on(root):
        position = root.first_of(position) if isinstance(root, Batch) else position
        root = root.children[0]  # type: ignore[assignment]  # the children of datasets are datasets
    return position


def _begin(node: Dataset, rests: list[tuple[int, int, int]], draws: int, *, later: int) -> Begin:
    """Go down to the part that decides, taking the rests of the others off the list; ``later`` epochs."""
    if isinstance(node, Mix):
        return _begin_of_mix(node, rests, draws, later=later)
    if isinstance(node, Repeat):
        below = _begin(node.child, rests, draws, later=later * node.times)
        return Begin(below.position, below.epoch // node.times)
    if passes_on(node):
        child: Dataset = node.children[0]  # type: ignore[assignment]  # the children of datasets are datasets
        below = _begin(child, rests, draws, later=later)
        if isinstance(node, Batch):
            return Begin(node.batch_of(below.position), below.epoch)
        return (
            Begin(below.position, below.position // node.count)
            if isinstance(node, Slice) and node.count
            else below
        )
    begun, left, size = rests.pop(0)
    if not size:
        return Begin(0, later)
    ends = max(begun, -(-left // size)) + later
    return Begin(ends * size - left, ends - 1 if left else ends)


def _begin_of_mix(mix: Mix, rests: list[tuple[int, int, int]], draws: int, *, later: int) -> Begin:
    limits = mix.limited_by
    found: Begin | None = None
    for slot, child in enumerate(mix.parts):
        if slot == limits:
            found = _begin(child, rests, draws, later=later)
        else:
            del rests[: len(parts_of(child))]
    if found is None:
        return Begin(draws, 0)
    return Begin(mix.drawn_at(limits or 0, found.position), found.epoch)
