"""The timing of several ways to do one job, and the rows of the table that reports it.

A machine's speed drifts by more than the differences to measure. So no two times of different moments are
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
    """A job that takes its turn in a race."""

    def seconds(self) -> float:
        """Do the job once, and return the seconds a record."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do a job, in this process."""

    run: Callable[[], object]
    """The function that is timed."""

    count: int = 1
    """The number of records, bytes or positions of one run: times are divided by it."""

    prepare: Callable[[], object] | None = None
    """The function that is called before each run, and not timed."""

    def seconds(self) -> float:
        """Do the job once, and return the seconds a record."""
        if self.prepare:
            self.prepare()
        began = time.perf_counter()
        self.run()
        return (time.perf_counter() - began) / self.count


@dataclass(frozen=True, slots=True)
class Race:
    """The seconds a record of each contestant, round by round."""

    seconds: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Return the median of the seconds a record of a contestant."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, over: str) -> float:
        """Return the median, over the rounds, of one contestant's time in those of another."""
        pairs = zip(self.seconds[name], self.seconds[over], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def race(contestants: Mapping[str, Timed], *, rounds: int) -> Race:
    """Run all contestants once without timing, then in turn for some rounds."""
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
    """The bound that a measured number must reach."""

    sense: Literal["at least", "at most"]
    bound: float

    def met(self, number: float) -> bool:
        """Return True if a number reaches the bound."""
        return number >= self.bound if self.sense == "at least" else number <= self.bound


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    """The name of the measured job."""

    value: float
    """The measured figure of seekable."""

    unit: str
    """The unit of the figure."""

    against: str
    """The name of the other contestant, and its figure in the same unit."""

    ratio: float | None
    """The ratio to the other's figure; None if only the figure has a target, or the other is missing."""

    target: str
    """The target of the ratio, or else of the figure; empty without a target."""

    ok: bool | None
    """True if the target is met; None without a target, or if the opponent is missing."""


def shown(number: float) -> str:
    """Return a number as text: three significant digits, or whole numbers from 1,000 on."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def absolute(name: str, value: float, unit: str, target: Target, *, against: str = "") -> Row:
    """Return a row whose figure has a target of its own."""
    wanted = f"{target.sense} {target.bound:g} {unit}"
    return Row(name, value, unit, against, None, wanted, target.met(value))


def relative(name: str, value: float, unit: str, target: Target | None, *, against: str, ratio: float) -> Row:
    """Return a row whose ratio to another contestant's figure has a target, or is only reported."""
    return Row(name, value, unit, against, ratio, _wanted(target), target.met(ratio) if target else None)


def missing(
    name: str, value: float, unit: str, target: Target | None, *, peer: str, why: str = "not installed"
) -> Row:
    """Return a row whose opponent is not installed."""
    return Row(name, value, unit, f"{peer}: {why}", None, _wanted(target), None)


def _wanted(target: Target | None) -> str:
    return f"{target.sense} {target.bound:g} x" if target else ""
