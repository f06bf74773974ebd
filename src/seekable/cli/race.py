"""Timing two ways to do one job side by side: for ``bench``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

_FEWEST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Result:
    """What a race between ours and the floor has given."""

    name: str
    floor_name: str
    seconds: float
    """The median time of ours, for the whole job."""
    floor_seconds: float
    """That of the floor."""
    ratio: float
    """The median, over the rounds, of ours in times of the floor's."""
    records: int
    """Records of the job."""
    bytes: int
    """Bytes of the job."""
    rounds: int


def race(
    name: str,
    ours: Callable[[], object],
    floor: Callable[[], object],
    *,
    floor_name: str,
    records: int,
    size: int,
    budget_seconds: float,
) -> Result:
    """Do a job both ways in turn, at least three times each, and return the medians.

    A machine's speed drifts by more than what is to be told apart, so each round gives a ratio of its own,
    and first the one, then the other begins. One round before is not counted.
    """
    _timed(ours)
    _timed(floor)
    pairs: list[tuple[float, float]] = []
    began = time.perf_counter()
    while len(pairs) < _FEWEST_ROUNDS or time.perf_counter() - began < budget_seconds:
        if len(pairs) % 2:
            second = _timed(floor)
            pairs.append((_timed(ours), second))
        else:
            first = _timed(ours)
            pairs.append((first, _timed(floor)))
    return Result(
        name,
        floor_name,
        seconds=statistics.median(first for first, _ in pairs),
        floor_seconds=statistics.median(second for _, second in pairs),
        ratio=statistics.median(first / second for first, second in pairs),
        records=records,
        bytes=size,
        rounds=len(pairs),
    )


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return max(time.perf_counter() - began, 1e-9)
