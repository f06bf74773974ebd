"""Tokens: the identifiers of the items of a stream, and how they pass through JSON."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._collector import collector_paused
from seekable.errors import BadToken

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Token", "all_as_json", "as_token"]

Token = Any
"""An int of 64 bits, a string, or a tuple of tokens: it says where an item came from."""


def all_as_json(tokens: Sequence[Token]) -> list[Any]:
    """Return tokens as JSON has them, none of their lists shared: thousands of them, in a state.

    Example:
        >>> all_as_json([(0, 5), (1, (7, 0))]), all_as_json([3, "a"])
        ([[0, 5], [1, [7, 0]]], [3, 'a'])
    """
    kind: Any = list[int] if tokens and isinstance(tokens[0], int) else list[list[int]]
    with collector_paused(), contextlib.suppress(msgspec.ValidationError):
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
    raise BadToken(f"a token is an int of 64 bits, a string, or a tuple of tokens (got {token!r:.100})")
