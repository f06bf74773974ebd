"""Splits: parts of a dataset between which an appended record never moves an old one.

Rows are dealt within blocks of 1,000: a keyed permutation of the block gives each row a slot, and each
part owns a run of slots. So a row's part depends on its number, the shares and the seed, and never on how
many rows follow. The permutation is one of 256 that are drawn from the seed, picked by the block's number:
their tables fit in a cache, and any row of a part is found in constant time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, SupportsFloat, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import ONE_CHILD, EachRouter, UnaryNode
from seekable.nodes.contract import Node, OrderNode
from seekable.nodes.graph import Router, known_size, must_be_steady
from seekable.order.apportionment import apportion
from seekable.order.keys import derive, derive_each, kind_key
from seekable.order.permutation import permute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.nodes.search import SearchRange


__all__ = ["Split", "split"]

_BLOCK = 1000
_PATTERNS = 256
_ROUNDING = 1e-9
"""The tolerance of the sum of shares that were written as decimals, such as 1/3."""
_KIND = kind_key("split")


def split(child: Node, shares: Mapping[str, float], seed: int) -> dict[str, Node]:
    """Return the named parts of a dataset; see ``Dataset.split``."""
    if not isinstance(shares, Mapping):
        message = f"shares must be a dict of names and shares (got {shares!r})"
        raise WrongType(message)
    if not shares:
        message = "shares must name at least one part (got none)"
        raise InvalidArgument(message)
    exact = [_share(name, share) for name, share in shares.items()]
    if abs(float(sum(exact)) - 1) > _ROUNDING:
        message = f"shares must sum to 1 (got {dict(shares)!r}, which sum to {float(sum(exact))!r})"
        raise InvalidArgument(message)
    bounds = (0, *accumulate(apportion(exact, _BLOCK)))
    return {
        name: Split(child, seed=seed, part=name, start=bounds[i], stop=bounds[i + 1])
        for i, name in enumerate(shares)
    }


def _share(name: str, share: float) -> Fraction:
    if not isinstance(share, SupportsFloat):
        message = f"a share must be a number (got {share!r} for {name!r})"
        raise WrongType(message)
    if not 0 <= float(share) <= 1:
        message = f"a share must be from 0 to 1 (got {share!r} for {name!r})"
        raise InvalidArgument(message)
    return Fraction(repr(float(share)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Split(UnaryNode, OrderNode):
    """The rows, ascending, whose slots ``s`` in their blocks of 1,000 are ``start <= s < stop``."""

    child: Node
    seed: int
    part: str
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
        blocks, rest = divmod(self._below, _BLOCK)
        return blocks * self._share + int(self._table.before[_pattern_one(self.seed, blocks), rest])

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

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``split``."""
        return f"{children[0]}.split(..., seed={self.seed})[{self.part!r}]"

    @classmethod
    def router(cls, nodes: Sequence[Split]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the child's positions of the part's rows."""
        epochs, rows = np.divmod(positions, self.size)
        block, place = np.divmod(rows, self._share)
        return ONE_CHILD, epochs * self._below + block * _BLOCK + self._table.rows[
            _pattern(self.seed, block), place
        ]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.size)
        block, place = divmod(row, self._share)
        found = int(self._table.rows[_pattern_one(self.seed, block), place])
        return 0, epoch * self._below + block * _BLOCK + found

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
        block, row = np.divmod(rows, _BLOCK)
        before: Int64s = block * self._share + self._table.before[_pattern(self.seed, block), row]
        return before

    @property
    def _share(self) -> int:
        return self.stop - self.start

    @property
    def _below(self) -> int:
        return known_size(self.child, "split()")

    @cached
    def _table(self) -> _Table:
        return _table(self.seed, self.start, self.stop)


@dataclass(frozen=True, slots=True)
class _Table:
    rows: Int64s
    """The part's rows in a block, ascending, for each pattern: shape (256, share)."""
    before: Int64s
    """The number of the part's rows among the first rows, for each pattern: shape (256, 1001)."""


@lru_cache(maxsize=16)
def _table(seed: int, start: int, stop: int) -> _Table:
    pattern, row = np.divmod(np.arange(_PATTERNS * _BLOCK, dtype=np.int64), _BLOCK)
    first = np.full(pattern.size, derive(_KIND, seed), dtype=np.uint64)
    slots = permute(row, _BLOCK, derive_each(first, pattern.astype(np.uint64))).reshape(_PATTERNS, _BLOCK)
    own = (slots >= start) & (slots < stop)
    before = np.zeros((_PATTERNS, _BLOCK + 1), dtype=np.int64)
    np.cumsum(own, axis=1, out=before[:, 1:])
    return _Table(np.nonzero(own)[1].reshape(_PATTERNS, stop - start), before)


def _pattern(seed: int, block: Int64s) -> Int64s:
    keys = derive_each(np.array([derive(_KIND, seed, _PATTERNS)], dtype=np.uint64), block.astype(np.uint64))
    patterns: Int64s = (keys % np.uint64(_PATTERNS)).astype(np.int64)
    return patterns


def _pattern_one(seed: int, block: int) -> int:
    return derive(_KIND, seed, _PATTERNS, block) % _PATTERNS
