"""What a stage of a stream owes the mechanism.

A stream is a graph of stages, each an immutable description. It runs in *lanes*, each of which is a whole
pipeline of its own; in one lane a stage is a generator, ``items(flow)``, over the items of its inputs:

    def items(self, flow):
        for token, item in flow.inputs[0]:
            if self.fn(item):
                yield token, item

That is all a stage without memory has to say. The rules:

* Each item travels beside its *token*, which says where it came from: an int, a string, or a tuple of them.
  ``origins(token)`` names the inputs' items that the item of a token was made of, and ``remake(token,
  items)`` makes it of those again, exactly.
* What a stage has to remember between two items it keeps in ``flow.memory`` (a dict of JSON values) and in
  ``flow.buffer()`` (items that wait, saved as their tokens). Both must be as after an item when it is
  yielded: there, and only there, states are taken.
* A generator that is started with a memory and inputs as they were at some ``yield`` goes on after it.
* Random choices are keyed by the seed and by counts in the memory, or by tokens; nothing else is random.

Inputs' states are no stage's business: the mechanism saves and restores the whole graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.stream.flow import Flow

__all__ = ["Inner", "Leaf", "Stage", "Token"]

Token = Any
"""An int, a string, or a tuple of tokens."""


class Stage(ABC):
    """One node of a stream's graph; see the module's docstring."""

    kind: ClassVar[str]
    """The stage's name in fingerprints and random keys: changing it is a breaking change."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Stage, ...]:
        """The stages that this one takes items from."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """In how many lanes it runs: all inputs have as many."""

    @property
    @abstractmethod
    def endless(self) -> bool:
        """Whether it goes on for ever, if it passes anything at all."""

    @property
    @abstractmethod
    def indexed(self) -> bool:
        """Whether an item can be had again from its token."""

    @property
    @abstractmethod
    def checkpointable(self) -> bool:
        """Whether it resumes exactly; where it does not, no state can be taken."""

    @property
    @abstractmethod
    def constant_time(self) -> bool:
        """Whether resuming takes as long anywhere, and reads nothing but the items in flight."""

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return, JSON-safe, what of the stage decides items or order."""

    @abstractmethod
    def shown(self, inputs: Sequence[str]) -> str:
        """Return the expression that makes the stage, given those of its inputs."""

    @abstractmethod
    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Yield the items of one lane, each after its token, from where the memory says."""

    def gone_by(self, flow: Flow) -> int:
        """Return how many epochs of all sources went by at least, by ``memory["epochs"]`` or by all inputs.

        By this a stage above that passes nothing on knows that there is nothing more to wait for, so a stage
        that leaves an input alone for good must not count it.
        """
        own: int | None = flow.memory.get("epochs")
        return min((below.epochs for below in flow.inputs), default=0) if own is None else own


class Inner(Stage):
    """A stage that takes items from others."""

    holds: ClassVar[bool] = False
    """Whether items of its inputs wait in it: to resume, it has to get them again from their tokens."""

    splits: ClassVar[bool] = False
    """Whether an item of its inputs may become several: then some may be delivered while others wait."""

    @property
    def indexed(self) -> bool:
        """Where all inputs are."""
        return all(source.indexed for source in self.inputs)

    @property
    def checkpointable(self) -> bool:
        """Where all inputs are; what waits here must be had again, too."""
        return all(source.checkpointable for source in self.inputs) and (self.indexed or not self.holds)

    @property
    def constant_time(self) -> bool:
        """Where all inputs do."""
        return all(source.constant_time for source in self.inputs)

    @abstractmethod
    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return what the item of a token was made of: numbers of inputs, and tokens there.

        Raises:
            BadToken: no item can have this token.
        """

    def held(self, memory: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
        """Return which items of the inputs the memory holds, besides those in the buffer."""
        return ()

    @abstractmethod
    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Make the item of a token again, of those that ``origins`` names.

        Raises:
            BadToken: there is no such item.
        """


class Leaf(Stage):
    """A stage that reads from outside."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """None."""
        return ()

    @abstractmethod
    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Read the items of some tokens, in the order asked.

        Raises:
            BadToken: a token names nothing here.
        """

    @abstractmethod
    def places(self, token: Token) -> list[Any]:
        """Say where the item of a token lies: a ``Location``, or more where it is several records."""

    @property
    def way_out(self) -> str:
        """What to do where it is not checkpointable."""
        return "put something before it that can be read again"
