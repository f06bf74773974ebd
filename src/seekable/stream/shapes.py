"""Base classes of stages with one input, several or none; and items made again through their graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from seekable.errors import BadToken, InvalidArgument, SeekableError
from seekable.stream.stage import Inner, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = [
    "ForwardOnly",
    "InputItems",
    "OneInput",
    "SameItems",
    "SameTokens",
    "SeveralInputs",
    "add_token",
    "located",
    "rebuilt",
]

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
            raise InvalidArgument(f"{name} has no input yet: stream.then({name}(...)) gives it one")
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
            raise InvalidArgument(
                f"{self.call} needs streams with equally many lanes (got {lanes}): say lanes= to ds.stream()"
            )

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


class InputItems(Inner):
    """A stage that passes the items of its inputs on unchanged. Tokens are (index of the input, token)."""

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the item of one input.

        Raises:
            BadToken: the token has another form.

        Example:
            >>> InputItems.origins((1, "a"))
            [(1, 'a')]
        """
        if isinstance(token, tuple) and len(token) == _PAIR and type(token[0]) is int:
            return [token]
        raise BadToken(
            f"a token of concat() or mix() is a pair of an input's number and a token there (got {token!r})"
        )

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the item of the input unchanged."""
        return items[0]


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


def rebuilt(stage: Stage, tokens: Sequence[Token]) -> list[Any]:
    """Return the items that some tokens name, in the order of the tokens; each source is read once.

    An input item that two tokens name is made twice, because functions may change their arguments.

    Raises:
        BadToken: the stage has no item with one of the tokens.
    """
    if isinstance(stage, Leaf):
        return stage.read(tokens)
    inner = cast("Inner", stage)
    origins = [_origins(inner, token) for token in tokens]
    below: list[list[Any]] = []
    for number, source in enumerate(stage.inputs):
        wanted = [token for each in origins for slot, token in each if slot == number]
        below.append(rebuilt(source, wanted) if wanted else [])
    items = [iter(each) for each in below]
    return [
        inner.remake(token, [next(items[slot]) for slot, _ in each])
        for token, each in zip(tokens, origins, strict=True)
    ]


def located(stage: Stage, token: Token) -> list[Any]:
    """Return where the records lie that made an item, in the graph's order.

    Raises:
        BadToken: the stage has no item with this token.
    """
    if isinstance(stage, Leaf):
        return stage.places(token)
    inner = cast("Inner", stage)
    return [place for slot, origin in _origins(inner, token) for place in located(stage.inputs[slot], origin)]


def _origins(stage: Inner, token: Token) -> Sequence[tuple[int, Token]]:
    origins, count = stage.origins(token), len(stage.inputs)
    for number, _ in origins:
        if not 0 <= number < count:
            raise BadToken(f"{stage!r} has {count} inputs, and token {token!r} names input {number}")
    return origins


def add_token(error: Exception, stage: Stage, token: Token) -> None:
    """Add a note to an error of a user's function: the stage, and the input item that it was called with."""
    try:
        places = "; ".join(map(str, located(stage.inputs[0], token)))
    except SeekableError as lost:
        places = f"a place that is not known: {lost}"
    error.add_note(f"in {stage!r}, at the item of token {token!r}, made of {places}")
