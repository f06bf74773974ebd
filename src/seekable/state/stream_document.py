"""The state of a run over a stream: the states of the stages of each lane, and the next slot.

    {"seekable": 1, "fingerprint": "xxh3:...", "step": 1234, "slot": 39488, "of": 8,
     "lanes": {"0": [...], ...}, "check": "..."}

``slot`` counts the places of the stream's global order, over all lanes, ``step`` the batches (of a plain
iterator: the items) delivered and skipped. A lane's list has the states of its stages, in the order of the
graph. The state of one rank holds the lanes of that rank; ``of`` says how many there are in all. A run that
is bounded by ``steps=`` adds ``began``, the step at which it began, and one with ``end="pad"`` the lanes that
have ``ended`` and begun anew. ``pass`` is that of a trainer, as of a dataset. ``given`` are, by lane, the
rows of which a part was delivered and another one waits, as pairs of a source and a position. A run that went
on by rows adds ``rows``, what is left of older orders. ``pipeline`` is the description of the stream, as of a
dataset. ``check`` is a digest of all the rest but ``pipeline``: only a stage itself can read its state, so
nothing else would show that a document was changed or cut. ``pipeline`` is held to the fingerprint instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, StateMismatch
from seekable.state.document import (
    SCHEMA,
    RunState,
    check_of,
    checked_count_of,
    checked_head,
    compare_check,
    object_of,
    optional,
    pass_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.state.trainer_pass import TrainerPass

__all__ = ["State", "StreamState", "merged", "other_kind", "parse_state"]


@dataclass(frozen=True, slots=True)
class StreamState:
    """A state document, checked.

    Example:
        >>> state = StreamState(fingerprint="xxh3:0", step=2, slot=64, lanes={0: [{"at": 64}]}, of=1)
        >>> StreamState.parse(state.document()) == state
        True
    """

    fingerprint: str
    step: int
    slot: int
    lanes: dict[int, list[dict[str, Any]]]
    of: int
    began: int | None = None
    ended: tuple[int, ...] = field(default=())
    given: dict[str, Any] | None = None
    rows: dict[str, Any] | None = None
    pipeline: str | None = None
    trainer_pass: TrainerPass | None = None

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        document: dict[str, Any] = {
            "seekable": SCHEMA,
            "fingerprint": self.fingerprint,
            "step": self.step,
            "slot": self.slot,
            "lanes": {str(lane): stages for lane, stages in self.lanes.items()},
            "of": self.of,
        }
        if self.began is not None:
            document["began"] = self.began
        if self.ended:
            document["ended"] = list(self.ended)
        if self.trainer_pass is not None:
            document["pass"] = self.trainer_pass.document()
        document |= optional(given=self.given, rows=self.rows)
        return {**document, "check": check_of(document), **optional(pipeline=self.pipeline)}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> StreamState:
        """Check a document and return it as a value; the document is not changed.

        Raises:
            CorruptState: it is not a state of a stream; the message names the key.
        """
        fingerprint, lanes = checked_head(document), document.get("lanes")
        if not isinstance(lanes, dict):
            message = f"the state of a stream has 'lanes' (got {lanes!r:.100}): this one is of something else"
            raise CorruptState(message)
        compare_check(document)
        step, slot, of = (checked_count_of(document, key) for key in ("step", "slot", "of"))
        began = checked_count_of(document, "began") if "began" in document else None
        given, rows = (object_of(document, key) for key in ("given", "rows"))
        pipeline = text_of(document, "pipeline")
        return cls(
            fingerprint,
            step,
            slot,
            _lanes(lanes, of),
            of,
            began,
            _ended(document, of),
            given,
            rows,
            pipeline,
            pass_of(document),
        )

    def missing(self, lanes: Sequence[int]) -> list[int]:
        """Return those of some lanes that the state does not have."""
        return [lane for lane in lanes if lane not in self.lanes]


State = RunState | StreamState


def parse_state(document: Mapping[str, Any]) -> State:
    """Check a state of a dataset or of a stream, and return it as a value.

    Raises:
        CorruptState: it is neither; the message names the key.

    Example:
        >>> parse_state({"seekable": 1, "fingerprint": "xxh3:0", "step": 2, "epoch": 0, "position": 64}).step
        2
    """
    has_lanes = hasattr(document, "get") and "lanes" in document
    return StreamState.parse(document) if has_lanes else RunState.parse(document)


def other_kind(state: State) -> StateMismatch:
    """Return the error for a state of a dataset that is loaded into a stream, or the other way round.

    Example:
        >>> state = RunState(fingerprint="xxh3:0", step=2, epoch=0, position=64)
        >>> str(other_kind(state)).partition(":")[0]
        'the state is of a dataset, and here a stream is delivered'
    """
    was, is_now = ("stream", "dataset") if isinstance(state, StreamState) else ("dataset", "stream")
    message = (
        f"the state is of a {was}, and here a {is_now} is delivered: load it into a sk.Loader with "
        f"resume='rows', by which each source goes on with the rows of its begun epoch that did not come"
    )
    return StateMismatch(message)


def merged(states: Mapping[str, StreamState]) -> StreamState:
    """Return the state that the ranks' states of one step make together.

    Args:
        states: each rank's, by the name of its file.

    Raises:
        CorruptState: they are of different streams or places, or have a lane twice.
    """
    (name, first), *others = states.items()
    lanes, ended, given = dict(first.lanes), set(first.ended), dict(first.given or {})
    for other, state in others:
        places = [(each.fingerprint, each.step, each.slot, each.of, each.began) for each in (first, state)]
        if places[0] != places[1] or not lanes.keys().isdisjoint(state.lanes):
            message = (
                f"the ranks' states {name} and {other} differ, or have a lane twice: they are of two runs"
            )
            raise CorruptState(message)
        lanes.update(state.lanes)
        ended.update(state.ended)
        given.update(state.given or {})
    whole = dict(sorted(lanes.items()))
    return replace(first, lanes=whole, ended=tuple(sorted(ended)), given=given or None)


def _lanes(lanes: Mapping[str, Any], of: int) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for name, stages in lanes.items():
        if not name.isdecimal() or int(name) >= of or not isinstance(stages, list):
            message = f"a state's lanes are lists with names of 0 to {of - 1} (got {name!r}: {stages!r:.100})"
            raise CorruptState(message)
        found[int(name)] = stages
    return dict(sorted(found.items()))


def _ended(document: Mapping[str, Any], of: int) -> tuple[int, ...]:
    ended = document.get("ended", [])
    if not isinstance(ended, list) or not all(isinstance(lane, int) and 0 <= lane < of for lane in ended):
        message = f"a state's 'ended' must list lanes below {of} (got {ended!r})"
        raise CorruptState(message)
    return tuple(ended)
