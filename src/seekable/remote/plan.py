"""How a file is cut into blocks, and which of them are fetched together. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["BLOCK_BYTES", "STRIDES", "TAIL_BYTES", "block_span", "blocks_ahead", "blocks_within", "runs"]

BLOCK_BYTES = 256 << 10
"""How large a block is: what is transferred in about the time that a request takes anyway."""

TAIL_BYTES = 64 << 10
"""The end of a file is a block by itself, as it is read of every file, for its footer."""

STRIDES = 4
"""So many reads in about equal strides are no chance."""

_AHEAD = 12
"""How many blocks are then fetched ahead, at the same time as the one that is wanted."""

_MOST_UNEQUAL = 2
_FAR = 4 << 20

_MOST_AT_ONCE = 16
"""How many blocks one request asks for at most: several requests at a time are faster than one."""


def blocks_within(start: int, stop: int, size: int) -> range:
    """Return the numbers of the blocks that some bytes lie in.

    Args:
        start: the first byte.
        stop: the one behind the last.
        size: how many bytes the file has.

    Example:
        >>> blocks_within(0, 10, size=1 << 20), blocks_within((1 << 20) - 8, 1 << 20, size=1 << 20)
        (range(0, 1), range(4, 5))
    """
    return range(_block_of(start, size), _block_of(stop - 1, size) + 1) if start < stop else range(0)


def block_span(number: int, size: int) -> tuple[int, int]:
    """Return where a block begins and ends.

    Example:
        >>> block_span(3, size=1 << 20), block_span(4, size=1 << 20)
        ((786432, 983040), (983040, 1048576))
    """
    tail = _tail(size)
    start = number * BLOCK_BYTES
    return (start, min(start + BLOCK_BYTES, tail)) if start < tail else (tail, size)


def runs(numbers: Sequence[int]) -> Iterator[range]:
    """Yield runs of consecutive blocks, none too long for one request.

    Example:
        >>> list(runs([0, 1, 2, 7]))
        [range(0, 3), range(7, 8)]
    """
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1 or at - begin == _MOST_AT_ONCE:
            yield range(numbers[begin], numbers[at - 1] + 1)
            begin = at


def blocks_ahead(starts: Sequence[int], size: int) -> list[int]:
    """Return which blocks will be wanted next, if reads go through a file in about equal strides.

    So goes whoever looks for the pages of a column, from the head of one to that of the next.

    Args:
        starts: where the last reads began, in their order.
        size: how many bytes the file has.

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


def _tail(size: int) -> int:
    return max(size - TAIL_BYTES, 0)


def _block_of(at: int, size: int) -> int:
    tail = _tail(size)
    return at // BLOCK_BYTES if at < tail else -(-tail // BLOCK_BYTES)
