"""From a state to the stream that goes on from it, exactly or by rows, and to what its lanes remember."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, StateMismatch
from seekable.resume.carry_counters import carried_on
from seekable.resume.log import tell
from seekable.resume.saved_description import check_described, description_of, without_paths
from seekable.resume.streams.recipe import settled_stream, stream_made_of
from seekable.resume.streams.resume import old_sources, resumed_stream
from seekable.state.canonical import fingerprint_of
from seekable.state.stream import StreamState
from seekable.stream.iterator import check_stream
from seekable.stream.kept import Kept
from seekable.stream.lineage import described_joint
from seekable.stream.partly_delivered import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.stream.base import Stream

    Rows = Mapping[int, Sequence[tuple[int, int]]]

__all__ = ["Loaded", "loaded_stream"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A stream, and what it goes on from."""

    stream: Stream
    state: StreamState
    lanes: dict[int, list[Kept]]
    given: Rows


def loaded_stream(plain: Stream, document: Mapping[str, Any], own: Sequence[int], *, resume: str) -> Loaded:
    """Return what goes on from a state.

    Args:
        plain: the stream, where nothing was gone on with by rows.
        document: the state.
        own: the lanes that are needed.
        resume: ``"exact"``, or ``"rows"`` where the state may be of another stream.

    Raises:
        StateMismatch: it is of another stream, or of other data.
        CorruptState: the document is not a state of a stream, or lacks a lane.
        InvalidArgument: it is to go on by rows, and how much each source gave cannot be told.
    """
    state = StreamState.parse(document)
    try:
        stream = stream_made_of(state.rows, plain) if state.rows else plain
        check_stream(stream, state, own)
    except StateMismatch:
        if resume != "rows":
            raise
        return _by_rows(plain, state, own)
    lanes = {lane: [Kept.parse(stage) for stage in stages] for lane, stages in state.lanes.items()}
    if state.rows:
        stream = settled_stream(stream, lanes)
    return Loaded(stream, state, lanes, parsed(state.given))


def _by_rows(plain: Stream, state: StreamState, own: Sequence[int]) -> Loaded:
    missing = state.missing(range(state.of))
    if missing:
        message = (
            f"resume='rows' needs all lanes of the state, and it lacks lane {missing[0]} of {state.of}: it "
            f"is one rank's share, and others have the rest; sk.load_state puts them together"
        )
        raise CorruptState(message)
    description = description_of(state)
    check_described(fingerprint_of(without_paths(description)), state)
    joint = described_joint(description, plain)
    lanes = {lane: [Kept.parse(stage) for stage in stages] for lane, stages in state.lanes.items()}
    stream, went = resumed_stream(plain, old_sources(joint, lanes, parsed(state.given), state.ended))
    for source in went:
        tell(source)
    begun = replace(state, fingerprint=stream.fingerprint, ended=(), given=None, rows=None, pipeline=None)
    return Loaded(stream, begun, carried_on(joint, lanes, stream, own), {})
