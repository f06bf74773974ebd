"""How many of many cases ``make check`` tries, to stay short; ``pytest -m exhaustive`` alone tries all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Case = TypeVar("Case")

_IS_CHECK = "SEEKABLE_THRIFTY_TESTS" in os.environ


def some(cases: int, *, of: int = 5) -> int:
    """All of some random cases, or one of so many of them."""
    return max(1, cases // of) if _IS_CHECK else cases


def wider(step: int) -> int:
    """The distance between points at which a process is killed, or five times as much."""
    return 5 * step if _IS_CHECK else step


def turns(cases: Sequence[Case], of: int) -> list[list[Case]]:
    """For each of so many things all cases, or one of them: that whose turn it is."""
    if not _IS_CHECK:
        return [list(cases)] * of
    return [[cases[number % len(cases)]] for number in range(of)]
