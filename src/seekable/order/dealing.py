"""Rows dealt to parts inside blocks of 1,000, so that any row of a part is found in constant time.

A keyed permutation of a block gives each of its rows a slot, and each part owns a run of slots. The
permutation is one of 256 that are drawn from the seed, picked by the number of the block, so that their
tables fit in a cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from seekable.order.apportionment import Apportionment
from seekable.order.keys import derive, derive_each, kind_key
from seekable.order.permutation import permute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["BLOCK", "Blocks", "Deal", "rows_before", "rows_owned", "whole_blocks"]

BLOCK = 1000
"""The number of rows of a block; the last block of a dataset may have fewer."""

_PATTERNS = 256
_KIND = kind_key("split")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one length, whose rows are permuted by patterns of one seed."""

    seed: int
    length: int
    """The number of rows of each block."""

    patterns: range
    """The numbers of the patterns that permute these blocks."""

    def indices(self, blocks: Int64s) -> Int64s:
        """Return the index in ``patterns`` of each block's pattern."""
        start = np.array([derive(_KIND, self.seed, _PATTERNS)], dtype=np.uint64)
        keys = derive_each(start, blocks.astype(np.uint64)) % np.uint64(_PATTERNS)
        indices: Int64s = keys.astype(np.int64) - self.patterns.start
        return indices

    def index(self, block: int) -> int:
        """Return ``indices`` of one block, without arrays."""
        return _pattern(self.seed, block) - self.patterns.start


def whole_blocks(seed: int) -> Blocks:
    """Return the blocks of 1,000 rows."""
    return Blocks(seed, BLOCK, range(_PATTERNS))


def _pattern(seed: int, block: int) -> int:
    return derive(_KIND, seed, _PATTERNS, block) % _PATTERNS


@lru_cache(maxsize=32)
def rows_owned(blocks: Blocks, start: int, stop: int) -> NDArray[np.int16]:
    """Return the rows of a block, ascending, whose slots are ``start <= s < stop``.

    Returns:
        An array of shape (patterns, stop - start): for each pattern the numbers of the rows in the block.
    """
    rows = np.nonzero(_owned(blocks, start, stop))[1]
    return rows.reshape(len(blocks.patterns), stop - start).astype(np.int16)


@lru_cache(maxsize=32)
def rows_before(blocks: Blocks, start: int, stop: int) -> NDArray[np.int16]:
    """Return how many of the first rows of a block have slots ``start <= s < stop``.

    Returns:
        An array of shape (patterns, length + 1): for each pattern and number of first rows a number of rows.
    """
    owned = _owned(blocks, start, stop)
    before = np.zeros((owned.shape[0], owned.shape[1] + 1), dtype=np.int16)
    np.cumsum(owned, axis=1, out=before[:, 1:])
    return before


def _owned(blocks: Blocks, start: int, stop: int) -> NDArray[np.bool_]:
    slots = _slots(blocks)
    return (slots >= start) & (slots < stop)


@lru_cache(maxsize=8)
def _slots(blocks: Blocks) -> NDArray[np.int16]:
    """Return the slot of each row of a block for each pattern: shape (patterns, length)."""
    patterns = np.array(blocks.patterns, dtype=np.uint64)[:, None]
    keys = derive_each(np.array([[derive(_KIND, blocks.seed)]], dtype=np.uint64), patterns)
    return permute(np.arange(blocks.length, dtype=np.int64), blocks.length, keys).astype(np.int16)


@dataclass(frozen=True)
class Deal:
    """The rows of a dataset, dealt to parts whose given sizes sum to all rows.

    A tree of rounded splits decides how many rows of each block a part gets: within a few rows its share of
    every block, and exactly its size in all.

    Example:
        >>> deal = Deal((9, 1), seed=0)
        >>> deal.row_one(1, 0), deal.rows(1, np.arange(1)).tolist(), deal.before(0, np.array([10])).tolist()
        (1, [1], [9])
    """

    sizes: tuple[int, ...]
    seed: int

    _total: int = field(init=False, repr=False, compare=False)
    _tree: Apportionment = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the tree of the sizes."""
        object.__setattr__(self, "_total", sum(self.sizes))
        object.__setattr__(self, "_tree", Apportionment(self.sizes if any(self.sizes) else (1,)))

    def rows(self, part: int, numbers: Int64s) -> Int64s:
        """Return the ``numbers``-th rows of a part: int64."""
        if not numbers.size:
            return numbers
        blocks = self._tree.when(part, numbers) // BLOCK
        before, start, stop = self._slots_in(part, blocks)
        places = numbers - before
        for at, alike in self._alike(blocks, start, stop):
            table = rows_owned(alike, int(start[at[0]]), int(stop[at[0]]))
            places[at] = table[alike.indices(blocks[at]), places[at]]
        return blocks * BLOCK + places

    def row_one(self, part: int, number: int) -> int:
        """Return the ``number``-th row of a part, without arrays."""
        block = self._tree.when(part, number) // BLOCK
        edge = block * BLOCK
        before, start, stop = self._tree.run(part, edge, min(edge + BLOCK, self._total))
        alike = self._blocks_like(block)
        return edge + int(rows_owned(alike, start, stop)[alike.index(block), number - before])

    def before(self, part: int, rows: Int64s) -> Int64s:
        """Return the number of rows of a part before each row, or before the end: int64."""
        if not self.sizes[part] or not rows.size:
            return np.zeros_like(rows)
        blocks, places = np.divmod(rows, BLOCK)
        before, start, stop = self._slots_in(part, blocks)
        for at, alike in self._alike(blocks, start, stop):
            table = rows_before(alike, int(start[at[0]]), int(stop[at[0]]))
            before[at] += table[alike.indices(blocks[at]), places[at]]
        return before

    def _slots_in(self, part: int, blocks: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Count a part's rows before each block, and return the part's run of slots in it."""
        edges = blocks * BLOCK
        return self._tree.run(part, edges, np.minimum(edges + BLOCK, self._total))

    def _alike(self, blocks: Int64s, start: Int64s, stop: Int64s) -> Iterator[tuple[Int64s, Blocks]]:
        """Yield the indices of blocks that have one length and one run of slots, with the blocks' kind."""
        short = blocks == self._total // BLOCK
        codes = (start * (BLOCK + 1) + stop) * 2 + short
        for code in np.unique(codes):
            at = np.flatnonzero(codes == code)
            yield at, self._blocks_like(int(blocks[at[0]]))

    def _blocks_like(self, block: int) -> Blocks:
        """Return the blocks of the length of the given one: all whole ones, or the last one alone."""
        if block < self._total // BLOCK:
            return whole_blocks(self.seed)
        pattern = _pattern(self.seed, block)
        return Blocks(self.seed, self._total % BLOCK, range(pattern, pattern + 1))
