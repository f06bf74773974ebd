"""Items made again from their tokens, and where they came from."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

import msgspec

from seekable.errors import BadToken
from seekable.stream.contract import Inner, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.contract import Stage, Token

__all__ = ["all_as_json", "as_token", "located", "rebuilt"]


def all_as_json(tokens: Sequence[Token]) -> list[Any]:
    """Return tokens as JSON has them, none of their lists shared: thousands of them, in a state.

    Example:
        >>> all_as_json([(0, 5), (1, (7, 0))]), all_as_json([3, "a"])
        ([[0, 5], [1, [7, 0]]], [3, 'a'])
    """
    kind: Any = list[int] if tokens and isinstance(tokens[0], int) else list[list[int]]
    with contextlib.suppress(msgspec.ValidationError):
        # Numbers or pairs of them, mostly, for which this is the fastest way.
        numbers: list[Any] = msgspec.convert(tokens, kind)
        return numbers
    copied: list[Any] = msgspec.json.decode(msgspec.json.encode(tokens))
    return copied


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
