"""How many of many like cases a command runs: ``make nightly`` all, every other command some of them.

What would only prove the same once more with other data passes through here: other sizes of the same node,
other moments of the same kill, more random cases. What proves something of its own is always run.
docs/design/testing.md says which command finds which fault.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Case = TypeVar("Case")
Kind = TypeVar("Kind")

ALL = os.environ.get("SEEKABLE_TESTS") == "all"
"""True in ``make nightly``."""


def sample(cases: Iterable[Case], *, of: int) -> list[Case]:
    """Return all cases, or one of each ``of`` neighbours.

    Its place among the neighbours moves on by one each time. So of a product whose inner factor has ``of``
    values, each outer value comes once, and the inner values come in turn.
    """
    found = list(cases)
    if ALL:
        return found
    blocks = [found[at : at + of] for at in range(0, len(found), of)]
    return [block[number % len(block)] for number, block in enumerate(blocks)]


def one_of_each(kinds: Mapping[Kind, Sequence[object]]) -> list[tuple[Kind, int]]:
    """Return the kinds with the numbers of all their builders, or each kind with one number, in turn."""
    every = [(kind, range(len(builders))) for kind, builders in kinds.items()]
    if ALL:
        return [(kind, number) for kind, numbers in every for number in numbers]
    return [(kind, numbers[turn % len(numbers)]) for turn, (kind, numbers) in enumerate(every)]


def some(cases: int, *, of: int = 5) -> int:
    """Return the number of random cases to draw: all, or one of ``of``."""
    return cases if ALL else max(1, cases // of)


def wider(step: int) -> int:
    """Return the distance between the points at which a process is killed: as given, or five times it."""
    return step if ALL else 5 * step


def turns(cases: Sequence[Case], of: int) -> list[list[Case]]:
    """Return for each of ``of`` things all cases, or the one whose turn it is."""
    if ALL:
        return [list(cases)] * of
    return [[each] for each in itertools.islice(itertools.cycle(cases), of)]
