"""Stable splits: parts of a dataset between which an appended record never moves an old one.

Each part owns the same run of slots in every block of 1,000 rows. So a row's part depends on its number, the
shares and the seed, and never on how many rows follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ONE_CHILD, EachRouter, UnaryNode, integer_of
from seekable.nodes.graph import Router, known_size, must_be_steady
from seekable.nodes.node import Node, OrderNode
from seekable.nodes.split import exact_shares, is_in_rows
from seekable.order.apportionment import apportion
from seekable.order.dealing import BLOCK, Blocks, rows_before, rows_owned, whole_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import SearchRange


__all__ = ["StableSplit", "stable_split"]


def stable_split(child: Node, shares: Mapping[Any, float | None], seed: int) -> dict[Any, Node]:
    """Return the named parts of a dataset; see ``Dataset.split(stable=True)``."""
    if is_in_rows(shares):
        message = (
            f"split(stable=True) takes shares that sum to 1 (got {dict(shares)!r}): a part of a given number "
            f"of rows would lose old rows where some are appended"
        )
        raise InvalidArgument(message)
    exact = exact_shares(shares)
    bounds = (0, *accumulate(apportion(list(exact.values()), BLOCK)))
    return {
        name: StableSplit(child, seed=seed, part=name, start=bounds[i], stop=bounds[i + 1])
        for i, name in enumerate(exact)
    }


@final
@dataclass(frozen=True, eq=False, repr=False)
class StableSplit(UnaryNode, OrderNode):
    """The rows, ascending, whose slots ``s`` in their blocks of 1,000 are ``start <= s < stop``."""

    child: Node
    seed: int
    part: Any
    """The name of the part, which has no effect on its rows."""

    start: int
    stop: int

    kind: ClassVar[str] = "split"

    def __post_init__(self) -> None:
        """Raise EndlessDataset without a length, InvalidArgument for a child that is not steady."""
        known_size(self.child, "split()")
        must_be_steady(self.child, "split()")

    @cached
    def size(self) -> int:
        """The number of the part's rows in whole blocks and in the last, short block."""
        blocks, rest = divmod(self._below, BLOCK)
        return blocks * self._share + int(self._counts[self._blocks.index(blocks), rest])

    @property
    def steady(self) -> bool:
        """True: the child is steady, and the parts are the same in every epoch."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, cut down to the part's rows."""
        return np.unique(self._before(self.child.blocks))

    @property
    def lanes(self) -> int:
        """1: rows come from any lane of the child."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the seed and the slots; the part's name has no effect on its rows."""
        return {"seed": self.seed, "start": self.start, "stop": self.stop}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> StableSplit:
        """Return the part with these arguments, named by its slots."""
        seed, start, stop = (integer_of(arguments, name) for name in ("seed", "start", "stop"))
        return cls(children[0], seed=seed, part=f"{start}:{stop}", start=start, stop=stop)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``split``."""
        return f"{children[0]}.split(..., seed={self.seed}, stable=True)[{self.part!r}]"

    @classmethod
    def router(cls, nodes: Sequence[StableSplit]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the child's positions of the part's rows."""
        epochs, rows = np.divmod(positions, self.size)
        block, place = np.divmod(rows, self._share)
        found = self._rows[self._blocks.indices(block), place]
        return ONE_CHILD, epochs * self._below + block * BLOCK + found

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.size)
        block, place = divmod(row, self._share)
        found = int(self._rows[self._blocks.index(block), place])
        return 0, epoch * self._below + block * BLOCK + found

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of whole epochs of the child."""
        size = max(1, self.size)
        return start // size * self._below, None if stop is None else -(-stop // size) * self._below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of those of the child's rows that belong to the part."""
        epochs, rows = np.divmod(positions, self._below)
        places = self._before(rows)
        own = self._before(rows + 1) > places
        return (epochs * self.size + places)[own]

    def _before(self, rows: Int64s) -> Int64s:
        """Return the number of the part's rows before each row of the child."""
        block, row = np.divmod(rows, BLOCK)
        counts: Int64s = self._counts[self._blocks.indices(block), row].astype(np.int64)
        return block * self._share + counts

    @property
    def _share(self) -> int:
        return self.stop - self.start

    @property
    def _below(self) -> int:
        return known_size(self.child, "split()")

    @property
    def _blocks(self) -> Blocks:
        return whole_blocks(self.seed)

    @property
    def _rows(self) -> NDArray[np.int16]:
        return rows_owned(self._blocks, self.start, self.stop)

    @property
    def _counts(self) -> NDArray[np.int16]:
        return rows_before(self._blocks, self.start, self.stop)
