"""Counts that the stages of a stream take over from the old run.

A mixture with a schedule of weights continues at the draw that it had reached, ``take`` counts the slots that
were taken, and ``skip`` skips nothing if it had skipped before. Stages are paired in the order of the graph,
for each kind of stage of which both streams have the same number. All else in the memory of a stage belongs
to items in flight, and starts anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.order.lane_rows import num_lane_rows
from seekable.stream.lane import StageState
from seekable.stream.mix import MixItems
from seekable.stream.take import SkipSlots, TakeSlots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.stream.stage import Stage
    from seekable.stream.stream import Stream

__all__ = ["lanes_with_counters"]

_COUNTERS = {MixItems.kind: "draw", TakeSlots.kind: "taken"}
"""For the kind of a stage, the key of its counter in its memory."""


def lanes_with_counters(
    old_kinds: Sequence[str], old_lanes: Mapping[int, Sequence[StageState]], new: Stream
) -> dict[int, list[StageState]]:
    """Return the states of the stages of each lane of a stream that resumes an old one by rows.

    Args:
        old_kinds: the kinds of the stages of the old stream, in the order of the graph.
        old_lanes: what its stages remembered, in every lane.
        new: the stream that resumes it.
    """
    stages = list(_stages_in(new.stage))
    lanes = {lane: [StageState() for _ in stages] for lane in range(new.lanes)}
    for kind in (MixItems.kind, TakeSlots.kind, SkipSlots.kind):
        olds = [number for number, each in enumerate(old_kinds) if each == kind]
        news = [number for number, stage in enumerate(stages) if stage.kind == kind]
        if len(olds) != len(news):
            continue
        for old_number, number in zip(olds, news, strict=True):
            memories = [old_lanes[lane][old_number].values for lane in sorted(old_lanes)]
            for lane, states in lanes.items():
                states[number].values.update(_counter(stages[number], memories, lane))
    return lanes


def _counter(stage: Stage, memories: Sequence[Mapping[str, Any]], lane: int) -> dict[str, Any]:
    """Return the counter that a stage takes over in one lane.

    With as many lanes as before, each lane continues its own count; otherwise the sum of all counts is
    divided among the lanes as slots are.

    Args:
        stage: the stage of the new stream.
        memories: the memory of the old stage in each lane.
        lane: the lane of the new stream.
    """
    if isinstance(stage, SkipSlots):
        return {"done": True} if any(memory.get("done") for memory in memories) else {}
    if isinstance(stage, MixItems) and len(stage.schedule) == 1:
        return {}
    key = _COUNTERS[stage.kind]
    counts = [int(memory.get(key, 0)) for memory in memories]
    own = counts[lane] if len(counts) == stage.lanes else num_lane_rows(sum(counts), stage.lanes, lane)
    return {key: own} if own else {}


def _stages_in(stage: Stage) -> Iterator[Stage]:
    """Yield a stage and all stages below it, in the order of the graph."""
    yield stage
    for source in stage.inputs:
        yield from _stages_in(source)
