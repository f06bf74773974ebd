"""Figures of a store and the way to it, measured by requests: latencies by size, and the rate of all."""

from __future__ import annotations

from collections import deque
from typing import final

__all__ = ["Measured"]

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
