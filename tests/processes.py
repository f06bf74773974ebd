"""Waiting for processes that are not children of the test, and the memory of a process."""

from __future__ import annotations

import re
import select
from pathlib import Path


def ends(descriptor: int, *, seconds: float = 60) -> bool:
    """Wait until the process of a descriptor has ended; return whether it did in time."""
    # The descriptor becomes readable then. Not select.select, which knows no descriptor above 1,023.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def peak_kilobytes() -> int:
    """Return the most memory that this process has held so far.

    Not ``ru_maxrss``, which begins with what the process had held that started this one: a process that grows
    would pass in a large pytest.
    """
    (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak)
