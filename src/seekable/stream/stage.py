"""The contract of stages: the methods of a stage, and what a stage may use while it runs.

A stream is a graph of stages, and each stage is an immutable description. A stream runs in *lanes*; each lane
is a whole pipeline of its own. In one lane a stage is a generator, ``items(lane)``, over the items of its
inputs::

    def items(self, lane):
        for token, item in lane.inputs[0]:
            if self.fn(item):
                yield token, item

A stage without state needs no more than that. The rules:

* Each item travels beside its *token*, which identifies the item: an int, a string, or a tuple of tokens.
  No two items of a lane have the same token: a stage that gives one twice is refused.
  ``origins(token)`` names the input items that an item was made of, and ``remake(token, items)`` makes the
  same item of those again.
* A stage keeps what it has to remember between two items in ``lane.state`` (a dict of JSON values) and in
  ``lane.buffer()`` (waiting items, saved as their tokens). Both must be up to date when the stage yields an
  item: states are taken there and nowhere else.
* A generator that starts with the state and the inputs of some ``yield`` continues after that ``yield``.
* Random choices are keyed by the seed and by counts in the state, or by tokens. Nothing else is random.

A stage does not save the states of its inputs: the library saves and restores the whole graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from seekable._cached import cached
from seekable.state.canonical import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.stream.buffer import TokenBuffer
    from seekable.stream.runs import Run, Runs, StageValues
    from seekable.stream.token import Token

__all__ = [
    "Inner",
    "Lane",
    "LaneInput",
    "Leaf",
    "Stage",
    "described",
    "expression",
]


class LaneInput(Protocol):
    """One input of a stage in one lane."""

    def __iter__(self) -> Iterator[tuple[Token, Any]]:
        """Return the iterator over the input's next items, each after its token; always the same iterator."""
        ...

    @property
    def epochs(self) -> int:
        """The number of epochs that every source below has completed, or fewer; 0 if that is unknown."""
        ...

    def restart(self) -> None:
        """Start the input again at its first item, with empty states."""
        ...

    def pause(self) -> None:
        """Release what the input has read ahead; its state stays, and the next item is the same."""
        ...

    @property
    def has_runs(self) -> bool:
        """True if the input makes runs, which ``take`` returns in the place of single items."""
        ...

    def take(self, count: int, behind: int) -> Run:
        """Return the next run of an input that makes runs; see ``seekable.stream.runs.Runs.take``."""
        ...

    def cut(self, behind: int) -> StageValues:
        """Return the values of the input and all below it as they were so many items of runs ago."""
        ...


class Lane(Protocol):
    """The lane in which a stage runs, as far as the stage may use it; one thread at a time uses a lane."""

    @property
    def number(self) -> int:
        """The index of the lane, from 0."""
        ...

    @property
    def is_probe(self) -> bool:
        """True if the lane is only run to find out whether it gives an item: it ends where none comes."""
        ...

    @property
    def state(self) -> dict[str, Any]:
        """The values that the stage has to remember: JSON values under string keys.

        The keys ``"buffer"`` and ``"notes"`` are reserved. ``"epochs"``, if the stage sets it, counts the
        epochs that the stage has completed.
        """
        ...

    @property
    def inputs(self) -> Sequence[LaneInput]:
        """The inputs of the stage in this lane, in the order of ``Stage.inputs``."""
        ...

    def buffer(self, prepare: Callable[[Any], Any] | None = None) -> TokenBuffer:
        """Return the buffer of waiting items of the only input; the same buffer on every call.

        Args:
            prepare: turns an item of the input into the item that waits, when the buffer is restored from
                tokens. Pass the same function on every call.
        """
        ...

    def in_runs(self, runs: Runs) -> Iterator[tuple[Token, Any]]:
        """Return the iterator over the items of runs; the stage above may take the runs themselves.

        The library takes the stage's values from the runs and not from ``state``, where they begin.
        """
        ...


class Stage(ABC):
    """One node of a stream's graph. The module's docstring has the rules."""

    kind: ClassVar[str]
    """The name of the stage in fingerprints and random keys: a changed name is a breaking change."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Stage, ...]:
        """The stages that this stage takes items from."""

    @abstractmethod
    def with_inputs(self, inputs: Sequence[Stage]) -> Stage:
        """Return the same stage over other inputs, as many as it has."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """The number of lanes; all inputs have as many."""

    @property
    @abstractmethod
    def endless(self) -> bool:
        """True if the stage never ends, provided that it passes any item at all."""

    @property
    def repeats(self) -> bool:
        """True if each lane gives the same items in each epoch, in whatever order; False if unknown."""
        return False

    @property
    @abstractmethod
    def indexed(self) -> bool:
        """True if an item can be made again from its token."""

    @property
    @abstractmethod
    def checkpointable(self) -> bool:
        """True if the stage resumes exactly; if False, no state can be taken."""

    @property
    @abstractmethod
    def constant_time(self) -> bool:
        """True if a resume reads the waiting items alone, and takes equally long at any position."""

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the arguments that decide items or order, JSON-safe; they enter the fingerprint."""

    @abstractmethod
    def shown(self, inputs: Sequence[str]) -> str:
        """Return the Python expression that makes the stage, given the expressions of its inputs."""

    @abstractmethod
    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the items of one lane, each after its token, beginning where ``lane.state`` says."""

    @property
    def datasets(self) -> tuple[Node, ...]:
        """The datasets that the stage itself reads; none unless a stage says otherwise."""
        return ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of files that the stage reads without a dataset; none unless a stage says otherwise."""
        return ()

    def epochs_done(self, lane: Lane) -> int:
        """Return ``state["epochs"]``, or else the least number of epochs that the inputs have completed.

        A stage above compares two of these numbers to detect that nothing passes during a whole epoch. A
        stage that never draws from an input again must not count that input.
        """
        own: int | None = lane.state.get("epochs")
        return min((below.epochs for below in lane.inputs), default=0) if own is None else own

    @cached
    def fingerprint(self) -> str:
        """The digest of everything that decides the items of the stage and their order."""
        return fingerprint_of(described(self))

    def __repr__(self) -> str:
        """Return the number of lanes, and the expression that makes the stage."""
        lanes = "" if self.lanes == 1 else f", {self.lanes} lanes"
        return f"<Stream, {'endless' if self.endless else 'ends'}{lanes}: {expression(self)}>"


class Inner(Stage):
    """A stage that takes items from other stages."""

    holds: ClassVar[bool] = False
    """True if input items wait in the stage: a resume makes them again from their tokens."""

    item_by_item: ClassVar[bool] = False
    """True if the items of an epoch depend on the single input items alone, and not on their neighbours."""

    splits: ClassVar[bool] = False
    """True if one input item may become several items, of which some may wait when others are delivered."""

    @property
    def repeats(self) -> bool:
        """True if all inputs give the same items in each epoch, and the stage makes the same ones of them."""
        return self.item_by_item and all(source.repeats for source in self.inputs)

    @property
    def indexed(self) -> bool:
        """True if all inputs can make items again from tokens."""
        return all(source.indexed for source in self.inputs)

    @property
    def checkpointable(self) -> bool:
        """True if all inputs resume exactly and, where items wait in the stage, can make them again."""
        return all(source.checkpointable for source in self.inputs) and (self.indexed or not self.holds)

    @property
    def constant_time(self) -> bool:
        """True if all inputs resume in constant time."""
        return all(source.constant_time for source in self.inputs)

    @staticmethod
    @abstractmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the input items that an item was made of: pairs of an input's number and a token there.

        The token alone decides; tokens in saved states are resolved without the stage's arguments.

        Raises:
            BadToken: the token does not have the form of this kind's tokens.
        """

    @staticmethod
    def held(state: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:  # noqa: ARG004 - no stage holds any
        """Return the input items that ``lane.state`` holds besides the buffer, in the form of ``origins``."""
        return ()

    @abstractmethod
    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of a token, made again of the items that ``origins`` names.

        Raises:
            BadToken: the stage has no such item.
        """


class Leaf(Stage):
    """A stage that reads from outside of the stream."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The inputs: a leaf has none."""
        return ()

    def with_inputs(self, inputs: Sequence[Stage]) -> Stage:
        """Return the stage itself, which has no inputs."""
        return self

    @abstractmethod
    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Return the items of some tokens, in the order of the tokens.

        Raises:
            BadToken: the stage has no item with one of the tokens.
        """

    @abstractmethod
    def places(self, token: Token) -> list[Any]:
        """Return a ``Location`` for each record that the item with a token consists of.

        Raises:
            BadToken: the stage has no item with this token.
        """

    @property
    def way_out(self) -> str:
        """Advice for the error message where the stage is not checkpointable."""
        return "put something before it that can be read again"


def described(stage: Stage) -> dict[str, Any]:
    """Return a JSON-safe description of all that decides the items of a stage and their order."""
    below = [described(source) for source in stage.inputs]
    below += [dataset.describe(None) for dataset in stage.datasets]
    return {"kind": stage.kind, "lanes": stage.lanes, **stage.arguments(), "of": below}


def expression(stage: Stage) -> str:
    """Return the Python expression that makes a stage and everything below it."""
    return stage.shown([expression(source) for source in stage.inputs])
