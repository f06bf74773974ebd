"""The course of a loader: through a dataset, or through a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.loader.course import Course
from seekable.loader.makers import maker_of, stream_maker_of
from seekable.loader.memory import OfDataset
from seekable.loader.streams.memory import OfStream
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.loader.makers import Maker, Making
    from seekable.loader.steps import Steps
    from seekable.nodes.contract import Node

__all__ = ["course_of"]


def course_of(
    pipeline: Node | Stream,
    steps: Steps,
    collate: Callable[[list[Any]], Any] | None,
    how: Making,
    *,
    max_holes: int | None,
) -> Course:
    """Return the course through a pipeline, before its first batch."""
    if not isinstance(pipeline, Stream):

        def maker(dataset: Node) -> Maker:
            return maker_of(dataset, steps, collate, how)

        return Course(steps, make=maker, memory=OfDataset(pipeline), max_holes=max_holes)
    # Slot ``s`` is rank ``s % world_size``'s, and so is lane ``s % lanes``.
    memory = OfStream(pipeline, range(steps.rank, pipeline.lanes, steps.world_size))

    def stream_maker(stream: Stream) -> Maker:
        return stream_maker_of(stream, steps, collate, memory, how)

    return Course(steps, make=stream_maker, memory=memory, max_holes=max_holes)
