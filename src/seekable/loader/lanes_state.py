"""The state of a loader over a stream, besides the cursor: the states of the lanes of its rank."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, final

from msgspec import structs

from seekable._lazy import lazy
from seekable._log import LOG
from seekable.errors import NotResumable, StateMismatch
from seekable.loader.lane_batches import LaneStates, lane_batches
from seekable.loader.states import LoadedState, Resumed
from seekable.loader.steps import StepCursor
from seekable.nodes.bases import reads_objects
from seekable.state.document import StreamState, has_row_offsets, other_kind, parse_state
from seekable.state.journal import exclusions, joined, steers, without_steers
from seekable.stream.from_dataset import passes_of
from seekable.stream.iterator import check_resumable, check_stream, datasets_of, text_of_stream
from seekable.stream.lineage import PartlyDelivered, rows_given, splitting_lineage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.loader.arguments import Resume
    from seekable.loader.batches import MadeBatch
    from seekable.loader.steps import Steps
    from seekable.resume import by_rows, consumed, row_offsets, serialize
    from seekable.state.document import State, TrainerPass
    from seekable.state.journal import Journal
    from seekable.stream.stream import Stream
else:
    by_rows = lazy("seekable.resume.by_rows")
    consumed = lazy("seekable.resume.consumed")
    row_offsets = lazy("seekable.resume.row_offsets")
    serialize = lazy("seekable.resume.serialize")

__all__ = ["LanesState"]


@final
class LanesState:
    """The stream that is delivered, and the states of this rank's lanes; the cursor's position is a slot.

    Args:
        plain: the stream that the loader was made with.
        own: the lanes of this rank.
        pipeline: the stream that is delivered after ``resume="rows"``; else ``plain``.
        lanes: the states of the lanes; fresh ones if left out.
        given: by lane, the rows of which a part was delivered and another one waits.
        journal: what was changed in the run.
    """

    def __init__(
        self,
        plain: Stream,
        own: Sequence[int],
        *,
        pipeline: Stream | None = None,
        lanes: LaneStates | None = None,
        given: Mapping[int, Sequence[tuple[int, int]]] | None = None,
        journal: Journal = (),
    ) -> None:
        self.plain, self._own = plain, own
        self.journal = journal
        self.pipeline = self._settled = plain if pipeline is None else pipeline
        self.lanes = LaneStates.fresh(self.pipeline, own) if lanes is None else lanes
        own_given = {lane: rows for lane, rows in (given or {}).items() if lane in self.lanes.stages}
        self._given = PartlyDelivered(splitting_lineage(self.pipeline.stage), own_given)

    @property
    def by_rows(self) -> bool:
        """True if the stream delivers the rest of older orders first."""
        return self.pipeline is not self.plain

    @property
    def reads_objects(self) -> bool:
        """True if a dataset of the stream has files that are objects of stores."""
        return any(map(reads_objects, datasets_of(self.pipeline.stage)))

    @property
    def endless(self) -> bool:
        """True if the stream never ends."""
        return self.plain.endless

    @property
    def way_to_an_end(self) -> str:
        """What bounds a run, or gives the stream an end."""
        return "steps= of sk.Loader, or ds.stream(epochs=),"

    def passes(self, cursor: StepCursor) -> float:
        """Return how often the lanes of this rank have read all their rows."""
        lanes = [[state.values for state in stages] for stages in self.lanes.stages.values()]
        return passes_of(self.pipeline.stage, lanes)

    def of_state(self, cursor: StepCursor) -> Stream:
        """Return the stream that a state is of; which older orders are over is known of all lanes alone."""
        if self.by_rows:
            self._settled = consumed.simplified_stream(self._settled, self.lanes.stages)
        return self._settled

    def deliver(self, batch: MadeBatch) -> None:
        """Change the states of the lanes as a batch changed the lanes."""
        for deltas in batch.deltas:
            self.lanes.apply(deltas)
        for deltas in batch.deltas:
            for lane, rows in deltas.given.items():
                self._given.add(lane, rows, functools.partial(self.lanes.stages.__getitem__, lane))
            for lane in deltas.ended:
                self._given.forget(lane)

    def skip(self, steps: Steps, cursor: StepCursor, count: int) -> StepCursor:
        """Make ``count`` batches and drop them: the batches that follow depend on the contents of these."""
        batches = lane_batches(self.pipeline, steps, cursor, self.lanes, list, journal=self.journal)
        for _, batch in zip(range(count), batches, strict=False):
            self.deliver(batch)
            cursor = batch.after
        return cursor

    def next_run(self, steps: Steps, cursor: StepCursor) -> tuple[StepCursor, LanesState]:
        """Return the next run, whose lanes begin anew; those of a stream without end go on."""
        if self.plain.endless:
            return structs.replace(cursor, began=cursor.step), self
        begun = LanesState(self.plain, self._own, journal=self.journal)
        return StepCursor(cursor.step, cursor.epoch + 1, 0, cursor.step), begun

    def document(
        self, steps: Steps, cursor: StepCursor, trainer_pass: TrainerPass | None, *, partial: bool, rows: bool
    ) -> dict[str, Any]:
        """Return the state document at a cursor, with the lanes of this rank.

        Raises:
            NotResumable: a stage could not go on from it; or other ranks have other lanes, and ``partial`` is
                false.
        """
        check_resumable(self.pipeline.stage)
        if steps.world_size > 1 and not partial:
            raise NotResumable(
                f"rank {steps.rank} of {steps.world_size} has {len(self._own)} of the {self.plain.lanes} "
                f"lanes: let all ranks call sk.save_state(folder, loader); give loader.stateful() to a "
                f"framework that saves states itself; or take state_dict(partial=True)"
            )
        stream = self.of_state(cursor)
        pipeline = text_of_stream(stream.stage) if rows else None
        snapshot = self._snapshot(steps, cursor, stream)
        return structs.replace(snapshot, pipeline=pipeline, trainer_pass=trainer_pass).document()

    def _snapshot(self, steps: Steps, cursor: StepCursor, stream: Stream) -> StreamState:
        """Return the state of this rank's lanes; nothing of it changes later."""
        return StreamState(
            fingerprint=stream.fingerprint,
            step=cursor.step,
            slot=cursor.position,
            lanes=self.lanes.document(),
            of=self.plain.lanes,
            began=cursor.began if steps.notes_began else None,
            ended=tuple(sorted(self.lanes.ended)),
            given=self._given.document(self.lanes.stages),
            rows=serialize.rows_of_stream(stream) if self.by_rows else None,
            journal=self.journal,
        )

    def resumed(self, steps: Steps, cursor: StepCursor) -> Resumed:
        """Return the sources as they are at a cursor; on one of several ranks their rows are not known."""
        stream = self.of_state(cursor)
        snapshot = self._snapshot(steps, cursor, stream)
        return Resumed(stream, lambda: consumed.progress_of_stream(stream, snapshot))

    def loaded(self, steps: Steps, document: Mapping[str, Any], resume: Resume) -> LoadedState:
        """Return the cursor of a state document, and the states of this rank's lanes.

        The document may be one of row offsets instead.

        Raises:
            StateMismatch: the document is of another stream, or of other data.
            CorruptState: the document is not a state of a stream, or lacks a lane.
            InvalidArgument: with ``resume="rows"``, the rows that each source delivered are not known; or a
                source cannot be entered at a row.
        """
        stream, state = self._parsed(document, resume)
        lanes = LaneStates.parse(state.lanes, state.ended)
        if state.rows:
            stream = consumed.simplified_stream(stream, lanes.stages)
        cursor = StepCursor(state.step, 0, state.slot, state.began or 0)
        found = LanesState(
            self.plain,
            self._own,
            pipeline=stream,
            lanes=lanes.only(self._own),
            given=rows_given(state.given),
            journal=joined(self.journal, state.journal, state.step),
        )
        resumed = Resumed(stream, lambda: consumed.progress_of_stream(stream, state))
        return LoadedState(cursor, found, resumed, state.trainer_pass)

    def _parsed(self, document: Mapping[str, Any], resume: Resume) -> tuple[Stream, StreamState]:
        """Return the stream that a document is of, and the state of it there."""
        if has_row_offsets(document):
            return row_offsets.stream_at_offsets(self.plain, document)
        state, stream = parse_state(document), self.plain
        if not isinstance(state, StreamState):
            if resume != "rows":
                raise other_kind(state)
            return self._by_rows(state)
        try:
            if state.rows:
                stream = serialize.stream_from_rows(state.rows, self.plain)
            check_stream(stream.stage, state, self._own)
        except StateMismatch:
            if resume != "rows":
                raise
            return self._by_rows(state)
        return stream, state

    def _by_rows(self, state: State) -> tuple[Stream, StreamState]:
        if steers(state.journal):
            LOG.warning("%s", without_steers(state.journal))
        stream, begun = by_rows.stream_by_rows(self.plain, state)
        journal = tuple(structs.replace(entry, position=None) for entry in exclusions(state.journal))
        return stream, structs.replace(begun, journal=journal)
