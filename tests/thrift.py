"""How many of many cases ``make check`` tries, to stay short; ``pytest -m exhaustive`` alone tries all."""

from __future__ import annotations

import os

_IS_CHECK = "SEEKABLE_TEST_EXAMPLES" in os.environ


def some(cases: int) -> int:
    """All of some random cases, or a quarter of them."""
    return max(1, cases // 4) if _IS_CHECK else cases


def wider(step: int) -> int:
    """The distance between points at which a process is killed, or three times as much."""
    return 3 * step if _IS_CHECK else step
