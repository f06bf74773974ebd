"""The turns of a record, for whoever shows it: who says what, where it stands, and what is beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seekable.formats.tokens.chats.conversations import (
    USUAL_COLUMNS,
    Conversation,
    conversation_of,
)
from seekable.formats.tokens.chats.rendered import UnfitChat

__all__ = ["Dialogue", "Turn", "turns_of"]

Place = tuple[str | int, ...]

_ANSWERS = ("completion", "chosen", "rejected")
"""The columns of what may follow a prompt; only these may be texts."""

_TOLD = frozenset({"role", "content", "thinking", "reasoning", "reasoning_content", "tool_calls"})
"""The names of a message that a turn has fields of its own for."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side says."""

    role: str
    """"system", "user", "assistant", "tool", or another name that the record has for a role."""

    content: Any
    """What is said: a text, or a list of parts such as ``{"type": "image"}``; "" for nothing."""

    reasoning: str
    """What the model thinks before it says this; empty for nothing."""

    calls: tuple[Any, ...]
    """The tools that are called, as the record has them."""

    others: Mapping[str, Any]
    """The other fields of the message by name, such as "weight" and "tool_call_id"."""

    place: Place
    """The keys and the indices that lead from the record to this turn, ``("messages", 2)`` say. Of Alpaca it
    is the column of the text."""

    given: bool
    """True for a turn of the prompt that the answers of a preference, or a completion, share."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns of one sequence of a record."""

    name: str
    """The column that it stands in: "messages", "chosen" and so on; "instruction" for a record of Alpaca."""

    turns: tuple[Turn, ...]
    tools: tuple[Any, ...]
    """The descriptions of the tools that the model may call."""


def turns_of(record: Any) -> tuple[Dialogue, ...]:
    """Return the conversations of a record, each as its turns; none where the record is no conversation.

    These shapes are known, the same that ``sk.Chat`` takes:

    - messages with ``role`` and ``content`` in the column "messages" or "conversations", as a list or as JSON
      in a text; the content is a text or a list of parts, and ``tool_calls`` and ``reasoning_content``,
      ``thinking`` or ``reasoning`` stand beside it;
    - turns of ShareGPT with ``from`` and ``value``, whose speakers become roles ("human" is "user");
    - records of Alpaca: ``instruction``, ``input``, ``output``, with ``system`` and ``history`` or without;
    - preferences: "chosen" and "rejected", as messages, or as texts behind a ``prompt``, make two
      conversations; so does a "completion" one. A ``prompt`` of messages without an answer is one, too.

    The tools are those of the column "tools". A record that has such a column with something else in it, say
    a turn without a role, has no conversation here: show it as any other record. Nothing is raised.

    Args:
        record: any value.

    Example:
        >>> shown = turns_of({"conversations": [{"from": "human", "value": "2 + 2?"}]})
        >>> [(each.name, turn.role, turn.content, turn.place) for each in shown for turn in each.turns]
        [('conversations', 'user', '2 + 2?', ('conversations', 0))]
        >>> pair = turns_of({"prompt": "2 + 2?", "chosen": "4", "rejected": "5"})
        >>> [(each.name, len(each.turns)) for each in pair]
        [('chosen', 2), ('rejected', 2)]
        >>> turns_of({"text": "no conversation"})
        ()
    """
    if not isinstance(record, Mapping):
        return ()
    found = (_dialogue(record, column) for column in _columns(record))
    return tuple(each for each in found if each is not None)


def _columns(record: Mapping[str, Any]) -> list[str | None]:
    """Return the columns that may have a conversation; None for those of Alpaca."""
    usual = [name for name in USUAL_COLUMNS if record.get(name) is not None]
    if usual:
        return [usual[0]]
    has_prompt = record.get("prompt") is not None
    answers = [name for name in _ANSWERS if record.get(name) is not None]
    if answers:
        return [name for name in answers if has_prompt or not isinstance(record[name], str)]
    if has_prompt and not isinstance(record["prompt"], str):
        return ["prompt"]
    return [None] if "instruction" in record and "output" in record else []


def _dialogue(record: Mapping[str, Any], column: str | None) -> Dialogue | None:
    """Return the conversation of a column; None if it has none."""
    try:
        chat = conversation_of(record, column, None)
    except (UnfitChat, RecursionError):
        return None
    places = _alpaca_places(record) if column is None else _places(record, column, chat)
    turns = tuple(
        _turn(message, place, given=number < chat.given)
        for number, (message, place) in enumerate(zip(chat.messages, places, strict=True))
    )
    return Dialogue("instruction" if column is None else column, turns, tuple(chat.tools or ()))


def _turn(message: Mapping[str, Any], place: Place, *, given: bool) -> Turn:
    reasoning, calls = message.get("reasoning_content", ""), message.get("tool_calls", ())
    return Turn(
        role=message["role"],
        content=message.get("content", ""),
        reasoning=reasoning if isinstance(reasoning, str) else str(reasoning),
        calls=tuple(calls) if isinstance(calls, list) else (calls,) if calls else (),
        others={name: value for name, value in message.items() if name not in _TOLD},
        place=place,
        given=given,
    )


def _places(record: Mapping[str, Any], column: str, chat: Conversation) -> list[Place]:
    """Return where each message stands: those of a prompt in front in its column, unless both have them."""
    of_prompt = chat.given
    answers = record[column]
    if of_prompt and not isinstance(answers, str) and len(answers) == len(chat.messages):
        of_prompt = 0
    prompt = [_item(record, "prompt", number) for number in range(of_prompt)]
    return prompt + [_item(record, column, number) for number in range(len(chat.messages) - of_prompt)]


def _item(record: Mapping[str, Any], column: str, number: int) -> Place:
    return (column,) if isinstance(record[column], str) else (column, number)


def _alpaca_places(record: Mapping[str, Any]) -> list[Place]:
    history = record.get("history") or []
    before: list[Place] = [("system",)] if record.get("system") else []
    said: list[Place] = [("history", number, side) for number in range(len(history)) for side in (0, 1)]
    return [*before, *said, ("instruction",), ("output",)]
