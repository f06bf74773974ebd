"""One lane of a stream at work: the iterator of each stage, its state, and how that state changes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import msgspec

from seekable.errors import CorruptState
from seekable.stream.buffer import TokenBuffer, replayed
from seekable.stream.rebuild import rebuilt
from seekable.stream.token import all_as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["LaneIterator", "StageDelta", "StageState", "apply_deltas"]


@dataclass(slots=True)
class StageState:
    """The state of one stage in one lane: its values, and the tokens and notes of its waiting items.

    Tokens are tuples or, as JSON has them, lists; ``document`` returns lists.

    Example:
        >>> state = StageState.parse({"drawn": 3, "buffer": [7, 8]})
        >>> state.values, state.tokens, state.document()
        ({'drawn': 3}, [7, 8], {'drawn': 3, 'buffer': [7, 8]})
    """

    values: dict[str, Any] = field(default_factory=dict)
    """The content of ``lane.state``."""

    tokens: list[Any] = field(default_factory=list)

    notes: list[Any] = field(default_factory=list)
    """One note for each token, or no notes at all."""

    def copy(self) -> StageState:
        """Return a state that does not change when this one is changed by ``apply_deltas``."""
        return StageState(dict(self.values), list(self.tokens), list(self.notes))

    def document(self) -> dict[str, Any]:
        """Return the state as a new JSON-safe dict."""
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.values))
        if self.tokens:
            document["buffer"] = all_as_json(self.tokens)
            if self.notes.count(None) != len(self.notes):
                document["notes"] = list(self.notes)
        return document

    @classmethod
    def parse(cls, document: Any) -> Self:
        """Return the state of a document, which is not changed.

        Raises:
            CorruptState: the document is not what ``document`` returned.
        """
        if not isinstance(document, dict):
            message = f"the state of a stage must be an object (got {document!r:.100})"
            raise CorruptState(message)
        own = {key: value for key, value in document.items() if key not in ("buffer", "notes")}
        values = msgspec.json.decode(msgspec.json.encode(own))
        tokens, notes = document.get("buffer", []), document.get("notes", [])
        if not isinstance(tokens, list) or not isinstance(notes, list) or len(notes) not in (0, len(tokens)):
            message = f"a stage's buffer has as many notes as tokens (got {document!r:.100})"
            raise CorruptState(message)
        return cls(values, list(tokens), list(notes))


@dataclass(frozen=True, slots=True)
class StageDelta:
    """The change of a stage's state between two calls of ``LaneIterator.deltas``."""

    values: dict[str, Any]
    """All values after the change."""

    journal: list[list[Any]] | None
    """The operations on the buffer; None if the buffer is a new one, whose content follows."""

    tokens: list[Any]
    """The tokens in a new buffer, otherwise empty."""

    notes: list[Any]
    """The notes in a new buffer, otherwise empty."""


def apply_deltas(states: Sequence[StageState], deltas: Sequence[StageDelta]) -> None:
    """Change the states of a lane's stages in place, as the stages have changed."""
    for state, delta in zip(states, deltas, strict=True):
        state.values = delta.values
        if delta.journal is None:
            state.tokens, state.notes = list(delta.tokens), list(delta.notes)
        elif delta.journal:
            state.notes = state.notes or [None] * len(state.tokens)
            replayed(state.tokens, state.notes, delta.journal)


@final
class LaneIterator:
    """Iterates over the items of a stage in one lane, each after its token; it implements ``Lane``.

    Each place in the graph has an iterator of its own, even where two places hold the same stage: branches
    over one source do not disturb each other.
    """

    def __init__(self, stage: Stage, number: int) -> None:
        self.stage = stage
        self.number = number
        self.inputs = tuple(LaneIterator(source, number) for source in stage.inputs)
        self.state: dict[str, Any] = {}
        self._buffer: TokenBuffer | None = None
        self._waiting = StageState()
        """The tokens and notes of a buffer that was loaded and not used yet."""
        self._iterator: Iterator[tuple[Token, Any]] | None = None
        self._holes = 0
        """The holes that were counted before the last restart, less those of the state that was loaded."""

    def buffer(self, prepare: Callable[[Any], Any] | None = None) -> TokenBuffer:
        """Return the buffer of waiting items of the only input, each as ``prepare`` made it."""
        if self._buffer is None:
            (source,) = self.stage.inputs
            self._buffer = TokenBuffer(
                lambda tokens: [
                    item if prepare is None else prepare(item) for item in rebuilt(source, tokens)
                ],
                # A source that replays is read through once for each call, so one call makes all items.
                all_at_once=not source.constant_time,
            )
            self._buffer.load(self._waiting.tokens, self._waiting.notes)
            self._waiting = StageState()
        return self._buffer

    @property
    def epochs(self) -> int:
        """The number of epochs that every source below has completed, or fewer; 0 if that is unknown."""
        return self.stage.epochs_done(self)

    @property
    def holes(self) -> int:
        """The number of records that this stage left out since the iterator was made or loaded."""
        return self._holes + int(self.state.get("holes", 0))

    def restart(self) -> None:
        """Start again at the first item, with empty states here and below."""
        self._holes = self.holes
        self.state.clear()
        self._buffer = self._iterator = None
        self._waiting = StageState()
        for below in self.inputs:
            below.restart()

    def pause(self) -> None:
        """Release what was read ahead, here and below; the states stay, and the next item is the same."""
        state = self.own_state()
        self._waiting = StageState({}, state.tokens, state.notes)
        self._buffer = self._iterator = None
        for below in self.inputs:
            below.pause()

    def states(self) -> list[StageState]:
        """Return the states of this stage and all stages below, in the order of ``walk``."""
        return [each.own_state() for each in self.walk()]

    def deltas(self) -> list[StageDelta]:
        """Return how these states have changed since the last call, in the order of ``walk``."""
        return [each.own_delta() for each in self.walk()]

    def load(self, states: Sequence[StageState]) -> None:
        """Set the states of this stage and all stages below; ``states`` is not changed, and nothing is read.

        Raises:
            CorruptState: there are more or fewer states than stages.
        """
        iterators = list(self.walk())
        if len(iterators) != len(states):
            message = f"the state of a lane must have {len(iterators)} stages (got {len(states)})"
            raise CorruptState(message)
        for each, state in zip(iterators, states, strict=True):
            each.load_own(state)

    def own_state(self) -> StageState:
        """Return the state of this stage alone."""
        if self._buffer is None:
            return StageState(_copied(self.state), list(self._waiting.tokens), list(self._waiting.notes))
        return StageState(_copied(self.state), self._buffer.tokens(), list(self._buffer.notes))

    def own_delta(self) -> StageDelta:
        """Return how the state of this stage alone has changed since the last call."""
        journal = None if self._buffer is None else self._buffer.changes()
        state = self.own_state() if journal is None else StageState(_copied(self.state))
        return StageDelta(state.values, journal, state.tokens, state.notes)

    def load_own(self, state: StageState) -> None:
        """Set the state of this stage alone."""
        self.state = _copied(state.values)
        self._holes = -int(self.state.get("holes", 0))
        self._waiting = StageState({}, list(state.tokens), list(state.notes))

    def walk(self) -> Iterator[LaneIterator]:
        """Yield this iterator and all those below: a stage before its inputs, inputs in their order."""
        yield self
        for below in self.inputs:
            yield from below.walk()

    def __iter__(self) -> Iterator[tuple[Token, Any]]:
        if self._iterator is None:
            self._iterator = self.stage.items(self)
        return self._iterator


def _copied(values: dict[str, Any]) -> dict[str, Any]:
    """Return a copy that does not change when lists and dicts in the values change in place."""
    return {
        key: copy.deepcopy(value) if isinstance(value, list | dict) else value
        for key, value in values.items()
    }
