"""Waiting for processes that are not children of the test."""

from __future__ import annotations

import select


def ends(descriptor: int, *, seconds: float = 60) -> bool:
    """Wait until the process of a descriptor has ended; return whether it did in time."""
    # The descriptor becomes readable then. Not select.select, which knows no descriptor above 1,023.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
