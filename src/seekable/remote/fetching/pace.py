"""The requests a second that a store gets: a pure state machine, time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

__all__ = ["Pace"]

_MOST_RATE = 100_000.0
_LEAST_RATE = 1.0
_CUT = 0.7
_CUT_SECONDS = 0.1
_DOUBLING_SECONDS = 1.0
_GROWTH = 0.5
_LONGEST_STOP = 60.0
"""The most seconds that a store can stop all requests for, in one answer."""


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
