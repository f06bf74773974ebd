"""Items made again from their tokens, and where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from seekable.errors import BadToken
from seekable.stream.contract import Inner, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.contract import Stage, Token

__all__ = ["as_json", "as_token", "located", "rebuilt"]


def as_json(token: Token) -> Any:
    """Return a token as JSON has it: lists in place of tuples.

    Example:
        >>> as_json((0, ("a", 5)))
        [0, ['a', 5]]
    """
    return [as_json(part) for part in token] if isinstance(token, tuple) else token


def as_token(token: Any) -> Token:
    """Return a token as it was before it went through JSON, which makes lists of tuples.

    Raises:
        BadToken: it holds something else than integers of 64 bits, strings and tuples of them.

    Example:
        >>> as_token([0, ["a", 5]])
        (0, ('a', 5))
    """
    if isinstance(token, list | tuple):
        return tuple(map(as_token, token))
    if isinstance(token, str) or (type(token) is int and -(1 << 63) <= token < 1 << 63):
        return token
    message = f"a token is an int of 64 bits, a string, or a tuple of tokens (got {token!r:.100})"
    raise BadToken(message)


def rebuilt(stage: Stage, tokens: Sequence[Token]) -> list[Any]:
    """Return the items of some tokens of a stage, in the order asked; each source is read once for all.

    An item that two tokens are made of is made twice: functions may change what they are given.

    Raises:
        BadToken: a token names nothing here.
    """
    if isinstance(stage, Leaf):
        return stage.read(tokens)
    inner = cast("Inner", stage)
    origins = [inner.origins(token) for token in tokens]
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
    """Return where all that an item was made of lies, in the order of the graph.

    Raises:
        BadToken: the token names nothing here.
    """
    if isinstance(stage, Leaf):
        return stage.places(token)
    inner = cast("Inner", stage)
    return [place for slot, origin in inner.origins(token) for place in located(stage.inputs[slot], origin)]
