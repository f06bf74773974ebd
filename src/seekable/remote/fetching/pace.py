"""When requests are sent: the pace of a store, and the tries of a request. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

__all__ = ["Pace", "Patience", "Retrying", "answer_seconds"]

_MOST_RATE = 100_000.0
_LEAST_RATE = 1.0
_CUT = 0.7
_CUT_SECONDS = 0.1
_DOUBLING_SECONDS = 1.0
_GROWTH = 0.5
_LONGEST_STOP = 60.0
"""The most seconds that a store can stop all requests for, in one answer."""

_LEAST_SECONDS = 30.0
_SLOWEST_LINK = 250e3


@final
@dataclass(slots=True)
class Pace:
    """The rate of requests to one store.

    Until the first refusal the rate doubles each second in which it held requests back. A refusal cuts it,
    at most once in 100 ms, since refusals come in crowds; each answer then lets it grow a little. Where a
    refusal says how long to wait, no request is sent before.

    Example:
        >>> pace = Pace(rate=10.0, burst=1.0)
        >>> pace.reserve(0.0), pace.reserve(0.0), pace.reserve(0.0), pace.reserve(0.3)
        (0.0, 0.1, 0.2, 0.0)
        >>> pace.refused(0.5, retry_after=3.0)
        >>> pace.rate, pace.reserve(1.5)
        (7.0, 2.0)
    """

    rate: float
    """The requests a second."""
    burst: float
    """The requests that may be sent at once after a pause."""
    _tokens: float = field(init=False)
    _filled_at: float | None = field(default=None, init=False)
    _doubled_at: float | None = field(default=None, init=False)
    _held_back: bool = field(default=False, init=False)
    _stopped_until: float = field(default=float("-inf"), init=False)
    _refused_at: float | None = field(default=None, init=False)
    _cut_at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._tokens = self.burst

    def reserve(self, now: float) -> float:
        """Count one request as sent, and return the seconds after which it may be; 0.0 for now."""
        if self._filled_at is not None:
            self._tokens = min(self.burst, self._tokens + max(0.0, now - self._filled_at) * self.rate)
        self._filled_at = now
        self._tokens -= 1.0
        wait = max(0.0, -self._tokens / self.rate)
        self._held_back = self._held_back or wait > 0.0
        return max(wait, self.stop_left(now))

    def stop_left(self, now: float) -> float:
        """Return the seconds for which no request may be sent, because the store asked for that."""
        return max(0.0, self._stopped_until - now)

    def answered(self, now: float) -> None:
        """Take note of an answer that was no refusal."""
        if self._refused_at is not None:
            self.rate = min(_MOST_RATE, self.rate + _GROWTH)
        elif self._doubled_at is None:
            self._doubled_at = now
        elif now - self._doubled_at >= _DOUBLING_SECONDS:
            if self._held_back:
                self.rate = min(_MOST_RATE, 2 * self.rate)
            self._doubled_at, self._held_back = now, False

    def refused(self, now: float, *, retry_after: float | None) -> None:
        """Take note of an answer that refused a request because there are too many.

        Args:
            now: the time of the answer.
            retry_after: the seconds to wait that the answer asks for; None if it asks for nothing.
        """
        self._refused_at = now
        if self._cut_at is None or now - self._cut_at >= _CUT_SECONDS:
            self.rate = max(_LEAST_RATE, _CUT * self.rate)
            self._cut_at = now
            self._tokens = min(self._tokens, 0.0)
        if retry_after is not None:
            self._stopped_until = max(self._stopped_until, now + min(retry_after, _LONGEST_STOP))

    def seconds_since_refusal(self, now: float) -> float:
        """Return the seconds since the last refusal; infinite if there was none."""
        return float("inf") if self._refused_at is None else now - self._refused_at


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The bounds of the tries of one request."""

    tries: int = 8
    """The most times that the request is sent."""
    total_seconds: float = 300.0
    """No try begins later than this after the first one."""
    first_wait: float = 0.1
    """The most seconds before the second try; the most doubles with each further one."""
    longest_wait: float = 15.0
    """The most seconds before any try, but for what the store asks for itself."""


@final
@dataclass(slots=True)
class Retrying:
    """The tries of one request.

    Example:
        >>> retrying = Retrying(Patience(tries=3), began=0.0)
        >>> retrying.wait_after_failure(1.0, share=1.0, retry_after=None)
        0.1
        >>> retrying.wait_after_failure(2.0, share=1.0, retry_after=5.0)
        5.0
        >>> retrying.wait_after_failure(8.0, share=1.0, retry_after=None) is None
        True
    """

    patience: Patience
    began: float
    """The time of the first try, in seconds of any clock."""
    tries: int = field(default=0, init=False)
    """The number of tries that failed."""

    def wait_after_failure(self, now: float, *, share: float, retry_after: float | None) -> float | None:
        """Return the seconds to wait before the next try; None if the request has failed for good.

        Args:
            now: the time of the failure.
            share: a random number from 0 to 1; the wait is this share of the most (full jitter).
            retry_after: the least seconds that the store asks to wait; None if it asks for nothing.
        """
        self.tries += 1
        most = self.patience
        if self.tries >= most.tries:
            return None
        wait = share * min(most.longest_wait, most.first_wait * 2 ** min(self.tries - 1, 62))
        wait = max(wait, retry_after or 0.0)
        return wait if now + wait - self.began <= most.total_seconds else None


def answer_seconds(size: int, *, expected: float | None) -> float:
    """Return how long one try may take, in seconds.

    Args:
        size: the bytes that are sent or received.
        expected: the median time of requests of about this size; None if it is not known.

    Example:
        >>> answer_seconds(4096, expected=0.03), answer_seconds(64 << 20, expected=None)
        (30.0, 268.435456)
    """
    return max(_LEAST_SECONDS, 4 * (expected or 0.0), size / _SLOWEST_LINK)
