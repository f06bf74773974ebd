"""Items made again from their tokens, and the places of the records that they were made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from seekable.errors import BadToken, SeekableError
from seekable.stream.stage import Inner, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["add_token", "located", "rebuilt"]


def rebuilt(stage: Stage, tokens: Sequence[Token]) -> list[Any]:
    """Return the items of some tokens of a stage, in the order of the tokens; each source is read once.

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
    """Return the places of all records that an item was made of, in the order of the graph.

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
            message = f"{stage!r} has {count} inputs, and token {token!r} names input {number}"
            raise BadToken(message)
    return origins


def add_token(error: Exception, stage: Stage, token: Token) -> None:
    """Add a note to an error of a user's function: the stage, and the input item that it was called with."""
    try:
        places = "; ".join(map(str, located(stage.inputs[0], token)))
    except SeekableError as lost:
        places = f"a place that cannot be told: {lost}"
    error.add_note(f"in {stage!r}, at the item of token {token!r}, made of {places}")
