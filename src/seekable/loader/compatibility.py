"""Checks that a state is of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable.nodes.mix import Mix
from seekable.nodes.node import InnerNode, Node
from seekable.state.canonical import plain_json
from seekable.state.descriptions import PipelineDescription, mismatch
from seekable.state.document import RunState, StreamState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.resume import from_description
    from seekable.state.document import State
    from seekable.stream.stream import Stream
else:
    from_description = lazy("seekable.resume.from_description")

__all__ = ["check_pipeline", "described", "fingerprint_at"]


def described(pipeline: Node | Stream, state: State | None) -> dict[str, Any]:
    """Return the description of a pipeline up to the position of a state; the whole one without a state."""
    if isinstance(pipeline, Node):
        return pipeline.describe(state.position if isinstance(state, RunState) else None)
    return pipeline.describe()


def fingerprint_at(pipeline: Node | Stream, state: State) -> str:
    """Return the fingerprint of a pipeline up to the position of a state."""
    if isinstance(pipeline, Node) and not isinstance(state, StreamState):
        return pipeline.fingerprint_at(state.position)
    return pipeline.fingerprint


def check_pipeline(pipeline: Node | Stream, state: State) -> None:
    """Refuse a state of another pipeline, or of other data.

    Raises:
        StateMismatch: the fingerprints differ; the message says in what, if the state carries a description.
    """
    present = fingerprint_at(pipeline, state)
    if state.fingerprint != present:
        old = (
            None
            if state.pipeline is None
            else _described_before(state, PipelineDescription.parse(state.pipeline))
        )
        new = plain_json(described(pipeline, state))
        advice = (
            ""
            if state.pipeline is None
            else _advice_on_schedules(state, PipelineDescription.parse(state.pipeline))
        )
        raise mismatch(state.fingerprint, present, old=old, new=new, advice=advice)


def _advice_on_schedules(state: State, saved: PipelineDescription) -> str:
    """Return from which positions the weights of the saved mixtures may change without losing a record."""
    if not isinstance(state, RunState) or not from_description.has_schedule(saved.tree):
        return ""
    return "".join(
        f"\nthe state lies at position {position} of the mixture of {_parts(mixture)}: a block of draws that "
        f"has begun cannot change, so its weights may change from position {mixture.free_from(position)} on"
        for mixture, position in _mixtures(from_description.rebuild_loosely(saved.tree), state.position)
    )


def _parts(mixture: Mix) -> str:
    return ", ".join(map(repr, mixture.names)) if mixture.names else f"{len(mixture.parts)} datasets"


def _mixtures(node: Node, position: int) -> Iterator[tuple[Mix, int]]:
    """Yield the mixtures with a schedule, and the number of draws of each before a position of a node."""
    if isinstance(node, Mix) and node.stop == "never":
        yield node, position
    if isinstance(node, InnerNode):
        for slot, child in enumerate(node.children):
            stop = node.child_range(slot, 0, position)[1]
            yield from _mixtures(child, stop or 0)


def _described_before(state: State, saved: PipelineDescription) -> Mapping[str, Any]:
    """Return the description that the fingerprint of a state is of: without weights of later positions."""
    if isinstance(state, RunState) and from_description.has_schedule(saved.tree):
        whole = from_description.rebuild_loosely(saved.tree)
        cut: Mapping[str, Any] = plain_json(whole.describe(state.position))
        return cut
    return saved.tree
