"""When a slow request is sent a second time: pure rules."""

from __future__ import annotations

from typing import Final

__all__ = ["HEDGED_BYTES", "hedge_after", "may_hedge"]

HEDGED_BYTES: Final = 8 << 20
"""Longer requests are never sent a second time."""

_SHARE = 0.05
_CALM_SECONDS = 1.0
_LEAST_SECONDS = 0.05
_UNKNOWN_SECONDS = 1.0
_SLOW_LINK = 25e6


def hedge_after(size: int, *, expected: float | None, p95: float | None) -> float:
    """Return the age in seconds from which a request is late.

    Args:
        size: the bytes of the request.
        expected: the median latency of requests of about this size; None if it is not known yet.
        p95: the latency that 95 % of them do not exceed; None if it is not known yet.

    Example:
        >>> hedge_after(4096, expected=0.03, p95=0.2)
        0.2
        >>> hedge_after(25_000_000, expected=None, p95=None)
        2.0
    """
    if expected is None or p95 is None:
        return _UNKNOWN_SECONDS + size / _SLOW_LINK
    return max(_LEAST_SECONDS, 3 * expected, p95)


def may_hedge(size: int, *, hedges: int, requests: int, since_refusal: float, is_place_free: bool) -> bool:
    """Return True if a late request may be sent a second time.

    Args:
        size: the bytes of the request.
        hedges: the number of requests that were sent a second time before.
        requests: the number of requests before; at most 5 % of them are sent a second time.
        since_refusal: the seconds since the store refused a request because there were too many.
        is_place_free: True if no other request waits to be sent.

    Example:
        >>> may_hedge(4096, hedges=4, requests=100, since_refusal=9.0, is_place_free=True)
        True
        >>> may_hedge(4096, hedges=5, requests=100, since_refusal=9.0, is_place_free=True)
        False
    """
    if size > HEDGED_BYTES or not is_place_free or since_refusal < _CALM_SECONDS:
        return False
    return hedges < max(1.0, _SHARE * requests)
