"""What ``doctor`` finds: one thing of this machine, how it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    group: str
    """What it belongs to: "versions", "limits", "processes", "cache" or "data"."""

    name: str
    level: Level
    """``warn`` slows a run down or stops a large one; with ``bad`` something does not work."""

    value: str
    """What was found."""

    advice: str = ""
    """What to do, where there is something."""


def graded(group: str, name: str, value: str, *, bad: str = "", warn: str = "") -> Finding:
    """Return a finding that is as bad as the advice that is given for it.

    Example:
        >>> graded("limits", "open files", "64", warn="ulimit -n 4096").level
        'warn'
        >>> graded("limits", "open files", "4096").level
        'ok'
    """
    return Finding(group, name, "bad" if bad else "warn" if warn else "ok", value, bad or warn)
