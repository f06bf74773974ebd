"""The bytes and the requests that hide the latency of a store: pure arithmetic on measured figures.

`Measured` has these figures, and `Appetite` the needs of the readers of a process: both size requests.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.remote.fetching.wants import PlannedRange

__all__ = [
    "AHEAD_SECONDS",
    "AT_ONCE",
    "CPU_SECONDS",
    "FAST_LINK",
    "LEAST_AHEAD_BYTES",
    "MOST_AHEAD_BYTES",
    "MOST_GAP_BYTES",
    "Appetite",
    "Measured",
    "ahead_for",
    "are_records_first",
    "at_once_for",
    "gap_bytes",
    "gap_worth",
]

LEAST_AHEAD_BYTES: Final = 64 << 20
MOST_AHEAD_BYTES: Final = 1 << 30

AHEAD_SECONDS = 0.5
_SMOOTHING = 0.2
_CONNECTION = 80e6
FAST_LINK = 600e6
"""The rate of all requests together that is assumed until it was measured."""
CPU_SECONDS = 0.00012
AT_ONCE = 64
MOST_GAP_BYTES = 1 << 20
_REQUEST_BYTES = 1 << 20

_FEWEST_AT_ONCE, _MOST_AT_ONCE = 4, 64
_HEDGED_TAIL = 0.25
"""The seconds by which a request is late at most if late ones are sent a second time."""

_ROUND_TRIPS = 3
_GAIN, _RECORD_SECONDS = 2, 0.0005
"""Records come first if that is so many times faster; each takes that time of the processor."""
_RECORD_COST = 64 << 10
"""The bytes that are fetched in large requests in the time that the processor takes for a small one."""
_LEAST_COST, _COST_SHARE = 24 << 20, 16
"""Records that are fetched first may cost as much as so many bytes, or one part in so many of all bytes."""

_KEPT = 128
_FEWEST = 8
_RENEWED = 8
"""Medians are computed again after so many answers."""
_WINDOW_SECONDS = 1.0
_DECAY = 0.9
_SMALL_BYTES = 64 << 10


@final
class Measured:
    """Latencies of the latest requests by size class, and the rate of bytes. Time is an argument.

    Example:
        >>> measured = Measured(latency=0.03, link=125e6)
        >>> for number in range(16):
        ...     measured.answered(number / 100, size=1000, seconds=0.02)
        >>> measured.latency, measured.quantiles(900), measured.quantiles(1 << 20)
        (0.02, (0.02, 0.02), None)
    """

    def __init__(self, *, latency: float, link: float) -> None:
        """Assume figures until there are measured ones.

        Args:
            latency: the time of a small request, in seconds.
            link: the rate of all requests together, in bytes a second. It is the least rate, too: a reader
                who needs little says nothing of the link.
        """
        self.latency = latency
        """The median time of a small request, in seconds."""
        self.link = link
        """The rate of all requests together in the best of the last seconds, in bytes a second."""
        self.is_timed = False
        """True when the rate of all requests was measured."""
        self._least_link = link
        self._classes: dict[int, deque[float]] = {}
        self._quantiles: dict[int, tuple[float, float]] = {}
        self._window_began: float | None = None
        self._window_bytes = 0
        self._answers = 0

    def answered(self, now: float, *, size: int, seconds: float) -> None:
        """Take note of an answer.

        Args:
            now: the time.
            size: its bytes.
            seconds: the time from the request to the end of the answer.
        """
        kind = size.bit_length()
        kept = self._classes.setdefault(kind, deque(maxlen=_KEPT))
        kept.append(seconds)
        self._answers += 1
        if len(kept) >= _FEWEST and (self._answers % _RENEWED == 0 or kind not in self._quantiles):
            ascending = sorted(kept)
            median, p95 = ascending[len(ascending) // 2], ascending[int(0.95 * (len(ascending) - 1))]
            self._quantiles[kind] = median, p95
            if size <= _SMALL_BYTES:
                self.latency = median
        self._add_bytes(now, size)

    def quantiles(self, size: int) -> tuple[float, float] | None:
        """Return the median and the 95 % quantile of latencies of about this size; None if unknown."""
        return self._quantiles.get(size.bit_length())

    def _add_bytes(self, now: float, size: int) -> None:
        if self._window_began is None:
            self._window_began = now
        self._window_bytes += size
        passed = now - self._window_began
        if passed >= _WINDOW_SECONDS:
            self.link = max(self._least_link, self.link * _DECAY, self._window_bytes / passed)
            self._window_began, self._window_bytes, self.is_timed = None, 0, True


def gap_worth(
    *, link: float, latency: float, at_once: int, cpu: float, request_price: float, byte_price: float
) -> int:
    """Return the most bytes between two ranges that are cheaper to fetch than a second request.

    Args:
        link: the rate of all requests together, in bytes a second.
        latency: the time of a small request, in seconds.
        at_once: the requests at once, which share the latency.
        cpu: the time of a processor for a request, in seconds.
        request_price: the price of a request, in any currency.
        byte_price: the price of a byte, 0 where bytes cost nothing.

    Example:
        >>> gap_worth(link=600e6, latency=0.03, at_once=64, cpu=0.00012, request_price=0.0, byte_price=0.0)
        353250
        >>> gap_worth(link=600e6, latency=0.03, at_once=64, cpu=0.0, request_price=0.4e-6, byte_price=2e-11)
        20000
    """
    worth = link * (latency / at_once + cpu)
    if byte_price:
        worth = min(worth, request_price / byte_price)
    return round(worth)


def at_once_for(*, rate: float, latency: float, connection: float, request_bytes: int) -> int:
    """Return how many requests at once bring bytes at a rate, from 4 to 64.

    Args:
        rate: the rate, in bytes a second.
        latency: the time of a small request, in seconds.
        connection: the rate of one connection, in bytes a second.
        request_bytes: the bytes of a request.

    Example:
        >>> figures = {"rate": 500e6, "latency": 0.03, "connection": 80e6}
        >>> [at_once_for(request_bytes=size, **figures) for size in (200_000, 2_000_000, 8_000_000)]
        [64, 14, 9]
    """
    seconds = latency + request_bytes / connection
    needed = math.ceil(rate * seconds / max(1, request_bytes))
    return min(max(needed, _FEWEST_AT_ONCE), _MOST_AT_ONCE)


def ahead_for(
    *, rate: float, latency: float, tail: float, connection: float, request_bytes: int, hedged: bool
) -> int:
    """Return how many bytes ahead of a reader requests must be, so that it does not wait.

    Args:
        rate: the rate of the reader, in bytes a second.
        latency: the time of a small request, in seconds.
        tail: by how much the slowest requests are late, in seconds.
        connection: the rate of one connection, in bytes a second.
        request_bytes: the bytes of a request.
        hedged: True if late requests are sent a second time.

    Example:
        >>> figures = {"rate": 100e6, "latency": 0.03, "tail": 2.0, "connection": 80e6}
        >>> [ahead_for(request_bytes=1 << 20, hedged=hedged, **figures) >> 20 for hedged in (False, True)]
        [196, 29]
    """
    late = min(tail, _HEDGED_TAIL) if hedged else tail
    seconds = latency + request_bytes / connection + late
    return (math.ceil(rate * seconds / request_bytes) + 1) * request_bytes


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
            link=measured.link if measured.is_timed else max(measured.link, FAST_LINK),
            latency=measured.latency,
            duplicate_cost=self._duplicate_cost,
            fetched_bytes=fetched_bytes,
        )
        self._duplicate_cost += _record_cost(len(records), record_bytes) if is_first else 0
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


def are_records_first(
    *,
    records: int,
    record_bytes: int,
    unit_bytes: int,
    link: float,
    latency: float,
    duplicate_cost: int,
    fetched_bytes: int,
) -> bool:
    """Return True if a reader who waits should get the ranges alone, while their units come later.

    Args:
        records: the number of requests for the ranges alone.
        record_bytes: their bytes.
        unit_bytes: the bytes of requests for whole units.
        link: the rate of all requests together, in bytes a second.
        latency: the time of a small request, in seconds.
        duplicate_cost: the cost of what was fetched in this way before; see `_record_cost`.
        fetched_bytes: all bytes that were fetched before.

    Example:
        >>> figures = {"link": 125e6, "latency": 0.03, "duplicate_cost": 0, "fetched_bytes": 0}
        >>> are_records_first(records=256, record_bytes=500_000, unit_bytes=62_000_000, **figures)
        True
        >>> are_records_first(records=256, record_bytes=500_000, unit_bytes=2_000_000, **figures)
        False
    """
    whole = unit_bytes / link
    turns = -(-records // AT_ONCE)
    alone = turns * latency + records * _RECORD_SECONDS + record_bytes / link
    if whole <= _ROUND_TRIPS * latency or latency + whole < _GAIN * alone or 8 * record_bytes > unit_bytes:
        return False
    cost = _record_cost(records, record_bytes)
    return duplicate_cost + cost <= max(_LEAST_COST, fetched_bytes // _COST_SHARE)


def _record_cost(records: int, record_bytes: int) -> int:
    """Return how many bytes large requests bring in the time that some small ones take of the processor.

    Args:
        records: the number of small requests.
        record_bytes: their bytes.

    Example:
        >>> _record_cost(256, 500_000)
        17277216
    """
    return record_bytes + records * _RECORD_COST
