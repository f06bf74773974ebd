"""Timing some ways to do one job side by side, and what comes out of it: rows of a table.

A machine's speed drifts by more than what is to be told apart, so no two times of different moments are
compared: contestants run in turn (A B C, B C A, ...), each round gives a ratio, and the median of the ratios
counts.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Timed(Protocol):
    """Whatever can take its turn."""

    def seconds(self) -> float:
        """Do the job once, and return the seconds that it took for each record."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do a job, in this process."""

    run: Callable[[], object]
    """What is timed."""

    count: int = 1
    """How many records, bytes or positions it gets through: times are divided by it."""

    prepare: Callable[[], object] | None = None
    """What is done before each run and not timed."""

    def seconds(self) -> float:
        """Do the job once, and return the seconds that it took for each record."""
        if self.prepare:
            self.prepare()
        began = time.perf_counter()
        self.run()
        return (time.perf_counter() - began) / self.count


@dataclass(frozen=True, slots=True)
class Race:
    """The seconds that each contestant took for each record, round by round."""

    seconds: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Return a contestant's median."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, over: str) -> float:
        """Return the median, over the rounds, of one contestant's time in those of another."""
        pairs = zip(self.seconds[name], self.seconds[over], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def race(contestants: Mapping[str, Timed], *, rounds: int) -> Race:
    """Let all contestants do the job once unmeasured, then in turn for some rounds."""
    names = list(contestants)
    for name in names:
        contestants[name].seconds()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            seconds[name].append(contestants[name].seconds())
    return Race(seconds)


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one processor, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class Target:
    """What a number must reach."""

    sense: Literal["at least", "at most"]
    bound: float

    def met(self, number: float) -> bool:
        """Tell whether a number reaches it."""
        return number >= self.bound if self.sense == "at least" else number <= self.bound


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    """What is measured."""

    value: float
    """Our figure."""

    unit: str
    """What the figure counts."""

    against: str
    """What it is compared with, and that one's figure in the same unit."""

    ratio: float | None
    """How many times the other's; None where only the figure itself has a target, or the other is missing."""

    target: str
    """What the ratio, or else the figure, must be; nothing where it is only told."""

    ok: bool | None
    """Whether it is; None if there is no target, or it could not be told for want of the opponent."""


def shown(number: float) -> str:
    """Return a number in as many digits as are worth reading."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def absolute(name: str, value: float, unit: str, target: Target, *, against: str = "") -> Row:
    """Return a row whose figure has a target of its own."""
    wanted = f"{target.sense} {target.bound:g} {unit}"
    return Row(name, value, unit, against, None, wanted, target.met(value))


def relative(name: str, value: float, unit: str, target: Target | None, *, against: str, ratio: float) -> Row:
    """Return a row whose ratio to something else has a target, or is only told."""
    return Row(name, value, unit, against, ratio, _wanted(target), target.met(ratio) if target else None)


def missing(
    name: str, value: float, unit: str, target: Target | None, *, peer: str, why: str = "not installed"
) -> Row:
    """Return a row whose opponent is not there."""
    return Row(name, value, unit, f"{peer}: {why}", None, _wanted(target), None)


def _wanted(target: Target | None) -> str:
    return f"{target.sense} {target.bound:g} x" if target else ""
