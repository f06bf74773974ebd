"""The readers of a stream: its first stages, each of which reads a dataset.

In lane ``l`` a reader reads the rows ``r`` with ``r % lanes == l`` of each epoch. Its memory has the number
of rows that it has drawn, ``at``. Rows that were drawn may wait in the stages behind it, as tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptState
from seekable.order.remaining import Remaining
from seekable.resume.continued import Continued, simplified
from seekable.resume.sources import sources_of
from seekable.stream.lane import StageState
from seekable.stream.lineage import lineage_of, rows_held
from seekable.stream.source import FromDataset
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.resume.sources import Name
    from seekable.state.document import StreamState
    from seekable.stream.lineage import Lineage
    from seekable.stream.stage import Stage

    Lanes = Mapping[int, Sequence[StageState]]
    Rows = Mapping[int, Sequence[tuple[int, int]]]

__all__ = [
    "Reader",
    "drawn_by_lanes",
    "lanes_of",
    "readers_of",
    "simplified_stream",
    "waiting_in",
    "with_readers",
]


@dataclass(frozen=True, slots=True)
class Reader:
    """One reader of a stream."""

    name: Name
    """The names that lead to it through mixtures of streams; empty where there are none."""

    number: int
    """Its number among all stages, in the order of the graph."""

    stage: Any
    """The stage, a ``FromDataset``; its description, if there is only a description of the stream."""


def readers_of(lineage: Lineage) -> list[Reader]:
    """Return the readers of a stream, in the order of the graph."""
    numbers = [number for number, stage in enumerate(lineage.all()) if not stage.inputs]
    return [
        Reader(name, number, stage.source)
        for (name, stage), number in zip(lineage.sources(), numbers, strict=True)
    ]


def lanes_of(state: StreamState) -> dict[int, list[StageState]]:
    """Return the states of the stages of each lane.

    Raises:
        CorruptState: the state of a stage cannot be read.
    """
    return {lane: [StageState.parse(stage) for stage in stages] for lane, stages in state.lanes.items()}


def drawn_by_lanes(lanes: Lanes, number: int) -> list[int]:
    """Return the number of rows that a reader has drawn in each lane, in the order of the lanes.

    Args:
        lanes: what the stages of all lanes remember.
        number: the number of the reader among the stages.

    Raises:
        CorruptState: the memory of the reader has no count.
    """
    drawn: list[Any] = [lanes[lane][number].values.get("at", 0) for lane in sorted(lanes)]
    for count in drawn:
        if not isinstance(count, int) or count < 0:
            message = f"a source's 'at' must be an integer of at least 0 (got {count!r:.100})"
            raise CorruptState(message)
    return drawn


def waiting_in(lineage: Lineage, lanes: Lanes, *, except_for: Rows | None = None) -> list[Int64s]:
    """Return the rows that wait in the stages of some lanes, as positions of the dataset of each reader.

    Args:
        lineage: of the stream.
        lanes: what the stages of each lane remember.
        except_for: for each lane, rows to leave out, as pairs of the number of a reader, counted from 0 among
            the readers, and a position.

    Raises:
        CorruptState: the lanes are not of this stream.
    """
    waiting: list[list[int]] = [[] for _ in lineage.sources()]
    for lane, stages in lanes.items():
        left_out = set((except_for or {}).get(lane, ()))
        for reader, position in rows_held(lineage, stages):
            if (reader, position) not in left_out:
                waiting[reader].append(position)
    return [np.array(positions, dtype=np.int64) for positions in waiting]


def with_readers(stream: Stream, readers: Sequence[FromDataset]) -> Stream:
    """Return a stream with other readers, in the order in which ``readers_of`` has them."""
    following = iter(readers)
    return Stream(_rebuilt(stream.stage, following))


def simplified_stream(stream: Stream, lanes: Lanes) -> Stream:
    """Return a stream without the segments that all its lanes have passed, and of which no row waits.

    Args:
        stream: a stream that resumed by rows.
        lanes: what the stages of its lanes remember; if these are not all lanes, nothing is left out.
    """
    if len(lanes) < stream.lanes:
        return stream
    lineage = lineage_of(stream.stage)
    readers = readers_of(lineage)
    if not any(map(_is_continued, readers)):
        return stream
    made: list[FromDataset] = []
    for reader, waiting in zip(readers, waiting_in(lineage, lanes), strict=True):
        stage = reader.stage
        drawn = drawn_by_lanes(lanes, reader.number)
        remaining = Remaining.after_epochs(stage.first, drawn, stage.dataset.size)
        dataset = simplified(stage.dataset, remaining.including(waiting))
        made.append(stage if dataset is stage.dataset else replace(stage, dataset=dataset))
    if all(new is old.stage for new, old in zip(made, readers, strict=True)):
        return stream
    return with_readers(stream, made)


def _is_continued(reader: Reader) -> bool:
    return any(isinstance(source.dataset, Continued) for source in sources_of(reader.stage.dataset))


def _rebuilt(stage: Stage, readers: Iterator[FromDataset]) -> Stage:
    """Return a stage with other readers below it, or the next reader if it is one itself."""
    if isinstance(stage, FromDataset):
        return next(readers)
    return stage.with_inputs([_rebuilt(below, readers) for below in stage.inputs])
