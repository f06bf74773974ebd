"""The progress of an old run: the rows it has read in each dataset, and in each source below it.

A run over a dataset reads one dataset. A run over a stream reads a dataset in each of its first stages, its
readers, in several lanes. In lane ``l`` a reader reads the rows ``r`` with ``r % lanes == l`` of each epoch,
and its memory has the number of rows that it has drawn, ``at``. Rows that were drawn may wait in later
stages, as tokens. Both are a `DatasetProgress`, so that all else is the same for both.

From it follow the rows that are left of each begun epoch, and the position at which a pipeline that resumes
by rows begins, so that its epochs end with those of its sources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seekable.errors import CorruptState
from seekable.nodes.batch import Batch
from seekable.nodes.graph import known_size
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.slice import Slice
from seekable.nodes.steer import changed
from seekable.order.lane_rows import num_lane_rows_before
from seekable.order.positions import StridedRange, ranges_of
from seekable.order.remaining import Remaining
from seekable.resume.continued import Continued, simplified
from seekable.resume.from_description import rebuild_loosely
from seekable.resume.pipeline_sources import (
    keeps_positions,
    positions_by_source,
    remaining_by_source,
    sources_of,
)
from seekable.state.document import StreamState
from seekable.stream.from_dataset import FromDataset
from seekable.stream.lane import StageState
from seekable.stream.lineage import described_lineage, lineage_of, rows_given, rows_held
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.resume.pipeline_sources import Name, NamedSource
    from seekable.state.descriptions import PipelineDescription
    from seekable.state.document import RunState
    from seekable.stream.lineage import Lineage
    from seekable.stream.stage import Stage

    Lanes = Mapping[int, Sequence[StageState]]
    Rows = Mapping[int, Sequence[tuple[int, int]]]

__all__ = [
    "BegunEpoch",
    "Consumed",
    "DatasetProgress",
    "NamedReader",
    "Remainder",
    "consumed",
    "drawn_by_lanes",
    "in_ordinals",
    "lanes_of",
    "progress_of",
    "progress_of_dataset",
    "progress_of_stream",
    "readers_of",
    "remainder_of",
    "simplified_stream",
    "start_position",
    "with_readers",
]


@dataclass(frozen=True, slots=True)
class DatasetProgress:
    """The positions of one dataset that a run had drawn, and that it had not."""

    name: Name
    """The names that lead to the stage that reads the dataset; empty for a run over a dataset."""

    dataset: Node
    """The old order; records are not read from it."""

    remaining: Remaining
    """The positions that were not drawn."""

    in_flight: Int64s
    """The positions that were drawn, but of whose rows nothing was delivered, in the order of delivery."""

    first_epoch: int
    """The number of the epoch with which the run began."""

    endless: bool
    """True if the run has no last epoch."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """The rows that a run had consumed of one dataset, counted by source."""

    name: Name
    """The names that lead to the stage that reads the dataset; empty for a run over a dataset."""

    remainders: tuple[tuple[NamedSource, Remainder], ...]
    """The sources of the dataset, and what is left of the epoch that each had begun."""

    num_draws: int
    """The number of records that were drawn: of the topmost mixture, if the dataset has one."""

    num_epochs: int
    """The number of epochs of the run that were finished."""


def consumed(progress: DatasetProgress) -> Consumed:
    """Return the rows that a run had consumed of each source of a dataset.

    Raises:
        InvalidArgument: a node above a mixture moves positions, so that the count of each source is unknown.

    Example:
        Two lanes read 10 rows, epoch after epoch. The first lane has drawn all of its 5 rows of epoch 0, the
        second 2 of them (positions 1 and 3), and position 8 waits in a buffer. So position 8 comes first,
        then 5, 7 and 9:

        >>> import seekable as sk
        >>> ten = sk.from_sequence(range(10))._node
        >>> remaining = Remaining.after_epochs(0, [5, 2], size=10)
        >>> at = DatasetProgress((), ten, remaining, np.array([8]), 0, endless=False)
        >>> ((source, remainder),) = consumed(at).remainders
        >>> [position for _, positions in remainder.segments for position in positions]
        [8, 5, 7, 9]
        >>> remainder.num_begun, remainder.num_left, consumed(at).num_epochs
        (1, 4, 0)
    """
    dataset, remaining = progress.dataset, progress.remaining
    by_source = zip(
        sources_of(dataset, progress.name),
        remaining_by_source(dataset, remaining),
        positions_by_source(dataset, progress.in_flight),
        strict=True,
    )
    remainders = tuple(
        (source, remainder_of(source.dataset, own, in_flight))
        for source, (_, own), (_, in_flight) in by_source
    )
    return Consumed(
        progress.name, remainders, _draws_before(dataset, remaining.frontier), _finished_epochs(progress)
    )


def _finished_epochs(progress: DatasetProgress) -> int:
    """Return how many epochs of its run were drawn to the end; 0 for a run without end."""
    size = progress.dataset.size
    if not size or progress.endless:
        return 0
    # Where something is left before the frontier, the epoch that ends there is not finished.
    unfinished = bool(progress.remaining.ranges) or progress.in_flight.size > 0
    return max(0, (progress.remaining.frontier - unfinished) // size - progress.first_epoch)


def progress_of(
    description: PipelineDescription, state: RunState | StreamState, present: Stream | None = None
) -> list[DatasetProgress]:
    """Return how far a saved run had read each of its datasets, in the order of its graph.

    Args:
        description: the description of the pipeline that the state was taken of.
        state: the state, of a stream with all lanes.
        present: the present stream. A stage that a user wrote is counted if this stream has one of its kind.

    Raises:
        InvalidArgument: the stream has a stage whose rows cannot be counted.
        CorruptState: the state is not one of the described pipeline.
    """
    if isinstance(state, StreamState):
        return _progress_of_described_stream(description, state, present)
    dataset = changed(rebuild_loosely(description.tree, description.row_files), state.journal)
    return progress_of_dataset(dataset, state.position, first_epoch=state.epoch)


def progress_of_dataset(dataset: Node, position: int, *, first_epoch: int = 0) -> list[DatasetProgress]:
    """Return how far a run over a dataset has read it: to a position, with no row in flight."""
    nothing = np.empty(0, dtype=np.int64)
    return [DatasetProgress((), dataset, Remaining((), position), nothing, first_epoch, endless=False)]


def progress_of_stream(stream: Stream, state: StreamState) -> list[DatasetProgress]:
    """Return how far a run over a stream has read each of its datasets, in the order of its graph.

    Args:
        stream: the stream itself.
        state: the state of all its lanes.

    Raises:
        InvalidArgument: the stream has a stage whose rows cannot be counted.
        CorruptState: the state lacks a lane.
    """
    lineage = lineage_of(stream.stage)
    readers = [
        _ReaderOfLanes(each, each.stage.dataset, each.stage.epochs, each.stage.start, each.stage.first)
        for each in readers_of(lineage)
    ]
    return _progress_of_readers(lineage, readers, state)


def _progress_of_described_stream(
    description: PipelineDescription, state: StreamState, present: Stream | None
) -> list[DatasetProgress]:
    lineage = described_lineage(description.tree, None if present is None else present.stage)
    readers = []
    for each in readers_of(lineage):
        described = each.stage
        dataset = rebuild_loosely(described["of"][0], description.row_files)
        start = described["start"]
        readers.append(
            _ReaderOfLanes(each, dataset, described["epochs"], start, described.get("begin", start))
        )
    return _progress_of_readers(lineage, readers, state)


@dataclass(frozen=True, slots=True)
class _ReaderOfLanes:
    """A reader of a stream with the arguments of its stage, which is there itself or described."""

    reader: NamedReader
    dataset: Node
    epochs: int | None
    start: int
    first: int
    """The first position that is read; ``start`` but after a resume by rows."""

    def progress(self, drawn: list[int], in_flight: Int64s, ended: Sequence[int]) -> DatasetProgress:
        """Return how far the lanes have read the dataset.

        Args:
            drawn: the number of rows that each lane has drawn.
            in_flight: positions that were drawn, and of whose rows nothing was delivered.
            ended: the lanes that have ended.
        """
        size = self.dataset.size
        if self.epochs is not None and size is not None:
            for lane in ended:
                stop = self.start + self.epochs * size
                drawn[lane] = _rows_between(self.first, stop, size, lane, len(drawn))
        remaining = Remaining.after_epochs(self.first, drawn, size)
        epoch = self.start // size if size else 0
        name, endless = self.reader.name, self.epochs is None
        return DatasetProgress(name, self.dataset, remaining, in_flight, epoch, endless=endless)


def _progress_of_readers(
    lineage: Lineage, readers: Sequence[_ReaderOfLanes], state: StreamState
) -> list[DatasetProgress]:
    missing = state.missing(range(state.of))
    if missing:
        message = (
            f"counting the rows of each source needs all lanes of the state, and it lacks lane {missing[0]} "
            f"of {state.of}: it is one rank's share, and others have the rest; sk.load_state puts them "
            f"together"
        )
        raise CorruptState(message)
    lanes = lanes_of(state)
    # A lane that ended and began anew to fill a batch has nothing in flight that was not delivered before.
    own = {lane: stages for lane, stages in lanes.items() if lane not in state.ended}
    waiting = _waiting_in(lineage, own, except_for=rows_given(state.given))
    return [
        each.progress(drawn_by_lanes(lanes, each.reader.number), in_flight, state.ended)
        for each, in_flight in zip(readers, waiting, strict=True)
    ]


def _rows_between(start: int, stop: int, size: int, lane: int, lanes: int) -> int:
    """Return the number of rows of a lane between two positions."""
    return num_lane_rows_before(stop, size, lanes, lane) - num_lane_rows_before(start, size, lanes, lane)


Segments = tuple[tuple["Node", StridedRange], ...]
"""Pairs of an order and some of its positions, in the order in which they are delivered."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """The rows left of the last epoch of which a source delivered anything."""

    segments: Segments
    """The rows that are left: those in flight, then the others in the order of the epoch."""

    num_begun: int
    """The number of epochs that were begun, which is also the number of the next epoch."""

    size: int
    """The number of records in an epoch."""

    @property
    def num_left(self) -> int:
        """The number of rows in all segments."""
        return sum(len(positions) for _, positions in self.segments)


def remainder_of(source: Node, remaining: Remaining, in_flight: Int64s | None = None) -> Remainder:
    """Return the rows that are left of the begun epoch of a source.

    Args:
        source: the old order; a `Continued` node if that run had been resumed by rows itself.
        remaining: the positions of the source that were not drawn.
        in_flight: 1-D positions that were drawn, and of whose rows nothing was delivered.

    Example:
        Seven positions of a source of five rows were drawn, so epoch 1 is begun. Position 6 waits in a
        buffer; it comes first, then the rest of epoch 1:

        >>> import seekable as sk
        >>> left = remainder_of(sk.from_sequence("abcde")._node, Remaining((), 7), np.array([6]))
        >>> left.num_begun, [positions.as_json() for _, positions in left.segments]
        (2, [[6, 1], [7, 3]])
    """
    size = known_size(source, "resume='rows'")
    if not size:
        return Remainder((), 0, 0)
    if in_flight is None:
        in_flight = np.empty(0, dtype=np.int64)
    if isinstance(source, Continued):
        return _remainder_of_continued(source, remaining, in_flight, size)
    num_begun, stop = _epoch_with(remaining.frontier - 1, size)
    positions = (*ranges_of(in_flight), *remaining.before(stop))
    return Remainder(tuple((source, each) for each in positions), num_begun, size)


def _remainder_of_continued(
    source: Continued, remaining: Remaining, in_flight: Int64s, size: int
) -> Remainder:
    """Return the rows that are left of a source that was itself resumed by rows.

    The axis of a `Continued` node is counted in ordinals: those below ``num_pending`` are rows of its
    segments, the others positions of its new order.

        ordinal        0 1 2 3 4 5 6 7 ...
        leads to       s s s n n n n n      segments of 3 rows, then the new order from ``first`` on
        delivered      x   x x   x
        left             s     n   n n      to the end of the epoch of the new order that was begun
    """
    ordinals = in_ordinals(source, remaining)
    is_old = ordinals.stragglers < source.num_pending
    old = np.concatenate([source.ordinals(in_flight)[0], ordinals.stragglers[is_old]])
    # From here on positions of the new order; where only segments were drawn, none of it was.
    shift = source.first - source.num_pending
    frontier = max(ordinals.frontier, source.num_pending) + shift
    new = Remaining(ranges_of(ordinals.stragglers[~is_old] + shift), frontier)
    num_begun, stop = _epoch_with(frontier - 1, size)
    segments = (
        *_segments_at(source, old),
        *_segments_from(source, ordinals.frontier),
        *((source.new, positions) for positions in new.before(stop)),
    )
    return Remainder(segments, num_begun, size)


def in_ordinals(source: Continued, remaining: Remaining) -> Remaining:
    """Return the ordinals of the positions of a source that remain."""
    # Positions before the frontier need not be of the axis: then nothing was drawn since the node was made,
    # and the frontier moves back to ordinal 0, or to the last straggler.
    stragglers, _ = source.ordinals(remaining.stragglers)
    return Remaining((), source.ordinal(remaining.frontier)).including(stragglers)


def _epoch_with(position: int, size: int) -> tuple[int, int]:
    """Return how many epochs have begun at a position, and the end of the last one."""
    num_begun = position // size + 1
    return num_begun, num_begun * size


def _segments_at(source: Continued, ordinals: Int64s) -> Iterator[tuple[Node, StridedRange]]:
    """Yield the rows at some ordinals, in their order, as segments of the orders that they are of."""
    if not ordinals.size:
        return
    slots, positions = source.route(source.positions_at(ordinals))
    changes = np.flatnonzero(np.diff(slots)) + 1
    for slot, some in zip(slots[np.append(0, changes)], np.split(positions, changes), strict=True):
        yield from ((source.children[int(slot)], each) for each in ranges_of(some))


def _segments_from(source: Continued, ordinal: int) -> Iterator[tuple[Node, StridedRange]]:
    """Yield the segments of a source without the rows below an ordinal."""
    for segment in source.segments:
        old = source.olds[segment.slot]
        yield from ((old, each) for each in segment.positions.without_first(ordinal))
        ordinal = max(0, ordinal - len(segment.positions))


class BegunEpoch(NamedTuple):
    """The part of a begun epoch that a source of the new pipeline still has to deliver."""

    num_begun: int
    """The number of epochs that the old run had begun, this one included."""

    num_left: int
    """The number of rows left of the begun epoch."""

    size: int
    """The number of rows in an epoch of the new source."""


class _Start(NamedTuple):
    """A position of a dataset, and an epoch."""

    position: int
    epoch: int


def start_position(root: Node, begun: Sequence[BegunEpoch], *, num_draws: int, num_epochs: int) -> _Start:
    """Return the position at which a pipeline begins, and the number of the first epoch of its run.

    A source begins as many rows before the end of an epoch as are left of the begun one. A mixture that ends
    begins at the draw at which the source that limits it has so many left. A mixture without end goes on
    counting draws.

    Args:
        root: the new pipeline.
        begun: for each of its sources, what the old run left of it.
        num_draws: how many positions the old pipeline had drawn.
        num_epochs: how many epochs of its run the old pipeline had finished.

    Example:
        The old run of 10 rows was in epoch 2 with 4 rows left; its run had begun with epoch 1:

        >>> import seekable as sk
        >>> ten = sk.from_sequence(range(10))._node
        >>> start_position(ten, [BegunEpoch(3, 4, 10)], num_draws=26, num_epochs=1)
        _Start(position=26, epoch=1)
    """
    start = _start(root, list(begun), num_draws, later=0)
    if root.size is None:
        return _Start(start.position, 0)
    if start.epoch < num_epochs:
        start = _start(root, list(begun), num_draws, later=num_epochs - start.epoch)
    return _Start(start.position, max(0, start.epoch - num_epochs))


def _draws_before(root: Node, position: int) -> int:
    """Return how many draws the topmost mixture, or rows the one source, has before a position."""
    while keeps_positions(root):
        position = root.start_of(position) if isinstance(root, Batch) else position
        root = root.children[0]
    return position


def _start(node: Node, begun: list[BegunEpoch], num_draws: int, *, later: int) -> _Start:
    """Return the start of a node, which the source below decides that limits it.

    Args:
        node: a node of the new pipeline.
        begun: of the sources from this node on; those below the node are taken off.
        num_draws: how many positions the old pipeline had drawn.
        later: by how many epochs of the node to begin later than the source would.
    """
    if isinstance(node, Mix):
        return _start_of_mix(node, begun, num_draws, later=later)
    if isinstance(node, Repeat):
        below = _start(node.child, begun, num_draws, later=later * node.times)
        return _Start(below.position, below.epoch // node.times)
    if keeps_positions(node):
        return _start_above(node, begun, num_draws, later=later)
    num_begun, num_left, size = begun.pop(0)
    if not size:
        return _Start(0, later)
    # More rows may be left than an epoch has: then the epoch ends in a later one.
    end = max(num_begun, -(-num_left // size)) + later
    return _Start(end * size - num_left, end - 1 if num_left else end)


def _start_above(node: Node, begun: list[BegunEpoch], num_draws: int, *, later: int) -> _Start:
    """Return the start of a node that keeps the positions of its child, or puts them in batches."""
    child: Node = node.children[0]
    below = _start(child, begun, num_draws, later=later)
    if isinstance(node, Batch):
        return _Start(node.batch_of(below.position), below.epoch)
    if isinstance(node, Slice) and node.count:
        return _Start(below.position, below.position // node.count)
    return below


def _start_of_mix(mix: Mix, begun: list[BegunEpoch], num_draws: int, *, later: int) -> _Start:
    """Return the draw at which the part that limits a mixture begins; without such a part, ``num_draws``."""
    limit: _Start | None = None
    for slot, child in enumerate(mix.parts):
        if slot == mix.limited_by:
            limit = _start(child, begun, num_draws, later=later)
        else:
            del begun[: len(sources_of(child))]
    if limit is None:
        return _Start(num_draws, 0)
    return _Start(mix.drawn_at(mix.limited_by or 0, limit.position), limit.epoch)


@dataclass(frozen=True, slots=True)
class NamedReader:
    """One reader of a stream."""

    name: Name
    """The names that lead to it through mixtures of streams; empty where there are none."""

    number: int
    """Its number among all stages, in the order of the graph."""

    stage: Any
    """The stage, a ``FromDataset``; its description, if there is only a description of the stream."""


def readers_of(lineage: Lineage) -> list[NamedReader]:
    """Return the readers of a stream, in the order of the graph."""
    numbers = [number for number, stage in enumerate(lineage.all()) if not stage.inputs]
    return [
        NamedReader(name, number, stage.source)
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
        number: the index of the reader among the stages.

    Raises:
        CorruptState: the memory of the reader has no count.
    """
    drawn: list[Any] = [lanes[lane][number].values.get("at", 0) for lane in sorted(lanes)]
    for count in drawn:
        if not isinstance(count, int) or count < 0:
            message = f"a source's 'at' must be an integer of at least 0 (got {count!r:.100})"
            raise CorruptState(message)
    return drawn


def _waiting_in(lineage: Lineage, lanes: Lanes, *, except_for: Rows | None = None) -> list[Int64s]:
    """Return the rows that wait in some lanes' stages, as positions in each reader's dataset.

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
    for reader, waiting in zip(readers, _waiting_in(lineage, lanes), strict=True):
        stage = reader.stage
        drawn = drawn_by_lanes(lanes, reader.number)
        remaining = Remaining.after_epochs(stage.first, drawn, stage.dataset.size)
        dataset = simplified(stage.dataset, remaining.including(waiting))
        made.append(stage if dataset is stage.dataset else replace(stage, dataset=dataset))
    if all(new is old.stage for new, old in zip(made, readers, strict=True)):
        return stream
    return with_readers(stream, made)


def _is_continued(reader: NamedReader) -> bool:
    return any(isinstance(source.dataset, Continued) for source in sources_of(reader.stage.dataset))


def _rebuilt(stage: Stage, readers: Iterator[FromDataset]) -> Stage:
    """Return a stage with other readers below it, or the next reader if it is one itself."""
    if isinstance(stage, FromDataset):
        return next(readers)
    return stage.with_inputs([_rebuilt(below, readers) for below in stage.inputs])
