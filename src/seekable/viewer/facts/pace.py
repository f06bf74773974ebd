"""Spaces the partial results of long work: about 50 ms apart, and never for most of its time."""

from __future__ import annotations

import time

__all__ = ["Pace"]

_SECONDS = 0.05
_PARTS = 4


class Pace:
    """Says when a partial result is due.

    Making one may take long itself, so the next is due after four times as long as the last one took.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._wait = _SECONDS

    def due(self) -> bool:
        """Return True if a partial result is to be made now."""
        now = time.monotonic()
        if now - self._last < self._wait:
            return False
        self._last = now
        return True

    def made(self) -> None:
        """Note that the partial result is made; what its reader does until ``due`` is called counts too."""
        now = time.monotonic()
        self._wait = max(_SECONDS, _PARTS * (now - self._last))
        self._last = now
