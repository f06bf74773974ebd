"""The needs of the readers of a process, by which requests are sized: their rate, the size of their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from seekable.remote.fetching.budget import (
    LEAST_AHEAD_BYTES,
    MOST_AHEAD_BYTES,
    ahead_for,
    gap_worth,
)
from seekable.remote.fetching.units import are_records_first, record_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.remote.fetching.measured import Measured
    from seekable.remote.fetching.units import PlannedRange
    from seekable.remote.fetching.wants import Wants

__all__ = ["AHEAD_SECONDS", "AT_ONCE", "CPU_SECONDS", "MOST_GAP_BYTES", "Appetite", "gap_bytes"]

AHEAD_SECONDS = 0.5
_SMOOTHING = 0.2
_CONNECTION, _FAST_LINK = 80e6, 600e6
CPU_SECONDS = 0.00012
AT_ONCE = 64
MOST_GAP_BYTES = 1 << 20
_REQUEST_BYTES = 1 << 20
_MOST_LATE = 4096
"""The numbers that wait until they are sorted into an array together."""


@final
class Appetite:
    """Figures of what readers need. Readers in several threads may call it; a lost count does no harm."""

    def __init__(self) -> None:
        """Begin with a rate of 0 and no data."""
        self._rate = 0.0
        self._last: float | None = None
        self._waited = 0.0
        self._seen = _Numbers()
        self._seen_bytes = 0
        self._duplicate_cost = 0

    def wanted(self, wanted_bytes: int, now: float) -> None:
        """Take note of bytes that a reader needs now."""
        if self._last is not None:
            # The time in which the reader worked: what it would need of a store without latency.
            busy = max(0.001, now - self._last - self._waited)
            self._rate += _SMOOTHING * (wanted_bytes / busy - self._rate)
        self._last, self._waited = now, 0.0

    def waited(self, seconds: float) -> None:
        """Take note of the time that a reader waited for requests."""
        self._waited += seconds

    def data_bytes(self, wants: Wants, *, most: int) -> int:
        """Return the bytes of the objects that readers have wanted; no more is counted above ``most``."""
        if self._seen_bytes <= most:
            numbers = np.array([int(ref.key[:16], 16) for ref in wants.objects], np.uint64)
            for row in self._seen.added(numbers).tolist():
                self._seen_bytes += wants.objects[row].pin.size
                if self._seen_bytes > most:
                    break
        return self._seen_bytes

    @property
    def seen_bytes(self) -> int:
        """The bytes of the objects that `data_bytes` has counted."""
        return self._seen_bytes

    def ahead_bytes(self, measured: Measured) -> int:
        """Return how many bytes ahead of a reader to fetch: half a second of its rate, 64 MiB to 1 GiB."""
        needed = ahead_for(
            rate=self._rate,
            latency=measured.latency,
            tail=AHEAD_SECONDS,
            connection=_CONNECTION,
            request_bytes=_REQUEST_BYTES,
            hedged=True,
        )
        ahead = max(needed, round(AHEAD_SECONDS * self._rate))
        return min(max(ahead, LEAST_AHEAD_BYTES), MOST_AHEAD_BYTES)

    def are_records_first(
        self, records: Sequence[PlannedRange], *, unit_bytes: int, measured: Measured, fetched_bytes: int
    ) -> bool:
        """Return True if a reader who waits should get records alone first, and count their cost then.

        Args:
            records: the requests for the records alone.
            unit_bytes: the bytes of requests for their units.
            measured: figures of the store.
            fetched_bytes: all bytes that were fetched before.
        """
        record_bytes = sum(one.stop - one.start for one in records)
        is_first = are_records_first(
            records=len(records),
            record_bytes=record_bytes,
            unit_bytes=unit_bytes,
            link=measured.link if measured.is_timed else max(measured.link, _FAST_LINK),
            latency=measured.latency,
            duplicate_cost=self._duplicate_cost,
            fetched_bytes=fetched_bytes,
        )
        self._duplicate_cost += record_cost(len(records), record_bytes) if is_first else 0
        return is_first


@final
class _Numbers:
    """A set of 64-bit numbers, in little more than 8 bytes each."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, np.uint64)
        self._late: set[int] = set()

    def added(self, numbers: NDArray[np.uint64]) -> Int64s:
        """Add some numbers, and return the places of those that were not there."""
        at = np.searchsorted(self._sorted, numbers)
        before = np.append(self._sorted, np.uint64(0))[at] == numbers
        before &= at < self._sorted.size
        new: list[int] = []
        for place in np.flatnonzero(~before).tolist():
            number = int(numbers[place])
            if number not in self._late:
                self._late.add(number)
                new.append(place)
        if len(self._late) > _MOST_LATE:
            self._sorted = np.union1d(self._sorted, np.array(list(self._late), np.uint64))
            self._late = set()
        return np.array(new, np.int64)


def gap_bytes(measured: Measured) -> int:
    """Return the most bytes between two ranges that are fetched together."""
    worth = gap_worth(
        link=measured.link,
        latency=measured.latency,
        at_once=AT_ONCE,
        cpu=CPU_SECONDS,
        request_price=0.0,
        byte_price=0.0,
    )
    return min(worth, MOST_GAP_BYTES)
