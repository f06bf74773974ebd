"""The order of an endless mixture whose weights were changed at given positions while a run was under way.

Each change is a *cut*. Before it every draw stays what it was: the block of draws in which the cut falls
keeps its order and ends early. From the cut on the new weights count from what each lane really delivered,
in blocks of their own. So every source is still consumed in its order in each lane, without a gap, and the
records before a cut are those of the mixture that was never cut.

That is what tells a cut from an entry of a schedule, which is known from the start: an entry makes the block
before it shorter, and a shorter block is permuted anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from seekable.order.apportionment import Apportionment
from seekable.order.arrays import distinct, divided
from seekable.order.keys import derive_each
from seekable.order.mixture import BLOCK, Mixture, in_order, remembered
from seekable.order.permutation import permute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["CutSegment", "SteeredMixture"]


@dataclass(frozen=True, eq=False)
class CutSegment:
    """Weights that hold from a cut on."""

    number: int
    """The number of segments before it, those of the schedule that had begun among them."""
    starts: Int64s
    """For each lane, the first draw that these weights decide."""
    shares: Apportionment
    before: Int64s
    """The records of each source that each lane delivered before: of shape (lanes, sources)."""


@dataclass(frozen=True)
class SteeredMixture:
    """The source, and the position in it, of each record of a mixture that was cut.

    Args:
        base: the mixture that was cut, without end.
        cuts: pairs of a position and the integer weights that hold from there on, in ascending order. What
            the schedule of ``base`` says of later positions does not hold any more.
        known: the segments of the first cuts, if they were counted already.

    Example:
        >>> base = Mixture(schedule=((0, (1, 1)),), key=1, length=None)
        >>> steered = SteeredMixture(base, cuts=((100, (0, 1)),))
        >>> labels, rows = steered.route(np.arange(100, 104))
        >>> labels.tolist(), bool((np.diff(rows) == 1).all())
        ([1, 1, 1, 1], True)
    """

    base: Mixture
    cuts: tuple[tuple[int, tuple[int, ...]], ...]
    known: tuple[CutSegment, ...] = field(default=(), repr=False, compare=False)
    _kept: OrderedDict[tuple[int, int, int], tuple[Int64s, Int64s]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _positions: Int64s = field(init=False, repr=False, compare=False)
    _segments: tuple[CutSegment, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Count what each lane delivered before each cut."""
        assert self.base.length is None
        first = self.cuts[0][0]
        # Entries of the schedule from the cut on never begin, and are not to decide what comes after it.
        begun = max(1, sum(start < first for start, _ in self.base.schedule))
        object.__setattr__(self, "_positions", np.array([at for at, _ in self.cuts], dtype=np.int64))
        object.__setattr__(self, "_segments", self.known)
        for cut, (position, weights) in list(enumerate(self.cuts))[len(self.known) :]:
            starts = np.array([len(range(lane, position, self.lanes)) for lane in range(self.lanes)])
            counts = [self.drawn_by_lanes(source, position, cuts=cut)[1] for source in range(len(weights))]
            segment = CutSegment(begun + cut, starts, Apportionment(weights), np.array(counts).T)
            object.__setattr__(self, "_segments", (*self._segments, segment))

    @property
    def lanes(self) -> int:
        """The number of lanes that the draws are dealt to."""
        return self.base.lanes

    def steered(self, weights: tuple[int, ...], position: int) -> SteeredMixture:
        """Return the mixture with one more cut, after all others."""
        return SteeredMixture(self.base, (*self.cuts, (position, weights)), self._segments)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return, for each position of the mixture, the source and the position in that source."""
        segment = np.searchsorted(self._positions, positions, side="right") - 1
        labels, rows = np.empty_like(positions), np.empty_like(positions)
        for where, routed in ((segment < 0, self._route_base), (segment >= 0, self._route_cut)):
            if where.any():
                labels[where], rows[where] = routed(positions[where], segment[where])
        return labels, rows

    def route_one(self, position: int) -> tuple[int, int]:
        """Return ``route`` of one position, computed from a small cache of blocks."""
        segment = int(np.searchsorted(self._positions, position, side="right")) - 1
        if segment < 0:
            return self.base.route_one(position)
        draw, lane = divmod(position, self.lanes)
        block, slot = divmod(draw - int(self._segments[segment].starts[lane]), BLOCK)
        labels, numbers = self._block((lane, segment, block))
        return int(labels[slot]), int(numbers[slot]) * self.lanes + lane

    def unroute(self, source: int, positions: Int64s) -> Int64s:
        """Return the mixture's positions of a source's positions; undrawn ones are left out."""
        numbers, lane = divided(positions, self.lanes)
        before = np.stack([segment.before[lane, source] for segment in self._segments])
        segment = (before <= numbers).sum(axis=0) - 1
        found = [self.base.unroute(source, positions[segment < 0])]
        for index, each in enumerate(self._segments):
            # A source of weight 0 gives nothing, and its count is that of the next segment, if there is one.
            if each.shares.weights[source]:
                here = segment == index
                found.append(self._unroute_cut(index, source, numbers[here], lane[here]))
        return np.concatenate(found)

    def span(self, source: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return a range of the source's positions that holds all that the given range of positions draws."""
        if stop is None:
            return 0, None
        first, last = (self.drawn_by_lanes(source, at)[1] for at in (start, stop))
        begins = [count * self.lanes + lane for lane, count in enumerate(first)]
        ends = [(count - 1) * self.lanes + lane + 1 if count else 0 for lane, count in enumerate(last)]
        return min(begins), max(ends)

    def drawn_by_lanes(self, source: int, position: int, *, cuts: int | None = None) -> tuple[int, list[int]]:
        """Return 0, and the number of a source's records that each lane draws before a position.

        Args:
            source: the index of the source.
            position: a position of the mixture.
            cuts: the number of cuts to heed, the first ones; None for all.

        Example:
            >>> base = Mixture(schedule=((0, (1, 1)),), key=1, length=None)
            >>> SteeredMixture(base, cuts=((128, (0, 1)),)).drawn_by_lanes(1, 200)
            (0, [136])
        """
        heeded = len(self._segments) if cuts is None else cuts
        index = int(np.searchsorted(self._positions[:heeded], position, side="right")) - 1
        if index < 0:
            return self.base.drawn_by_lanes(source, position)
        return 0, [
            self._drawn_before(source, lane, index, len(range(lane, position, self.lanes)))
            for lane in range(self.lanes)
        ]

    def _drawn_before(self, source: int, lane: int, index: int, draws: int) -> int:
        """Return the number of a source's records among the first draws of a lane, the last in a segment."""
        segment = self._segments[index]
        block, slot = divmod(draws - int(segment.starts[lane]), BLOCK)
        drawn = int(segment.before[lane, source])
        if segment.shares.weights[source]:
            drawn += segment.shares.count(source, block * BLOCK)
        if slot:
            labels, _ = self._block((lane, index, block))
            drawn += int(np.count_nonzero(labels[:slot] == source))
        return drawn

    def _route_base(self, positions: Int64s, segment: Int64s) -> tuple[Int64s, Int64s]:
        return self.base.route(positions)

    def _route_cut(self, positions: Int64s, segment: Int64s) -> tuple[Int64s, Int64s]:
        """Return ``route`` for positions after the first cut, given the index of the segment of each."""
        draw, lane = divided(positions, self.lanes)
        starts = np.stack([each.starts for each in self._segments])
        block, slot = divided(draw - starts[segment, lane], BLOCK)
        blocks, which = distinct(lane, segment, block)
        labels, numbers = self._blocks(blocks)
        return labels[which, slot], numbers[which, slot] * self.lanes + lane

    def _unroute_cut(self, index: int, source: int, numbers: Int64s, lane: Int64s) -> Int64s:
        """Return the positions of a source's draw numbers in some lanes, which are drawn after a cut."""
        segment = self._segments[index]
        draw = segment.shares.when(source, numbers - segment.before[lane, source])
        block = draw // BLOCK
        blocks, which = distinct(lane, np.full(1, index), block)
        labels, block_numbers = self._blocks(blocks)
        slot = ((labels == source)[which] & (block_numbers[which] == numbers[:, None])).argmax(axis=1)
        found: Int64s = (segment.starts[lane] + block * BLOCK + slot) * self.lanes + lane
        return found

    def _block(self, block: tuple[int, int, int]) -> tuple[Int64s, Int64s]:
        return remembered(self._kept, block, self._one_block)

    def _one_block(self, block: tuple[int, int, int]) -> tuple[Int64s, Int64s]:
        labels, numbers = self._blocks(np.array([block], dtype=np.int64))
        return labels[0], numbers[0]

    def _blocks(self, blocks: Int64s) -> tuple[Int64s, Int64s]:
        """Return the labels and draw numbers of whole blocks, a row of slots each.

        Args:
            blocks: of shape (blocks, 3): the lane, the index of the segment, and the block in it.
        """
        lane, segment, block = blocks.T
        keys = np.full(len(blocks), self.base.key, dtype=np.uint64)
        numbered = np.array([each.number for each in self._segments])[segment]
        for part in (np.zeros_like(lane), lane, numbered, block):
            keys = derive_each(keys, part.astype(np.uint64))
        mixed = permute(np.arange(BLOCK), BLOCK, keys[:, None])
        draws = block[:, None] * BLOCK + mixed
        labels, numbers = np.empty_like(draws), np.empty_like(draws)
        for index in np.unique(segment):
            here, each = segment == index, self._segments[index]
            shape = draws[here].shape
            labels[here], numbers[here] = (
                part.reshape(shape) for part in each.shares.draw(draws[here].ravel())
            )
            numbers[here] += each.before[lane[here][:, None], labels[here]]
        owner = np.repeat(np.arange(len(blocks)), BLOCK)
        numbers = in_order(owner * len(self.cuts[0][1]) + labels.ravel(), numbers.ravel())
        return labels, numbers.reshape(-1, BLOCK)
