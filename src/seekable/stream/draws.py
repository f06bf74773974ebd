"""The draws of a mixture in one lane: which parts were drawn, and which of them have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, final

from seekable.stream.runs import END

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable._typing import Int64s
    from seekable.stream.stage import Lane

    Labels = Callable[[dict[str, Any], int, int, int], Int64s | None]
    """The parts of the next draws, of the values of a mixture, the lane, the first draw, and their number."""

__all__ = ["FIRST_DRAWS", "MOST_DRAWS", "Draws", "Stop"]

Stop = Literal["first", "all"]
"""The parts whose ends end a mixture."""

FIRST_DRAWS, MOST_DRAWS = 1024, 4096
"""Draws that are labelled together. The first array is smaller, so that the first item comes soon."""


@final
class Draws:
    """Counts the draws of a mixture, and keeps the last of them for states."""

    def __init__(self, stop: Stop, lane: Lane) -> None:
        self._stop = stop
        self._begun = {name: lane.state[name] for name in ("ended", "since") if name in lane.state}
        self._ends: list[tuple[int, int]] = []
        """The parts that have ended since, each with the number of draws before its end."""
        self.count: int = lane.state.get("draw", 0)
        self._last: list[int] = []
        """The parts of the last draws."""
        self.ended_by: int | None = None
        """The part that ended the mixture, where the end of the first part does."""

    def keep(self, behind: int) -> None:
        """Forget all but the last draws."""
        del self._last[: len(self._last) - behind]

    def add(self, labels: list[int]) -> None:
        """Add draws, each by its part."""
        self._last += labels
        self.count += len(labels)

    def end(self, label: int) -> None:
        """Note that the next draw found no item in a part."""
        if self._stop == "first":
            self.ended_by = label
        else:
            self._ends.append((self.count, label))

    def last(self, count: int) -> list[int]:
        """Return the parts of the last draws."""
        return self._last[len(self._last) - count :]

    def behind(self, label: int) -> int:
        """Return how many of the last draws are of a part."""
        return self._last.count(label)

    def values(self, behind: int) -> dict[str, Any]:
        """Return the values of the mixture: the draws, the ended parts, and the draws before the last end."""
        count, ends = self.count - max(behind, 0), self._ends_before(behind)
        values = {"draw": count} if count else {}
        if not ends:
            return values | self._begun
        ended = [*self._begun.get("ended", ()), *(label for _, label in ends)]
        return {**values, "ended": ended, "since": ends[-1][0]}

    def ended(self, behind: int) -> list[int]:
        """Return the parts whose ends were seen here when so many draws were not made yet."""
        ended = [label for _, label in self._ends_before(behind)]
        return [*ended, self.ended_by] if behind == END and self.ended_by is not None else ended

    def _ends_before(self, behind: int) -> list[tuple[int, int]]:
        count = self.count - max(behind, 0)
        return [end for end in self._ends if end[0] < count or behind == END]
