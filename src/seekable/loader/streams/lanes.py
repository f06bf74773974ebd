"""What the lanes of a rank remember, as of the batches that were delivered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.stream.lane import LaneIterator, StageDelta, StageState, apply_deltas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.stream.stream import Stream

__all__ = ["LaneChanges", "Lanes"]


@dataclass(frozen=True, slots=True)
class LaneChanges:
    """What became of some lanes by one batch."""

    stages: Mapping[int, Sequence[StageDelta]]
    ended: frozenset[int]
    """The lanes that have ended in it and begun anew."""
    given: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """The rows that its items are of, where that has to be noted."""


@dataclass(slots=True)
class Lanes:
    """Each lane's stages, and which lanes have ended and begun anew (``end="pad"``)."""

    stages: dict[int, list[StageState]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    @classmethod
    def fresh(cls, stream: Stream, lanes: Sequence[int]) -> Lanes:
        """Return lanes at their start."""
        return cls({lane: LaneIterator(stream.stage, lane).states() for lane in lanes})

    @classmethod
    def parse(cls, lanes: Mapping[int, Sequence[Any]], ended: Sequence[int]) -> Lanes:
        """Return what a state says of some lanes.

        Raises:
            CorruptState: a stage's state is none.
        """
        return cls(
            {lane: [StageState.parse(stage) for stage in stages] for lane, stages in lanes.items()},
            set(ended),
        )

    def document(self) -> dict[int, list[dict[str, Any]]]:
        """Return each lane's stages as new JSON-safe values."""
        return {lane: [kept.document() for kept in stages] for lane, stages in self.stages.items()}

    def part(self, lanes: Sequence[int]) -> Lanes:
        """Return some of the lanes, which then do not change with these."""
        stages = {lane: [state.copy() for state in self.stages[lane]] for lane in lanes}
        return Lanes(stages, self.ended & set(lanes))

    def apply(self, changes: LaneChanges) -> None:
        """Change as the lanes have changed."""
        for lane, stages in changes.stages.items():
            apply_deltas(self.stages[lane], stages)
        self.ended |= changes.ended
