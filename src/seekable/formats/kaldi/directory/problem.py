"""The problems of data directories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Level", "Problem"]

Level = Literal["error", "warning"]
"""An error keeps the directory from being opened; a warning is advice."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a data directory.

    Example:
        >>> print(Problem("error", "data/train/text", 3, "the line is blank: remove it"))
        error: 'data/train/text', line 3: the line is blank: remove it
    """

    level: Level
    """The weight: an error keeps the directory from being opened, a warning does not."""

    path: str
    """The path of the file, or of the directory where a file is missing."""

    line: int | None
    """The number of the line, from 1; None for a problem of the whole file."""

    message: str
    """The words that say what is wrong, and what to do."""

    def __str__(self) -> str:
        """Return the level, the place, what is wrong, and what to do, in one line."""
        line = "" if self.line is None else f", line {self.line:,}"
        return f"{self.level}: {self.path!r}{line}: {self.message}"
