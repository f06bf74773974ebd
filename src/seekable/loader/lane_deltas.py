"""The states of the lanes of one rank after the batches delivered, and their changes by a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.stream.lane import LaneIterator, StageDelta, StageState, apply_deltas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.stream.stream import Stream

__all__ = ["LaneDeltas", "LaneStates"]


@dataclass(frozen=True, slots=True)
class LaneDeltas:
    """The changes of some lanes by one batch."""

    stages: Mapping[int, Sequence[StageDelta]]
    """For each lane the changes of its stages, in the order of the graph."""
    ended: frozenset[int]
    """The lanes that ended within the batch and began anew."""
    given: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """By lane, the rows that the items of the batch are of, where a state has to hold these."""


@dataclass(slots=True)
class LaneStates:
    """The states of all stages of some lanes."""

    stages: dict[int, list[StageState]] = field(default_factory=dict)
    """For each lane the states of its stages, in the order of the graph."""
    ended: set[int] = field(default_factory=set)
    """The lanes that have ended and begun anew (``end="pad"``)."""

    @classmethod
    def fresh(cls, stream: Stream, lanes: Sequence[int]) -> LaneStates:
        """Return the states of some lanes of a stream at their start."""
        return cls({lane: LaneIterator(stream.stage, lane).states() for lane in lanes})

    @classmethod
    def parse(cls, lanes: Mapping[int, Sequence[Any]], ended: Sequence[int]) -> LaneStates:
        """Return the states that a document holds for some lanes.

        Raises:
            CorruptState: the state of a stage is not such an object.
        """
        return cls(
            {lane: [StageState.parse(stage) for stage in stages] for lane, stages in lanes.items()},
            set(ended),
        )

    def document(self) -> dict[int, list[dict[str, Any]]]:
        """Return the states of each lane as new JSON-safe values."""
        return {lane: [state.document() for state in stages] for lane, stages in self.stages.items()}

    def copy_of(self, lanes: Sequence[int]) -> LaneStates:
        """Return a copy of some lanes' states, which does not change with these."""
        stages = {lane: [state.copy() for state in self.stages[lane]] for lane in lanes}
        return LaneStates(stages, self.ended & set(lanes))

    def apply(self, deltas: LaneDeltas) -> None:
        """Change the states as one batch changed the lanes."""
        for lane, stages in deltas.stages.items():
            apply_deltas(self.stages[lane], stages)
        self.ended |= deltas.ended
