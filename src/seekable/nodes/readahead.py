"""Telling the system, while records are read, which ones come next."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seekable.nodes.contract import Plan

__all__ = ["Ahead", "Streak"]

_RECORDS = 4096
"""Records to be ahead by: enough for a disk to work on many at once, and for many to be neighbours."""

_BYTES = 64 << 20
"""Their bytes, about, where that is less: memory that waits to be read."""


class Ahead:
    """Runs ahead of whoever reads a plan from its start to its end."""

    def __init__(self, plan: Plan) -> None:
        """Stand at the plan's start."""
        self._plan = plan
        self._told = 0
        self._step = max(1, min(_RECORDS, len(plan) * _BYTES // max(1, plan.bytes)))

    def read_to(self, stop: int) -> None:
        """Make sure that what comes up to here, and a step further on, was told of."""
        if self._told < min(stop + self._step, len(self._plan)):
            until = min(stop + 2 * self._step, len(self._plan))
            self._plan.slice(self._told, until).advise()
            self._told = until


class Streak:
    """How many positions in a row were asked for one by one; threads that disturb it cost a fetch at most."""

    __slots__ = ("expected", "length")

    def __init__(self) -> None:
        """Begin before position 0."""
        self.expected = 0
        self.length = 0
