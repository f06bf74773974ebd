"""The names of saved states in a folder, and which of them make a complete generation.

Each rank writes one file a save, ``state-<step>-<rank>-of-<ranks>.json``. The files of one step are a
generation; it counts when all its ranks are there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Generation", "generations", "is_of_rank", "state_name"]

_NAME = re.compile(r"state-(\d{12})-(\d{5})-of-(\d{5})\.json")


@dataclass(frozen=True, order=True, slots=True)
class Generation:
    """The state files of one step."""

    step: int
    ranks: int
    names: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True if the files of all ranks exist."""
        return len(self.names) == self.ranks


def state_name(step: int, *, rank: int, ranks: int) -> str:
    """Return the file name of one rank's state.

    Example:
        >>> state_name(40, rank=0, ranks=2)
        'state-000000000040-00000-of-00002.json'
    """
    return f"state-{step:012d}-{rank:05d}-of-{ranks:05d}.json"


def is_of_rank(name: str, *, rank: int, ranks: int) -> bool:
    """Return True for the file name of a state of one rank, at any step.

    Example:
        >>> name = state_name(40, rank=1, ranks=2)
        >>> is_of_rank(name, rank=1, ranks=2), is_of_rank(name, rank=0, ranks=2)
        (True, False)
    """
    match = _NAME.fullmatch(name)
    return match is not None and (int(match[2]), int(match[3])) == (rank, ranks)


def generations(names: Iterable[str]) -> list[Generation]:
    """Return the generations among file names, oldest step first, complete or not.

    Example:
        >>> names = [state_name(9, rank=0, ranks=1), state_name(10, rank=1, ranks=2)]
        >>> [(generation.step, generation.complete) for generation in generations(names)]
        [(9, True), (10, False)]
    """
    found: dict[tuple[int, int], list[str]] = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match:
            step, _, ranks = (int(part) for part in match.groups())
            found.setdefault((step, ranks), []).append(name)
    return sorted(Generation(step, ranks, tuple(sorted(files))) for (step, ranks), files in found.items())
