"""How many of the first ``v`` draws go to each source: a binary tree of rounded splits.

At a node where two subtrees of weight ``l`` and ``w - l`` meet, the left one gets ``round(v * l / w)`` of the
node's first ``v`` draws. The tree is Huffman's, so heavy sources are few splits away. Counts are monotone,
within 2 of ``weight * v`` at every ``v``, and can be inverted: which draw is a source's ``u``-th is as cheap
to say as whose draw ``v`` is.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Apportionment"]

Count = TypeVar("Count", int, "NDArray[np.int64]")


@dataclass(frozen=True)
class Apportionment:
    """The draws of sources with the given integer weights, which sum to at most 2**31.

    Example:
        >>> shares = Apportionment((7, 3))
        >>> shares.count(0, 10), shares.count(1, 10)
        (7, 3)
        >>> labels, numbers = shares.draw(np.arange(5))
        >>> labels.tolist(), numbers.tolist()
        ([0, 1, 0, 0, 0], [0, 0, 1, 2, 3])
        >>> shares.when(1, 1)
        5
    """

    weights: tuple[int, ...]

    _tree: _Tree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Plant the tree."""
        object.__setattr__(self, "_tree", _huffman(self.weights))

    def count(self, source: int, draws: Count) -> Count:
        """Return how many of the first ``draws`` draws are the source's: one number, or one for each."""
        for fork in self._tree.paths[source]:
            left = _left_count(draws, fork.left, fork.weight)
            draws = left if fork.goes_left else draws - left
        return draws

    def when(self, source: int, number: Count) -> Count:
        """Return which draw is the source's ``number``-th, both from 0; the source's weight is not 0."""
        for fork in reversed(self._tree.paths[source]):
            weight, own = fork.weight, fork.left if fork.goes_left else fork.weight - fork.left
            if fork.goes_left:
                number = _ceil_scaled(number + 1, weight, own) - 1
            else:
                number = number // own * weight + (number % own * weight + weight // 2) // own
        return number

    def draw(self, draws: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each draw, whose it is and which of that source's draws it is."""
        tree = self._tree
        # Unsigned numbers are divided faster.
        numbers = draws.astype(np.uint64)
        if tree.root < 0:
            return np.full(draws.size, ~tree.root, dtype=np.int64), draws.astype(np.int64)
        # All begin at the root, and one node for all is cheaper to pass.
        nodes, numbers = tree.step(np.array([tree.root]), numbers)
        moving = np.flatnonzero(nodes >= 0)
        while moving.size:
            nodes[moving], numbers[moving] = tree.step(nodes[moving], numbers[moving])
            moving = moving[nodes[moving] >= 0]
        return ~nodes, numbers.astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Fork:
    """A node on the way to a source."""

    left: int
    weight: int
    goes_left: bool


@dataclass(frozen=True, slots=True)
class _Tree:
    """Nodes as columns; a child of 0 or more is a node, ``~child`` of a negative one a source."""

    root: int
    left_weight: NDArray[np.uint64]
    weight: NDArray[np.uint64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    paths: tuple[tuple[_Fork, ...], ...]
    """For each source, its way from the root."""

    def step(
        self, nodes: NDArray[np.int64], draws: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Pass draws on to a child of their node, or of one node for all, with their numbers there."""
        left_weight, weight = self.left_weight[nodes], self.weight[nodes]
        rounds = draws // weight
        dealt = (draws - rounds * weight) * left_weight + weight // np.uint64(2)
        share = dealt // weight
        left = rounds * left_weight + share
        # The left count grows at this draw if the remainder comes round to the weight.
        goes_left = dealt - share * weight + left_weight >= weight
        below = np.where(goes_left, self.left[nodes], self.right[nodes])
        return below, np.where(goes_left, left, draws - left)


def _huffman(weights: Sequence[int]) -> _Tree:
    # The second entry breaks ties, so that the tree depends on the weights' order and nothing else.
    heap = [(weight, i, ~i) for i, weight in enumerate(weights) if weight]
    heapq.heapify(heap)
    nodes: list[tuple[int, int, int, int]] = []
    while len(heap) > 1:
        light, _, right = heapq.heappop(heap)
        heavy, _, left = heapq.heappop(heap)
        heapq.heappush(heap, (light + heavy, len(weights) + len(nodes), len(nodes)))
        nodes.append((heavy, light + heavy, left, right))
    root = heap[0][2]
    columns = np.array(nodes, dtype=np.int64).reshape(-1, 4).T
    left_weight, weight = columns[:2].astype(np.uint64)
    return _Tree(root, left_weight, weight, columns[2], columns[3], _paths(root, nodes, len(weights)))


def _paths(
    root: int, nodes: Sequence[tuple[int, int, int, int]], sources: int
) -> tuple[tuple[_Fork, ...], ...]:
    paths: list[tuple[_Fork, ...]] = [()] * sources
    pending: list[tuple[int, tuple[_Fork, ...]]] = [(root, ())]
    while pending:
        node, path = pending.pop()
        if node < 0:
            paths[~node] = path
        else:
            left_weight, weight, left, right = nodes[node]
            pending.append((left, (*path, _Fork(left_weight, weight, goes_left=True))))
            pending.append((right, (*path, _Fork(left_weight, weight, goes_left=False))))
    return tuple(paths)


def _left_count(draws: Count, left: Count | int, weight: Count | int) -> Count:
    """``round(draws * left / weight)`` without a product above 2**62."""
    rounds, rest = draws // weight, draws % weight
    return rounds * left + (rest * left + weight // 2) // weight


def _ceil_scaled(number: Count, weight: int, left: int) -> Count:
    """``ceil((number * weight - weight // 2) / left)`` without a product above 2**62."""
    rounds, rest = number // left, number % left
    return rounds * weight - (weight // 2 - rest * weight) // left
