"""What stages count that goes on counting when a stream goes on by rows.

A mixture with a schedule goes on at its draw, ``take`` has as many slots less, and ``skip`` skips no more
where it was done. That is so where both streams have as many of these stages: they are matched in the order
of the graph. All else that stages remember is of items in flight, and begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.order.lanes import num_lane_rows
from seekable.stream.kept import Kept
from seekable.stream.mix import MixItems
from seekable.stream.take import SkipSlots, TakeSlots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Stage
    from seekable.stream.lineage import Joint

__all__ = ["carried_on"]

_COUNTS = {MixItems.kind: "draw", TakeSlots.kind: "taken"}


def carried_on(
    old: Joint, lanes: Mapping[int, Sequence[Kept]], new: Stream, own: Sequence[int]
) -> dict[int, list[Kept]]:
    """Return what the stages of some lanes remember at the beginning.

    Args:
        old: the graph of the older stream.
        lanes: what its stages remembered, in every lane.
        new: the stream that goes on.
        own: which of its lanes.
    """
    stages = list(_stages(new))
    begun = {lane: [Kept() for _ in stages] for lane in own}
    kinds = [joint.kind for joint in old.all()]
    for kind in (MixItems.kind, TakeSlots.kind, SkipSlots.kind):
        olds = [place for place, each in enumerate(kinds) if each == kind]
        news = [place for place, stage in enumerate(stages) if stage.kind == kind]
        if len(olds) == len(news):
            for was, place in zip(olds, news, strict=True):
                memories = [lanes[lane][was].memory for lane in sorted(lanes)]
                for lane in own:
                    begun[lane][place].memory.update(_memory(stages[place], memories, lane))
    return begun


def _memory(stage: Stage, memories: Sequence[Mapping[str, Any]], lane: int) -> dict[str, Any]:
    if isinstance(stage, SkipSlots):
        return {"done": True} if any(memory.get("done") for memory in memories) else {}
    if isinstance(stage, MixItems) and len(stage.schedule) == 1:
        return {}
    counts = [int(memory.get(_COUNTS[stage.kind], 0)) for memory in memories]
    own = counts[lane] if len(counts) == stage.lanes else num_lane_rows(sum(counts), stage.lanes, lane)
    return {_COUNTS[stage.kind]: own} if own else {}


def _stages(stage: Stage) -> Iterator[Stage]:
    yield stage
    for source in stage.inputs:
        yield from _stages(source)
