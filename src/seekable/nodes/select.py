"""Rows of a dataset, chosen by number: ``Select`` takes a list of them, ``Sample`` draws them by a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import xxhash

from seekable._arguments import checked_rows
from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ONE_CHILD, ChosenRows, EachRouter, UnaryNode, integer_of
from seekable.nodes.display import listed
from seekable.nodes.graph import known_size, must_be_steady
from seekable.nodes.node import Node, OrderNode
from seekable.order.blocks import default_blocks
from seekable.order.keys import derive, kind_key
from seekable.order.permutation import permute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.graph import Router, SearchRange


__all__ = ["Sample", "Select"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Select(UnaryNode, OrderNode):
    """Row ``r`` of epoch ``e`` is row ``rows[r]`` of the child's epoch ``e``."""

    child: Node
    rows: Int64s

    kind: ClassVar[str] = "select"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = (
        "the description has a digest of the rows that were selected, and not the rows"
    )

    def __post_init__(self) -> None:
        """Check the row numbers and make their array read-only."""
        rows = checked_rows(self.rows, known_size(self.child, "select()"))
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)

    @property
    def size(self) -> int:
        """The number of chosen rows."""
        return int(self.rows.size)

    @property
    def steady(self) -> bool:
        """True if the child is steady."""
        return self.child.steady

    @property
    def blocks(self) -> Int64s:
        """The child's blocks if the rows ascend, else the default blocks."""
        if (np.diff(self.rows) < 0).any():
            return default_blocks(self.size)
        return np.unique(np.searchsorted(self.rows, self.child.blocks))

    @property
    def lanes(self) -> int:
        """1: rows come from any lane of the child."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the count and digest of the rows."""
        return {
            "count": self.size,
            "rows": f"xxh3:{xxhash.xxh3_64_hexdigest(self.rows.astype('<i8').tobytes())}",
        }

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``select``."""
        return f"{children[0]}.select([{listed([str(row) for row in self.rows[:5].tolist()])}])"

    @classmethod
    def router(cls, nodes: Sequence[Select]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the child's positions of the chosen rows."""
        epochs, rows = np.divmod(positions, self.size)
        return ONE_CHILD, epochs * self._below + self.rows[rows]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one chosen row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self._below + int(self.rows[row])

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of whole epochs of the child."""
        size = max(1, self.size)
        return start // size * self._below, None if stop is None else -(-stop // size) * self._below

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return all positions at which rows of the child were chosen."""
        epochs, rows = np.divmod(positions, self._below)
        order, chosen = self._sorted
        first = np.searchsorted(chosen, rows, side="left")
        counts = np.searchsorted(chosen, rows, side="right") - first
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        places: Int64s = np.repeat(epochs * self.size, counts) + order[np.repeat(first, counts) + offsets]
        return places

    @property
    def _below(self) -> int:
        return known_size(self.child, "select()")

    @cached
    def _sorted(self) -> tuple[NDArray[np.intp], Int64s]:
        order = np.argsort(self.rows, kind="stable")
        return order, self.rows[order]


_SAMPLE_KEY = kind_key("sample")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sample(ChosenRows):
    """``count`` distinct rows, ascending: the first of a permutation, so each set is as likely.

    Pickled it is its seed; the rows take 8 bytes each where they are used.
    """

    child: Node
    count: int
    seed: int

    kind: ClassVar[str] = "sample"

    def __post_init__(self) -> None:
        """Raise an error for more rows than the child has, or for a child that is not steady."""
        size = known_size(self.child, "sample()")
        must_be_steady(self.child, "sample()")
        if self.count > size:
            message = (
                f"sample() draws each row once at most: there are {size:,} records (got n={self.count:,})"
            )
            raise InvalidArgument(message)

    @property
    def size(self) -> int:
        """The number of drawn rows."""
        return self.count

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the number of rows and the seed."""
        return {"count": self.count, "seed": self.seed}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Sample:
        """Return the node with these arguments over a child."""
        return cls(children[0], integer_of(arguments, "count"), integer_of(arguments, "seed"))

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``sample``."""
        return f"{children[0]}.sample({self.count}, seed={self.seed})"

    @cached
    def chosen(self) -> Int64s:
        """The numbers of the drawn rows: int64, ascending."""
        if not self.count:
            return np.empty(0, dtype=np.int64)
        size = known_size(self.child, "sample()")
        key = np.array([derive(_SAMPLE_KEY, self.seed)], dtype=np.uint64)
        return np.sort(permute(np.arange(self.count, dtype=np.int64), size, key))

    def chosen_one(self, row: int) -> int:
        """Return the number of one drawn row in the child."""
        return int(self.chosen[row])
