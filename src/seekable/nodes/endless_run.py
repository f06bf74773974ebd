"""The warning for a ``for`` statement that nothing bounds, and that reads its sources again and again."""

from __future__ import annotations

import inspect
import sys
from opcode import opmap
from typing import final

from seekable._log import warn_caller
from seekable.errors import EndlessRun

__all__ = ["NEVER", "EndlessRunWatch"]

NEVER = sys.maxsize
"""More deliveries than there are."""

_FIRST_LOOK = 64
"""Deliveries before the first look, for each source. Each later look comes after up to twice as many: so
looks cost nothing beside the deliveries."""

_PASSES = 10


@final
class EndlessRunWatch:
    """Looks now and then how often a run without an end has read its sources, and warns once after ten times.

    Args:
        begun: the number of deliveries before the run.
        way: what bounds the run, for the warning.
        sources: how many sources each look asks; with more of them, looks are rarer.
    """

    __slots__ = ("_begun", "_way", "at")

    def __init__(self, begun: int, way: str, *, sources: int = 1) -> None:
        self._begun, self._way = begun, way
        self.at = begun + _FIRST_LOOK * sources
        """The number of deliveries at which to look next."""

    def look(self, passes: float) -> None:
        """Warn if the run has read its sources ten times and a ``for`` statement asks for more.

        It is called before anything more is delivered: where warnings are errors, nothing is lost.

        Args:
            passes: how often the run has read all its sources; 0 where that is not known.
        """
        done = self.at - self._begun
        if passes >= _PASSES and _is_in_for():
            self.at = NEVER
            warn_caller(
                f"this run has no end, and has read all records of its sources {int(passes)} times: "
                f"{self._way} gives it one. Where the loop is left by break, ignore sk.errors.EndlessRun",
                EndlessRun,
            )
            return
        # No later than at the tenth pass, if the passes go on as they did.
        ahead = _PASSES / passes - 1 if 0 < passes < _PASSES else 1
        self.at += max(1, min(done, int(done * ahead)))


def _is_in_for() -> bool:
    """Return True if the nearest caller outside of the library is at the head of a ``for`` statement.

    A trainer, a ``next`` and functions such as ``islice`` have bounds of their own.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "seekable":
        frame = frame.f_back
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and code[at] == opmap["CACHE"]:
        at -= 2
    return code[at] == opmap["FOR_ITER"]
