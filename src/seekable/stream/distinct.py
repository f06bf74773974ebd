"""Refuses tokens that name two items: stages of the user's own may give such tokens by mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import BadToken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

__all__ = ["is_own", "with_distinct_tokens"]

_REMEMBERED = 8192
"""The tokens of a lane that are compared with the next one, or twice as many: about 1 MB. All tokens of a
stream without end would fill the memory."""


def is_own(stage: Stage) -> bool:
    """Return True if a stage is the user's own, and not one of the library."""
    return type(stage).__module__.partition(".")[0] != __name__.partition(".")[0]


def with_distinct_tokens(
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
