"""``resume="rows"``: a pipeline that delivers first what an old run has left, and the state of it there.

For each source of the old pipeline that the present one still has, that is: the rows in flight, the rest of
the epoch that was begun in its old order, and then its next epochs in the new order. See `seekable.resume`.

The stages of a stream take over counts of the old run. A mixture with a schedule of weights continues at the
draw that it had reached, ``take`` counts the slots that were taken, and ``skip`` skips nothing if it had
skipped before. Stages are paired in the order of the graph, for each kind of stage of which both streams have
the same number. All else in the memory of a stage belongs to items in flight, and starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, StateMismatch
from seekable.nodes.graph import known_size
from seekable.order.lane_rows import num_lane_rows
from seekable.order.remaining import Remaining
from seekable.resume.consumed import (
    BegunEpoch,
    consumed,
    lanes_of,
    progress_of,
    readers_of,
    start_position,
    with_readers,
)
from seekable.resume.continued import continued
from seekable.resume.from_description import rebuild_loosely
from seekable.resume.match import matched
from seekable.resume.pipeline_sources import remaining_by_source, sources_of, with_sources
from seekable.state.canonical import fingerprint_of
from seekable.state.descriptions import PipelineDescription
from seekable.state.document import RunState, StreamState
from seekable.state.journal import described_upto
from seekable.stream.lane import StageState
from seekable.stream.lineage import described_lineage, lineage_of
from seekable.stream.mix import MixItems
from seekable.stream.take import SkipSlots, TakeSlots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.resume.consumed import Consumed, NamedReader
    from seekable.resume.match import Match
    from seekable.resume.pipeline_sources import Name, NamedSource
    from seekable.state.document import State
    from seekable.stream.from_dataset import FromDataset
    from seekable.stream.stage import Stage
    from seekable.stream.stream import Stream

__all__ = [
    "ResumedDataset",
    "dataset_by_rows",
    "resumed_dataset",
    "resumed_datasets",
    "stream_by_rows",
    "with_begun_readers",
]


@dataclass(frozen=True, slots=True)
class ResumedDataset:
    """A dataset that resumes an old one, and where it begins."""

    dataset: Node
    """The dataset, which delivers the rows left over and then its own."""

    position: int
    """The position at which the run begins."""

    epoch: int
    """The number of the first epoch of its run."""


def dataset_by_rows(plain: Node, state: State) -> tuple[Node, RunState]:
    """Return the dataset that resumes a saved run by rows, and the state of it there.

    Args:
        plain: the present dataset.
        state: the state of the old run, with the description of its dataset; or of its stream, with all
            lanes.

    Raises:
        StateMismatch: the state has no description, or the present sources lack rows that are left.
        CorruptState: the description is of another run.
        InvalidArgument: a node hides how much each source delivered, or rows that were chosen by content are
            not to be found any more.
    """
    olds = _consumed_of(state, None)
    draws = _num_draws(state) if isinstance(state, StreamState) else None
    (resumed,) = resumed_datasets([((), plain)], olds, num_draws=draws)
    return resumed.dataset, RunState(
        fingerprint=resumed.dataset.fingerprint_at(resumed.position),
        step=state.step,
        epoch=resumed.epoch,
        position=resumed.position,
        began=state.began,
    )


def stream_by_rows(plain: Stream, state: State) -> tuple[Stream, StreamState]:
    """Return the stream that resumes a saved run by rows, and the state of all its lanes there.

    Args:
        plain: the present stream.
        state: the state of all lanes of the old run, with the description of its stream; or that of a run
            over a dataset.

    Raises:
        StateMismatch: the state has no description, or the present sources lack rows that are left.
        CorruptState: the description is of another run, or the state lacks a lane.
        InvalidArgument: a node or a stage hides how much each source delivered, or rows that were chosen by
            content are not to be found any more.
    """
    olds = _consumed_of(state, plain)
    readers = readers_of(lineage_of(plain.stage))
    resumed = resumed_datasets([(reader.name, reader.stage.dataset) for reader in readers], olds)
    stream = with_begun_readers(plain, readers, resumed)
    if isinstance(state, StreamState):
        lineage = described_lineage(description_of(state).tree, plain.stage)
        lanes = _lanes_with_counters([stage.kind for stage in lineage.all()], lanes_of(state), stream)
    else:
        # A run over a dataset has drawn its mixture as one lane does.
        drawn = StageState({"draw": olds[0].num_draws})
        lanes = _lanes_with_counters([MixItems.kind], {0: [drawn]}, stream)
    return stream, StreamState(
        fingerprint=stream.fingerprint,
        step=state.step,
        slot=state.slot if isinstance(state, StreamState) else 0,
        lanes={lane: [stage.document() for stage in stages] for lane, stages in lanes.items()},
        of=stream.lanes,
        began=state.began,
    )


def _consumed_of(state: State, present: Stream | None) -> list[Consumed]:
    """Return what a saved run had consumed of each dataset that it read.

    Raises:
        StateMismatch: the state has no description.
        CorruptState: the description is of another run, or the state lacks a lane.
        InvalidArgument: a node or a stage hides how much each source delivered.
    """
    description = description_of(state)
    if isinstance(state, StreamState):
        _check_description(fingerprint_of(description.tree), state)
        return [consumed(progress) for progress in progress_of(description, state, present)]
    (progress,) = progress_of(description, state)
    upto = described_upto(state.position, state.journal)
    plain = progress.dataset if upto is not None else rebuild_loosely(description.tree, description.row_files)
    _check_description(plain.fingerprint if upto is None else plain.fingerprint_at(upto), state)
    return [consumed(progress)]


def _num_draws(state: StreamState) -> int | None:
    """Return how many items the topmost mixture of streams had drawn in all lanes; None without a mixture."""
    kinds = [stage.kind for stage in described_lineage(description_of(state).tree).all()]
    if MixItems.kind not in kinds:
        return None
    number = kinds.index(MixItems.kind)
    return sum(int(stages[number].values.get("draw", 0)) for stages in lanes_of(state).values())


def description_of(state: State) -> PipelineDescription:
    """Return the description of the pipeline that a state was taken of.

    Raises:
        StateMismatch: the state carries none; the message says what to do.
        CorruptState: what it carries is not a description.
    """
    if state.pipeline is None:
        message = (
            f"resume='rows' needs the description of the pipeline that the state was taken of "
            f"({state.fingerprint}), and this state carries none: it was taken with rows=False, or by an "
            f"older version. If sk.save_state wrote it, use sk.load_state(folder, loader, resume='rows'). "
            f"Else load it with resume='exact' into the pipeline that it was taken of, and take a state there"
        )
        raise StateMismatch(message)
    return PipelineDescription.parse(state.pipeline)


def resumed_datasets(
    news: Sequence[tuple[Name, Node]], olds: Sequence[Consumed], *, num_draws: int | None = None
) -> list[ResumedDataset]:
    """Return each dataset of a pipeline as it resumes what an old run has left.

    Args:
        news: the datasets that the present pipeline reads, each with the name of its reader.
        olds: what the old run had consumed of each dataset that it read.
        num_draws: how many items a mixture of these had drawn; None to count those of each dataset.

    Raises:
        StateMismatch: the present sources lack rows that are left.
        InvalidArgument: a node hides how much each source delivers, or rows that were chosen by content are
            not to be found any more.

    Example:
        One row of an epoch in natural order was delivered. A shuffled dataset of the same words resumes with
        the other two in natural order, and then comes its own epoch 1:

        >>> import numpy as np
        >>> import seekable as sk
        >>> from seekable.resume.consumed import DatasetProgress
        >>> words = sk.from_sequence(["a", "b", "c"])
        >>> nothing = np.empty(0, dtype=np.int64)
        >>> old = consumed(DatasetProgress((), words._node, Remaining((), 1), nothing, 0, endless=False))
        >>> new = words.shuffle(seed=2)
        >>> (resumed,) = resumed_datasets([((), new._node)], [old])
        >>> resumed.position, resumed.dataset.fetch(np.arange(1, 6)) == ["b", "c", *new.epoch(1)]
        (1, True)
    """
    by_dataset = [sources_of(dataset, name) for name, dataset in news]
    matches = matched(
        [pair for old in olds for pair in old.remainders], [one for sources in by_dataset for one in sources]
    )
    resumed: list[ResumedDataset] = []
    first = 0
    for (name, dataset), sources in zip(news, by_dataset, strict=True):
        own = [matches.get(first + number) for number in range(len(sources))]
        first += len(sources)
        old = _run_before(name, own, olds)
        counts = (old.num_draws, old.num_epochs) if old else (0, 0)
        draws = counts[0] if num_draws is None else num_draws
        resumed.append(resumed_dataset(dataset, sources, own, num_draws=draws, num_epochs=counts[1]))
    return resumed


def _run_before(name: Name, matches: Sequence[Match | None], olds: Sequence[Consumed]) -> Consumed | None:
    """Return the old reading that a dataset counts draws and epochs on from; None for a dataset that is new.

    It is one of those whose sources the dataset continues: that with its name, or else the first.
    """
    remainders = {id(match.remainder) for match in matches if match}
    own = [old for old in olds if any(id(remainder) in remainders for _, remainder in old.remainders)]
    return next((old for old in own if old.name == name), own[0] if own else None)


def resumed_dataset(
    dataset: Node,
    sources: Sequence[NamedSource],
    matches: Sequence[Match | None],
    *,
    num_draws: int,
    num_epochs: int,
) -> ResumedDataset:
    """Return a dataset of which each source begins with the rows that it continues.

    Args:
        dataset: the present dataset.
        sources: its sources.
        matches: for each source, what it continues.
        num_draws: how many positions the old run had drawn.
        num_epochs: how many epochs the old run had finished.
    """
    begun = [_begun_epoch(source, match) for source, match in zip(sources, matches, strict=True)]
    position, epoch = start_position(dataset, begun, num_draws=num_draws, num_epochs=num_epochs)
    axes = [axis for _, axis in remaining_by_source(dataset, Remaining((), position))]
    made = [
        _continued_source(source.dataset, match, each, axis)
        for source, match, each, axis in zip(sources, matches, begun, axes, strict=True)
    ]
    return ResumedDataset(with_sources(dataset, made), position, epoch)


def _begun_epoch(source: NamedSource, match: Match | None) -> BegunEpoch:
    size = known_size(source.dataset, "resume='rows'")
    if match is None:
        return BegunEpoch(0, 0, size)
    if match.remainder.num_left and not size:
        message = (
            f"{source.label} has {match.remainder.num_left:,} rows of a begun epoch left, and no rows now"
        )
        raise InvalidArgument(message)
    return BegunEpoch(match.remainder.num_begun, match.remainder.num_left, size)


def _continued_source(source: Node, match: Match | None, begun: BegunEpoch, axis: Remaining) -> Node:
    """Return a source that delivers the rows that it continues first, at the positions in ``axis``.

    Its own epochs follow, from the next one on; a source that continues nothing begins with its epoch 0.
    """
    return continued(match.segments if match else [], source, axis, begun.num_begun * begun.size)


def with_begun_readers(
    plain: Stream, readers: Sequence[NamedReader], resumed: Sequence[ResumedDataset]
) -> Stream:
    """Return a stream whose readers begin where their datasets resume.

    Args:
        plain: the present stream.
        readers: its readers.
        resumed: for each reader, its dataset.
    """
    begun = [_begun_reader(reader.stage, each) for reader, each in zip(readers, resumed, strict=True)]
    return with_readers(plain, begun)


def _begun_reader(reader: FromDataset, resumed: ResumedDataset) -> FromDataset:
    """Return a reader that begins where its dataset resumes, and ends with its run of epochs."""
    start, size = reader.start, reader.dataset.size
    if reader.epochs is not None and size:
        start = resumed.epoch * size
        if resumed.position > start + reader.epochs * size:
            # The run has fewer epochs than the old one: the epoch in hand becomes its first.
            start = resumed.position // size * size
    return replace(reader, dataset=resumed.dataset, start=start, begin=resumed.position)


def _check_description(fingerprint: str, state: State) -> None:
    """Refuse a description with another fingerprint than the state's.

    Raises:
        CorruptState: the fingerprints differ.
    """
    if fingerprint != state.fingerprint:
        message = (
            f"the description that comes with the state is of {fingerprint}, and the state of "
            f"{state.fingerprint}: one of them is of another run"
        )
        raise CorruptState(message)


_COUNTERS = {MixItems.kind: "draw", TakeSlots.kind: "taken"}
"""For the kind of a stage, the key of its counter in its memory."""


def _lanes_with_counters(
    old_kinds: Sequence[str], old_lanes: Mapping[int, Sequence[StageState]], new: Stream
) -> dict[int, list[StageState]]:
    """Return the stage states in each lane for a stream that resumes an old one by rows.

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
