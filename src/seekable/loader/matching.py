"""Whether a state belongs to a pipeline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seekable.dataset.base import Dataset
from seekable.errors import StateMismatch
from seekable.state.canonical import canonical_json
from seekable.state.descriptions import difference
from seekable.state.document import RunState
from seekable.state.stream import StreamState
from seekable.stream.base import Stream

if TYPE_CHECKING:
    from seekable.state.stream import State

__all__ = ["check_pipeline", "described", "fingerprint_at"]


def described(pipeline: Dataset | Stream, state: State | None) -> dict[str, Any]:
    """Return all that decides what a pipeline gives before a state, or for ever."""
    if isinstance(pipeline, Stream):
        return pipeline.describe()
    return pipeline.describe(state.position if isinstance(state, RunState) else None)


def fingerprint_at(pipeline: Dataset | Stream, state: State) -> str:
    """Return the fingerprint of all that decides what a pipeline gives before a state."""
    if isinstance(pipeline, Dataset) and not isinstance(state, StreamState):
        return pipeline.fingerprint_at(state.position)
    return pipeline.fingerprint


def check_pipeline(pipeline: Dataset | Stream, state: State, *, saved: dict[str, Any] | None) -> None:
    """Refuse a state of another pipeline, or of other data.

    Args:
        pipeline: what is to go on.
        state: where from.
        saved: the description of the pipeline that the state is of, if it was kept.

    Raises:
        StateMismatch: the fingerprints differ; the message says in what, where that can be known.
    """
    present = fingerprint_at(pipeline, state)
    if state.fingerprint == present:
        return
    # The saved description has been JSON: compare like with like.
    now = json.loads(canonical_json(described(pipeline, state)))
    changes = difference(saved, now) if saved else ""
    message = (
        f"the state is of another pipeline: its fingerprint is {state.fingerprint}, this one's is {present}\n"
        f"{changes or 'with sk.save_state and sk.load_state this message says what changed'}"
    )
    raise StateMismatch(message)
