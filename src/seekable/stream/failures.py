"""At which item a user's function failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import SeekableError

if TYPE_CHECKING:
    from seekable.stream.base import Stream
    from seekable.stream.contract import Token

__all__ = ["add_token"]


def add_token(error: Exception, stage: Stream, token: Token) -> None:
    """Add a note to what a stage's own function raised: in which stage, and at which item of its input."""
    try:
        places = "; ".join(map(str, stage.inputs[0].locate(token)))  # type: ignore[attr-defined]
    except SeekableError as lost:
        places = f"a place that cannot be told: {lost}"
    error.add_note(f"in {stage!r}, at the item of token {token!r}, made of {places}")
