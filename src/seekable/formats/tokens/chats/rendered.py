"""A rendered conversation, and the error for one that cannot be rendered."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rendered", "UnfitChat"]


class UnfitChat(Exception):
    """A conversation that cannot become tokens; its text says why."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a conversation."""

    text: str

    spans: tuple[tuple[int, int], ...]
    """The first character of each span that a template marks as written by the model, and the one after its
    last."""
