"""A stage at work in one lane: its inputs, its memory, and its place in the lane's state."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState
from seekable.stream.buffer import TokenBuffer
from seekable.stream.kept import Change, Kept
from seekable.stream.rebuild import rebuilt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.contract import Stage, Token

__all__ = ["Flow", "changes_in", "kept_in", "load_all"]


class Flow:
    """Iterates over the items of a stage in one lane, each after its token.

    Each place in the graph has a flow of its own, also where two of them are the same stage: branches over
    one source do not disturb each other.
    """

    def __init__(self, stage: Stage, lane: int) -> None:
        """Stand before the first item."""
        self.stage = stage
        self.lane = lane
        self.inputs = tuple(Flow(source, lane) for source in stage.inputs)
        self.memory: dict[str, Any] = {}
        """What the stage remembers: JSON values. ``"epochs"``, where there is one, counts those gone by."""
        self._buffer: TokenBuffer | None = None
        self._waiting = Kept()
        """The tokens and notes of a buffer that was loaded, until it is asked for."""
        self._iterator: Iterator[tuple[Token, Any]] | None = None

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return self.stage.lanes

    def buffer(self, prepare: Callable[[Any], Any] | None = None) -> TokenBuffer:
        """Return the buffer in which items of the only input wait, each as ``prepare`` made it.

        It is always the same one, and so must ``prepare`` be.
        """
        if self._buffer is None:
            (source,) = self.stage.inputs
            self._buffer = TokenBuffer(
                lambda tokens: [
                    item if prepare is None else prepare(item) for item in rebuilt(source, tokens)
                ],
                all_at_once=not source.constant_time,  # as many times would it be gone through again
            )
            self._buffer.load(self._waiting.tokens, self._waiting.notes)
            self._waiting = Kept()
        return self._buffer

    @property
    def epochs(self) -> int:
        """How many epochs of all its sources went by at least; 0 where there is no telling."""
        return self.stage.gone_by(self)

    def restart(self) -> None:
        """Let the items begin anew: from where the memory says, which is the stage's own doing."""
        self.memory.clear()
        self._buffer = self._iterator = None
        self._waiting = Kept()
        for flow in self.inputs:
            flow.restart()

    def pause(self) -> None:
        """Let go of what was read ahead, here and below; what is remembered stays, and the items go on."""
        self._waiting = self.kept().without_memory()
        self._buffer = self._iterator = None
        for flow in self.inputs:
            flow.pause()

    def kept(self) -> Kept:
        """Return what the stage remembers, and the tokens of its buffer: nothing of its inputs."""
        if self._buffer is None:
            return Kept(_copied(self.memory), list(self._waiting.tokens), list(self._waiting.notes))
        return Kept(_copied(self.memory), self._buffer.tokens(), list(self._buffer.notes))

    def load(self, kept: Kept) -> None:
        """Remember what was kept, which is not changed; nothing is read."""
        self.memory = _copied(kept.memory)
        self._waiting = Kept({}, list(kept.tokens), list(kept.notes))

    def change(self) -> Change:
        """Return what became of the stage since this was asked last."""
        journal = None if self._buffer is None else self._buffer.changes()
        kept = self.kept() if journal is None else Kept(_copied(self.memory))
        return Change(kept.memory, journal, kept.tokens, kept.notes)

    def all(self) -> Iterator[Flow]:
        """Yield this flow and all those below, in the order of the graph."""
        yield self
        for flow in self.inputs:
            yield from flow.all()

    def __iter__(self) -> Iterator[tuple[Token, Any]]:
        if self._iterator is None:
            self._iterator = self.stage.items(self)
        return self._iterator


def _copied(memory: dict[str, Any]) -> dict[str, Any]:
    """Return what a stage remembers as it is now: lists and dicts in it may change in place."""
    return {
        key: copy.deepcopy(value) if isinstance(value, list | dict) else value
        for key, value in memory.items()
    }


def kept_in(root: Flow) -> list[Kept]:
    """Return what the stages of a lane remember, in the order of the graph."""
    return [flow.kept() for flow in root.all()]


def changes_in(root: Flow) -> list[Change]:
    """Return what became of the stages of a lane since this was asked last, in the order of the graph."""
    return [flow.change() for flow in root.all()]


def load_all(root: Flow, kept: Sequence[Kept]) -> None:
    """Let the stages of a lane remember what was kept.

    Raises:
        CorruptState: it is of another number of stages.
    """
    flows = list(root.all())
    if len(flows) != len(kept):
        message = f"the state of a lane must have {len(flows)} stages (got {len(kept)})"
        raise CorruptState(message)
    for flow, each in zip(flows, kept, strict=True):
        flow.load(each)
