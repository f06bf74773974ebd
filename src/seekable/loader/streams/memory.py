"""What a course through a stream has to remember: its lanes."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from seekable.errors import NotResumable, StateMismatch
from seekable.loader.steps import Cursor
from seekable.loader.streams.lanes import Lanes
from seekable.loader.streams.produce import produce_items
from seekable.resume.by_rows import stream_by_rows
from seekable.resume.readers import lanes_of, simplified_stream
from seekable.resume.serialize import rows_of_stream, stream_from_rows
from seekable.state.stream import StreamState
from seekable.stream.description import text_of_stream
from seekable.stream.iterator import check_resumable, check_stream
from seekable.stream.partly_delivered import PartlyDelivered, parsed, splitting_lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.loader.arguments import Resume
    from seekable.loader.produce import Made
    from seekable.loader.steps import Steps
    from seekable.stream.stream import Stream

__all__ = ["OfStream"]


@final
class OfStream:
    """What the lanes of one rank remember, as of the batches delivered; the cursor's position is a slot."""

    def __init__(self, stream: Stream, lanes: Sequence[int]) -> None:
        """Stand at the start of some lanes."""
        self._stream, self._own = stream, lanes
        self.pipeline = self._settled = stream
        self.lanes = Lanes.fresh(stream, lanes)
        self._given = PartlyDelivered(splitting_lineage(stream.stage))

    @property
    def by_rows(self) -> bool:
        """Whether something goes on by rows in the stream's place."""
        return self.pipeline is not self._stream

    def of_state(self, cursor: Cursor) -> Stream:
        """Return what is delivered, without what has come; of some of the lanes alone that is not known."""
        if self.by_rows:
            self._settled = simplified_stream(self._settled, self.lanes.stages)
        return self._settled

    def next_run(self, steps: Steps, cursor: Cursor) -> Cursor:
        """Begin the lanes anew; those of a stream without end go on."""
        if self._stream.endless:
            return replace(cursor, began=cursor.step)
        self._begin(self._stream, Lanes.fresh(self._stream, self._own), {})
        return Cursor(cursor.step, cursor.epoch + 1, 0, cursor.step)

    def delivered(self, made: Made) -> None:
        """Change as the lanes have changed."""
        for changes in made.changes:
            self.lanes.apply(changes)
        for changes in made.changes:
            for lane, rows in changes.given.items():
                self._given.add(lane, rows, functools.partial(self.lanes.stages.__getitem__, lane))

    def skipped(self, steps: Steps, cursor: Cursor, count: int) -> Cursor:
        """Run through the batches: what comes after them depends on what is in them."""
        made = produce_items(self.pipeline, steps, cursor, self.lanes, list)
        for _, batch in zip(range(count), made, strict=False):
            self.delivered(batch)
            cursor = batch.after
        return cursor

    def document(self, steps: Steps, cursor: Cursor, *, partial: bool, rows: bool) -> dict[str, Any]:
        """Return what the lanes remember.

        Raises:
            NotResumable: nothing could go on from it; or other ranks have other lanes, and ``partial`` is not
                said.
        """
        check_resumable(self.pipeline.stage)
        stream = self.of_state(cursor)
        if steps.world_size > 1 and not partial:
            message = (
                f"rank {steps.rank} of {steps.world_size} has {len(self._own)} of the {self._stream.lanes} "
                f"lanes: let all ranks call sk.save_state(folder, loader), or take state_dict(partial=True)"
            )
            raise NotResumable(message)
        return StreamState(
            fingerprint=stream.fingerprint,
            step=cursor.step,
            slot=cursor.position,
            lanes=self.lanes.document(),
            of=self._stream.lanes,
            began=None if steps.limit is None else cursor.began,
            ended=tuple(sorted(self.lanes.ended)),
            given=self._given.document(self.lanes.stages),
            rows=rows_of_stream(stream) if self.by_rows else None,
            pipeline=text_of_stream(stream.stage) if rows else None,
        ).document()

    def load(
        self, steps: Steps, document: Mapping[str, Any], *, resume: Resume
    ) -> tuple[Cursor, Callable[[], None]]:
        """Return the cursor of a state, and what makes this remember what it says of this rank's lanes.

        Raises:
            StateMismatch: it is of another stream, or of other data.
            CorruptState: the document is not a state of a stream, or lacks a lane.
            InvalidArgument: it is to go on by rows, and how much each source gave cannot be told.
        """
        state, stream = StreamState.parse(document), self._stream
        try:
            if state.rows:
                stream = stream_from_rows(state.rows, self._stream)
            check_stream(stream.stage, state, self._own)
        except StateMismatch:
            if resume != "rows":
                raise
            stream, state = stream_by_rows(self._stream, state)
        stages = lanes_of(state)
        if state.rows:
            stream = simplified_stream(stream, stages)
        ended = {lane for lane in state.ended if lane in self._own}
        lanes = Lanes({lane: stages[lane] for lane in self._own}, ended)
        return (
            Cursor(state.step, 0, state.slot, state.began or 0),
            functools.partial(self._begin, stream, lanes, parsed(state.given)),
        )

    def _begin(self, stream: Stream, lanes: Lanes, given: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        self.pipeline = self._settled = stream
        self.lanes = lanes
        own = {lane: rows for lane, rows in given.items() if lane in lanes.stages}
        self._given = PartlyDelivered(splitting_lineage(stream.stage), own)
