"""The rows that an old run has not delivered of the epoch that a source had begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.nodes.graph import known_size
from seekable.order.positions import StridedRange, ranges_of
from seekable.order.remaining import Remaining
from seekable.resume.continued import Continued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.nodes.node import Node


__all__ = ["Remainder", "in_ordinals", "remainder_of", "segments_at", "segments_from"]

Segments = tuple[tuple["Node", StridedRange], ...]
"""Pairs of an order and some of its positions, in the order in which they are delivered."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """The rows left of the last epoch of which a source delivered anything."""

    segments: Segments
    """The rows that are left: those in flight, then the others in the order of the epoch."""

    num_begun: int
    """The number of epochs that were begun, which is also the number of the next epoch."""

    size: int
    """The number of records in an epoch."""

    @property
    def num_delivered(self) -> int:
        """The number of rows of the begun epoch that were delivered; 0 if lanes are still in two epochs."""
        return max(0, self.size - self.num_left) if self.num_begun else 0

    @property
    def num_left(self) -> int:
        """The number of rows in all segments."""
        return sum(len(positions) for _, positions in self.segments)


def remainder_of(source: Node, remaining: Remaining, in_flight: Int64s | None = None) -> Remainder:
    """Return the rows that are left of the begun epoch of a source.

    Args:
        source: the old order; a `Continued` node if that run had been resumed by rows itself.
        remaining: the positions of the source that were not drawn.
        in_flight: 1-D positions that were drawn, and of whose rows nothing was delivered.

    Example:
        Seven positions of a source of five rows were drawn, so epoch 1 is begun. Position 6 waits in a
        buffer; it comes first, then the rest of epoch 1:

        >>> import seekable as sk
        >>> left = remainder_of(sk.from_sequence("abcde"), Remaining((), 7), np.array([6]))
        >>> left.num_begun, [positions.as_json() for _, positions in left.segments]
        (2, [[6, 1], [7, 3]])
    """
    size = known_size(source, "resume='rows'")
    if not size:
        return Remainder((), 0, 0)
    if in_flight is None:
        in_flight = np.empty(0, dtype=np.int64)
    if isinstance(source, Continued):
        return _remainder_of_continued(source, remaining, in_flight, size)
    num_begun, stop = _epoch_with(remaining.frontier - 1, size)
    positions = (*ranges_of(in_flight), *remaining.before(stop))
    return Remainder(tuple((source, each) for each in positions), num_begun, size)


def _remainder_of_continued(
    source: Continued, remaining: Remaining, in_flight: Int64s, size: int
) -> Remainder:
    """Return the rows that are left of a source that was itself resumed by rows.

    The axis of a `Continued` node is counted in ordinals: those below ``num_pending`` are rows of its
    segments, the others positions of its new order.

        ordinal        0 1 2 3 4 5 6 7 ...
        leads to       s s s n n n n n      segments of 3 rows, then the new order from ``first`` on
        delivered      x   x x   x
        left             s     n   n n      to the end of the epoch of the new order that was begun
    """
    ordinals = in_ordinals(source, remaining)
    is_old = ordinals.stragglers < source.num_pending
    old = np.concatenate([source.ordinals(in_flight)[0], ordinals.stragglers[is_old]])
    # From here on positions of the new order; where only segments were drawn, none of it was.
    shift = source.first - source.num_pending
    frontier = max(ordinals.frontier, source.num_pending) + shift
    new = Remaining(ranges_of(ordinals.stragglers[~is_old] + shift), frontier)
    num_begun, stop = _epoch_with(frontier - 1, size)
    segments = (
        *segments_at(source, old),
        *segments_from(source, ordinals.frontier),
        *((source.new, positions) for positions in new.before(stop)),
    )
    return Remainder(segments, num_begun, size)


def in_ordinals(source: Continued, remaining: Remaining) -> Remaining:
    """Return the ordinals of the positions of a source that remain."""
    # Positions before the frontier need not be of the axis: then nothing was drawn since the node was made,
    # and the frontier moves back to ordinal 0, or to the last straggler.
    stragglers, _ = source.ordinals(remaining.stragglers)
    return Remaining((), source.ordinal(remaining.frontier)).including(stragglers)


def _epoch_with(position: int, size: int) -> tuple[int, int]:
    """Return the number of epochs that have begun at a position, and the end of the last of them."""
    num_begun = position // size + 1
    return num_begun, num_begun * size


def segments_at(source: Continued, ordinals: Int64s) -> Iterator[tuple[Node, StridedRange]]:
    """Yield the rows at some ordinals, in their order, as segments of the orders that they are of."""
    if not ordinals.size:
        return
    slots, positions = source.route(source.positions_at(ordinals))
    changes = np.flatnonzero(np.diff(slots)) + 1
    for slot, some in zip(slots[np.append(0, changes)], np.split(positions, changes), strict=True):
        yield from ((source.children[int(slot)], each) for each in ranges_of(some))


def segments_from(source: Continued, ordinal: int) -> Iterator[tuple[Node, StridedRange]]:
    """Yield the segments of a source without the rows below an ordinal."""
    for segment in source.segments:
        old = source.olds[segment.slot]
        yield from ((old, each) for each in segment.positions.without_first(ordinal))
        ordinal = max(0, ordinal - len(segment.positions))
