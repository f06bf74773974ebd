"""What the stages of a lane remember, outside of the flows: a lane's state, and how it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.errors import CorruptState
from seekable.stream.buffer import replayed
from seekable.stream.rebuild import all_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Change", "Kept", "applied"]


@dataclass(slots=True)
class Kept:
    """What one stage remembers: its memory, and the tokens and notes of the items that wait in it.

    Tokens are as they were, or as JSON has them; in a document they are the latter.

    Example:
        >>> kept = Kept.parse({"drawn": 3, "buffer": [7, 8]})
        >>> kept.memory, kept.tokens, kept.document()
        ({'drawn': 3}, [7, 8], {'drawn': 3, 'buffer': [7, 8]})
    """

    memory: dict[str, Any] = field(default_factory=dict)
    tokens: list[Any] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    """One for each token, or none at all."""

    def without_memory(self) -> Kept:
        """Return the tokens and notes alone."""
        return Kept({}, self.tokens, self.notes)

    def document(self) -> dict[str, Any]:
        """Return new, JSON-safe values."""
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.memory))
        if self.tokens:
            document["buffer"] = all_as_json(self.tokens)
            if self.notes.count(None) != len(self.notes):
                document["notes"] = list(self.notes)
        return document

    @classmethod
    def parse(cls, document: Any) -> Kept:
        """Check a document and take its values; it is not changed.

        Raises:
            CorruptState: it is not what ``document`` returned.
        """
        if not isinstance(document, dict):
            message = f"the state of a stage must be an object (got {document!r:.100})"
            raise CorruptState(message)
        remembered = {key: value for key, value in document.items() if key not in ("buffer", "notes")}
        memory = msgspec.json.decode(msgspec.json.encode(remembered))
        tokens, notes = document.get("buffer", []), document.get("notes", [])
        if not isinstance(tokens, list) or not isinstance(notes, list) or len(notes) not in (0, len(tokens)):
            message = f"a stage's buffer has as many notes as tokens (got {document!r:.100})"
            raise CorruptState(message)
        return cls(memory, list(tokens), list(notes))


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a stage since it was asked last."""

    memory: dict[str, Any]
    journal: list[list[Any]] | None
    """What was done to its buffer; None if there is no telling, because it is another one now."""
    tokens: list[Any]
    notes: list[Any]
    """What is in the buffer, in that case."""


def applied(kept: Sequence[Kept], changes: Sequence[Change]) -> None:
    """Change what the stages of a lane remember as they have changed themselves."""
    for stage, change in zip(kept, changes, strict=True):
        stage.memory = change.memory
        if change.journal is None:
            stage.tokens, stage.notes = list(change.tokens), list(change.notes)
        elif change.journal:
            stage.notes = stage.notes or [None] * len(stage.tokens)
            replayed(stage.tokens, stage.notes, change.journal)
