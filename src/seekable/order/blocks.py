"""Blocks: consecutive rows that are cheap to read together.

Blocks are given by their edges: ascending rows, of which the first is 0, the last the number of rows, and no
two are equal. Block ``i`` is the rows from ``edges[i]`` up to ``edges[i + 1]``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = [
    "BLOCK_ROWS",
    "LONGEST_BLOCK",
    "cut_long_blocks",
    "default_blocks",
    "default_blocks_within",
    "joined_blocks",
    "resized_blocks",
    "strided_blocks",
]

BLOCK_ROWS = 1024
"""The rows of a block where the data has no blocks of its own."""

LONGEST_BLOCK = 8192
"""The most rows of a block of data that has blocks of its own; longer ones are cut."""


def default_blocks(size: int) -> Int64s:
    """Return the edges of blocks with 1,024 rows each; the last may be shorter.

    Example:
        >>> default_blocks(2500).tolist()
        [0, 1024, 2048, 2500]
    """
    return default_blocks_within(np.array([size], dtype=np.int64))


def default_blocks_within(lengths: Int64s) -> Int64s:
    """Return the edges of blocks with 1,024 rows that do not cross from one stretch of rows into the next.

    Args:
        lengths: the number of rows of each stretch, of a file for instance.

    Example:
        >>> default_blocks_within(np.array([1500, 0, 3])).tolist()
        [0, 1024, 1500, 1503]
    """
    ends = np.cumsum(lengths)
    counts = -(-lengths // BLOCK_ROWS)
    before = np.cumsum(counts) - counts
    number = np.arange(int(counts.sum())) - np.repeat(before, counts)
    starts = np.repeat(ends - lengths, counts) + number * BLOCK_ROWS
    return np.append(starts, ends[-1:] if ends.size else 0)


def resized_blocks(edges: Int64s, rows: int) -> Int64s:
    """Return the edges of blocks that have a bounded number of rows: longer ones are cut, neighbours joined.

    A longer block is cut as by `cut_long_blocks`, and its pieces count as blocks. Then each new block has as
    many blocks, from the first one on, as fit.

    Args:
        edges: the edges of the blocks.
        rows: the most rows of a new block, at least 1.

    Example:
        >>> resized_blocks(np.array([0, 2, 4, 5, 12]), 4).tolist()
        [0, 4, 5, 9, 12]
    """
    left: list[int] = cut_long_blocks(np.diff(edges), most=rows).tolist()
    found, at = [0], 0
    while at < len(left) - 1:
        at = bisect_right(left, left[at] + rows, at + 1) - 1
        found.append(left[at])
    return np.array(found, np.int64)


def cut_long_blocks(lengths: Int64s, *, most: int = LONGEST_BLOCK) -> Int64s:
    """Return the edges of blocks with given lengths; a block with too many rows is cut into equal pieces.

    Pieces of one block differ by one row at most, the longer ones first. Blocks without rows are left out.

    Args:
        lengths: the number of rows of each block.
        most: the most rows of a block.

    Example:
        >>> cut_long_blocks(np.array([3, 0, 16385])).tolist()
        [0, 3, 5465, 10927, 16388]
    """
    counts = -(-lengths // most)
    ends = np.cumsum(lengths)
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    pieces, rest = np.divmod(lengths, np.maximum(counts, 1))
    starts = np.repeat(ends - lengths, counts) + number * np.repeat(pieces, counts)
    starts += np.minimum(number, np.repeat(rest, counts))
    return np.append(starts, ends[-1:] if ends.size else 0)


def joined_blocks(parts: Sequence[Int64s]) -> Int64s:
    """Join the blocks of stretches that follow each other, and return the edges.

    Example:
        >>> joined_blocks([np.array([0, 3]), np.array([0]), np.array([0, 2, 5])]).tolist()
        [0, 3, 5, 8]
    """
    ends = np.cumsum([edges[-1] for edges in parts])
    starts = (edges[:-1] + end - edges[-1] for edges, end in zip(parts, ends, strict=True))
    return np.concatenate([*starts, ends[-1:]])


def strided_blocks(edges: Int64s, *, start: int, step: int, count: int) -> Int64s:
    """Return the edges of the blocks of evenly spaced rows.

    Args:
        edges: the edges of the blocks of all rows.
        start: the first row taken.
        step: the distance to the next row taken; not 0, and negative to go backwards.
        count: the number of rows taken.

    Example:
        >>> strided_blocks(np.array([0, 4, 10]), start=1, step=2, count=4).tolist()
        [0, 2, 4]
        >>> strided_blocks(np.array([0, 4, 10]), start=9, step=-1, count=10).tolist()
        [0, 6, 10]
    """
    # Forwards a block begins with the first row at or after its edge, backwards with the first before it.
    firsts = -((start - edges) // step) if step > 0 else -((edges - 1 - start) // -step)
    return np.unique(np.clip(firsts, 0, count))
