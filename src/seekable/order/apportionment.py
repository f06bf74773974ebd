"""The share that each source has in the first ``v`` draws of a mixture: a binary tree of rounded splits.

At a node where two subtrees of weight ``l`` and ``w - l`` meet, the left one gets ``round(v * l / w)`` of the
node's first ``v`` draws. The tree is Huffman's, so heavy sources are few splits away. Counts are monotone,
within 2 of ``weight * v`` at every ``v``, and can be inverted: to compute the draw of a source's ``u``-th
record costs as much as to compute the source of draw ``v``.

The weights are integers: the exact ratio of a user's weights where it fits, else the ratio rounded by largest
remainder.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


__all__ = ["LARGEST_TOTAL", "Apportionment", "apportion", "whole_weights"]


Count = TypeVar("Count", int, "NDArray[np.int64]")


@dataclass(frozen=True)
class Apportionment:
    """The draws of sources with the given integer weights.

    The weights sum to at most 2**31 for ``draw``, and to at most 2**50 for the rest.

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

    _tree: _ShareTree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the tree of the weights."""
        object.__setattr__(self, "_tree", _huffman(self.weights))

    def count(self, source: int, draws: Count) -> Count:
        """Return the number of the first ``draws`` draws that are the source's, as a number or an array."""
        for fork in self._tree.paths[source]:
            left = _left_count(draws, fork.left, fork.weight)
            draws = left if fork.goes_left else draws - left
        return draws

    def when(self, source: int, number: Count) -> Count:
        """Return the draw that is the source's ``number``-th, both from 0; the source's weight is not 0."""
        for fork in reversed(self._tree.paths[source]):
            weight, own = fork.weight, fork.left if fork.goes_left else fork.weight - fork.left
            if fork.goes_left:
                number = _ceil_scaled(number + 1, weight, own) - 1
            else:
                number = number // own * weight + _scaled(number % own, weight, own, weight // 2)
        return number

    def run(self, source: int, start: Count, stop: Count) -> tuple[Count, Count, Count]:
        """Return how some consecutive draws would be shared out if those of each source stood together.

        Returns:
            The number of the source's draws before ``start``; then the edges of its run among the draws from
            ``start`` to ``stop``: all sources, in an order of the tree, share them out without gaps.
        """
        first = start - start
        for fork in self._tree.paths[source]:
            left, left_stop = (_left_count(draws, fork.left, fork.weight) for draws in (start, stop))
            if fork.goes_left:
                start, stop = left, left_stop
            else:
                first = first + left_stop - left
                start, stop = start - left, stop - left_stop
        return start, first, first + stop - start

    def draw(self, draws: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source of each draw, and the number of the draw among that source's, both int64."""
        tree = self._tree
        # Unsigned numbers are divided faster.
        numbers = draws.astype(np.uint64)
        if tree.root < 0:
            return np.full(draws.size, ~tree.root, dtype=np.int64), draws.astype(np.int64)
        # All begin at the root, and one node for all is cheaper to pass.
        nodes, numbers = tree.step(np.array([tree.root]), numbers)
        while nodes.size and (nodes >= 0).all():
            nodes, numbers = tree.step(nodes, numbers)
        moving = np.flatnonzero(nodes >= 0)
        while moving.size:
            nodes[moving], numbers[moving] = tree.step(nodes[moving], numbers[moving])
            moving = moving[nodes[moving] >= 0]
        return ~nodes, numbers.astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Fork:
    """A node on the path from the root to a source."""

    left: int
    weight: int
    goes_left: bool


@dataclass(frozen=True, slots=True)
class _ShareTree:
    """Nodes as columns; a child of 0 or more is a node, ``~child`` of a negative one a source."""

    root: int
    left_weight: NDArray[np.uint64]
    weight: NDArray[np.uint64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    paths: tuple[tuple[_Fork, ...], ...]
    """For each source, the path from the root."""

    def step(
        self, nodes: NDArray[np.int64], draws: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the child of each draw, and the number of the draw there; ``nodes`` may be one for all."""
        left_weight, weight = self.left_weight[nodes], self.weight[nodes]
        rounds = draws // weight
        dealt = (draws - rounds * weight) * left_weight + weight // np.uint64(2)
        share = dealt // weight
        left = rounds * left_weight + share
        # The left count grows at this draw if the remainder comes round to the weight.
        goes_left = dealt - share * weight + left_weight >= weight
        below = np.where(goes_left, self.left[nodes], self.right[nodes])
        return below, np.where(goes_left, left, draws - left)


def _huffman(weights: Sequence[int]) -> _ShareTree:
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
    return _ShareTree(root, left_weight, weight, columns[2], columns[3], _paths(root, nodes, len(weights)))


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


def _left_count(draws: Count, left: int, weight: int) -> Count:
    """Return ``round(draws * left / weight)``."""
    rounds, rest = draws // weight, draws % weight
    return rounds * left + _scaled(rest, left, weight, weight // 2)


def _ceil_scaled(number: Count, weight: int, left: int) -> Count:
    """Return ``ceil((number * weight - weight // 2) / left)``."""
    rounds, rest = number // left, number % left
    return rounds * weight - _scaled(-rest, weight, left, weight // 2)


def _scaled(number: Count, times: int, over: int, plus: int) -> Count:
    """Return ``(number * times + plus) // over``, for an array also where the product is above 2**63."""
    if isinstance(number, int) or max(times, over) <= LARGEST_TOTAL:
        return (number * times + plus) // over
    # The quotient of floats is off by little, so the rest is small, although the products in it wrap around.
    about = (number * (times / over)).astype(np.int64)
    rest = number * times - about * over + plus
    return about + rest // over


LARGEST_TOTAL = 1 << 31
"""Integer weights sum to at most this, so that 64-bit products in the mixture cannot overflow."""


def whole_weights(weights: Sequence[float]) -> list[int]:
    """Return integers in the ratio of ``weights``, with no common factor and a sum of at most 2**31.

    A float counts as the decimal that Python prints for it, so ``[0.7, 0.3]``, ``[7, 3]`` and ``[70, 30]``
    are the same weights on every machine.

    Raises:
        ValueError: a weight is negative or not finite, all are 0, or a positive one is so small beside the
            others that it rounds to 0.

    Example:
        >>> whole_weights([0.7, 0.3]), whole_weights([70, 30]), whole_weights([2, 0, 4])
        ([7, 3], [7, 3], [1, 0, 2])
    """
    exact = [_fraction(weight) for weight in weights]
    total = sum(exact)
    if total == 0:
        message = f"weights must have a positive sum (got {list(weights)!r})"
        raise ValueError(message)
    scale = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * scale) for weight in exact]
    common = math.gcd(*whole)
    whole = [weight // common for weight in whole]
    if sum(whole) <= LARGEST_TOTAL:
        return whole
    rounded = apportion(exact, LARGEST_TOTAL)
    for weight, share in zip(weights, rounded, strict=True):
        if weight and not share:
            message = (
                f"a weight must be 0 or at least 2**-31 of the sum of all (got {weight!r} of "
                f"{float(total)!r}); give it 0, or give the others less"
            )
            raise ValueError(message)
    return rounded


def apportion(shares: Sequence[Fraction], total: int) -> list[int]:
    """Share out ``total`` units in proportion, by largest remainder; of equal remainders the first wins.

    Example:
        >>> apportion([Fraction(1), Fraction(1), Fraction(1)], 100)
        [34, 33, 33]
    """
    whole = sum(shares)
    exact = [share * total / whole for share in shares]
    counts = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def _fraction(weight: float) -> Fraction:
    try:
        number = math.nan if isinstance(weight, str | bytes) else float(weight)
    except (TypeError, ValueError, OverflowError):  # the last of an integer beyond what a float holds
        number = math.nan
    if not math.isfinite(number) or number < 0:
        message = f"a weight must be a finite number of at least 0 (got {weight!r})"
        raise ValueError(message)
    return Fraction(weight) if isinstance(weight, int) else Fraction(repr(number))
