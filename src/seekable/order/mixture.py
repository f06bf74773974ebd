"""The order of a mixture: the source of each position, and the position in that source.

Draws are counted lane by lane. An ``Apportionment`` says whose draw ``v`` of a lane is; within blocks of 64
draws the labels are permuted, and each source's draw numbers are given out in ascending order, so that every
source is consumed strictly in its own order. The pattern starts anew each epoch while the sources run on:
draw ``q`` of lane ``l`` in epoch ``e`` is position ``e * drawn_an_epoch + q * lanes + l`` of the source.

With a schedule the weights change at given draws; the counts add up over its segments, and the grid of
blocks starts anew at each.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from seekable.order.apportionment import Apportionment
from seekable.order.arrays import distinct, divided, present, united
from seekable.order.keys import derive, derive_each
from seekable.order.permutation import permute

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["BLOCK", "Mixture", "WeightSegment", "epoch_length", "in_order", "limit_of", "remembered"]

BLOCK = 64
"""The number of draws in a block. It is small: a single position costs the labels of its whole block."""

_ONE = np.zeros(1, dtype=np.int64)
"""The index of the only epoch, lane or segment, as an array."""

_BLOCKS_KEPT = 256
"""The number of blocks kept for single positions: 256 x 64 x 16 bytes."""


@dataclass(frozen=True)
class WeightSegment:
    """Weights that hold from one draw of every lane on."""

    start: int
    """The first draw, of each lane, that these weights decide."""
    shares: Apportionment
    before: tuple[int, ...]
    """The number of draws of a lane that each source had in the segments before."""


def segments(schedule: Sequence[tuple[int, Sequence[int]]], *, lanes: int) -> tuple[WeightSegment, ...]:
    """Return a schedule of (position, integer weights) as segments, counted in draws of a lane."""
    laid: list[WeightSegment] = []
    before: tuple[int, ...] = (0,) * len(schedule[0][1])
    for position, weights in schedule:
        start = -(-position // lanes)
        if laid:
            last = laid[-1]
            drawn = start - last.start
            before = tuple(
                b + last.shares.count(i, drawn) if last.shares.weights[i] else b
                for i, b in enumerate(last.before)
            )
        laid.append(WeightSegment(start, Apportionment(tuple(weights)), before))
    return tuple(laid)


def decided_from(starts: Sequence[int], *, lanes: int) -> list[int]:
    """Return, for each entry of a schedule, the first position whose record depends on it.

    An entry cuts short the block of draws in which it begins, and a shorter block is permuted anew: the draws
    of this block before the entry change, too. An entry that begins with a block changes none before itself.

    Args:
        starts: the positions at which the entries begin; the first is 0.
        lanes: the number of lanes that the draws are dealt to.

    Example:
        >>> decided_from([0, 100, 228], lanes=1), decided_from([0, 1000], lanes=8)
        ([0, 64, 228], [0, 512])
    """
    draws = [-(-start // lanes) for start in starts]
    return [0, *(lanes * _block_edge(before, draw) for before, draw in itertools.pairwise(draws))]


def free_from(starts: Sequence[int], position: int, *, lanes: int) -> int:
    """Return the first start that a new entry may have without changing a record before a position.

    Args:
        starts: the positions at which the entries begin that the records before ``position`` depend on.
        position: the records before it have been delivered.
        lanes: the number of lanes that the draws are dealt to.

    Example:
        >>> free_from([0], 100, lanes=1), free_from([0, 100], 128, lanes=1), free_from([0], 1000, lanes=8)
        (128, 164, 1024)
    """
    draw = -(-position // lanes)
    begun = max(each for start in starts if (each := -(-start // lanes)) <= draw)
    edge = _block_edge(begun, draw)
    return lanes * (edge if edge == draw else edge + BLOCK)


def _block_edge(begun: int, draw: int) -> int:
    """Return the first draw of the block that a draw of a segment is in."""
    return begun + (draw - begun) // BLOCK * BLOCK


def epoch_length(weights: Sequence[int], lengths: Sequence[int], *, lanes: int, longest: bool) -> int:
    """Return the number of draws until the first (or, if ``longest``, each) source gave all records once.

    Args:
        weights: integers; a source of weight 0 is never drawn and never limits.
        lengths: the number of records of an epoch of each source, at least 1 where the weight is positive.
        lanes: the number of lanes that the draws are dealt to.
        longest: True to count until every source is through, instead of the first.

    Example:
        >>> epoch_length([7, 3], [700, 900], lanes=1, longest=False)
        1000
    """
    return limit_of(weights, lengths, lanes=lanes, longest=longest)[0]


def limit_of(weights: Sequence[int], lengths: Sequence[int], *, lanes: int, longest: bool) -> tuple[int, int]:
    """Return the length of an epoch, as ``epoch_length``, and the index of the source that ends it.

    Example:
        >>> limit_of([7, 3], [700, 900], lanes=1, longest=False)
        (1000, 0)
    """
    shares = Apportionment(tuple(weights))
    ends = []
    for i, (weight, length) in enumerate(zip(weights, lengths, strict=True)):
        if weight:
            turn, lane = divmod(length - 1, lanes)
            ends.append((shares.when(i, turn) * lanes + lane + 1, i))
    return max(ends) if longest else min(ends)


@dataclass(frozen=True)
class Mixture:
    """The source, and the position in it, of each record of a mixture.

    Args:
        schedule: pairs of a position and the integer weights that hold from there on; the first is at 0.
        key: the 64-bit key of the labels' permutations.
        length: the number of draws of an epoch, or None without end.
        lanes: the number of lanes that the draws are dealt to.

    Example:
        >>> mixture = Mixture(schedule=((0, (7, 3)),), key=1, length=1000)
        >>> labels, rows = mixture.route(np.arange(1000))
        >>> np.bincount(labels).tolist()
        [700, 300]
        >>> bool((rows[labels == 1] == np.arange(300)).all())
        True
    """

    schedule: tuple[tuple[int, tuple[int, ...]], ...]
    key: int
    length: int | None
    lanes: int = 1
    _kept: OrderedDict[tuple[int, int, int, int], tuple[Int64s, Int64s]] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )
    _segments: tuple[WeightSegment, ...] = field(init=False, repr=False, compare=False)
    _starts: Int64s = field(init=False, repr=False, compare=False)
    _an_epoch: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Lay out the segments and count what each source gives in an epoch."""
        laid = segments(self.schedule, lanes=self.lanes)
        object.__setattr__(self, "_segments", laid)
        object.__setattr__(self, "_starts", np.array([s.start for s in laid], dtype=np.int64))
        sources = range(len(self.schedule[0][1]))
        object.__setattr__(self, "_an_epoch", tuple(self._drawn_an_epoch(i) for i in sources))

    def drawn_an_epoch(self, source: int) -> int:
        """Return the number of records of a source that one epoch draws; 0 if epochs have no end."""
        return self._an_epoch[source]

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return, for each position of the mixture, the source and the position in that source."""
        epochs, lane, draw = self._lane_draws(positions)
        segment = _ONE
        if len(self._segments) > 1:
            segment = united(np.searchsorted(self._starts, draw, side="right") - 1)
        block, slot = divided(draw - self._starts[segment], BLOCK)
        blocks, which = distinct(epochs, lane, segment, block)
        labels, numbers = self._blocks(blocks)
        labels, numbers = labels[which, slot], numbers[which, slot]
        return labels, epochs * np.array(self._an_epoch, dtype=np.int64)[labels] + numbers * self.lanes + lane

    def drawn(self, lane: int, draw: int, count: int) -> tuple[Int64s, Int64s]:
        """Return the sources of consecutive draws of a lane, and the number of each among the source's there.

        The mixture has no end.

        Example:
            >>> mixture = Mixture(schedule=((0, (7, 3)),), key=1, length=None, lanes=2)
            >>> labels, numbers = mixture.drawn(1, 50, 30)
            >>> routed, rows = mixture.route(np.arange(50, 80) * 2 + 1)
            >>> bool((labels == routed).all() and (numbers * 2 + 1 == rows).all())
            True
        """
        if len(self._segments) > 1:
            labels, rows = self.route(np.arange(draw, draw + count) * self.lanes + lane)
            return labels, rows // self.lanes
        first = draw // BLOCK
        blocks = np.zeros((-(-(draw + count) // BLOCK) - first, 4), dtype=np.int64)
        blocks[:, 1], blocks[:, 3] = lane, np.arange(first, first + len(blocks))
        at = slice(draw - first * BLOCK, draw - first * BLOCK + count)
        labels, numbers = self._blocks(blocks)
        return labels.reshape(-1)[at], numbers.reshape(-1)[at]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return ``route`` of one position, computed from a small cache of blocks."""
        epoch, row = divmod(position, self.length) if self.length else (0, position)
        draw, lane = divmod(row, self.lanes)
        segment = int(np.searchsorted(self._starts, draw, side="right")) - 1 if len(self._segments) > 1 else 0
        block, slot = divmod(draw - self._segments[segment].start, BLOCK)
        labels, numbers = self._block((epoch, lane, segment, block))
        label = int(labels[slot])
        return label, epoch * self._an_epoch[label] + int(numbers[slot]) * self.lanes + lane

    def unroute(self, source: int, positions: Int64s) -> Int64s:
        """Return the mixture's positions of a source's positions; undrawn ones are left out."""
        an_epoch = self._an_epoch[source]
        if self.length is None:
            epochs, rest = np.zeros_like(positions), positions
        elif an_epoch:
            epochs, rest = np.divmod(positions, an_epoch)
        else:
            return positions[:0]
        numbers, lane = np.divmod(rest, self.lanes)
        segment, draw, drawn = self._draws_of(source, numbers)
        epochs, numbers, lane, segment, draw = (v[drawn] for v in (epochs, numbers, lane, segment, draw))
        block = draw // BLOCK
        blocks, which = distinct(epochs, lane, segment, block)
        labels, block_numbers = self._blocks(blocks)
        slot = ((labels == source)[which] & (block_numbers[which] == numbers[:, None])).argmax(axis=1)
        row = (self._starts[segment] + block * BLOCK + slot) * self.lanes + lane
        found: Int64s = epochs * (self.length or 0) + row
        return found

    def span(self, source: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return a range of the source's positions that holds all that the given range of positions draws."""
        if stop is None:
            return 0, None
        return min(self._next_of(source, start)), max(self._next_of(source, stop, last=True))

    def drawn_by_lanes(self, source: int, position: int) -> tuple[int, list[int]]:
        """Return the source's position at which an epoch begins, and the number that each lane draws of it.

        Args:
            source: the index of the source.
            position: a position of the mixture; the draws of its epoch before it are counted.

        Example:
            >>> Mixture(schedule=((0, (1, 1)),), key=1, length=128).drawn_by_lanes(0, 3 * 128 + 64)
            (192, [32])
        """
        epoch, row = divmod(position, self.length) if self.length else (0, position)
        drawn = [
            self._drawn_before(source, epoch, lane, len(range(lane, row, self.lanes)))
            for lane in range(self.lanes)
        ]
        return epoch * self._an_epoch[source], drawn

    def drawn_at(self, source: int, count: int) -> int:
        """Return the first position before which ``count`` records of a source are drawn, over all epochs.

        Example:
            >>> Mixture(schedule=((0, (1, 1)),), key=1, length=128).drawn_at(0, 3 * 64)
            384
        """
        epoch, rest = divmod(count, self._an_epoch[source])
        length = self.length or 0
        row = bisect_left(
            range(length), rest, key=lambda row: sum(self.drawn_by_lanes(source, epoch * length + row)[1])
        )
        return epoch * length + row

    def _drawn_an_epoch(self, source: int) -> int:
        if self.length is None:
            return 0
        draws, longer = divmod(self.length, self.lanes)
        return (self.lanes - longer) * self._count(source, draws) + longer * self._count(source, draws + 1)

    def _count(self, source: int, draws: int) -> int:
        """Return the number of the source's draws among the first ``draws`` draws of a lane."""
        at = self._segments[int(np.searchsorted(self._starts, draws, side="right")) - 1]
        if not at.shares.weights[source]:
            return at.before[source]
        return at.before[source] + at.shares.count(source, draws - at.start)

    def _next_of(self, source: int, position: int, *, last: bool = False) -> list[int]:
        """Return each lane's next draw of a source from a position on, or one past its ``last``."""
        begun, drawn = self.drawn_by_lanes(source, position)
        if last:
            return [
                begun + (count - 1) * self.lanes + lane + 1 if count else begun
                for lane, count in enumerate(drawn)
            ]
        return [begun + count * self.lanes + lane for lane, count in enumerate(drawn)]

    def _drawn_before(self, source: int, epoch: int, lane: int, draws: int) -> int:
        """Return the number of a source's records among the first draws that a lane delivers in an epoch."""
        segment = int(np.searchsorted(self._starts, draws, side="right")) - 1
        start = self._segments[segment].start
        block, slot = divmod(draws - start, BLOCK)
        drawn = self._count(source, start + block * BLOCK)
        if slot:
            labels, _ = self._block((epoch, lane, segment, block))
            drawn += int(np.count_nonzero(labels[:slot] == source))
        return drawn

    def _draws_of(self, source: int, numbers: Int64s) -> tuple[Int64s, Int64s, NDArray[np.bool_]]:
        """Return the segment of each draw number of a source in a lane, and the draw within the segment."""
        before = np.array([s.before[source] for s in self._segments], dtype=np.int64)
        segment = np.searchsorted(before, numbers, side="right") - 1
        draw = np.zeros_like(numbers)
        drawn = np.zeros(numbers.size, dtype=np.bool_)
        for i in np.unique(segment):
            at = self._segments[i]
            if at.shares.weights[source]:
                here = segment == i
                drawn |= here
                draw[here] = at.shares.when(source, numbers[here] - before[i])
        return segment, draw, drawn

    def _lane_draws(self, positions: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return epoch, lane and draw of each position; one element stands for all positions."""
        epochs, rows = divided(positions, self.length) if self.length else (_ONE, positions)
        if self.lanes == 1:
            return united(epochs), _ONE, rows
        draw, lane = divided(rows, self.lanes)
        return united(epochs), lane, draw

    def _block(self, block: tuple[int, int, int, int]) -> tuple[Int64s, Int64s]:
        return remembered(self._kept, block, self._one_block)

    def _one_block(self, place: tuple[int, int, int, int]) -> tuple[Int64s, Int64s]:
        """Return ``_blocks`` of one block: its slots alone, by a key that is made without arrays."""
        epoch, lane, segment, block = place
        first = block * BLOCK
        ends = self._lane_ends(np.array([lane]), np.array([segment]))
        size = min(int(ends[0]) - first, BLOCK)
        mixed = permute(np.arange(size), size, derive(self.key, epoch, lane, segment, block))
        labels, numbers = self._draw(np.full(size, segment), first + mixed)
        return labels, in_order(labels, numbers)

    def _blocks(self, blocks: Int64s) -> tuple[Int64s, Int64s]:
        """Return the labels and draw numbers of whole blocks, a row of slots each.

        Slots past the end of a short last block hold label -1.
        """
        epochs, lane, segment, block = blocks.T
        first = block * BLOCK
        sizes = np.minimum(self._lane_ends(lane, segment) - first, BLOCK)
        keys = np.full(len(blocks), self.key, dtype=np.uint64)
        for part in (epochs, lane, segment, block):
            keys = derive_each(keys, part.astype(np.uint64))
        owner = np.repeat(np.arange(len(blocks)), BLOCK)
        if (sizes == BLOCK).all():
            # The usual case, and cheaper: one size for all, and one key for each block.
            mixed = permute(np.arange(BLOCK), BLOCK, keys[:, None]).reshape(-1)
            labels, numbers = self._in_order(owner, segment[owner], first[owner] + mixed)
            return labels.reshape(-1, BLOCK), numbers.reshape(-1, BLOCK)
        slots = np.tile(np.arange(BLOCK), len(blocks))
        inside = slots < sizes[owner]
        owner = owner[inside]
        mixed = permute(slots[inside], sizes[owner], keys[owner])
        out = np.full((2, len(slots)), -1, dtype=np.int64)
        out[:, inside] = self._in_order(owner, segment[owner], first[owner] + mixed)
        return out[0].reshape(-1, BLOCK), out[1].reshape(-1, BLOCK)

    def _in_order(self, owner: Int64s, segment: Int64s, draws: Int64s) -> tuple[Int64s, Int64s]:
        """Return labels, and numbers so that those of each source ascend within a block."""
        labels, numbers = self._draw(segment, draws)
        return labels, in_order(owner * len(self._an_epoch) + labels, numbers)

    def _lane_ends(self, lane: Int64s, segment: Int64s) -> Int64s:
        """Return the number of draws of each lane in each segment."""
        endless = np.iinfo(np.int64).max
        if self.length is None:
            ends = np.full(lane.size, endless)
        else:
            ends = (self.length - lane + self.lanes - 1) // self.lanes
        following = np.append(self._starts[1:], endless)[segment]
        lengths: Int64s = np.minimum(ends, following) - self._starts[segment]
        return lengths

    def _draw(self, segment: Int64s, draws: Int64s) -> tuple[Int64s, Int64s]:
        if len(self._segments) == 1:
            return self._segments[0].shares.draw(draws)
        labels, numbers = np.empty_like(draws), np.empty_like(draws)
        for i in present(segment):
            here = segment == i
            labels[here], drawn = self._segments[i].shares.draw(draws[here])
            numbers[here] = drawn + np.array(self._segments[i].before, dtype=np.int64)[labels[here]]
        return labels, numbers


Place = TypeVar("Place", bound=tuple[int, ...])


def remembered(
    kept: OrderedDict[Place, tuple[Int64s, Int64s]],
    place: Place,
    block_of: Callable[[Place], tuple[Int64s, Int64s]],
) -> tuple[Int64s, Int64s]:
    """Return the labels and draw numbers of one block, from the blocks of the last single positions.

    Args:
        kept: these blocks; the new one is added, and the oldest is dropped where there are many.
        place: the numbers that name the block.
        block_of: makes a block.
    """
    block = kept.get(place)
    if block is None:
        block = kept[place] = block_of(place)
        if len(kept) > _BLOCKS_KEPT:
            kept.popitem(last=False)
    return block


def in_order(groups: Int64s, numbers: Int64s) -> Int64s:
    """Return numbers with those of each group, which are consecutive, sorted in ascending order.

    Example:
        >>> in_order(np.array([0, 1, 0]), np.array([8, 3, 7])).tolist()
        [7, 3, 8]
    """
    if not groups.size:
        return numbers
    # Small integers are sorted by radix, in linear time.
    order = np.argsort(groups.astype(np.uint16) if groups.max() < 1 << 16 else groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(starts, append=groups.size)
    least = np.minimum.reduceat(numbers[order], starts)
    out = np.empty_like(numbers)
    out[order] = np.repeat(least - starts, lengths) + np.arange(groups.size)
    return out
