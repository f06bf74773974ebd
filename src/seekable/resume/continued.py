"""What is left of an older order, then a dataset in its own order: what ``resume="rows"`` goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.dataset.base import Dataset, known_size
from seekable.nodes.contract import OrderNode, Router
from seekable.nodes.routers import EachRouter
from seekable.order.blocks import default_blocks
from seekable.order.positions import Comb, Combs, Left

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.contract import Within

    Int64s = NDArray[np.int64]

__all__ = ["Continued", "Piece"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some positions of one of the older orders."""

    slot: int
    """Which of them."""

    rows: Comb
    """The positions."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Continued(Dataset, OrderNode):
    """The pieces, one behind the other, then ``new`` from ``first`` on: at the positions that are left.

    ``axis`` says which positions these are: what stands above draws them, and those before were drawn when
    the pieces were what was left. At any other position is what ``new`` has there.
    """

    olds: tuple[Dataset, ...]
    new: Dataset
    pieces: tuple[Piece, ...]
    axis: Left
    first: int

    kind: ClassVar[str] = "continued"

    def __post_init__(self) -> None:
        """Refuse what has no epochs.

        Raises:
            EndlessDataset: it has no end.
            ValueError: a piece of an order that is not there.
        """
        known_size(self.new, "resume='rows'")
        if any(piece.slot >= len(self.olds) for piece in self.pieces):
            message = f"pieces of {len(self.olds)} older orders (got {self.pieces!r:.100})"
            raise ValueError(message)

    @property
    def children(self) -> tuple[Dataset, ...]:
        """The older orders, then the new dataset."""
        return (*self.olds, self.new)

    @property
    def size(self) -> int:
        """As many records as an epoch of the new dataset has."""
        return known_size(self.new, "resume='rows'")

    @property
    def steady(self) -> bool:
        """Never: the pieces come once."""
        return False

    @property
    def blocks(self) -> Int64s:
        """None: rows of any block may be among the pieces."""
        return default_blocks(self.size)

    @property
    def lanes(self) -> int:
        """As the new dataset, which it turns into."""
        return self.new.lanes

    @property
    def waiting(self) -> int:
        """How many rows the pieces have."""
        return self._pieces.size

    @property
    def moved_by(self) -> int:
        """How much further on the new dataset is than this one, once the pieces have come."""
        return self.first - self.waiting + self._axis.size - self.axis.tail

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """The pieces, at which positions they come, and where the new dataset begins."""
        return {
            "pieces": [[piece.slot, piece.rows.numbers()] for piece in self.pieces],
            "lagging": [comb.numbers() for comb in self.axis.combs],
            "tail": self.axis.tail,
            "first": self.first,
        }

    @classmethod
    def of(cls, arguments: Mapping[str, Any], olds: Sequence[Dataset], new: Dataset) -> Continued:
        """Return the node that has these arguments, also after a JSON round trip.

        Raises:
            ValueError: they are those of no such node.
        """
        pieces = tuple(Piece(slot, Comb.of(rows)) for slot, rows in arguments["pieces"])
        axis = Left(tuple(Comb.of(comb) for comb in arguments["lagging"]), arguments["tail"])
        return cls(tuple(olds), new, pieces, axis, arguments["first"])

    def shown(self, children: Sequence[str]) -> str:
        """Return what stands for it: nobody writes it."""
        return f"<{self.waiting:,} rows left, then {children[-1]}>"

    @classmethod
    def router(cls, nodes: Sequence[Continued]) -> Router:
        """Ask one node after another."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Find the turn of each position, and what comes at that turn."""
        turns, there = self.turns(positions)
        slots = np.full(positions.size, len(self.olds), dtype=np.int64)
        below = np.where(there, self.first + turns - self.waiting, positions)
        early = there & (turns < self.waiting)
        if early.any():
            which, below[early] = self._pieces.at(turns[early])
            slots[early] = self._slots[which]
        return slots, below

    def route_one(self, position: int) -> tuple[int, int]:
        """Find one."""
        turn, there = self._axis.rank_one(position)
        if position >= self.axis.tail:
            turn, there = self._axis.size + position - self.axis.tail, True
        if not there:
            return len(self.olds), position
        if turn < self.waiting:
            which, below = self._pieces.at_one(turn)
            return self.pieces[which].slot, below
        return len(self.olds), self.first + turn - self.waiting

    def turns(self, positions: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return how many positions of the axis lie before each, and whether it is one of them."""
        turns, there = self._axis.rank(positions)
        beyond = positions - self.axis.tail
        return np.where(beyond < 0, turns, self._axis.size + beyond), there | (beyond >= 0)

    def turn_of(self, position: int) -> int:
        """Return how many positions of the axis lie before one."""
        return int(self.turns(np.array([position], dtype=np.int64))[0][0])

    def span(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return all that an older order has pieces of; of the new dataset, what comes and what came."""
        if slot < len(self.olds):
            rows = [piece.rows for piece in self.pieces if piece.slot == slot]
            ends = (comb.start + comb.rows * comb.step for comb in rows)
            return min((comb.start for comb in rows), default=0), max(ends, default=0)
        low = min(start, max(self.first, self.first + self.turn_of(start) - self.waiting))
        if stop is None:
            return low, None
        return low, max(min(stop, self.axis.tail), self.first + max(0, self.turn_of(stop) - self.waiting))

    def unroute(self, slot: int, positions: Int64s, within: Within) -> Int64s:
        """Search the pieces; or count on from them."""
        if slot < len(self.olds):
            own = [i for i, piece in enumerate(self.pieces) if piece.slot == slot]
            found = [self._pieces.numbers_in(i, positions) for i in own]
            turns = np.concatenate([np.empty(0, dtype=np.int64), *found])
            return self.places(turns[turns >= 0])
        came = positions[(positions < self.axis.tail) & ~self._axis.rank(positions)[1]]
        later = positions[positions >= self.first] - self.first + self.waiting
        return np.concatenate([came, self.places(later)])

    def places(self, turns: Int64s) -> Int64s:
        """Return the positions at which some turns come."""
        places = turns - self._axis.size + self.axis.tail
        early = turns < self._axis.size
        if early.any():
            places[early] = self._axis.at(turns[early])[1]
        return places

    @cached
    def _pieces(self) -> Combs:
        return Combs(piece.rows for piece in self.pieces)

    @cached
    def _slots(self) -> Int64s:
        return np.array([piece.slot for piece in self.pieces], dtype=np.int64)

    @cached
    def _axis(self) -> Combs:
        return Combs(self.axis.combs)
