"""The order of mixtures once more, in plain Python: draw by draw, with lists and nothing computed ahead."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from seekable.order.keys import derive, kind_key
from seekable.order.permutation import permute_one

BLOCK = 64

Schedule = Sequence[tuple[int, Sequence[int]]]


@dataclass(frozen=True)
class Leaf:
    source: int
    weight: int


@dataclass(frozen=True)
class Fork:
    left: Leaf | Fork
    right: Leaf | Fork

    @property
    def weight(self) -> int:
        return self.left.weight + self.right.weight


def tree(weights: Sequence[int]) -> Leaf | Fork:
    """Join the two lightest until one is left: sources before what was joined, and those in order."""
    nodes: list[Leaf | Fork] = [Leaf(i, weight) for i, weight in enumerate(weights) if weight]
    while len(nodes) > 1:
        lightest = min(nodes, key=lambda node: node.weight)
        nodes.remove(lightest)
        second = min(nodes, key=lambda node: node.weight)
        nodes.remove(second)
        nodes.append(Fork(left=second, right=lightest))
    return nodes[0]


def whose(node: Leaf | Fork, draw: int) -> tuple[int, int]:
    """Return the source of a draw and which of its draws it is."""
    while isinstance(node, Fork):
        before, after = _left(node, draw), _left(node, draw + 1)
        node, draw = (node.left, before) if after > before else (node.right, draw - before)
    return node.source, draw


def sources(node: Leaf | Fork) -> list[int]:
    """Return the sources of a tree from left to right."""
    return [*sources(node.left), *sources(node.right)] if isinstance(node, Fork) else [node.source]


def _left(node: Fork, draws: int) -> int:
    """Return draws * left / weight, rounded, halves up."""
    return (2 * draws * node.left.weight + node.weight) // (2 * node.weight)


def lane_labels(schedule: Schedule, *, key: int, epoch: int, lane: int, lanes: int, draws: int) -> list[int]:
    """Return the source of each of a lane's draws: the tree's labels, permuted inside blocks."""
    starts = [-(-position // lanes) for position, _ in schedule]
    labels: list[int] = []
    for segment, (_, weights) in enumerate(schedule):
        following = starts[segment + 1] if segment + 1 < len(starts) else draws
        length = min(following, draws) - starts[segment]
        for first in range(0, length, BLOCK):
            size = min(BLOCK, length - first)
            # A block that the end of what is asked for cuts short is whole in a mixture without end.
            block = derive(key, epoch, lane, segment, first // BLOCK)
            labels += _block_labels(tuple(weights), first, size, block)
    return labels


@functools.lru_cache(maxsize=4096)  # models of streams ask for the same blocks at each draw
def _block_labels(weights: tuple[int, ...], first: int, size: int, key: int) -> list[int]:
    root = tree(weights)
    return [whose(root, first + permute_one(slot, size, key))[0] for slot in range(size)]


def routed(
    schedule: Schedule, *, key: int, length: int, lanes: int = 1, epochs: int = 1
) -> list[tuple[int, int]]:
    """Return source and position there, for each position of some epochs."""
    offsets: Counter[int] = Counter()
    out = []
    for epoch in range(epochs):
        labels = [
            lane_labels(
                schedule,
                key=key,
                epoch=epoch,
                lane=lane,
                lanes=lanes,
                draws=len(range(lane, length, lanes)),
            )
            for lane in range(lanes)
        ]
        drawn: list[Counter[int]] = [Counter() for _ in range(lanes)]
        for row in range(length):
            draw, lane = divmod(row, lanes)
            source = labels[lane][draw]
            out.append((source, offsets[source] + drawn[lane][source] * lanes + lane))
            drawn[lane][source] += 1
        for counts in drawn:
            offsets.update(counts)
    return out


def steered(
    schedule: Schedule, cuts: Schedule, *, key: int, length: int, lanes: int = 1
) -> list[tuple[int, int]]:
    """Return source and position there of a mixture that was cut: each lane counts what it gave."""
    begun = max(1, len([start for start, _ in schedule if start < cuts[0][0]]))
    out: dict[int, tuple[int, int]] = {}
    for lane in range(lanes):
        ends = [len(range(lane, position, lanes)) for position, _ in cuts]
        # Whole blocks, of which the cut leaves a part.
        draws = max([ends[0], *(-(-start // lanes) for start, _ in schedule)]) + 2 * BLOCK
        labels = lane_labels(schedule, key=key, epoch=0, lane=lane, lanes=lanes, draws=draws)[: ends[0]]
        for number, (_, weights) in enumerate(cuts):
            last = ends[number + 1] if number + 1 < len(cuts) else len(range(lane, length, lanes))
            for block in range(-(-(last - ends[number]) // BLOCK)):
                own = derive(key, 0, lane, begun + number, block)
                labels += _block_labels(tuple(weights), block * BLOCK, BLOCK, own)
            labels = labels[:last]
        given: Counter[int] = Counter()
        for draw, source in enumerate(labels):
            out[draw * lanes + lane] = source, given[source] * lanes + lane
            given[source] += 1
    return [out[position] for position in range(length)]


def length_of(weights: Sequence[int], lengths: Sequence[int], *, lanes: int, longest: bool) -> int:
    """Count draws until the first (or every) source has given all of its records."""
    root = tree(weights)
    waiting = {i for i, weight in enumerate(weights) if weight}
    row = 0
    while True:
        draw, lane = divmod(row, lanes)
        source, number = whose(root, draw)
        row += 1
        if number * lanes + lane == lengths[source] - 1:
            waiting.discard(source)
            if not longest or not waiting:
                return row


def windowed(edges: Sequence[int], *, key: int, window: int, lanes: int) -> list[int]:
    """Return the rows of an epoch in the order of a windowed shuffle."""
    blocks, n = len(edges) - 1, edges[-1]
    turns = [permute_one(turn, blocks, derive(key, 0)) for turn in range(blocks)]
    rows = [(turn, row) for turn, block in enumerate(turns) for row in range(edges[block], edges[block + 1])]
    orders: list[list[int]] = []
    for lane in range(lanes):
        run = [rows.pop(0) for _ in range(lane, n, lanes)]
        pieces = [[row for turn, row in run if turn == piece] for piece in sorted({turn for turn, _ in run})]
        count = -(-len(pieces) // window)
        order: list[int] = []
        for number in range(count):
            inside = [
                row
                for piece in pieces[number * len(pieces) // count : (number + 1) * len(pieces) // count]
                for row in piece
            ]
            within = derive(key, 1, lane, number)
            order += [inside[permute_one(i, len(inside), within)] for i in range(len(inside))]
        orders.append(order)
    return [orders[row % lanes][row // lanes] for row in range(n)]


def without(rows: Sequence[int], size: int, epoch: int) -> list[int]:
    """Return what comes in an epoch of ``size`` rows, place by place, if some ascending rows are left out."""
    kept = [row for row in range(size) if row not in set(rows)]
    comes = list(range(size))
    for number, row in enumerate(rows):
        chunk, place = divmod(number, len(kept))
        key = derive(kind_key("without"), 0, epoch, chunk)
        comes[row] = kept[permute_one(place, len(kept), key)]
    return comes
