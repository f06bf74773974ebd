"""Detects endless stages that pass nothing during a whole epoch of their sources, which would hang.

A lane has a part of the rows. So it may get nothing that passes, while other lanes do: then it is at its end,
if it gets the same rows in each epoch, and otherwise waits for the rows of later epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._log import LOG
from seekable.errors import NothingPassed
from seekable.stream.lane import LaneIterator

if TYPE_CHECKING:
    from seekable.stream.stage import Lane, Stage

__all__ = ["CHECK_EVERY", "StallDetector", "passes_in_another_lane"]

CHECK_EVERY = 1024
"""Items in a row that did not pass between two checks."""

_WHOLE = 2
"""Ends of epochs between which a whole epoch lies."""

_PASSES = 8
"""The epochs of all rows after which a lane is given up that gets other rows in each epoch. A lane of L gets
the only row that passes in 1 of L epochs, and misses it with probability (1 - 1/L)^(8 L) = 0.0003."""


class StallDetector:
    """Compares, now and then, the sources' epochs while a stage passes nothing on."""

    __slots__ = ("_lane", "_passes_elsewhere", "_since", "_stage", "over")

    def __init__(self, stage: Stage, lane: Lane) -> None:
        self._stage, self._lane = stage, lane
        self._since = 0
        self._passes_elsewhere = False
        self.over = False
        """True if the lane never passes anything: it is at its end."""

    def check(self, dropped: int) -> None:
        """Check an endless stage after each ``CHECK_EVERY`` items in a row that did not pass.

        Args:
            dropped: the number of items in a row that did not pass.

        Raises:
            NothingPassed: all sources completed a whole epoch since the first of these checks, and nothing
                passed in any lane.
        """
        if not self._stage.endless:
            return
        epochs = self._stage.epochs_done(self._lane)
        if dropped < 2 * CHECK_EVERY:
            self._since = epochs
        elif epochs - self._since >= _WHOLE:
            self._give_up(dropped, epochs - self._since - 1)

    def _give_up(self, dropped: int, epochs: int) -> None:
        """Take the lane as ended after some whole epochs without an item, or raise the error."""
        stage, number, lanes = self._stage, self._lane.number, self._stage.lanes
        if self._lane.is_probe:
            self.over = True
            return
        self._passes_elsewhere = self._passes_elsewhere or passes_in_another_lane(stage, number)
        if not self._passes_elsewhere:
            where = f"lane {number}" if lanes == 1 else f"any of {lanes} lanes"
            raise NothingPassed(
                f"nothing passed {stage!r} in {where} during a whole epoch of its sources "
                f"({dropped:,} items): look at its function, or at the data"
            )
        if all(source.repeats for source in stage.inputs or (stage,)):
            self.over = True
            LOG.warning(
                "lane %d of %d gets no record that passes %r, and other lanes do: its slots stay empty. Lane "
                "l has the rows r with r %% %d == l: shuffle the dataset, or say another lanes= to "
                "ds.stream()",
                *(number, lanes, stage, lanes),
            )
        elif epochs >= _PASSES * lanes:
            raise NothingPassed(
                f"nothing passed {stage!r} in lane {number} of {lanes} during {epochs:,} epochs of its "
                f"sources ({dropped:,} items), and something does in other lanes: so few records pass that "
                f"lanes wait for them in vain. Use fewer lanes, or choose the rows once, with ds.filter()"
            )

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


def passes_in_another_lane(stage: Stage, number: int) -> bool:
    """Return True if another lane of a stage gives an item before it has completed a whole epoch.

    Args:
        stage: the stage.
        number: the lane that is left out.
    """
    others = [lane % stage.lanes for lane in range(number + 1, number + stage.lanes)]
    return any(True for lane in others for _ in LaneIterator(stage, lane, is_probe=True))
