"""The tries of a request and the waits between them: a pure state machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

__all__ = ["Patience", "Retrying", "answer_seconds"]

_LEAST_SECONDS = 30.0
_SLOWEST_LINK = 250e3


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
