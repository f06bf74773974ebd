"""The iterator of a stream: lanes in turn, one cursor, and its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, NotResumable
from seekable.state.canonical import plain_json
from seekable.state.description_text import Description
from seekable.state.descriptions import mismatch
from seekable.state.stream import StreamState
from seekable.stream.description import text_of_stream
from seekable.stream.flow import Flow, kept_in, load_all
from seekable.stream.kept import Kept
from seekable.stream.partly_delivered import Given, noted_joint
from seekable.stream.partly_delivered import parsed as rows_given

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Stage, Token

__all__ = ["StreamIterator", "check_resumable", "check_stream"]


class StreamIterator:
    """Delivers the items of a stream: slot ``s`` is the next item of lane ``s % lanes``.

    A lane that has ended leaves its slots empty, and the others go on.
    """

    def __init__(self, stream: Stream, lanes: Sequence[int] | None = None) -> None:
        """Stand before the first item of some lanes; of all if they are left out."""
        self._stream = stream
        self._lanes = range(stream.lanes) if lanes is None else lanes
        self._begin({lane: Flow(stream, lane) for lane in self._lanes})
        self._joint = noted_joint(stream)
        self._given = Given(self._joint)
        self._slot = 0
        self._count = 0
        self._token: Token = None
        self._failed: BaseException | None = None

    @property
    def token(self) -> Token:
        """The token of the item that was delivered last; None before the first."""
        return self._token

    def __iter__(self) -> StreamIterator:
        return self

    def __next__(self) -> Any:
        if self._failed is not None:
            raise self._failed
        nexts, slot = self._nexts, self._slot
        lanes = len(nexts)
        try:
            while slot - self._slot < lanes:
                following = nexts[slot % lanes]
                slot += 1
                if following is not None:
                    try:
                        self._token, item = following()
                    except StopIteration:
                        nexts[(slot - 1) % lanes] = None
                        continue
                    self._slot = slot
                    self._count += 1
                    if self._joint is not None:
                        self._note((slot - 1) % lanes)
                    return item
        except BaseException as error:
            # What raised is at its end: it would pass for a lane that has ended.
            self._failed = error
            raise
        raise StopIteration

    def state_dict(self, *, rows: bool = True) -> dict[str, Any]:
        """Return the state after the items delivered so far: a new dict, JSON-safe.

        Buffered items are in it as their tokens.

        Args:
            rows: add the description of the stream, with the names of its files. A ``sk.Loader`` of another
                stream needs it for ``resume="rows"``; without it a state is smaller.

        Raises:
            NotResumable: a stage could not go on exactly from it, or an item failed: then the stages are
                somewhere in its middle, and what they held may be lost.
        """
        if self._failed is not None:
            message = (
                f"the stream failed after {self._count} items ({self._failed!r:.200}), so there is no state "
                f"to go on from: take one before each item that may fail, or load the last one that was taken"
            )
            raise NotResumable(message) from self._failed
        check_resumable(self._stream)
        kept = {lane: kept_in(flow) for lane, flow in self._flows.items()}
        lanes = {lane: [stage.document() for stage in stages] for lane, stages in kept.items()}
        return StreamState(
            self._stream.fingerprint,
            self._count,
            self._slot,
            lanes,
            self._stream.lanes,
            given=self._given.document(kept),
            pipeline=text_of_stream(self._stream) if rows else None,
        ).document()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken: the next items are those that would have followed.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. ``{}``
                stands for no state and changes nothing, as in ``sk.Loader``.

        Raises:
            StateMismatch: the state is of another stream, or of other data.
            CorruptState: the document is not a state of a stream.
            InvalidArgument: it is of a run that went on by rows, which a loader alone does.
        """
        if state == {}:
            return
        parsed = StreamState.parse(state)
        if parsed.rows:
            message = (
                "the state is of a run that went on by rows: load it into a sk.Loader with batch_size=None, "
                "which delivers the items as an iterator does"
            )
            raise InvalidArgument(message)
        check_stream(self._stream, parsed, self._lanes)
        flows = {lane: Flow(self._stream, lane) for lane in self._lanes}
        for lane, flow in flows.items():
            load_all(flow, [Kept.parse(stage) for stage in parsed.lanes[lane]])
        self._begin(flows)
        self._given = Given(self._joint, rows_given(parsed.given))
        self._count, self._slot = parsed.step, parsed.slot
        self._token = self._failed = None

    def _note(self, lane: int) -> None:
        assert self._joint is not None
        self._given.add(lane, self._joint.rows(self._token), lambda: kept_in(self._flows[lane]))

    def _begin(self, flows: dict[int, Flow]) -> None:
        """Have lanes that run; the others are None."""
        self._flows = flows
        self._nexts: list[Callable[[], tuple[Token, Any]] | None] = [
            iter(flows[lane]).__next__ if lane in flows else None for lane in range(self._stream.lanes)
        ]


def check_stream(stream: Stream, state: StreamState, lanes: Sequence[int]) -> None:
    """Refuse a state of another stream, or one without some of the lanes.

    Raises:
        StateMismatch: it is of another stream, or of other data.
        CorruptState: it lacks a lane.
    """
    if state.fingerprint != stream.fingerprint:
        old = None if state.pipeline is None else Description.parse(state.pipeline).tree
        raise mismatch(state.fingerprint, stream.fingerprint, old=old, new=plain_json(stream.describe()))
    missing = state.missing(lanes)
    if state.of != stream.lanes or missing:
        message = (
            f"the state lacks lane {missing[0] if missing else state.of} of {stream.lanes}: it is one rank's "
            f"share, and others have the rest"
        )
        raise CorruptState(message)


def check_resumable(stage: Stage) -> None:
    """Refuse to take a state that nothing could go on from.

    Raises:
        NotResumable: the message names the stage, and the way out.
    """
    for source in stage.inputs:
        check_resumable(source)
    if not stage.checkpointable:
        held = [source for source in stage.inputs if not source.indexed]
        message = (
            f"items wait in {stage!r}, and {held[0]!r} cannot give them again: put it after a stage "
            f"that keeps none, or give its source replay=True"
            if held
            else f"{stage!r} has no state that it could be resumed from: {getattr(stage, 'way_out', '')}"
        )
        raise NotResumable(message)
