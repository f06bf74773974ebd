"""Planning of reads from tables: the blocks that are decoded whole, and the rows that are read singly.

Nothing here reads a file. A block is decoded whole where many of its rows are wanted, or if it was decoded
before; other rows are read from the pages that hold them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.formats.tables.table_files import RowBlocks


__all__ = ["DecodeBlock", "ReadRows", "blocks_to_decode", "steps"]

_DENSE = 64
"""A block is decoded whole where one in so many of its rows is wanted."""

_MANY = 16
"""So many rows of one block touch nearly all of its pages anyway."""

_FEWEST = 32
"""The fewest rows of a group for a thread of their own."""

_FEWEST_IN_RANGE = 16


@dataclass(frozen=True, slots=True)
class DecodeBlock:
    """Rows that are taken from a block that is decoded whole."""

    block: int
    within: Sequence[int]
    """The numbers of the rows in the block, ascending; they may repeat."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadRows:
    """Rows of one group that are read singly."""

    group: int
    rows: Int64s
    """The rows, counted over all files, ascending; they may repeat."""


def blocks_to_decode(
    rows: Int64s, blocks: RowBlocks, *, size_of: Callable[[int], int], most_bytes: int
) -> frozenset[int]:
    """Return the blocks to decode whole for some rows; none if those that are needed together do not fit.

    A block is needed from its first row to its last. One that does not stay as long would be decoded anew by
    each slice of a plan. Where two windows meet, the blocks of both are wanted, but not together.

    Args:
        rows: the wanted rows, in the order of reading.
        blocks: where rows lie.
        size_of: returns the bytes of a block in memory.
        most_bytes: the bytes that fit.
    """
    block_of = blocks.blocks(rows)
    present, first, wanted = np.unique(block_of, return_index=True, return_counts=True)
    _, from_end = np.unique(block_of[::-1], return_index=True)
    many = (wanted >= _MANY) | (wanted * _DENSE >= np.diff(blocks.edges)[present])
    dense = present[many].tolist()
    sizes = np.array(list(map(size_of, dense)), np.int64)
    changes = np.zeros(rows.size + 1, np.int64)
    np.add.at(changes, first[many], sizes)
    np.subtract.at(changes, rows.size - from_end[many], sizes)
    return frozenset(dense) if np.cumsum(changes).max() <= most_bytes else frozenset()


def steps(
    rows: Int64s, blocks: RowBlocks, decoded: Container[int], *, threads: int
) -> Iterator[DecodeBlock | ReadRows]:
    """Yield the steps that read some rows, in the order of the rows.

    Args:
        rows: the wanted rows, ascending; they may repeat.
        blocks: where rows lie.
        decoded: the blocks that are decoded whole.
        threads: how many threads may share the rows of one group that are read by themselves.
    """
    block_of = blocks.blocks(rows)
    within = (rows - blocks.edges[block_of]).tolist()
    bounds = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), rows.size]
    present = block_of[bounds[:-1]]
    alone: list[Int64s] = []
    group = -1
    for block, its_group, (start, stop) in zip(
        present.tolist(), blocks.group_of[present].tolist(), pairwise(bounds), strict=True
    ):
        whole = block in decoded
        if alone and (whole or its_group != group):
            yield from _shared(group, np.concatenate(alone), threads)
            alone = []
        group = its_group
        if whole:
            yield DecodeBlock(block, _as_range(within[start:stop]))
        else:
            alone.append(rows[start:stop])
    if alone:
        yield from _shared(group, np.concatenate(alone), threads)


def _shared(group: int, rows: Int64s, threads: int) -> Iterator[ReadRows]:
    """Yield the rows of a group, cut for the threads; a page at a cut is decoded twice."""
    for some in np.array_split(rows, min(threads, -(-rows.size // _FEWEST))):
        yield ReadRows(group, some)


def _as_range(rows: list[int]) -> Sequence[int]:
    """Return many consecutive ascending rows as a range, which is cheaper to read."""
    if len(rows) < _FEWEST_IN_RANGE or rows[-1] - rows[0] != len(rows) - 1:
        return rows
    ordered = range(rows[0], rows[-1] + 1)
    return ordered if rows == list(ordered) else rows
