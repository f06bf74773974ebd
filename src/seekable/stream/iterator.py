"""The iterator of a stream: it takes items from the lanes in turn, and holds the position; its states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from seekable.errors import CorruptState, InvalidArgument, NotResumable
from seekable.nodes.endless_run import NEVER, EndlessRunWatch
from seekable.nodes.evaluated import row_files_of
from seekable.state.canonical import plain_json
from seekable.state.descriptions import PipelineDescription, mismatch, text_of
from seekable.state.document import StreamState, other_kind, parse_state
from seekable.stream.from_dataset import passes_of
from seekable.stream.lane import LaneIterator, StageState
from seekable.stream.lineage import PartlyDelivered, rows_given, splitting_lineage
from seekable.stream.stage import Leaf, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["StreamIterator", "check_resumable", "check_stream", "datasets_of", "text_of_stream"]


@final
class StreamIterator:
    """Delivers the items of a stream: slot ``s`` is the next item of lane ``s % lanes``.

    A lane that has ended leaves its slots empty, and the other lanes go on. ``iter(stream)`` makes one.
    """

    def __init__(self, stage: Stage, lanes: Sequence[int] | None = None) -> None:
        """Begin before the first item of some lanes; of all lanes if ``lanes`` is left out."""
        self._stage = stage
        self._stage_lanes = stage.lanes
        self._lanes = range(stage.lanes) if lanes is None else lanes
        self._begin({lane: LaneIterator(stage, lane) for lane in self._lanes})
        self._lineage = splitting_lineage(stage)
        self._partly_delivered = PartlyDelivered(self._lineage)
        self._slot = 0
        self._empty = 0
        """The number of slots so far that had no item."""
        self._token: Token = None
        self._failed: BaseException | None = None
        self._watch_from(0)

    @property
    def token(self) -> Token:
        """The token of the item that was delivered last; None before the first item."""
        return self._token

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
        if self._slot >= self._look_at:
            self._look()
        try:
            pair = self._nexts[self._slot % self._stage_lanes]()
        except StopIteration:
            pair = self._from_the_next_lane()
        except BaseException as error:
            self._fail(error)
            raise
        self._token, item = pair
        self._slot += 1
        if self._lineage is not None:
            self._note((self._slot - 1) % self._stage_lanes)
        return item

    def _from_the_next_lane(self) -> tuple[Token, Any]:
        """Return the item of the next slot whose lane has one, where that of the present slot has ended.

        Raises:
            StopIteration: all lanes have ended.
        """
        self._nexts[self._slot % self._stage_lanes] = _ENDED
        for slot in range(self._slot + 1, self._slot + self._stage_lanes):
            try:
                pair = self._nexts[slot % self._stage_lanes]()
            except StopIteration:
                self._nexts[slot % self._stage_lanes] = _ENDED
                continue
            except BaseException as error:
                self._fail(error)
                raise
            self._empty += slot - self._slot
            self._slot = slot
            return pair
        raise StopIteration

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
            count = self._slot - self._empty
            message = (
                f"the stream failed after {count} items ({self._failed!r:.200}), so there is no state "
                f"to go on from: take one before each item that may fail, or load the last one that was taken"
            )
            raise NotResumable(message) from self._failed
        check_resumable(self._stage)
        states = {lane: iterator.states() for lane, iterator in self._iterators.items()}
        return StreamState(
            self._stage.fingerprint,
            self._slot - self._empty,
            self._slot,
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
        self._begin(iterators)
        self._partly_delivered = PartlyDelivered(self._lineage, rows_given(parsed.given))
        self._slot, self._empty = parsed.slot, parsed.slot - parsed.step
        self._token = self._failed = None
        self._watch_from(self._slot)

    def _watch_from(self, slot: int) -> None:
        """Look, from a slot on, whether a stream without an end is read again and again."""
        self._watch = EndlessRunWatch(slot, "ds.stream(epochs=), or st.take(n),")
        self._look_at = self._watch.at if self._stage.endless else NEVER

    def _look(self) -> None:
        if self._failed is None:
            states = {lane: iterator.states() for lane, iterator in self._iterators.items()}
            self._watch.look(passes_of(self._stage, states))
        self._look_at = self._watch.at

    def _note(self, lane: int) -> None:
        assert self._lineage is not None
        self._partly_delivered.add(lane, self._lineage.rows(self._token), self._iterators[lane].states)

    def _begin(self, iterators: dict[int, LaneIterator]) -> None:
        """Set the lanes that run; the other ones give nothing."""
        self._iterators = iterators
        self._nexts: list[Callable[[], tuple[Token, Any]]] = [
            iter(iterators[lane]).__next__ if lane in iterators else _ENDED
            for lane in range(self._stage_lanes)
        ]

    def _fail(self, error: BaseException) -> None:
        """Let each further call raise the error: what raised it is finished, and would seem to have ended."""
        self._failed = error
        self._nexts = [self._raise_again] * self._stage_lanes

    def _raise_again(self) -> tuple[Token, Any]:
        assert self._failed is not None
        raise self._failed


_ENDED: Final = iter(()).__next__
"""The next item of a lane that has none."""


def check_stream(stage: Stage, state: StreamState, lanes: Sequence[int]) -> None:
    """Refuse a state of another stream, and a state that lacks some of the lanes.

    Raises:
        StateMismatch: the state is of another stream, or of other data.
        CorruptState: the state lacks a lane.
    """
    if state.fingerprint != stage.fingerprint:
        old = None if state.pipeline is None else PipelineDescription.parse(state.pipeline).tree
        raise mismatch(state.fingerprint, stage.fingerprint, old=old, new=plain_json(described(stage)))
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
    return text_of(stage, lambda: _described(stage))


def datasets_of(stage: Stage) -> Iterator[Node]:
    """Yield the datasets that a stage and all stages below it read, in the order of the description."""
    for source in stage.inputs:
        yield from datasets_of(source)
    yield from stage.datasets


def _described(stage: Stage) -> PipelineDescription:
    files = {digest: path for dataset in datasets_of(stage) for digest, path in row_files_of(dataset).items()}
    return PipelineDescription(described(stage), files)
