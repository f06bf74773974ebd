"""The position at which a pipeline that resumes by rows begins, so that its epochs end with its sources'."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seekable.nodes.batch import Batch
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.slice import Slice
from seekable.resume.sources import keeps_positions, sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.nodes.node import Node

__all__ = ["BegunEpoch", "Start", "draws_before", "start_position"]


class BegunEpoch(NamedTuple):
    """The part of a begun epoch that a source of the new pipeline still has to deliver."""

    num_begun: int
    """The number of epochs that the old run had begun, this one included."""

    num_left: int
    """The number of rows left of the begun epoch."""

    size: int
    """The number of rows in an epoch of the new source."""


class Start(NamedTuple):
    """A position of a dataset, and an epoch."""

    position: int
    epoch: int


def start_position(root: Node, begun: Sequence[BegunEpoch], *, num_draws: int, num_epochs: int) -> Start:
    """Return the position at which a pipeline begins, and the number of the first epoch of its run.

    A source begins as many rows before the end of an epoch as are left of the begun one. A mixture that ends
    begins at the draw at which the source that limits it has so many left. A mixture without end goes on
    counting draws.

    Args:
        root: the new pipeline.
        begun: for each of its sources, what the old run left of it.
        num_draws: how many positions the old pipeline had drawn.
        num_epochs: how many epochs of its run the old pipeline had finished.

    Example:
        The old run of 10 rows was in epoch 2 with 4 rows left; its run had begun with epoch 1:

        >>> import seekable as sk
        >>> start_position(sk.from_sequence(range(10)), [BegunEpoch(3, 4, 10)], num_draws=26, num_epochs=1)
        Start(position=26, epoch=1)
    """
    start = _start(root, list(begun), num_draws, later=0)
    if root.size is None:
        return Start(start.position, 0)
    if start.epoch < num_epochs:
        start = _start(root, list(begun), num_draws, later=num_epochs - start.epoch)
    return Start(start.position, max(0, start.epoch - num_epochs))


def draws_before(root: Node, position: int) -> int:
    """Return the number of draws of the topmost mixture, or of rows of the one source, before a position."""
    while keeps_positions(root):
        position = root.start_of(position) if isinstance(root, Batch) else position
        root = root.children[0]
    return position


def _start(node: Node, begun: list[BegunEpoch], num_draws: int, *, later: int) -> Start:
    """Return the start of a node, which the source below decides that limits it.

    Args:
        node: a node of the new pipeline.
        begun: of the sources from this node on; those below the node are taken off.
        num_draws: how many positions the old pipeline had drawn.
        later: by how many epochs of the node to begin later than the source would.
    """
    if isinstance(node, Mix):
        return _start_of_mix(node, begun, num_draws, later=later)
    if isinstance(node, Repeat):
        below = _start(node.child, begun, num_draws, later=later * node.times)
        return Start(below.position, below.epoch // node.times)
    if keeps_positions(node):
        return _start_above(node, begun, num_draws, later=later)
    num_begun, num_left, size = begun.pop(0)
    if not size:
        return Start(0, later)
    # More rows may be left than an epoch has: then the epoch ends in a later one.
    end = max(num_begun, -(-num_left // size)) + later
    return Start(end * size - num_left, end - 1 if num_left else end)


def _start_above(node: Node, begun: list[BegunEpoch], num_draws: int, *, later: int) -> Start:
    """Return the start of a node that keeps the positions of its child, or puts them in batches."""
    child: Node = node.children[0]
    below = _start(child, begun, num_draws, later=later)
    if isinstance(node, Batch):
        return Start(node.batch_of(below.position), below.epoch)
    if isinstance(node, Slice) and node.count:
        return Start(below.position, below.position // node.count)
    return below


def _start_of_mix(mix: Mix, begun: list[BegunEpoch], num_draws: int, *, later: int) -> Start:
    """Return the draw at which the part that limits a mixture begins; without such a part, ``num_draws``."""
    limit: Start | None = None
    for slot, child in enumerate(mix.parts):
        if slot == mix.limited_by:
            limit = _start(child, begun, num_draws, later=later)
        else:
            del begun[: len(sources_of(child))]
    if limit is None:
        return Start(num_draws, 0)
    return Start(mix.drawn_at(mix.limited_by or 0, limit.position), limit.epoch)
