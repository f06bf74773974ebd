"""Base classes that fix the inputs and lanes of a stage: one input, several inputs, or forward reading."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from seekable.errors import BadToken, InvalidArgument
from seekable.stream.stage import Inner, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["ForwardOnly", "OneInput", "SameItems", "SameTokens", "SeveralInputs", "numbered"]

_PAIR = 2


@dataclass(frozen=True, eq=False, repr=False)
class OneInput(Inner):
    """A stage over one input, in the lanes of that input. ``Stream.then`` sets the input."""

    source: Stage | None = field(default=None, kw_only=True)
    """The stage that items come from; None until the stage becomes part of a stream."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The only input, in a tuple.

        Raises:
            InvalidArgument: the stage is not part of a stream yet.
        """
        if self.source is None:
            name = type(self).__name__
            message = f"{name} has no input yet: stream.then({name}(...)) gives it one"
            raise InvalidArgument(message)
        return (self.source,)

    def with_inputs(self, inputs: Sequence[Stage]) -> Self:
        """Return the same stage over another input."""
        (source,) = inputs
        return replace(self, source=source)

    @property
    def lanes(self) -> int:
        """The number of lanes of the input."""
        return self.inputs[0].lanes

    @property
    def endless(self) -> bool:
        """True if the input never ends."""
        return self.inputs[0].endless


class SameTokens(OneInput):
    """A stage that makes each of its items of the input item with the same token."""

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the input item of the same token."""
        return ((0, token),)


class SameItems(SameTokens):
    """A stage that passes input items on unchanged, with their tokens."""

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of the input unchanged."""
        return items[0]


@dataclass(frozen=True, eq=False, repr=False)
class SeveralInputs(Inner):
    """A stage over several inputs, all of which have the same number of lanes."""

    parts: tuple[Stage, ...]
    """The inputs."""

    call: ClassVar[str]
    """The public function that makes the stage, for messages."""

    def __post_init__(self) -> None:
        """Compare the inputs' numbers of lanes.

        Raises:
            InvalidArgument: they differ, or there are no inputs.
        """
        lanes = [part.lanes for part in self.parts]
        if len(set(lanes)) != 1:
            message = (
                f"{self.call} needs streams with equally many lanes (got {lanes}): say lanes= to ds.stream()"
            )
            raise InvalidArgument(message)

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The inputs, in the given order."""
        return self.parts

    def with_inputs(self, inputs: Sequence[Stage]) -> Self:
        """Return the same stage over other inputs."""
        return replace(self, parts=tuple(inputs))

    @property
    def lanes(self) -> int:
        """The number of lanes of each input."""
        return self.parts[0].lanes


def numbered(token: Token) -> Sequence[tuple[int, Token]]:
    """Return the only origin that a token of the form (number of an input, token there) names.

    Raises:
        BadToken: the token has another form.

    Example:
        >>> numbered((1, "a"))
        [(1, 'a')]
    """
    if isinstance(token, tuple) and len(token) == _PAIR and type(token[0]) is int:
        return [token]
    message = f"a token of concat() or mix() is a pair of an input's number and a token there (got {token!r})"
    raise BadToken(message)


@dataclass(frozen=True, eq=False, repr=False)
class ForwardOnly(Leaf):
    """A stage that reads from the start on; with ``replay`` it may read from the start again."""

    lane_count: int
    """The number of lanes."""

    replay: bool
    """True if a resume may read from the start again and skip items."""

    @property
    def lanes(self) -> int:
        """The number of lanes that was asked for."""
        return self.lane_count

    @property
    def endless(self) -> bool:
        """True if it never ends: False, because the end of such data is not known in advance."""
        return False

    @property
    def indexed(self) -> bool:
        """True with ``replay``: an item is made again by reading from the start."""
        return self.replay
