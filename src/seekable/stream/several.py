"""What stages over several inputs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import BadToken, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token

__all__ = ["numbered", "same_lanes"]

_PAIR = 2


def same_lanes(wanted_by: str, parts: Sequence[Stream]) -> None:
    """Refuse streams that run in different numbers of lanes.

    Raises:
        InvalidArgument: they do, or there are none.
    """
    lanes = [part.lanes for part in parts]
    if len(set(lanes)) != 1:
        message = (
            f"{wanted_by} needs streams with equally many lanes (got {lanes}): say lanes= to ds.stream()"
        )
        raise InvalidArgument(message)


def numbered(stage: Stream, token: Token) -> tuple[int, Token]:
    """Return the number of an input, and the token there, of a token made of them.

    Raises:
        BadToken: the token is none of these.
    """
    if isinstance(token, tuple) and len(token) == _PAIR:
        number = token[0]
        if isinstance(number, int) and 0 <= number < len(stage.inputs):
            return number, token[1]
    message = (
        f"a token of {stage!r} is a pair of the number of an input, below {len(stage.inputs)}, and a token "
        f"(got {token!r})"
    )
    raise BadToken(message)
