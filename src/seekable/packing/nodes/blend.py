"""Megatron's blend of several datasets: their samples in the order of its ``BlendedDataset``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.bases import EachRouter, integer_of
from seekable.nodes.display import listed
from seekable.nodes.graph import known_size
from seekable.nodes.node import Node, OrderNode
from seekable.order.blocks import default_blocks
from seekable.packing.order.megatron_order import blend_exhaustively, blend_weighted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import Router, SearchRange
    from seekable.nodes.node import Taking

__all__ = ["MegatronBlend"]

_MOST_PARTS = 32_766
"""Megatron keeps the number of a part in 16 bits."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class MegatronBlend(OrderNode):
    """Row ``r`` is the draw ``r`` of a blend, from one of the parts in the same epoch."""

    parts: tuple[Node, ...]
    weights: tuple[float, ...] | None
    """The share of each part; None for an exhaustive blend, in which each record of each part comes once."""

    draws: int
    """The number of draws of an epoch."""

    kind: ClassVar[str] = "megatron_blend"
    apart: ClassVar[bool] = True
    counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            EndlessDataset: a part has no length.
            InvalidArgument: there are too many parts, one is empty, or the blend draws more than one has.
        """
        sizes = [known_size(part, "a blend") for part in self.parts]
        if len(sizes) > _MOST_PARTS or not all(sizes):
            wrong = f"part {sizes.index(0)} has no record" if 0 in sizes else f"got {len(sizes):,}"
            message = f"a blend of Megatron has up to {_MOST_PARTS:,} parts with records ({wrong})"
            raise InvalidArgument(message)
        drawn = np.bincount(self._index[0], minlength=len(sizes)).tolist()
        for number, (count, size) in enumerate(zip(drawn, sizes, strict=True)):
            if count > size:
                message = (
                    f"the blend draws {count:,} samples of part {number}, which has {size:,}: build more of "
                    f"it, with a larger surplus"
                )
                raise InvalidArgument(message)

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts, in their order."""
        return self.parts

    @property
    def size(self) -> int:
        """The number of draws of an epoch."""
        return self.draws

    @cached
    def steady(self) -> bool:
        """True if every part is steady: each epoch has the same draws."""
        return all(part.steady for part in self.parts)

    @property
    def blocks(self) -> Int64s:
        """The default blocks of ``size`` rows: neighbours come from different parts."""
        return default_blocks(self.size)

    @property
    def lanes(self) -> int:
        """1: the order is made for no number of lanes."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the shares and the number of draws."""
        return {"weights": None if self.weights is None else list(self.weights), "count": self.draws}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> MegatronBlend:
        """Return the node with these arguments over its parts."""
        weights = arguments["weights"]
        shares = None if weights is None else tuple(weights)
        return cls(children, shares, integer_of(arguments, "count"))

    def shown(self, children: Sequence[str]) -> str:
        """Return an expression in the form of a call; the function ``gpt_datasets`` makes such blends."""
        weights = "" if self.weights is None else f", weights=[{listed([str(w) for w in self.weights])}]"
        return f"megatron_blend([{listed(list(children))}]{weights}, size={self.draws})"

    def taking(self, old: Node, go: Taking) -> Node | None:
        """Return the old draws over the records of these parts; None if there were more or fewer parts."""
        if not isinstance(old, MegatronBlend) or len(old.parts) != len(self.parts):
            return None
        return MegatronBlend(tuple(map(go, old.parts, self.parts)), old.weights, old.draws)

    @classmethod
    def router(cls, nodes: Sequence[MegatronBlend]) -> Router:
        """Return a router that routes the positions of each blend separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return the part of each draw, and the position in that part."""
        epochs, rows = np.divmod(positions, self.draws)
        parts, samples = self._index
        slots = parts[rows].astype(np.int64)
        return slots, epochs * self._sizes[slots] + samples[rows]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return the part of one draw, and the position in that part."""
        epoch, row = divmod(position, self.draws)
        parts, samples = self._index
        slot = int(parts[row])
        return slot, epoch * int(self._sizes[slot]) + int(samples[row])

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of whole epochs of a part."""
        size, below = max(1, self.draws), int(self._sizes[slot])
        return start // size * below, None if stop is None else -(-stop // size) * below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions at which records of a part are drawn; those beyond the last draw are not."""
        epochs, rows = np.divmod(positions, int(self._sizes[slot]))
        drawn = np.flatnonzero(self._index[0] == slot)
        found = rows < drawn.size
        own: Int64s = epochs[found] * self.draws + drawn[rows[found]]
        return own

    @cached
    def _sizes(self) -> Int64s:
        return np.array([known_size(part, "a blend") for part in self.parts], dtype=np.int64)

    @cached
    def _index(self) -> tuple[NDArray[np.int16], Int64s]:
        """The part of each draw, and how often that part was drawn before."""
        if self.weights is None:
            return blend_exhaustively(self._sizes.tolist())
        return blend_weighted(self.weights, self.draws)
