"""The node that resumes a source by rows: the rows left of its old order first, then its new order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.bases import EachRouter
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.blocks import default_blocks
from seekable.order.positions import PositionList, StridedRange
from seekable.order.remaining import Remaining
from seekable.resume.pipeline_sources import remaining_by_source, with_sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["Continued", "OldSegment", "continued", "simplified"]


@dataclass(frozen=True, slots=True)
class OldSegment:
    """Some positions in one of a `Continued` node's old orders."""

    slot: int
    """The index of the order among ``Continued.olds``."""

    positions: StridedRange
    """The positions in that order, delivered in ascending order."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Continued(OrderNode):
    """Delivers the segments of the old orders, one after the other, then ``new`` from ``first`` on.

    All of this comes at the positions in ``axis``: those of this node that the old run had not drawn. The
    ``i``-th of them has the *ordinal* ``i``. Positions that are not in ``axis`` were drawn before; nothing
    draws them again, and they have the record that ``new`` has there.

    Example:
        Of an old order of five rows, rows 3 and 4 were not delivered. They come at positions 3 and 4, then
        comes epoch 1 of the new order:

        >>> import seekable as sk
        >>> old = sk.from_sequence("abcde")._node
        >>> new = sk.from_sequence("abcde").shuffle(seed=1)._node
        >>> node = Continued((old,), new, (OldSegment(0, StridedRange(3, 2)),), Remaining((), 3), first=5)
        >>> [node.route_one(position) for position in range(3, 7)]
        [(0, 3), (0, 4), (1, 5), (1, 6)]
    """

    olds: tuple[Node, ...]
    new: Node
    segments: tuple[OldSegment, ...]
    axis: Remaining
    first: int

    kind: ClassVar[str] = "continued"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            EndlessDataset: ``new`` has no length.
            ValueError: a segment is of an order that is not in ``olds``.
        """
        known_size(self.new, "resume='rows'")
        if any(segment.slot >= len(self.olds) for segment in self.segments):
            message = f"segments must be of the {len(self.olds)} older orders (got {self.segments!r:.100})"
            raise ValueError(message)

    @property
    def children(self) -> tuple[Node, ...]:
        """The old orders, then the new one."""
        return (*self.olds, self.new)

    @property
    def size(self) -> int:
        """The number of records in an epoch of the new order."""
        return known_size(self.new, "resume='rows'")

    @property
    def steady(self) -> bool:
        """False: the segments come only once."""
        return False

    @property
    def blocks(self) -> Int64s:
        """Runs of 1,024 rows, because rows of any block may be among the segments."""
        return default_blocks(self.size)

    @property
    def lanes(self) -> int:
        """The lanes of the new order, which is all that is left once the segments have come."""
        return self.new.lanes

    @property
    def num_pending(self) -> int:
        """The number of rows in all segments."""
        return self._positions.size

    @property
    def shift(self) -> int:
        """By how much the positions of ``new`` are higher than those of this node after the segments."""
        return self.first - self.num_pending + self._axis.size - self.axis.frontier

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the segments, the positions at which they come, and where the new order begins."""
        return {
            "pieces": [[segment.slot, segment.positions.as_json()] for segment in self.segments],
            "lagging": [each.as_json() for each in self.axis.ranges],
            "tail": self.axis.frontier,
            "first": self.first,
        }

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Continued:
        """Return the node with these arguments over the old orders and, last, the new one.

        Raises:
            ValueError: no node has them.
        """
        *olds, new = children
        segments = tuple(
            OldSegment(slot, StridedRange.from_json(positions)) for slot, positions in arguments["pieces"]
        )
        ranges = tuple(StridedRange.from_json(each) for each in arguments["lagging"])
        return cls(tuple(olds), new, segments, Remaining(ranges, arguments["tail"]), arguments["first"])

    def shown(self, children: Sequence[str]) -> str:
        """Return a description in angle brackets, because no expression makes this node."""
        return f"<{self.num_pending:,} rows left, then {children[-1]}>"

    @classmethod
    def router(cls, nodes: Sequence[Continued]) -> Router:
        """Return a router that serves one node after another."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return, for each position, the slot of the order that it is of and the position there."""
        ordinals, in_axis = self.ordinals(positions)
        slots = np.full(positions.size, len(self.olds), dtype=np.int64)
        below = np.where(in_axis, self.first + ordinals - self.num_pending, positions)
        is_old = in_axis & (ordinals < self.num_pending)
        if is_old.any():
            which, below[is_old] = self._positions.at(ordinals[is_old])
            slots[is_old] = self._slots[which]
        return slots, below

    def route_one(self, position: int) -> tuple[int, int]:
        """Return what ``route`` returns for one position, computed without arrays."""
        ordinal, in_axis = self._axis.count_before_one(position)
        if position >= self.axis.frontier:
            ordinal, in_axis = self._axis.size + position - self.axis.frontier, True
        if not in_axis:
            return len(self.olds), position
        if ordinal < self.num_pending:
            which, below = self._positions.at_one(ordinal)
            return self.segments[which].slot, below
        return len(self.olds), self.first + ordinal - self.num_pending

    def ordinals(self, positions: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return the number of positions of the axis below each position, and if it is one itself."""
        ordinals, in_axis = self._axis.count_before(positions)
        beyond = positions - self.axis.frontier
        return np.where(beyond < 0, ordinals, self._axis.size + beyond), in_axis | (beyond >= 0)

    def ordinal(self, position: int) -> int:
        """Return the number of positions of the axis below one position."""
        return int(self.ordinals(np.array([position], dtype=np.int64))[0][0])

    def positions_at(self, ordinals: Int64s) -> Int64s:
        """Return the positions of the axis with these ordinals."""
        positions = ordinals - self._axis.size + self.axis.frontier
        is_straggler = ordinals < self._axis.size
        if is_straggler.any():
            positions[is_straggler] = self._axis.at(ordinals[is_straggler])[1]
        return positions

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of a child's positions that positions from ``start`` to ``stop`` may lead to.

        Of an old order it is the range of all its segments.
        """
        if slot < len(self.olds):
            own = [segment.positions for segment in self.segments if segment.slot == slot]
            ends = (each.start + each.count * each.step for each in own)
            return min((each.start for each in own), default=0), max(ends, default=0)
        low = min(start, max(self.first, self.first + self.ordinal(start) - self.num_pending))
        if stop is None:
            return low, None
        last = self.first + max(0, self.ordinal(stop) - self.num_pending)
        return low, max(min(stop, self.axis.frontier), last)

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of this node that lead to some positions of a child."""
        if slot < len(self.olds):
            own = [which for which, segment in enumerate(self.segments) if segment.slot == slot]
            found = [self._positions.indices_in(which, positions) for which in own]
            ordinals = np.concatenate([np.empty(0, dtype=np.int64), *found])
            return self.positions_at(ordinals[ordinals >= 0])
        passed = positions[(positions < self.axis.frontier) & ~self._axis.count_before(positions)[1]]
        coming = positions[positions >= self.first] - self.first + self.num_pending
        return np.concatenate([passed, self.positions_at(coming)])

    @cached
    def _positions(self) -> PositionList:
        return PositionList(segment.positions for segment in self.segments)

    @cached
    def _slots(self) -> Int64s:
        return np.array([segment.slot for segment in self.segments], dtype=np.int64)

    @cached
    def _axis(self) -> PositionList:
        return PositionList(self.axis.ranges)


def continued(segments: Sequence[tuple[Node, StridedRange]], new: Node, axis: Remaining, first: int) -> Node:
    """Return a dataset that delivers some segments first, and then ``new`` from a position on.

    It is a `Continued` node in its simplest form, or ``new`` itself if that has the same order.

    Args:
        segments: pairs of an old order and positions of it.
        new: the new order.
        axis: the positions at which all of this comes.
        first: the position at which ``new`` begins.

    Example:
        A last segment that leads up to ``first`` in the new order itself needs no node:

        >>> import seekable as sk
        >>> ds = sk.from_sequence("abcde")
        >>> continued([(ds, StridedRange(3, 2))], ds, Remaining((), 3), first=5) is ds
        True
    """
    segments = list(segments)
    while segments and segments[-1][0] is new and _leads_up_to(segments[-1][1], first):
        first = segments.pop()[1].start
    if not segments and not axis.ranges:
        return _shifted(new, first - axis.frontier)
    olds = list({id(order): order for order, _ in segments}.values())
    slots = {id(order): slot for slot, order in enumerate(olds)}
    numbered = tuple(OldSegment(slots[id(order)], positions) for order, positions in segments)
    return Continued(tuple(olds), new, numbered, axis, first)


def simplified(root: Node, remaining: Remaining, *, delivered: Node | None = None) -> Node:
    """Return a dataset without the segments that have come, where only ``remaining`` is still to come.

    A `Continued` node of which some segment is still to come stays as it is, so that the dataset, and with it
    the fingerprint of its states, changes once and not at each position.

    Args:
        root: the dataset.
        remaining: the positions of the dataset that are still to come.
        delivered: the dataset of the same sources that has delivered the others, where that is not ``root``.
    """
    sources = [
        _shifted(source.new, source.shift) if _has_come(source, own) else source
        for source, own in remaining_by_source(root if delivered is None else delivered, remaining)
    ]
    return with_sources(root, sources)


def _has_come(source: Node, remaining: Remaining) -> TypeGuard[Continued]:
    """Return True for a `Continued` node with segments or stragglers, all of which were delivered."""
    if not isinstance(source, Continued) or not (source.segments or source.axis.ranges):
        return False
    return remaining.first >= source.axis.frontier and source.ordinal(remaining.first) >= source.num_pending


def _shifted(new: Node, by: int) -> Node:
    """Return a dataset that is ``by`` positions further on: ``new`` itself if that is 0."""
    return Continued((), new, (), Remaining((), max(0, -by)), max(0, by)) if by else new


def _leads_up_to(positions: StridedRange, stop: int) -> bool:
    return positions.step == 1 and positions.start + positions.count == stop
