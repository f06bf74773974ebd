"""The iterator of a stream: it takes items from the lanes in turn, and holds the position; its states."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any, final

from seekable._lazy import lazy
from seekable.errors import CorruptState, InvalidArgument, NotResumable
from seekable.nodes.endless_run import NEVER, EndlessRunWatch
from seekable.state.canonical import plain_json
from seekable.state.document import StreamState, other_kind, parse_state
from seekable.stream.from_dataset import passes_of, stages_of
from seekable.stream.lane import LaneIterator, StageState
from seekable.stream.lineage import PartlyDelivered, rows_given, splitting_lineage
from seekable.stream.stage import Leaf, described

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.nodes import evaluated
    from seekable.nodes.node import Node
    from seekable.state import descriptions
    from seekable.stream.lineage import Lineage
    from seekable.stream.stage import Stage
    from seekable.stream.token import Token
else:
    evaluated = lazy("seekable.nodes.evaluated")
    descriptions = lazy("seekable.state.descriptions")

__all__ = ["StreamIterator", "check_resumable", "check_stream", "datasets_of", "text_of_stream"]


@final
class StreamIterator:
    """Delivers the items of a stream: slot ``s`` is the next item of lane ``s % lanes``.

    A lane that has ended leaves its slots empty, and the other lanes go on. ``iter(stream)`` makes one.
    """

    def __init__(self, stage: Stage, lanes: Sequence[int] | None = None) -> None:
        """Begin before the first item of some lanes; of all lanes if ``lanes`` is left out."""
        self._stage = stage
        self._lanes = range(stage.lanes) if lanes is None else lanes
        self._lineage = splitting_lineage(stage)
        self._partly_delivered = PartlyDelivered(self._lineage)
        self._items: Iterator[Any] = iter(())
        self._failed: BaseException | None = None
        self._begin({lane: LaneIterator(stage, lane) for lane in self._lanes}, step=0, slot=0)

    @property
    def token(self) -> Token:
        """The token of the item that was delivered last; None before the first item."""
        lanes = self._stage.lanes
        last = self._iterators.get(0 if lanes == 1 else (self._slot() - 1) % lanes)
        return None if last is None else last.token

    def __iter__(self) -> StreamIterator:
        return self

    def __next__(self) -> Any:
        """Return the item of the next slot that has one.

        Raises:
            CorruptRecord: a source cannot decode a record.
            NothingPassed: no item passed a stage of an endless stream during a whole epoch.
            Exception: what a function of a stage raised, with a note that names the stage and the item. After
                any error the iterator raises the same error again.
        """
        while True:
            try:
                for item in self._items:
                    return item
            except BaseException as error:
                self._failed = error
                raise
            self._go_on()

    def state_dict(self, *, rows: bool = True) -> dict[str, Any]:
        """Return the state after the items delivered so far: a new, JSON-safe dict.

        It holds waiting items as their tokens.

        Args:
            rows: add the description of the stream, with the names of its files. A ``sk.Loader`` of another
                stream needs it for ``resume="rows"``; without it a state is smaller.

        Raises:
            NotResumable: a stage cannot resume exactly; or an item failed, which leaves the stages in the
                middle of it, where items that they held may be lost.
        """
        if self._failed is not None:
            message = (
                f"the stream failed after {self._step()} items ({self._failed!r:.200}), so there is no state "
                f"to go on from: take one before each item that may fail, or load the last one that was taken"
            )
            raise NotResumable(message) from self._failed
        check_resumable(self._stage)
        states = {lane: iterator.states() for lane, iterator in self._iterators.items()}
        return StreamState(
            self._stage.fingerprint,
            self._step(),
            self._slot(),
            {lane: [state.document() for state in stages] for lane, stages in states.items()},
            self._stage.lanes,
            given=self._partly_delivered.document(states),
            pipeline=text_of_stream(self._stage) if rows else None,
        ).document()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where a state was taken: the next items are those that would have followed.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. ``{}``
                stands for no state and changes nothing, as in ``sk.Loader``.

        Raises:
            StateMismatch: the state is of another stream, or of other data.
            CorruptState: the document is not a state of a stream, or lacks a lane.
            InvalidArgument: the state is of a run that was resumed by rows, which only a loader resumes.
        """
        if state == {}:
            return
        parsed = parse_state(state)
        if not isinstance(parsed, StreamState):
            raise other_kind(parsed)
        if parsed.rows:
            raise InvalidArgument(
                "the state is of a run that went on by rows: load it into a sk.Loader with batch_size=None, "
                "which delivers the items as an iterator does"
            )
        check_stream(self._stage, parsed, self._lanes)
        iterators = {lane: LaneIterator(self._stage, lane) for lane in self._lanes}
        for lane, iterator in iterators.items():
            iterator.load([StageState.parse(stage) for stage in parsed.lanes[lane]])
        self._partly_delivered = PartlyDelivered(self._lineage, rows_given(parsed.given))
        self._begin(iterators, step=parsed.step, slot=parsed.slot)

    def _begin(self, iterators: dict[int, LaneIterator], *, step: int, slot: int) -> None:
        """Set the lanes that run, from a slot on; the other ones give nothing."""
        self._iterators = iterators
        self._step_before = step
        """The number of items before those of the iterators."""
        self._failed = None
        # It looks now and then whether a stream without an end is read again and again.
        sources = sum(not each.inputs for each in stages_of(self._stage))
        self._watch = EndlessRunWatch(step, "ds.stream(epochs=), or st.take(n),", sources=sources)
        self._look_at = self._watch.at if self._stage.endless else NEVER
        self._turn(list(iterators), slot)

    def _turn(self, lanes: Sequence[int], slot: int) -> None:
        """Take items of some lanes in turn from a slot on, up to the end of one of them or the next look."""
        self._turn_slot, self._turn_step = slot, self._step()
        self._order = sorted(lanes, key=lambda lane: (lane - slot) % self._stage.lanes)
        """The lanes in the order in which they have their turns."""
        items = [self._iterators[lane].items for lane in self._order]
        in_turn = (
            items[0]
            if len(items) == 1
            else map(operator.call, itertools.cycle([each.__next__ for each in items]))
        )
        bounded = itertools.islice(in_turn, self._look_at - self._turn_step)
        self._items = bounded if self._lineage is None else self._noted(bounded, self._lineage)

    def _go_on(self) -> None:
        """Begin the next turn after the end of a lane, or after a look.

        Raises:
            StopIteration: all lanes have ended.
            BaseException: the iterator has failed with this error.
        """
        if self._failed is not None:
            # What raised it is finished, and would seem to have ended.
            raise self._failed
        lanes = self._order
        if self._step() >= self._look_at:
            values = [iterator.values() for iterator in self._iterators.values()]
            self._watch.look(passes_of(self._stage, values))
            self._look_at = self._watch.at
        elif lanes:
            ended = lanes[(self._step() - self._turn_step) % len(lanes)]
            lanes = [lane for lane in lanes if lane != ended]
        if not lanes:
            raise StopIteration
        self._turn(lanes, self._slot())

    def _step(self) -> int:
        """Return the number of items that were delivered."""
        return self._step_before + sum(iterator.delivered for iterator in self._iterators.values())

    def _slot(self) -> int:
        """Return the slot after the item that was delivered last."""
        count = self._step() - self._turn_step
        if not count:
            return self._turn_slot
        rounds, place = divmod(count - 1, len(self._order))
        lanes = self._stage.lanes
        return self._turn_slot + rounds * lanes + (self._order[place] - self._turn_slot) % lanes + 1

    def _noted(self, items: Iterator[Any], lineage: Lineage) -> Iterator[Any]:
        """Yield items in turn, and note the rows that they were made of."""
        for lane, item in zip(itertools.cycle(self._order), items, strict=False):
            iterator = self._iterators[lane]
            self._partly_delivered.add(lane, lineage.rows(iterator.token), iterator.states)
            yield item


def check_stream(stage: Stage, state: StreamState, lanes: Sequence[int]) -> None:
    """Refuse a state of another stream, and a state that lacks some of the lanes.

    Raises:
        StateMismatch: the state is of another stream, or of other data.
        CorruptState: the state lacks a lane.
    """
    if state.fingerprint != stage.fingerprint:
        old = None if state.pipeline is None else descriptions.PipelineDescription.parse(state.pipeline).tree
        raise descriptions.mismatch(
            state.fingerprint, stage.fingerprint, old=old, new=plain_json(described(stage))
        )
    missing = state.missing(lanes)
    if state.of != stage.lanes or missing:
        raise CorruptState(
            f"the state lacks lane {missing[0] if missing else state.of} of {stage.lanes}: it is one rank's "
            f"share, and others have the rest"
        )


def check_resumable(stage: Stage) -> None:
    """Refuse to take a state from which a stream could not resume exactly.

    Raises:
        NotResumable: the message names the stage, and the way out.
    """
    for source in stage.inputs:
        check_resumable(source)
    if stage.checkpointable:
        return
    unindexed = next((source for source in stage.inputs if not source.indexed), None)
    if unindexed is not None:
        message = (
            f"items wait in {stage!r}, and {unindexed!r} cannot give them again: put it after a stage "
            f"that keeps none, or give its source replay=True"
        )
    else:
        way_out = stage.way_out if isinstance(stage, Leaf) else ""
        message = f"{stage!r} has no state that it could be resumed from: {way_out}"
    raise NotResumable(message)


def text_of_stream(stage: Stage) -> str:
    """Return a stream's description as text, with the paths of the row files that its datasets use."""
    return descriptions.text_of(stage, lambda: _described(stage))


def datasets_of(stage: Stage) -> Iterator[Node]:
    """Yield the datasets that a stage and all stages below it read, in the order of the description."""
    for source in stage.inputs:
        yield from datasets_of(source)
    yield from stage.datasets


def _described(stage: Stage) -> descriptions.PipelineDescription:
    files = {
        digest: path
        for dataset in datasets_of(stage)
        for digest, path in evaluated.row_files_of(dataset).items()
    }
    return descriptions.PipelineDescription(described(stage), files)
