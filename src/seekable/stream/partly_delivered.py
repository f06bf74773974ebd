"""Rows of which one item was delivered while another item still waits in a stage.

Where a stage makes several items of one, a row can be both delivered and waiting. ``resume="rows"`` counts
such a row as delivered, but the waiting items alone do not show it. So the iterator records these rows, in
graphs with such a stage only, until no item of the row waits any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState
from seekable.stream.lineage import lineage_of, rows_held
from seekable.stream.stage import Inner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seekable.stream.lane import StageState
    from seekable.stream.lineage import Lineage
    from seekable.stream.stage import Stage

    Row = tuple[int, int]

__all__ = ["PartlyDelivered", "parsed", "splitting_lineage"]

_MOST_RECORDED = 1000
"""Rows of a lane that are recorded before the first search for rows of which nothing waits."""


def splitting_lineage(stage: Stage) -> Lineage | None:
    """Return the lineage of a stream in which a row can be partly delivered; None for any other stream.

    Example:
        >>> import seekable as sk
        >>> stream = sk.from_sequence("abc").stream()
        >>> splitting_lineage(stream.stage) is None, splitting_lineage(stream.flatten().stage) is None
        (True, False)
    """
    return lineage_of(stage) if _splits(stage) and _has_rows(stage) else None


class PartlyDelivered:
    """The partly delivered rows of some lanes, as pairs of a source's number and a position."""

    def __init__(self, lineage: Lineage | None, rows: Mapping[int, Iterable[Row]] | None = None) -> None:
        """Begin with the rows of a state; without a lineage there are never any."""
        self._lineage = lineage
        self._rows = {lane: set(some) for lane, some in (rows or {}).items()}
        self._most: dict[int, int] = {}

    def add(self, lane: int, rows: Iterable[Row], states: Callable[[], Sequence[StageState]]) -> None:
        """Record the rows of an item that a lane delivered.

        Args:
            lane: the number of the lane.
            rows: the rows that the item was made of.
            states: returns the states of the lane's stages after that item.
        """
        recorded = self._rows.setdefault(lane, set())
        recorded.update(rows)
        if len(recorded) > self._most.get(lane, _MOST_RECORDED):
            self._drop(lane, states())
            # A search takes time in proportion to the waiting rows, so the next one comes after as many more.
            self._most[lane] = _MOST_RECORDED + 2 * len(recorded)

    def document(self, states: Mapping[int, Sequence[StageState]]) -> dict[str, Any] | None:
        """Return the rows as a JSON-safe dict of lanes; None if there are none.

        Args:
            states: the states of each lane's stages.
        """
        for lane in self._rows:
            self._drop(lane, states[lane])
        return {str(lane): sorted(map(list, some)) for lane, some in self._rows.items() if some} or None

    def _drop(self, lane: int, states: Sequence[StageState]) -> None:
        """Drop the rows of which no item waits."""
        if self._lineage is not None and self._rows[lane]:
            self._rows[lane].intersection_update(rows_held(self._lineage, states))


def parsed(document: Mapping[str, Any] | None) -> dict[int, list[Row]]:
    """Return the rows that ``PartlyDelivered.document`` returned, for each lane.

    Raises:
        CorruptState: the document has another form.
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
    """Return True if all sources are datasets, and no stage restarts them."""
    if not stage.inputs:
        return stage.kind == "dataset"
    return stage.kind != "repeat" and all(map(_has_rows, stage.inputs))
