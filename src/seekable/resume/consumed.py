"""The progress of an old run: of each dataset that it read, and of each source of that dataset.

A run over a dataset reads one dataset. A run over a stream reads a dataset in each of its first stages, in
several lanes, and rows that were drawn may wait in the stages behind. Both are a `DatasetProgress`, so that
all else is the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import CorruptState
from seekable.order.lane_rows import num_lane_rows_before
from seekable.order.remaining import Remaining
from seekable.resume.from_description import rebuild_loosely
from seekable.resume.readers import drawn_by_lanes, lanes_of, readers_of, waiting_in
from seekable.resume.remainder import remainder_of
from seekable.resume.sources import positions_by_source, remaining_by_source, sources_of
from seekable.resume.start_position import draws_before
from seekable.state.document import StreamState
from seekable.stream.lineage import described_lineage, lineage_of
from seekable.stream.partly_delivered import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.resume.readers import Reader
    from seekable.resume.remainder import Remainder
    from seekable.resume.sources import Name, Source
    from seekable.state.descriptions import PipelineDescription
    from seekable.state.document import RunState
    from seekable.stream.lineage import Lineage
    from seekable.stream.stream import Stream


__all__ = [
    "Consumed",
    "DatasetProgress",
    "consumed",
    "progress_of",
    "progress_of_dataset",
    "progress_of_stream",
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

    remainders: tuple[tuple[Source, Remainder], ...]
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
        >>> ten = sk.from_sequence(range(10)).node
        >>> remaining = Remaining.after_epochs(0, [5, 2], size=10)
        >>> at = DatasetProgress((), ten, remaining, np.array([8]), 0, endless=False)
        >>> ((source, remainder),) = consumed(at).remainders
        >>> [position for _, positions in remainder.segments for position in positions]
        [8, 5, 7, 9]
        >>> remainder.num_begun, remainder.num_delivered, consumed(at).num_epochs
        (1, 6, 0)
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
        progress.name, remainders, draws_before(dataset, remaining.frontier), _finished_epochs(progress)
    )


def _finished_epochs(progress: DatasetProgress) -> int:
    """Return the number of epochs of its run of which all rows were drawn; 0 for a run without end."""
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
    dataset = rebuild_loosely(description.tree, description.row_files)
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

    reader: Reader
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
    waiting = waiting_in(lineage, own, except_for=parsed(state.given))
    return [
        each.progress(drawn_by_lanes(lanes, each.reader.number), in_flight, state.ended)
        for each, in_flight in zip(readers, waiting, strict=True)
    ]


def _rows_between(start: int, stop: int, size: int, lane: int, lanes: int) -> int:
    """Return the number of rows of a lane between two positions."""
    return num_lane_rows_before(stop, size, lanes, lane) - num_lane_rows_before(start, size, lanes, lane)
