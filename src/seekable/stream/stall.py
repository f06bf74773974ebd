"""Detects endless stages that pass nothing during a whole epoch of their sources, which would hang."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import NothingPassed

if TYPE_CHECKING:
    from seekable.stream.stage import Lane, Stage

__all__ = ["CHECK_EVERY", "StallDetector"]

CHECK_EVERY = 1024
"""Items in a row that did not pass between two checks."""

_WHOLE = 2
"""Ends of epochs between which a whole epoch lies."""


class StallDetector:
    """Compares, now and then, the sources' epochs while a stage passes nothing on."""

    __slots__ = ("_lane", "_since", "_stage")

    def __init__(self, stage: Stage, lane: Lane) -> None:
        self._stage, self._lane = stage, lane
        self._since = 0

    def check(self, dropped: int) -> None:
        """Check an endless stage after each ``CHECK_EVERY`` items in a row that did not pass.

        Args:
            dropped: the number of items in a row that did not pass.

        Raises:
            NothingPassed: all sources completed a whole epoch since the first of these checks.
        """
        if not self._stage.endless:
            return
        epochs = self._stage.epochs_done(self._lane)
        if dropped < 2 * CHECK_EVERY:
            self._since = epochs
        elif epochs - self._since >= _WHOLE:
            message = (
                f"nothing passed {self._stage!r} in lane {self._lane.number} during a whole epoch of its "
                f"sources ({dropped:,} items): look at its function, or at the data"
            )
            raise NothingPassed(message)

    def after(self, dropped: int, more: int) -> int:
        """Return the number of items in a row that did not pass after some more; check it now and then.

        Args:
            dropped: the number before.
            more: the number of further items that did not pass, less than ``CHECK_EVERY``.

        Raises:
            NothingPassed: as of ``check``.
        """
        if (dropped + more) // CHECK_EVERY > dropped // CHECK_EVERY:
            self.check(dropped + more)
        return dropped + more
