"""What stages over several inputs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from seekable.errors import BadToken, InvalidArgument
from seekable.stream.base import Stream
from seekable.stream.contract import Inner

if TYPE_CHECKING:
    from seekable.stream.contract import Stage, Token

__all__ = ["SeveralInputs", "numbered"]

_PAIR = 2


class SeveralInputs(Stream, Inner):
    """A stage over several inputs, in as many lanes as each of them has."""

    parts: tuple[Stream, ...]

    call: ClassVar[str]
    """What it is made with, as messages name it."""

    def __post_init__(self) -> None:
        """Refuse streams that run in different numbers of lanes.

        Raises:
            InvalidArgument: they do, or there are none.
        """
        lanes = [part.lanes for part in self.parts]
        if len(set(lanes)) != 1:
            message = (
                f"{self.call} needs streams with equally many lanes (got {lanes}): say lanes= to ds.stream()"
            )
            raise InvalidArgument(message)

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The parts."""
        return self.parts

    @property
    def lanes(self) -> int:
        """As many as each part has."""
        return self.parts[0].lanes


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
