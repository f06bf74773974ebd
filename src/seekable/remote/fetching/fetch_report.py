"""The report on the requests of a process: counts, bytes, waits and latencies."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import final

__all__ = ["FetchCounts", "FetchReport"]

_LATENCIES = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReport:
    """The requests of this process to object stores since it began."""

    requests: int
    """The number of requests sent, further tries and hedges included."""
    fetched_bytes: int
    """The number of bytes of objects that arrived."""
    hits: int
    """The number of ranges that were read and were in memory or on disk."""
    misses: int
    """The number of ranges that were read and had to be fetched."""
    waits: int
    """The number of times that a reader waited for requests."""
    wait_seconds: float
    """The time that readers waited for requests, in seconds; readers in several threads add up."""
    retries: int
    """The number of requests that were sent again after a failure."""
    hedges: int
    """The number of requests that were sent a second time because the first was slow."""
    refusals: int
    """The number of answers that refused a request because there were too many."""
    p50_seconds: float | None
    """The median latency of the latest 1,024 requests in seconds; None before the first answer."""
    p95_seconds: float | None
    """The latency that 95 % of the latest 1,024 requests did not exceed; None before the first answer."""
    oldest: str | None
    """The oldest request that has no answer yet: object, range and age; None if there is none."""
    waiting_bytes: int
    """The number of bytes that look-aheads still wait for."""

    @property
    def hit_ratio(self) -> float | None:
        """The share of reads that needed no request; None if nothing was read."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else None


@final
@dataclass(slots=True)
class FetchCounts:
    """The running counts of a fetcher. Counts of the loop are changed there alone."""

    requests: int = 0
    fetched_bytes: int = 0
    hits: int = 0
    misses: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    retries: int = 0
    hedges: int = 0
    refusals: int = 0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))

    def report(self, *, oldest: str | None, waiting_bytes: int) -> FetchReport:
        """Return the counts as they are now."""
        latencies = sorted(self.latencies.copy())
        return FetchReport(
            requests=self.requests,
            fetched_bytes=self.fetched_bytes,
            hits=self.hits,
            misses=self.misses,
            waits=self.waits,
            wait_seconds=self.wait_seconds,
            retries=self.retries,
            hedges=self.hedges,
            refusals=self.refusals,
            p50_seconds=_quantile(latencies, 0.5),
            p95_seconds=_quantile(latencies, 0.95),
            oldest=oldest,
            waiting_bytes=waiting_bytes,
        )


def _quantile(ascending: list[float], share: float) -> float | None:
    if not ascending:
        return None
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]
