"""The state of a run, as a JSON document.

Of a dataset it is one position, and the fingerprint of the dataset:

    {"seekable": 1, "fingerprint": "xxh3:...", "step": 1234, "epoch": 0, "position": 39488, "check": "..."}

``position`` counts records over all ranks on the dataset's endless axis, ``step`` the batches delivered and
skipped, ``epoch`` the first one of the present run. A run bounded by ``steps=`` adds ``began``, the
step at which it began. Where a trainer counts passes over the data, ``pass`` is the one of the state
(`TrainerPass`). No rank or worker enters, and no batch size decides anything: a run whose batch size follows
the step adds ``began`` and its sizes as ``ramp``, by which later steps are planned from the state alone.

``check`` is a digest of all but ``pipeline``, by which a changed digit is found out. A state without it, as
older versions wrote, is taken as it is.

A run that went on by rows adds ``rows``, what is left of older orders, until that has come. ``pipeline`` is
the description of the dataset (`seekable.state.descriptions`), which ``resume="rows"`` needs; a state
that was taken with ``rows=False`` has none.

Of a stream it is the states of the stages of each lane, and the next slot:

    {"seekable": 1, "fingerprint": "xxh3:...", "step": 1234, "slot": 39488, "of": 8,
     "lanes": {"0": [...], ...}, "check": "..."}

``slot`` counts the places of the stream's global order, over all lanes, ``step`` the batches (of a plain
iterator: the items) delivered and skipped. A lane's list has the states of its stages, in the order of the
graph. The state of one rank holds the lanes of that rank; ``of`` says how many there are in all. A run that
is bounded by ``steps=`` adds ``began``, and one with ``end="pad"`` the lanes that have ``ended`` and begun
anew. ``given`` are, by lane, the rows of which a part was delivered and another one waits, as pairs of a
source and a position. Only a stage itself can read its state, so nothing but ``check`` shows that a document
was changed or cut.

A run that was changed while it ran adds ``journal``, what was changed and when (`seekable.state.journal`).
Its document is ``"seekable": 2``, so that a version that knows no journal refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import xxhash
from msgspec import structs

from seekable._typing import Value
from seekable.errors import CorruptState, StateMismatch
from seekable.state.canonical import canonical_json
from seekable.state.journal import Journal, check_same_journal, in_brief, journal_document, parse_journal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA, WITH_JOURNAL = 1, 2
"""The versions of a document: that of a run without a journal, as all versions of seekable read it, and that
of a run with one."""


_CHECKED = frozenset(
    {"seekable", "fingerprint", "step", "epoch", "position", "began", "pass", "rows"}
    | {"slot", "lanes", "of", "ended", "given", "ramp"}
)
"""The keys that the digest is made of: a checkpoint may hold others beside them, and the description has a
digest of its own, the fingerprint."""

_MOST = 1 << 63
"""Positions are int64."""


class TrainerPass(msgspec.Struct, frozen=True):
    """A pass of a trainer, and how often a loader came to the end of its run in it.

    Of several loaders, the shorter ones end within a pass: a trainer then begins them anew, or goes on
    without them. Where a loader stands does not say in which pass that was.

    Example:
        >>> TrainerPass(2).ended_once_more()
        TrainerPass(number=2, ended=1, over=True)
        >>> TrainerPass.parse({"number": 2, "ended": 1}) == TrainerPass(2).ended_once_more().with_batch()
        True
    """

    number: int
    """The number of the pass, which the trainer has announced."""

    ended: int = 0
    """The number of runs that have ended in the pass."""

    over: bool = False
    """True if nothing was delivered since the last of these ended."""

    def ended_once_more(self) -> TrainerPass:
        """Return the pass after the end of a run."""
        return TrainerPass(self.number, self.ended + 1, over=True)

    def with_batch(self) -> TrainerPass:
        """Return the pass after the delivery of a batch."""
        return TrainerPass(self.number, self.ended) if self.over else self

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        over = {"over": True} if self.over else {}
        return {"number": self.number, "ended": self.ended, **over}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> TrainerPass:
        """Return the pass of a document.

        Raises:
            CorruptState: the document is not what ``document`` returned.
        """
        number, ended = document.get("number", -1), document.get("ended", -1)
        over = document.get("over", True)
        if not (type(number) is type(ended) is int and min(number, ended) >= 0 and over is True):
            message = (
                f"a state's 'pass' has a 'number' and how many runs 'ended' in it (got {document!r:.100})"
            )
            raise CorruptState(message)
        return cls(number, ended, "over" in document)


class RunState(Value, frozen=True):
    """A state document, checked.

    Example:
        >>> state = RunState(fingerprint="xxh3:0", step=2, epoch=0, position=64)
        >>> RunState.parse(state.document()) == state
        True
    """

    fingerprint: str
    step: int
    epoch: int
    position: int
    began: int | None = None
    rows: dict[str, Any] | None = None
    pipeline: str | None = None
    trainer_pass: TrainerPass | None = None
    ramp: tuple[tuple[int, int], ...] | None = None
    """Pairs of a step and the records of a batch from there on, over all ranks; None if all have one size."""
    journal: Journal = ()

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        document: dict[str, Any] = {
            "seekable": WITH_JOURNAL if self.journal else SCHEMA,
            "fingerprint": self.fingerprint,
            "step": self.step,
            "epoch": self.epoch,
            "position": self.position,
        }
        if self.began is not None:
            document["began"] = self.began
        if self.ramp is not None:
            document["ramp"] = [list(pair) for pair in self.ramp]
        if self.trainer_pass is not None:
            document["pass"] = self.trainer_pass.document()
        document |= optional(rows=self.rows, journal=journal_document(self.journal) or None)
        return {**document, "check": check_of(document), **optional(pipeline=self.pipeline)}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> RunState:
        """Check a document and return it as a value; the document is not changed.

        Raises:
            CorruptState: it is not a state of this schema; the message names the key.
        """
        fingerprint = checked_head(document)
        step, epoch, position = (checked_count_of(document, key) for key in ("step", "epoch", "position"))
        began = checked_count_of(document, "began") if "began" in document else None
        rows, pipeline = object_of(document, "rows"), text_of(document, "pipeline")
        if "check" in document:
            compare_check(document, "; where it was changed on purpose, leave 'check' out")
        passed, ramp = pass_of(document), _ramp_of(document)
        journal = journal_of(document)
        return cls(fingerprint, step, epoch, position, began, rows, pipeline, passed, ramp, journal)


def check_of(document: Mapping[str, Any]) -> str:
    """Return the digest of a state, which is made of all that it says itself but its description.

    Raises:
        CorruptState: the document holds something that JSON has not.
    """
    try:
        # A checkpoint of the first schema may have a journal of its own, which is not part of the state.
        known = _CHECKED if document.get("seekable") == SCHEMA else _CHECKED | {"journal"}
        checked = {key: value for key, value in document.items() if key in known}
        if "journal" in checked:
            checked["journal"] = in_brief(checked["journal"])
        return xxhash.xxh3_64_hexdigest(canonical_json(checked))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"a state holds nothing but JSON: {error}"
        raise CorruptState(message) from None


def compare_check(document: Mapping[str, Any], way_out: str = "") -> None:
    """Compare the digest that a state has with its other values.

    Args:
        document: the state.
        way_out: what the user can do, appended to the message.

    Raises:
        CorruptState: they were changed.
    """
    check = check_of(document)
    if document.get("check") != check:
        message = (
            f"the state was changed after it was taken, or a part of it was lost: its 'check' should be "
            f"{check!r} (got {document.get('check')!r:.100}){way_out}"
        )
        raise CorruptState(message)


def has_row_offsets(document: Mapping[str, Any]) -> bool:
    """Return True for a checkpoint with ``resume_state``: a shard and a row of each source, and no state.

    Example:
        >>> has_row_offsets({"model": 1, "resume_state": {"datasets": []}}), has_row_offsets({"seekable": 1})
        (True, False)
    """
    if not hasattr(document, "get"):
        return False
    return "seekable" not in document and document.get("resume_state") is not None


def optional(**values: Any) -> dict[str, Any]:
    """Return those of some values of a document that there are."""
    return {key: value for key, value in values.items() if value is not None}


def object_of(document: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """Return an object of a document, None if it has none.

    Raises:
        CorruptState: the value is not an object; the message names the key.
    """
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        message = f"a state's {key!r} must be an object (got {value!r:.100})"
        raise CorruptState(message)
    return value


def text_of(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of a document, None if it has none.

    Raises:
        CorruptState: the value is not a text; the message names the key.
    """
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        message = f"a state's {key!r} must be a string (got {value!r:.100})"
        raise CorruptState(message)
    return value


def pass_of(document: Mapping[str, Any]) -> TrainerPass | None:
    """Return the pass of a trainer that a document has; None if it has none.

    Raises:
        CorruptState: it is not what a state holds.
    """
    found = object_of(document, "pass")
    return None if found is None else TrainerPass.parse(found)


def _ramp_of(document: Mapping[str, Any]) -> tuple[tuple[int, int], ...] | None:
    """Return the batch sizes of a document; None if it has none.

    Raises:
        CorruptState: they are not pairs of a step, ascending from 0, and a size.
    """
    found = document.get("ramp")
    if found is None:
        return None
    pairs: list[Any] = found if isinstance(found, list) else [None]
    are_pairs = all(isinstance(pair, list) and [type(each) for each in pair] == [int, int] for pair in pairs)
    steps = [pair[0] for pair in pairs] if are_pairs else []
    if not steps or steps[0] or steps != sorted(set(steps)) or min(pair[1] for pair in pairs) < 1:
        message = f"a state's 'ramp' has pairs of a step, from 0 on, and a size (got {found!r:.100})"
        raise CorruptState(message)
    return tuple((step, size) for step, size in pairs)


def journal_of(document: Mapping[str, Any]) -> Journal:
    """Return the journal that a document has; it is empty in those of the first schema.

    Raises:
        CorruptState: it is not what a state holds, or is missing where there is to be one.
    """
    return parse_journal(document.get("journal")) if document.get("seekable") == WITH_JOURNAL else ()


def checked_head(document: Mapping[str, Any]) -> str:
    """Check the keys that all states have, and return the fingerprint.

    Raises:
        CorruptState: the document is of another schema, or has no fingerprint.
    """
    if not hasattr(document, "get"):
        message = f"a state is what state_dict() returned (got {document!r:.100})"
        raise CorruptState(message)
    version = document.get("seekable")
    if version not in (SCHEMA, WITH_JOURNAL) or isinstance(version, bool):
        message = (
            f"a state must have 'seekable': {SCHEMA} (got {version!r}), or {WITH_JOURNAL} with a journal: it "
            f"was written by another "
            f"program or by a newer seekable; upgrade seekable, or load the state of this loader"
        )
        raise CorruptState(message)
    fingerprint = document.get("fingerprint")
    if not isinstance(fingerprint, str):
        message = f"a state's 'fingerprint' must be a string (got {fingerprint!r})"
        raise CorruptState(message)
    return fingerprint


def checked_count_of(document: Mapping[str, Any], key: str) -> int:
    """Return a count of a document.

    Raises:
        CorruptState: the value is not an integer of at least 0 and below 2**63; the message names the key.
    """
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        message = f"a state's {key!r} must be an integer of at least 0 and below 2**63 (got {value!r:.100})"
        raise CorruptState(message)
    return value


class StreamState(Value, frozen=True):
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
    ended: tuple[int, ...] = ()
    given: dict[str, Any] | None = None
    rows: dict[str, Any] | None = None
    pipeline: str | None = None
    trainer_pass: TrainerPass | None = None
    journal: Journal = ()

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        document: dict[str, Any] = {
            "seekable": WITH_JOURNAL if self.journal else SCHEMA,
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
        document |= optional(given=self.given, rows=self.rows, journal=journal_document(self.journal) or None)
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
            journal_of(document),
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
        check_same_journal(name, journal_document(first.journal), other, journal_document(state.journal))
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
    return structs.replace(first, lanes=whole, ended=tuple(sorted(ended)), given=given or None)


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
