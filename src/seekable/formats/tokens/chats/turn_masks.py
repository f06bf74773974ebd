"""The spans of a conversation's text that the loss is taken of.

A template with ``{% generation %}`` says itself what the model writes. Of any other, the place of a turn is
found by rendering: turn k lies between the text of the turns before it and that of the turns up to it. What a
template adds to ask for an answer belongs to what the model is given, and no loss is taken of it. This holds
only if the text of the first turns begins the text of more turns; a template for which it does not is
refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from seekable._arguments import checked_function
from seekable.errors import WrongType
from seekable.formats.tokens.chats.conversations import UnfitChat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.chats.conversations import Conversation, Rendered

__all__ = ["Render", "TurnMask", "mask_of_spans", "turn_mask"]

Span = tuple[int, int]


class Render(Protocol):
    """Renders messages with the template of a conversation."""

    def __call__(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> Rendered:
        """Return the text of messages; with ``asks`` of an answer being asked for behind them."""
        ...


_ALL, _WEIGHT, _ASSISTANT = "all", "weight", "assistant"


@dataclass(frozen=True, slots=True)
class TurnMask:
    """Chooses the tokens that count in the loss."""

    roles: tuple[str, ...]
    """The roles of turns; none where another rule holds."""

    rule: str = ""
    """"all" for each token, "weight" for the model's turns whose weight is not 0; else empty."""

    function: Callable[[Mapping[str, Any], int], Any] | None = None
    """A function of a message and the number of its turn."""

    def turns(self, conversation: Conversation) -> list[bool]:
        """Return for each turn if the loss is taken of it.

        Raises:
            UnfitChat: the function fails, or a weight is neither 0 nor 1.
        """
        return [
            number >= conversation.given and self._takes(message, number)
            for number, message in enumerate(conversation.messages)
        ]

    def spans(
        self, conversation: Conversation, whole: Rendered, render: Render, *, marks: bool
    ) -> list[Span]:
        """Return the spans of characters that the loss is taken of.

        Args:
            conversation: the messages.
            whole: their text, and what the template marks.
            render: renders other messages with the same template.
            marks: True if the template marks what the model writes.

        Raises:
            UnfitChat: the place of a turn cannot be told.
        """
        if self.rule == _ALL and not conversation.given:
            return [(0, len(whole.text))] if whole.text else []
        if marks and self.roles == (_ASSISTANT,) and not conversation.given:
            return list(whole.spans)
        takes = self.turns(conversation)
        paired = _paired(conversation, whole) if marks else {}
        spans: list[Span] = []
        for number in (number for number, taken in enumerate(takes) if taken):
            if number in paired:
                spans.append(paired[number])
            else:
                spans += _marked(conversation, number, whole, render, marks=marks)
        return spans

    def _takes(self, message: Mapping[str, Any], number: int) -> bool:
        if self.function is not None:
            try:
                return _flag(self.function(message, number), number, "the function mask= returned")
            except UnfitChat:
                raise
            except Exception as error:
                why = f"turn {number}: the function mask= raised {type(error).__name__}: {error}"
                raise UnfitChat(why) from error
        if self.rule == _ALL:
            return True
        if self.rule == _WEIGHT:
            is_taken = _flag(message.get("weight", 1), number, "its weight is")
            return is_taken and message["role"] == _ASSISTANT
        return message["role"] in self.roles


def turn_mask(mask: object) -> TurnMask:
    """Return what ``mask=`` of ``sk.Chat`` says.

    Raises:
        WrongType: it is neither a text, nor texts, nor a function.
    """
    if isinstance(mask, str):
        return TurnMask((), mask) if mask in (_ALL, _WEIGHT) else TurnMask((mask,))
    if isinstance(mask, list | tuple) and mask and all(isinstance(role, str) for role in mask):
        return TurnMask(tuple(dict.fromkeys(mask)))
    if callable(mask) and not isinstance(mask, os.PathLike):
        return TurnMask((), function=checked_function("mask", mask))
    message = (
        f"mask must be a role such as 'assistant', a list of roles, 'weight', 'all', or a function of a "
        f"message "
        f"and the number of its turn (got {mask!r})"
    )
    raise WrongType(message)


def _flag(value: Any, number: int, whose: str) -> bool:
    if isinstance(value, bool | int | float | np.generic) and value in (0, 1):
        return bool(value)
    raise UnfitChat(f"turn {number}: {whose} {value!r}, and it must be 0 or 1")


def _paired(conversation: Conversation, whole: Rendered) -> dict[int, Span]:
    """Return by turn the span that a template marks, if there is one for each turn of the model.

    That the text of the turn stands in the span is looked at; where it does not, nothing is returned.
    """
    turns = [number for number, message in enumerate(conversation.messages) if message["role"] == _ASSISTANT]
    if len(turns) != len(whole.spans):
        return {}
    for number, (start, end) in zip(turns, whole.spans, strict=True):
        content = conversation.messages[number].get("content")
        said = content.rpartition("</think>")[2].strip() if isinstance(content, str) else ""
        if not said or said not in whole.text[start:end]:
            return {}
    return dict(zip(turns, whole.spans, strict=True))


def _marked(
    conversation: Conversation, number: int, whole: Rendered, render: Render, *, marks: bool
) -> list[Span]:
    """Return a turn's span; where the template marks what is trained on, only this, in turns by the model."""
    start, end = _turn_span(conversation, number, whole.text, render)
    if not marks or conversation.messages[number]["role"] != _ASSISTANT:
        return [(start, end)]
    return [
        (max(start, first), min(end, last)) for first, last in whole.spans if first < end and last > start
    ]


def _turn_span(conversation: Conversation, number: int, text: str, render: Render) -> Span:
    """Return the place of a turn in the text of its conversation.

    Raises:
        UnfitChat: the text of fewer turns is no beginning of that of all turns.
    """
    messages = conversation.messages
    start = 0
    if number:
        start = len(_beginning(messages[:number], number - 1, text, render))
        if messages[number]["role"] == _ASSISTANT:
            start += _shared(render(messages[:number], asks=True).text[start:], text[start:])
    if number == len(messages) - 1:
        return start, len(text)
    return start, max(start, len(_beginning(messages[: number + 1], number, text, render)))


def _beginning(messages: Sequence[Mapping[str, Any]], last: int, text: str, render: Render) -> str:
    made = render(messages, asks=False).text
    if text.startswith(made):
        return made
    place = _shared(made, text)
    message = (
        f"turn {last}: the template renders the turns up to it otherwise when more turns follow (from "
        f"character "
        f"{place} on: {made[place : place + 20]!r} becomes {text[place : place + 20]!r}), so it cannot be "
        f"told "
        f"what belongs to a turn: mark what the model writes with {{% generation %}} in the template, or "
        f"give "
        f"mask='all'"
    )
    raise UnfitChat(message)


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def mask_of_spans(offsets: Int64s, spans: Sequence[Span]) -> NDArray[np.uint8]:
    """Return 1 for each token that has a character of a span, else 0.

    A token that crosses the border of a span counts as inside.

    Args:
        offsets: for each token its first character and the one after its last, of shape (tokens, 2).
        spans: the spans, each with its first character and the one after its last, in order.

    Example:
        >>> mask_of_spans(np.array([[0, 2], [2, 5], [5, 6]]), [(4, 5)]).tolist()
        [0, 1, 0]
    """
    if not spans or not len(offsets):
        return np.zeros(len(offsets), np.uint8)
    bounds = np.asarray(sorted(spans), np.int64)
    # The first span that ends behind the first character of a token; spans that were passed are never gone
    # back to, so that the mask is that of transformers where offsets do not rise.
    place = np.maximum.accumulate(np.searchsorted(bounds[:, 1], offsets[:, 0], side="right"))
    inside = place < len(bounds)
    starts = bounds[np.minimum(place, len(bounds) - 1), 0]
    mask: NDArray[np.uint8] = (inside & (offsets[:, 1] > starts)).astype(np.uint8)
    return mask
