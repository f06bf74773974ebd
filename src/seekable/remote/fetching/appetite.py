"""The needs of the readers of a process, by which requests are sized."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable.remote.fetching.budget import (
    LEAST_AHEAD_BYTES,
    MOST_AHEAD_BYTES,
    ahead_for,
    gap_worth,
)
from seekable.remote.fetching.units import are_records_first, record_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.remote.fetching.measured import Measured
    from seekable.remote.fetching.units import PlannedRange

__all__ = ["AHEAD_SECONDS", "AT_ONCE", "CPU_SECONDS", "MOST_GAP_BYTES", "Appetite", "gap_bytes"]

AHEAD_SECONDS = 0.5
_SMOOTHING = 0.2
_CONNECTION, _FAST_LINK = 80e6, 600e6
CPU_SECONDS = 0.00012
AT_ONCE = 64
MOST_GAP_BYTES = 1 << 20
_REQUEST_BYTES = 1 << 20


@final
class Appetite:
    """Figures of what readers need. Readers in several threads may call it; a lost count does no harm."""

    def __init__(self) -> None:
        """Begin with a rate of 0."""
        self._rate = 0.0
        self._last: float | None = None
        self._waited = 0.0
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
