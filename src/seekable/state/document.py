"""The state of a run over a dataset: one position, and the fingerprint of the dataset.

    {"seekable": 1, "fingerprint": "xxh3:...", "step": 1234, "epoch": 0, "position": 39488, "check": "..."}

``position`` counts records over all ranks on the dataset's endless axis, ``step`` the batches delivered and
skipped, ``epoch`` the first one of the present run. A run bounded by ``steps=`` adds ``began``, the
step at which it began. Where a trainer counts passes over the data, ``pass`` is the one of the state
(`seekable.state.trainer_pass`). No rank, worker or batch size enters.

``check`` is a digest of all but ``pipeline``, by which a changed digit is found out. A state without it, as
older versions wrote, is taken as it is.

A run that went on by rows adds ``rows``, what is left of older orders, until that has come. ``pipeline`` is
the description of the dataset (`seekable.state.descriptions`), which ``resume="rows"`` needs; a state
that was taken with ``rows=False`` has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xxhash

from seekable.errors import CorruptState
from seekable.state.canonical import canonical_json
from seekable.state.trainer_pass import TrainerPass

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SCHEMA",
    "RunState",
    "check_of",
    "checked_count_of",
    "checked_head",
    "compare_check",
    "has_row_offsets",
    "object_of",
    "optional",
    "pass_of",
    "text_of",
]

SCHEMA = 1
"""The version of the document; a newer version of seekable reads the one before it too."""


_CHECKED = frozenset(
    {"seekable", "fingerprint", "step", "epoch", "position", "began", "pass", "rows"}
    | {"slot", "lanes", "of", "ended", "given"}
)
"""The keys that the digest is made of: a checkpoint may hold others beside them, and the description has a
digest of its own, the fingerprint."""

_MOST = 1 << 63
"""Positions are int64."""


@dataclass(frozen=True, slots=True)
class RunState:
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

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        document: dict[str, Any] = {
            "seekable": SCHEMA,
            "fingerprint": self.fingerprint,
            "step": self.step,
            "epoch": self.epoch,
            "position": self.position,
        }
        if self.began is not None:
            document["began"] = self.began
        if self.trainer_pass is not None:
            document["pass"] = self.trainer_pass.document()
        document |= optional(rows=self.rows)
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
        return cls(fingerprint, step, epoch, position, began, rows, pipeline, pass_of(document))


def check_of(document: Mapping[str, Any]) -> str:
    """Return the digest of a state, which is made of all that it says itself but its description.

    Raises:
        CorruptState: the document holds something that JSON has not.
    """
    try:
        checked = {key: value for key, value in document.items() if key in _CHECKED}
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
        CorruptState: the value is no object; the message names the key.
    """
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        message = f"a state's {key!r} must be an object (got {value!r:.100})"
        raise CorruptState(message)
    return value


def text_of(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of a document, None if it has none.

    Raises:
        CorruptState: the value is no text; the message names the key.
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


def checked_head(document: Mapping[str, Any]) -> str:
    """Check the keys that all states have, and return the fingerprint.

    Raises:
        CorruptState: the document is of another schema, or has no fingerprint.
    """
    if not hasattr(document, "get"):
        message = f"a state is what state_dict() returned (got {document!r:.100})"
        raise CorruptState(message)
    version = document.get("seekable")
    if version != SCHEMA:
        message = (
            f"a state must have 'seekable': {SCHEMA} (got {version!r}): it was written by another "
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
        CorruptState: the value is no integer of at least 0 and below 2**63; the message names the key.
    """
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        message = f"a state's {key!r} must be an integer of at least 0 and below 2**63 (got {value!r:.100})"
        raise CorruptState(message)
    return value
