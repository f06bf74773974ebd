"""At which item a user's function failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import SeekableError

if TYPE_CHECKING:
    from seekable.stream.base import Stream
    from seekable.stream.contract import Token

__all__ = ["add_token"]


def add_token(error: Exception, stage: Stream, token: Token) -> None:
    """Add a note to an error: in which stage it came up, and at which item."""
    if isinstance(error, SeekableError) or getattr(error, "__notes__", None):
        return  # It says where it comes from, or a stage before this one has said it.
    try:
        places = "; ".join(map(str, stage.inputs[0].locate(token)))  # type: ignore[attr-defined]
    except SeekableError as lost:
        places = f"a place that cannot be told: {lost}"
    error.add_note(f"in {stage!r}, at the item of token {token!r}, made of {places}")
