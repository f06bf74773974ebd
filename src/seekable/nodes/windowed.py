"""A shuffle that keeps what is read together near: within a few blocks, lane by lane."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import CacheTooSmall
from seekable.nodes.bases import ONE_CHILD, PermutationNode, int64s
from seekable.nodes.contract import Node, OrderNode
from seekable.nodes.graph import Router, known_size
from seekable.order.arrays import distinct, divided, united
from seekable.order.keys import derive, kind_key
from seekable.order.windows import WindowedOrder, Windows, windows_of
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.nodes.search import SearchRange


__all__ = ["WindowedShuffle"]

_KIND = kind_key("windowed_shuffle")

_EPOCHS_KEPT = 4
"""Epochs whose tables are kept for single positions and searches: 40 bytes a block each."""

_SAMPLE = 256
"""Records that the size of a block is told from."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class WindowedShuffle(PermutationNode, OrderNode):
    """Row ``r`` of epoch ``e`` is a row of the child's epoch ``e``, as ``order.windows`` has it.

    Where it is fixed, each epoch has the order of epoch 0.
    """

    child: Node
    seed: int
    window: int
    dealt_to: int
    fixed: bool

    kind: ClassVar[str] = "windowed_shuffle"

    def __post_init__(self) -> None:
        """Refuse what has no length, and warn of more open data than there is memory for."""
        known_size(self.child, "shuffle(window=)")
        if self.open_bytes > self.child.cache_bytes:
            kept, room = bytes_in_words(self.open_bytes), bytes_in_words(self.child.cache_bytes)
            message = (
                f"{self.dealt_to} lanes x {self.window} blocks keep {kept} open at a time, and the cache has "
                f"room for {room}: blocks will be read more than once. Take a smaller window or fewer lanes; "
                f"each of several ranks opens its share only. SEEKABLE_CACHE_BYTES says how large it is"
            )
            warnings.warn(message, CacheTooSmall, stacklevel=4)

    @property
    def steady(self) -> bool:
        """Where one order is fixed for the child's rows: else each epoch has an order of its own."""
        return self.fixed and self.child.steady

    @property
    def lanes(self) -> int:
        """As many as were asked for."""
        return self.dealt_to

    @cached
    def open_bytes(self) -> int:
        """How many bytes of files the windows of all lanes hold, on average; 0 for what is in memory."""
        blocks = self.order.edges.size - 1
        if not blocks:
            return 0
        sample = self.child.plan(np.linspace(0, self.size - 1, num=_SAMPLE).astype(np.int64))
        return sample.bytes * self.size * min(self.window * self.dealt_to, blocks) // (_SAMPLE * blocks)

    @cached
    def order(self) -> WindowedOrder:
        """What decides the order, but for the epoch."""
        return WindowedOrder(self.child.blocks, self.window, self.dealt_to)

    def order_key(self, epoch: int) -> int:
        """Return the key of an epoch."""
        return derive(_KIND, self.seed, 0 if self.fixed else epoch)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """The seed, the window and the lanes, and that the order is fixed."""
        fixed = {"fixed": True} if self.fixed else {}
        return {"seed": self.seed, "window": self.window, "lanes": self.dealt_to, **fixed}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call."""
        fixed = ", fixed=True" * self.fixed
        return f"{children[0]}.shuffle(seed={self.seed}, window={self.window}, lanes={self.dealt_to}{fixed})"

    def remark(self) -> str:
        """Return how many blocks the lanes hold open, and how many bytes these are."""
        blocks, held = self.order.edges.size - 1, bytes_in_words(self.open_bytes)
        return f", {self.dealt_to} lanes x {self.window} of {blocks:,} blocks: {held} open at a time"

    @classmethod
    def router(cls, nodes: Sequence[WindowedShuffle]) -> Router:
        """Look the positions of all nodes up in tables that are laid behind each other."""
        return _WindowedRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Look one row up."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self.size + self._tables(epoch).forward_one(row)

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Invert the order of each position's epoch."""
        epochs, rows = np.divmod(positions, self.size)
        out = epochs * self.size
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            out[here] += self._tables(epoch).inverse(0, rows[here])
        return out

    def _tables(self, epoch: int) -> Windows:
        kept: OrderedDict[int, Windows] = self._kept
        key = self.order_key(epoch)
        if key not in kept:
            kept[key] = windows_of([self.order], np.array([key], dtype=np.uint64))
            while len(kept) > _EPOCHS_KEPT:
                kept.popitem(last=False)
        return kept[key]

    @cached
    def _kept(self) -> OrderedDict[int, Windows]:
        return OrderedDict()


class _WindowedRouter(Router):
    """Keeps the tables of the epochs that were last asked for, of all nodes."""

    def __init__(self, nodes: Sequence[WindowedShuffle]) -> None:
        self._nodes = nodes
        self._sizes = int64s(node.size for node in nodes)
        self._held: tuple[dict[tuple[int, int], int], Windows | None] = ({}, None)

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        sizes = self._sizes[which]
        if sizes.size == 1:
            epochs, rows = divided(positions, int(sizes[0]))
            epochs = united(epochs)
        else:
            epochs, rows = np.divmod(positions, sizes)
        asked, at = distinct(which, epochs)
        numbers, tables = self._tables([(int(node), int(epoch)) for node, epoch in asked.tolist()])
        return ONE_CHILD, epochs * sizes + tables.forward(numbers[at], rows)

    def _tables(self, asked: list[tuple[int, int]]) -> tuple[Int64s, Windows]:
        """Return the tables of some epochs, each given with its node, and their numbers there."""
        held, tables = self._held
        if tables is None or any(pair not in held for pair in asked):
            keys = np.array([self._nodes[node].order_key(epoch) for node, epoch in asked], dtype=np.uint64)
            tables = windows_of([self._nodes[node].order for node, _ in asked], keys)
            held = {pair: number for number, pair in enumerate(asked)}
            # In one step, because other threads may look.
            self._held = held, tables
        return np.array([held[pair] for pair in asked], dtype=np.int64), tables
