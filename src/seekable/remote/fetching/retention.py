"""The blocks that stay in memory for a reader: pure, from what it is going to need.

Windows of a shuffle are open for a long time, and each of their blocks is read bit by bit: all of them stay,
however large they are. Where little of each block is needed, as by a shuffle of all records, most of what was
fetched with the records is of no use: of such blocks a bounded number of bytes stays, those needed next.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.remote.fetching.wants import Wants

__all__ = ["DENSE", "Needs"]

DENSE = 2
"""A block is dense if at least one part in so many of its bytes is needed."""

_OFFSET_BITS = 44


@final
class Needs:
    """Ranges that a reader is going to need, for questions on blocks of bytes.

    Example:
        >>> from seekable.remote.fetching.wants import ObjectRef, Wants
        >>> from seekable.remote.stores.store import Pin
        >>> ref = ObjectRef("s3://b/a", Pin(1000, 1))
        >>> needs = Needs(Wants((ref,), *np.array([[0, 0], [400, 0], [410, 100]])))
        >>> spans = [(ref.key, 0, 200), (ref.key, 200, 400), (ref.key, 400, 500)]
        >>> [needs.kept(spans, most_bytes=size) for size in (0, 100)]
        [[True, False, False], [True, False, True]]
    """

    def __init__(self, wants: Wants) -> None:
        """Take the ranges.

        Args:
            wants: the ranges, the next one first.
        """
        self._wants = wants

    def kept(self, spans: Sequence[tuple[str, int, int]], *, most_bytes: int) -> list[bool]:
        """Return for each block True if it stays: it is needed, and dense or among those needed next.

        Args:
            spans: the key of each block's object, its first byte, and the byte behind its last.
            most_bytes: the most bytes of blocks that are not dense.
        """
        needed, first = self._needed(spans)
        sizes = np.array([stop - start for _, start, stop in spans], np.int64)
        stays = needed * DENSE >= sizes
        sparse = np.flatnonzero((needed > 0) & ~stays)
        nearest = sparse[np.argsort(first[sparse], kind="stable")]
        stays[nearest[np.cumsum(sizes[nearest]) <= most_bytes]] = True
        stays &= needed > 0
        kept: list[bool] = stays.tolist()
        return kept

    def _needed(self, spans: Sequence[tuple[str, int, int]]) -> tuple[Int64s, Int64s]:
        """Return how many bytes of each block are needed, and the number of the range that needs it first.

        A byte that several ranges need counts as often; of a range at the edge of a block all bytes count.
        """
        numbers, places, stops, order, sums = self._sorted
        needed, first = np.zeros((2, len(spans)), np.int64)
        for row, (key, start, stop) in enumerate(spans):
            number = numbers.get(key)
            if number is None:
                continue
            base = number << _OFFSET_BITS
            low = int(np.searchsorted(stops, base + start, side="right"))
            high = int(np.searchsorted(places, base + stop))
            if low < high:
                needed[row] = sums[high] - sums[low]
                first[row] = order[low:high].min()
        return needed, first

    @cached_property
    def _sorted(self) -> tuple[dict[str, int], Int64s, Int64s, Int64s, Int64s]:
        """The numbers of the objects; sorted by place: first bytes, furthest ends, numbers, sums of bytes."""
        wants = self._wants
        full = np.flatnonzero(wants.stops > wants.starts)
        places = (wants.which[full] << _OFFSET_BITS) + wants.starts[full]
        by_place = np.argsort(places, kind="stable")
        order, places = full[by_place], places[by_place]
        lengths = wants.stops[order] - wants.starts[order]
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        numbers = {ref.key: number for number, ref in enumerate(wants.objects)}
        return numbers, places, np.maximum.accumulate(places + lengths), order, sums
