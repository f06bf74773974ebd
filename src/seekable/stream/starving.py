"""A stage without end that passes nothing for a whole epoch of its sources is an error, and not a hang."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import NothingPassed

if TYPE_CHECKING:
    from seekable.stream.base import Stream
    from seekable.stream.flow import Flow

__all__ = ["LOOK_EVERY", "Hunger"]

LOOK_EVERY = 1024
"""Items in a row that are not passed between two looks at how far the sources are."""

_WHOLE = 2
"""Ends of epochs between which a whole epoch lies."""


class Hunger:
    """Looks, now and then, how far the sources are while a stage passes nothing on."""

    __slots__ = ("_flow", "_since", "_stage")

    def __init__(self, stage: Stream, flow: Flow) -> None:
        """Begin."""
        self._stage, self._flow = stage, flow
        self._since = 0

    def look(self, taken: int) -> None:
        """Look, after ``taken`` items in a row of which none was passed on; what has an end will see it.

        Raises:
            NothingPassed: all sources went through a whole epoch meanwhile.
        """
        if not self._stage.endless:
            return
        if taken == LOOK_EVERY:
            self._since = self._flow.epochs
        elif self._flow.epochs - self._since >= _WHOLE:
            message = (
                f"nothing passed {self._stage!r} in lane {self._flow.lane} during a whole epoch of its "
                f"sources ({taken:,} items): look at its function, or at the data"
            )
            raise NothingPassed(message)
