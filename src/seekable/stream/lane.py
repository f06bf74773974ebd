"""One lane of a stream at work: the iterator of each stage, its state, and how that state changes."""

from __future__ import annotations

import copy
import itertools
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import msgspec

from seekable.errors import BadToken, CorruptState
from seekable.stream.buffer import TokenBuffer, replayed
from seekable.stream.runs import END, RunLength
from seekable.stream.shapes import rebuilt
from seekable.stream.token import all_as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seekable.stream.runs import Run, Runs, StageValues
    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["LaneIterator", "StageDelta", "StageState", "apply_deltas"]

_REMEMBERED = 8192
"""The tokens of a lane that are compared with the next one, or twice as many: about 1 MB. All tokens of a
stream without end would fill the memory."""


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

    def __init__(self, stage: Stage, number: int, *, is_probe: bool = False) -> None:
        self.stage = self._begun = stage
        """The stage, which a change of the run may replace; and the one that it began with."""
        self.number = number
        self.is_probe = is_probe
        """True if the iterator only finds out whether the lane gives an item: it ends where none comes."""
        self.inputs = tuple(LaneIterator(source, number, is_probe=is_probe) for source in stage.inputs)
        self.state: dict[str, Any] = {}
        """The values of the stage; those of a stage that makes runs are of the last call of ``settle``."""
        self._buffer: TokenBuffer | None = None
        self._waiting = StageState()
        """The tokens and notes of a buffer that was loaded and not used yet."""
        self._iterator: Iterator[tuple[Token, Any]] | None = None
        self._items: Iterator[Any] | None = None
        self._runs: Runs | None = None
        self._left: Iterator[Any] | None = None
        """The items of the last run that are not delivered yet; None if the stage above takes the runs."""
        self._given = 0
        """The number of items that were delivered, or are left in that run."""
        self._tokens: Sequence[Token] = (None,)
        """The tokens of all items of that run, or of the last item where there are no runs."""
        self._tokens_of: Callable[[], Iterable[Token]] | None = None
        """Returns the tokens of that run, if they were not asked for; the run itself is let go of."""
        self._behind = 0
        """The number of items that are taken and not delivered, as of the last ``settle``."""
        self._holes = 0
        """The holes that were counted before the last restart, less those of the state that was loaded."""

    def buffer(self, prepare: Callable[[Any], Any] | None = None) -> TokenBuffer:
        """Return the buffer of waiting items of the only input, each as ``prepare`` made it."""
        if self._buffer is None:
            (source,) = self.stage.inputs
            self._buffer = TokenBuffer(
                lambda tokens: [item if prepare is None else prepare(item) for item in self._rebuilt(tokens)],
                # A source that replays is read through once for each call, so one call makes all items.
                all_at_once=not source.constant_time,
            )
            self._buffer.load(self._waiting.tokens, self._waiting.notes)
            self._waiting = StageState()
        return self._buffer

    @property
    def has_runs(self) -> bool:
        """True if the items of the stage can be taken in runs; those of the user's own stages are checked."""
        iter(self)
        return self._runs is not None and not _is_own(self.stage)

    def in_runs(self, runs: Runs) -> Iterator[tuple[Token, Any]]:
        """Return the iterator over the items of runs; the stage above may take the runs themselves."""
        self._runs = runs
        return itertools.chain.from_iterable(
            zip(self._all_tokens(), left, strict=True) for left in self._items_of_runs()
        )

    def take(self, count: int, behind: int) -> Run:
        """Return the next run of the stage; see ``Runs.take``."""
        assert self._runs is not None
        self._behind = 0
        return self._runs.take(count, behind)

    @property
    def items(self) -> Iterator[Any]:
        """The iterator over the items without their tokens; who has begun with it goes on with it."""
        if self._items is None:
            pairs = iter(self)
            if self._runs is None:
                self._items = self._noted(pairs)
            elif _is_own(self.stage):
                self._items = map(operator.itemgetter(1), pairs)
            else:
                self._items = itertools.chain.from_iterable(self._items_of_runs())
        return self._items

    @property
    def delivered(self) -> int:
        """The number of items that came out of ``items`` so far."""
        return self._given if self._left is None else self._given - operator.length_hint(self._left)

    @property
    def token(self) -> Token:
        """The token of the last of these; None before the first one."""
        tokens = self._all_tokens()
        return tokens[-1] if self._left is None else tokens[-1 - operator.length_hint(self._left)]

    def cut(self, behind: int) -> StageValues:
        """Return the values of this stage and all below it as they were so many items ago."""
        self._settle(behind)
        return [dict(each.state) for each in self.walk()]

    @property
    def epochs(self) -> int:
        """The number of epochs that every source below has completed, or fewer; 0 if that is unknown."""
        self.settle()
        return self.stage.epochs_done(self)

    @property
    def holes(self) -> int:
        """The number of records that the sources left out since the iterator was made or loaded.

        It is as of the last call of ``settle``, ``states`` or ``deltas``.
        """
        return sum(each._own_holes() for each in self.walk() if not each.inputs)  # noqa: SLF001 - of this class

    def restart(self) -> None:
        """Start again at the first item, with empty states here and below."""
        self.settle()
        for each in self.walk():
            each._holes = each._own_holes()  # noqa: SLF001 - of this class
            each.state.clear()
            each._waiting = StageState()  # noqa: SLF001
            each._forget()  # noqa: SLF001

    def pause(self) -> None:
        """Release what was read ahead, here and below; the states stay, and the next item is the same."""
        self.settle()
        for each in self.walk():
            state = each._own_state()  # noqa: SLF001 - of this class
            each._waiting = StageState({}, state.tokens, state.notes)  # noqa: SLF001
            each._forget()  # noqa: SLF001

    def values(self) -> StageValues:
        """Return the values of this stage and all below it, which change with the next item."""
        self.settle()
        return [each.state for each in self.walk()]

    def states(self) -> list[StageState]:
        """Return the states of this stage and all stages below, in the order of ``walk``."""
        self.settle()
        return [each._own_state() for each in self.walk()]  # noqa: SLF001 - of this class

    def deltas(self) -> list[StageDelta]:
        """Return how these states have changed since the last call, in the order of ``walk``."""
        self.settle()
        return [each._own_delta() for each in self.walk()]  # noqa: SLF001 - of this class

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
            each._load_own(state)  # noqa: SLF001 - of this class

    def walk(self) -> Iterator[LaneIterator]:
        """Yield this iterator and all those below: a stage before its inputs, inputs in their order."""
        yield self
        for below in self.inputs:
            yield from below.walk()

    def __iter__(self) -> Iterator[tuple[Token, Any]]:
        if self._iterator is None:
            items = self.stage.items(self)
            own = _is_own(self.stage)
            self._iterator = _with_distinct_tokens(items, self.stage, self.number) if own else items
        return self._iterator

    def settle(self) -> None:
        """Set the values of the stages that make runs to those after the last item that was delivered."""
        self._settle(self._behind if self._left is None else operator.length_hint(self._left))

    def _items_of_runs(self) -> Iterator[Iterator[Any]]:
        """Yield the iterator over the items of one run after another; nothing else keeps a run."""
        assert self._runs is not None
        length = RunLength()
        while self._begin(length.take(self._runs.take, 0)):
            assert self._left is not None
            yield self._left
        self._left, self._behind = None, END

    def _begin(self, run: Run) -> bool:
        """Deliver from a run, unless it is without items: then the end has come."""
        if run.items:
            self._left, self._tokens_of = iter(run.items), run.tokens
            self._given += len(run.items)
        return bool(run.items)

    def _noted(self, pairs: Iterator[tuple[Token, Any]]) -> Iterator[Any]:
        """Yield the items of pairs, and note their number and the last token."""
        for token, item in pairs:
            self._tokens = (token,)
            self._given += 1
            yield item

    def _all_tokens(self) -> Sequence[Token]:
        if self._tokens_of is not None:
            self._tokens, self._tokens_of = list(self._tokens_of()), None
        return self._tokens

    def _settle(self, behind: int | StageValues) -> None:
        if not isinstance(behind, int):
            for each, values in zip(self.walk(), behind, strict=True):
                each.state = dict(values)
        elif self._runs is None:
            for below in self.inputs:
                below.settle()
        else:
            self._behind, self.state = behind, self._runs.values(behind)
            for below, left in zip(self.inputs, self._runs.below(behind), strict=True):
                below._settle(left)  # noqa: SLF001 - of this class

    def _forget(self) -> None:
        """Let go of the iterator, and of what was read ahead; the next item is made from the state."""
        self._given, self._tokens, self._tokens_of = self.delivered, (None,), None
        self._buffer = self._iterator = self._items = self._runs = self._left = None
        self._behind = 0

    def _rebuilt(self, tokens: Sequence[Token]) -> list[Any]:
        """Return items of the input again: as they are now, or as they were where that stage has none now."""
        (now,), (begun,) = self.stage.inputs, self._begun.inputs
        try:
            return rebuilt(now, tokens)
        except BadToken:
            if now is begun:
                raise
            if len(tokens) == 1:
                return rebuilt(begun, tokens)
        return [item for token in tokens for item in self._rebuilt([token])]

    def _own_holes(self) -> int:
        return self._holes + int(self.state.get("holes", 0))

    def _own_state(self) -> StageState:
        if self._buffer is None:
            return StageState(_copied(self.state), list(self._waiting.tokens), list(self._waiting.notes))
        return StageState(_copied(self.state), self._buffer.tokens(), list(self._buffer.notes))

    def _own_delta(self) -> StageDelta:
        journal = None if self._buffer is None else self._buffer.changes()
        state = self._own_state() if journal is None else StageState(_copied(self.state))
        return StageDelta(state.values, journal, state.tokens, state.notes)

    def _load_own(self, state: StageState) -> None:
        self.state = _copied(state.values)
        self._holes = -int(self.state.get("holes", 0))
        self._waiting = StageState({}, list(state.tokens), list(state.notes))


def _copied(values: dict[str, Any]) -> dict[str, Any]:
    """Return a copy that does not change when lists and dicts in the values change in place."""
    return {
        key: copy.deepcopy(value) if isinstance(value, list | dict) else value
        for key, value in values.items()
    }


def _is_own(stage: Stage) -> bool:
    """Return True if a stage is the user's own, and not one of the library."""
    return type(stage).__module__.partition(".")[0] != __name__.partition(".")[0]


def _with_distinct_tokens(
    pairs: Iterator[tuple[Token, Any]], stage: Stage, lane: int
) -> Iterator[tuple[Token, Any]]:
    """Yield the items of a stage in one lane, each after its token.

    An item that waits is saved as its token, so a token of two items would give the wrong one after a resume.

    Raises:
        BadToken: one of the last items had the same token, or the token cannot be compared.
    """
    recent: set[Token] = set()
    older: set[Token] = set()
    for pair in pairs:
        token = pair[0]
        try:
            is_known = token in recent or token in older
        except TypeError:
            message = f"a token is an int, a string, or a tuple of tokens (got {token!r:.100} of {stage!r})"
            raise BadToken(message) from None
        if is_known:
            message = (
                f"{stage!r} gave two items the token {token!r:.100} in lane {lane}: a resume would take the "
                f"one for the other. Give each item a token of its own, such as (token, 0) and (token, 1) "
                f"where two items are made of one, and say in origins() which input item it names"
            )
            raise BadToken(message)
        if len(recent) == _REMEMBERED:
            recent, older = set(), recent
        recent.add(token)
        yield pair
