"""A true permutation of a whole dataset, computed for each position: no table in memory, no start-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.nodes.bases import ONE_CHILD, PermutationNode, integer_of
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.arrays import divided, united
from seekable.order.keys import derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["Shuffle"]

_KIND = kind_key("shuffle")

_ALONE = 1024
"""Positions of each of some shuffles from which on it is faster to permute those of one after the other."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Shuffle(PermutationNode, OrderNode):
    """Row ``r`` of epoch ``e`` is row ``permute(r, n, key(seed, e))`` of the child's epoch ``e``.

    Where it is fixed, each epoch has the permutation of epoch 0.
    """

    child: Node
    seed: int
    fixed: bool

    kind: ClassVar[str] = "shuffle"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise EndlessDataset if the child has no length."""
        known_size(self.child, "shuffle()")

    @property
    def steady(self) -> bool:
        """True for ``fixed=True`` over a steady child."""
        return self.fixed and self.child.steady

    @property
    def lanes(self) -> int:
        """1: each row may come from anywhere in the dataset."""
        return 1

    @property
    def order_key(self) -> int:
        """The key from which the keys of all epochs are derived."""
        return derive(_KIND, self.seed)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the seed, and ``fixed`` if the order is fixed."""
        return {"seed": self.seed, **({"fixed": True} if self.fixed else {})}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Shuffle:
        """Return the node with these arguments over a child."""
        return cls(children[0], integer_of(arguments, "seed"), arguments.get("fixed", False))

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``shuffle``."""
        return f"{children[0]}.shuffle(seed={self.seed}{', fixed=True' * self.fixed})"

    @classmethod
    def router(cls, nodes: Sequence[Shuffle]) -> Router:
        """Return a router that permutes the positions of all nodes at once."""
        return _ShuffleRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        size = self.size
        epoch, row = divmod(position, size)
        return 0, epoch * size + permute_one(row, size, derive(self.order_key, 0 if self.fixed else epoch))

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions by the inverse permutation of each position's epoch."""
        epochs, rows = np.divmod(positions, self.size)
        orders = np.zeros_like(epochs) if self.fixed else epochs
        keys = derive_each(np.array([self.order_key], dtype=np.uint64), orders.astype(np.uint64))
        return epochs * self.size + unpermute(rows, self.size, keys)


class _ShuffleRouter(Router):
    def __init__(self, nodes: Sequence[Shuffle]) -> None:
        self._sizes = np.array([node.size for node in nodes], dtype=np.int64)
        self._keys = np.array([node.order_key for node in nodes], dtype=np.uint64)
        self._changing = np.array([not node.fixed for node in nodes])

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        nodes = self._sizes.size
        if which.size == 1 or not 1 < nodes <= positions.size // _ALONE:
            return ONE_CHILD, self._permuted(which, positions)
        permuted = np.empty_like(positions)
        for node in range(nodes):
            at = np.flatnonzero(which == node)
            permuted[at] = self._permuted(np.array([node]), positions[at])
        return ONE_CHILD, permuted

    def _permuted(self, which: Int64s, positions: Int64s) -> Int64s:
        sizes = self._sizes[which]
        if sizes.size == 1:
            # All positions share one length and mostly one key: faster than arrays of these.
            epochs, rows = divided(positions, int(sizes[0]))
            epochs = united(epochs)
        else:
            epochs, rows = np.divmod(positions, sizes)
        orders = epochs * self._changing[which]
        keys = derive_each(self._keys[which], orders.astype(np.uint64))
        permuted: Int64s = epochs * sizes + permute(rows, sizes, keys)
        return permuted
