"""A windowed shuffle: rows that are read together stay near, within a few blocks of each lane."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable._log import warn_caller
from seekable.errors import CacheTooSmall
from seekable.nodes.bases import ONE_CHILD, PermutationNode, int64s, integer_of, leaves_of
from seekable.nodes.graph import Router, known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.arrays import distinct, divided, united
from seekable.order.blocks import resized_blocks
from seekable.order.keys import derive, kind_key
from seekable.order.shuffle_windows import WindowedOrder, WindowTables, windows_of
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["WindowedShuffle"]

_KIND = kind_key("windowed_shuffle")

_EPOCHS_KEPT = 4
"""The number of epochs whose tables stay in memory: 40 bytes for each block of an epoch."""

_SAMPLE = 256
"""The number of records from which the size of a block is estimated."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class WindowedShuffle(PermutationNode, OrderNode):
    """Row ``r`` of epoch ``e`` is a row of the child's epoch ``e``, by `seekable.order.shuffle_windows`.

    Where it is fixed, each epoch has the order of epoch 0.
    """

    child: Node
    seed: int
    window: int
    dealt_to: int
    fixed: bool
    block_rows: int | None = None
    """The most rows of a block; None for the blocks of the child."""

    kind: ClassVar[str] = "windowed_shuffle"
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise EndlessDataset without a length; warn if the open windows exceed the caches."""
        known_size(self.child, "shuffle(window=)")
        if self.open_bytes > self.child.cache_bytes:
            kept, room = bytes_in_words(self.open_bytes), bytes_in_words(self.child.cache_bytes)
            message = (
                f"{self.dealt_to} lanes x {self.window} blocks keep {kept} open at a time, and the cache has "
                f"room for {room}: blocks will be read more than once. Take a smaller window or fewer lanes; "
                f"each of several ranks opens its share only. SEEKABLE_CACHE_BYTES says how large it is"
            )
            warn_caller(message, CacheTooSmall)

    @property
    def steady(self) -> bool:
        """True for ``fixed=True`` over a steady child."""
        return self.fixed and self.child.steady

    @property
    def lanes(self) -> int:
        """The number of lanes that the call of ``shuffle`` gave."""
        return self.dealt_to

    @cached
    def open_bytes(self) -> int:
        """The mean number of bytes that the windows of all lanes hold; 0 for records in memory."""
        blocks = self.order.edges.size - 1
        if not blocks:
            return 0
        sample = self.child.plan(np.linspace(0, self.size - 1, num=_SAMPLE).astype(np.int64))
        return sample.bytes * self.size * min(self.window * self.dealt_to, blocks) // (_SAMPLE * blocks)

    @cached
    def order(self) -> WindowedOrder:
        """The order of every epoch, for a given key."""
        blocks = self.child.blocks
        if self.block_rows is not None:
            blocks = resized_blocks(blocks, self.block_rows)
        return WindowedOrder(blocks, self.window, self.dealt_to)

    def order_key(self, epoch: int) -> int:
        """Return the key of the order of an epoch."""
        return derive(_KIND, self.seed, 0 if self.fixed else epoch)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the seed, window and lanes, ``fixed`` if the order is, and ``block_rows`` if given."""
        more: dict[str, Any] = {"fixed": True} if self.fixed else {}
        if self.block_rows is not None:
            more["block_rows"] = self.block_rows
        return {"seed": self.seed, "window": self.window, "lanes": self.dealt_to, **more}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> WindowedShuffle:
        """Return the node with these arguments over a child."""
        seed, window, lanes = (integer_of(arguments, name) for name in ("seed", "window", "lanes"))
        block_rows = None if arguments.get("block_rows") is None else integer_of(arguments, "block_rows")
        return cls(children[0], seed, window, lanes, arguments.get("fixed", False), block_rows)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``shuffle``."""
        more = ", fixed=True" * self.fixed
        if self.block_rows is not None:
            more += f", block_rows={self.block_rows}"
        return f"{children[0]}.shuffle(seed={self.seed}, window={self.window}, lanes={self.dealt_to}{more})"

    def remark(self) -> str:
        """Return a text with the number of open blocks and of their bytes."""
        blocks, held = self.order.edges.size - 1, bytes_in_words(self.open_bytes)
        return f", {self.dealt_to} lanes x {self.window} of {blocks:,} blocks: {held} open at a time"

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and the row there; None if a description lacks the blocks of a source."""
        return super().first_of(position) if all(leaf.blocks_known for leaf in leaves_of(self)) else None

    @classmethod
    def router(cls, nodes: Sequence[WindowedShuffle]) -> Router:
        """Return a router that looks up the positions of all nodes in concatenated tables."""
        return _WindowedRouter(nodes)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self.size + self._tables(epoch).forward_one(row)

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions by the inverse order of each position's epoch."""
        epochs, rows = np.divmod(positions, self.size)
        out = epochs * self.size
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            out[here] += self._tables(epoch).inverse(0, rows[here])
        return out

    def _tables(self, epoch: int) -> WindowTables:
        kept: OrderedDict[int, WindowTables] = self._kept
        key = self.order_key(epoch)
        if key not in kept:
            kept[key] = windows_of([self.order], np.array([key], dtype=np.uint64))
            while len(kept) > _EPOCHS_KEPT:
                kept.popitem(last=False)
        return kept[key]

    @cached
    def _kept(self) -> OrderedDict[int, WindowTables]:
        return OrderedDict()


class _WindowedRouter(Router):
    """A router that caches the tables of the epochs that were used last, of all nodes."""

    def __init__(self, nodes: Sequence[WindowedShuffle]) -> None:
        self._nodes = nodes
        self._sizes = int64s(node.size for node in nodes)
        self._held: tuple[dict[tuple[int, int], int], WindowTables | None] = ({}, None)

    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        sizes = self._sizes[which]
        if sizes.size == 1:
            epochs, rows = divided(positions, int(sizes[0]))
            epochs = united(epochs)
        else:
            epochs, rows = np.divmod(positions, sizes)
        pairs, at = distinct(which, epochs)
        numbers, tables = self._tables([(int(node), int(epoch)) for node, epoch in pairs.tolist()])
        return ONE_CHILD, epochs * sizes + tables.forward(numbers[at], rows)

    def _tables(self, pairs: list[tuple[int, int]]) -> tuple[Int64s, WindowTables]:
        """Return the concatenated tables of some epochs, and the number of each epoch in them."""
        held, tables = self._held
        if tables is None or any(pair not in held for pair in pairs):
            keys = np.array([self._nodes[node].order_key(epoch) for node, epoch in pairs], dtype=np.uint64)
            tables = windows_of([self._nodes[node].order for node, _ in pairs], keys)
            held = {pair: number for number, pair in enumerate(pairs)}
            # One assignment replaces all tables, because other threads may read them.
            self._held = held, tables
        return np.array([held[pair] for pair in pairs], dtype=np.int64), tables
