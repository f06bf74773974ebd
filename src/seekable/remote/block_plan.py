"""The blocks that a remote file is cut into, and the blocks that are fetched together. Pure."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "BLOCK_BYTES",
    "STRIDES",
    "TAIL_BYTES",
    "block_span",
    "blocks_ahead",
    "blocks_within",
    "consecutive",
    "continued",
    "expected_blocks",
]

BLOCK_BYTES = 256 << 10
"""The size of a block: the bytes that are transferred in about the time that any request takes."""

TAIL_BYTES = 64 << 10
"""The size of the last block: readers of tables read the end of every file, for its footer."""

STRIDES = 4
"""The number of reads that show a stride: this many in about equal strides are no chance."""

_AHEAD = 12
"""The blocks that are then fetched ahead, at the same time as the one that is needed."""

_MOST_UNEQUAL = 2
_FAR = 4 << 20

_MOST_AT_ONCE = 16
"""The most blocks of one request: several requests at a time are faster than one."""


def blocks_within(start: int, stop: int, size: int) -> range:
    """Return the numbers of the blocks that hold some bytes.

    Args:
        start: the first byte.
        stop: the byte behind the last.
        size: the number of bytes of the file.

    Example:
        >>> blocks_within(0, 10, size=1 << 20), blocks_within((1 << 20) - 8, 1 << 20, size=1 << 20)
        (range(0, 1), range(4, 5))
    """
    return range(_block_of(start, size), _block_of(stop - 1, size) + 1) if start < stop else range(0)


def block_span(number: int, size: int) -> tuple[int, int]:
    """Return the first byte of a block, and the byte behind its last.

    Example:
        >>> block_span(3, size=1 << 20), block_span(4, size=1 << 20)
        ((786432, 983040), (983040, 1048576))
    """
    tail = _tail(size)
    start = number * BLOCK_BYTES
    return (start, min(start + BLOCK_BYTES, tail)) if start < tail else (tail, size)


def consecutive(numbers: Sequence[int]) -> Iterator[range]:
    """Yield the ranges of consecutive numbers, none of more than 16 blocks.

    Example:
        >>> list(consecutive([0, 1, 2, 7]))
        [range(0, 3), range(7, 8)]
    """
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1 or at - begin == _MOST_AT_ONCE:
            yield range(numbers[begin], numbers[at - 1] + 1)
            begin = at


def continued(numbers: range, before: range, size: int) -> range:
    """Return blocks to fetch, and as many behind them as a reader in the order of the file will need.

    Args:
        numbers: the blocks that are needed.
        before: the blocks that were fetched last.
        size: the number of bytes of the file.

    Returns:
        The blocks themselves, if they do not follow those of before; else at least twice as many as these, 16
        at the most.

    Example:
        >>> [continued(range(start, start + 1), range(0, 4), size=99 << 20) for start in (4, 7)]
        [range(4, 12), range(7, 8)]
    """
    if numbers.start != before.stop:
        return numbers
    stop = min(numbers.start + min(2 * len(before), _MOST_AT_ONCE), _block_of(size - 1, size) + 1)
    return range(numbers.start, max(numbers.stop, stop))


def blocks_ahead(starts: Sequence[int], size: int) -> list[int]:
    """Return the blocks of the next reads, if the last reads went through a file in about equal strides.

    A reader that looks for the pages of a column reads so: it goes from the header of one to the next.

    Args:
        starts: the first bytes of the last reads, in their order.
        size: the number of bytes of the file.

    Example:
        >>> blocks_ahead([0, 1_000_000, 2_000_000, 3_000_000], size=6_000_000)
        [15, 19]
        >>> blocks_ahead([0, 1_000_000, 2_000_000, 9_000_000], size=99_000_000)
        []
    """
    strides = [after - before for before, after in pairwise(starts)]
    if len(starts) < STRIDES or min(strides) <= 0 or max(strides) > min(_MOST_UNEQUAL * min(strides), _FAR):
        return []
    stride = (starts[-1] - starts[0]) / len(strides)
    places = (int(starts[-1] + step * stride) for step in range(1, _AHEAD + 1))
    numbers = [_block_of(place, size) for place in places if place < _tail(size)]
    return list(dict.fromkeys(numbers))


def expected_blocks(blocks: Sequence[int], after: int) -> list[int]:
    """Return the next of the blocks that a reader is expected to need.

    Args:
        blocks: all of these blocks, ascending.
        after: the block that it needs now.

    Example:
        >>> expected_blocks([0, 7, 9, 30], after=7)
        [9, 30]
    """
    first = bisect_right(blocks, after)
    return list(blocks[first : first + _AHEAD])


def _tail(size: int) -> int:
    return max(size - TAIL_BYTES, 0)


def _block_of(at: int, size: int) -> int:
    tail = _tail(size)
    return at // BLOCK_BYTES if at < tail else -(-tail // BLOCK_BYTES)
