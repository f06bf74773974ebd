"""Rows of which something was delivered while something else still waits.

Where a stage makes several items of one, a row may be in both states at once; then it counts as delivered,
and what waits says nothing of that. So it is noted, in graphs with such a stage alone, and forgotten as soon
as nothing of the row waits any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState
from seekable.stream.lineage import joint_of, rows_held
from seekable.stream.stage import Inner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seekable.stream.lane import StageState
    from seekable.stream.lineage import Joint
    from seekable.stream.stage import Stage

    Row = tuple[int, int]

__all__ = ["Given", "noted_joint", "parsed"]

_FEW = 1000
"""Rows of a lane that are noted before it is looked which of them can be forgotten."""


def noted_joint(stage: Stage) -> Joint | None:
    """Return the graph by which delivered rows are noted; None where none need be.

    Example:
        >>> import seekable as sk
        >>> stream = sk.from_sequence("abc").stream()
        >>> noted_joint(stream.stage) is None, noted_joint(stream.flatten().stage) is None
        (True, False)
    """
    return joint_of(stage) if _splits(stage) and _has_rows(stage) else None


class Given:
    """The rows of some lanes."""

    def __init__(self, joint: Joint | None, rows: Mapping[int, Iterable[Row]] | None = None) -> None:
        """Know some; without a graph there are never any."""
        self._joint = joint
        self._rows = {lane: set(some) for lane, some in (rows or {}).items()}
        self._most: dict[int, int] = {}

    def add(self, lane: int, rows: Iterable[Row], stages: Callable[[], Sequence[StageState]]) -> None:
        """Note rows that a lane delivered; ``stages`` returns what the lane remembers then."""
        noted = self._rows.setdefault(lane, set())
        noted.update(rows)
        if len(noted) > self._most.get(lane, _FEW):
            self._forget(lane, stages())
            # Looking takes as long as there are rows that wait, so it is done the more seldom.
            self._most[lane] = _FEW + 2 * len(noted)

    def document(self, stages: Mapping[int, Sequence[StageState]]) -> dict[str, Any] | None:
        """Return what a state has to know, JSON-safe; None where that is nothing."""
        for lane in self._rows:
            self._forget(lane, stages[lane])
        return {str(lane): sorted(map(list, some)) for lane, some in self._rows.items() if some} or None

    def _forget(self, lane: int, stages: Sequence[StageState]) -> None:
        if self._joint is not None and self._rows[lane]:
            self._rows[lane].intersection_update(rows_held(self._joint, stages))


def parsed(document: Mapping[str, Any] | None) -> dict[int, list[Row]]:
    """Return the rows that a state notes.

    Raises:
        CorruptState: it does not note them so.
    """
    try:
        return {
            int(lane): [(int(number), int(position)) for number, position in rows]
            for lane, rows in (document or {}).items()
        }
    except (TypeError, ValueError) as error:
        message = f"a state's 'given' has pairs of a source and a position for each lane ({error})"
        raise CorruptState(message) from error


def _splits(stage: Stage) -> bool:
    return (isinstance(stage, Inner) and stage.splits) or any(map(_splits, stage.inputs))


def _has_rows(stage: Stage) -> bool:
    """Tell whether all sources have rows, and none begins anew."""
    if not stage.inputs:
        return stage.kind == "dataset"
    return stage.kind != "repeat" and all(map(_has_rows, stage.inputs))
