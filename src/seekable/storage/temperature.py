"""Whether reads wait for a disk, so that fetching ahead is worth its system calls."""

from __future__ import annotations

import os
import resource

__all__ = ["Temperature", "disk_reads"]

_CALM_READS = 4
"""After so many reads in a row without a disk, everything is taken to be in memory."""

_CAN_TELL = hasattr(resource, "RUSAGE_THREAD") and hasattr(os, "posix_fadvise")


def disk_reads() -> int:
    """Return how often this thread has had to read from a disk so far, in no particular unit.

    Page faults that waited, and blocks read: file systems of a network may count the first alone.
    """
    if not _CAN_TELL:
        return 0
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_majflt + usage.ru_inblock


class Temperature:
    """Whether some files are cold: so at first, and again whenever a read meets a disk.

    Safe from threads, each of which notes its own reads.

    Example:
        >>> temperature = Temperature()
        >>> for _ in range(4):
        ...     temperature.note(0)
        >>> temperature.cold
        False
    """

    __slots__ = ("_calm",)

    def __init__(self) -> None:
        self._calm = 0 if _CAN_TELL else _CALM_READS

    @property
    def cold(self) -> bool:
        """Whether the next read may have to wait for a disk."""
        return self._calm < _CALM_READS

    def note(self, reads: int) -> None:
        """Take note of what a read did: the difference of `disk_reads` over it."""
        self._calm = 0 if reads else min(self._calm + 1, _CALM_READS)
