"""The bytes and the requests that hide the latency of a store: pure arithmetic on measured figures."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["LEAST_AHEAD_BYTES", "MOST_AHEAD_BYTES", "ahead_for", "at_once_for", "gap_worth"]

LEAST_AHEAD_BYTES: Final = 64 << 20
MOST_AHEAD_BYTES: Final = 1 << 30

_FEWEST_AT_ONCE, _MOST_AT_ONCE = 4, 64
_HEDGED_TAIL = 0.25
"""The seconds by which a request is late at most if late ones are sent a second time."""


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
