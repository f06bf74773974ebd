"""Records to conversations: messages with roles, whichever shape the data has; and the turns of a record.

Known shapes are messages with ``role`` and ``content``, as OpenAI's API and transformers have them; turns
with ``from`` and ``value``, as ShareGPT has them; and Alpaca's ``instruction``, ``input`` and ``output``. A
pair of columns is a preference: two conversations of one record, behind the record's ``prompt`` if it has
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

__all__ = [
    "USUAL_COLUMNS",
    "Conversation",
    "Dialogue",
    "Rendered",
    "Turn",
    "UnfitChat",
    "conversation_of",
    "plain",
    "turns_of",
]


USUAL_COLUMNS = ("messages", "conversations")
"""The columns of conversations that are looked for where the caller names none."""

_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
    "function_call": "assistant",
}
"""The role of each name that stands under ``from`` in data of the shape of ShareGPT."""

_REASONING = ("reasoning_content", "thinking", "reasoning")
"""The names that a message has its reasoning under; templates read the first, and some the second."""

_SAID = ("user", "assistant")
"""Who says the first and the second text of a pair of the history of Alpaca."""

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of one sequence, as a template reads them."""

    messages: list[dict[str, Any]]

    tools: list[Any] | None
    """The descriptions of the tools that the model may call; None for none."""

    given: int = 0
    """The number of first messages that no loss is taken of, because they are the prompt of a preference."""


def conversation_of(record: Any, column: str | None, tools: list[Any] | None) -> Conversation:
    """Return the conversation of a record.

    Args:
        record: the record.
        column: the column of the messages; None for "messages", "conversations" or the columns of Alpaca,
            whichever the record has.
        tools: the tools of all records; None for those of the column "tools".

    Raises:
        UnfitChat: the record has no conversation; the turn is named.
    """
    if not isinstance(record, Mapping):
        raise UnfitChat(f"it must be a dict with messages (got {_shown(record)})")
    if tools is None:
        tools = _tools(record.get("tools"))
    found = column
    if found is None:
        found = next((name for name in USUAL_COLUMNS if record.get(name) is not None), None)
    if found is None and "instruction" in record and "output" in record:
        return Conversation(_alpaca(record), tools)
    if found is None or record.get(found) is None:
        names = ", ".join(map(repr, record)) or "no columns"
        wanted = repr(found) if found is not None else "'messages', 'conversations' or 'instruction'"
        raise UnfitChat(f"it has no conversation in the column {wanted} (it has {names})")
    return _behind_prompt(record, found, _messages(record[found], found), tools)


def _behind_prompt(
    record: Mapping[str, Any], column: str, messages: list[dict[str, Any]], tools: list[Any] | None
) -> Conversation:
    """Return messages behind those of the record's prompt, if its column is an answer to one."""
    prompt = record.get("prompt")
    if column not in ("chosen", "rejected", "completion") or prompt is None:
        return Conversation(messages, tools)
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    before = _messages(turns, "prompt")
    if messages[: len(before)] == before and len(messages) > len(before):
        return Conversation(messages, tools, len(before))
    return Conversation([*before, *messages], tools, len(before))


def _messages(turns: Any, column: str) -> list[dict[str, Any]]:
    """Return messages of a column.

    Raises:
        UnfitChat: it has none.
    """
    if isinstance(turns, str) and column in ("chosen", "rejected", "completion"):
        return [{"role": "assistant", "content": turns}]
    if isinstance(turns, str) and turns.lstrip().startswith("["):
        turns = _decoded(turns, column)
    if isinstance(turns, np.ndarray):
        turns = turns.tolist()
    if not isinstance(turns, list | tuple):
        raise UnfitChat(f"{column!r} must be a list of messages (got {_shown(turns)})")
    if not turns:
        raise UnfitChat(f"{column!r} has no message")
    return [_message(turn, number) for number, turn in enumerate(turns)]


def _message(turn: Any, number: int) -> dict[str, Any]:
    """Return a message without names whose value is None, with its reasoning under the names of templates.

    Raises:
        UnfitChat: it has no role.
    """
    if not isinstance(turn, Mapping):
        raise UnfitChat(f"turn {number} must be a dict with a role (got {_shown(turn)})")
    message = {str(name): plain(value) for name, value in turn.items() if value is not None}
    if "role" not in message and "from" in message:
        name = message.pop("from")
        role = _ROLES.get(name) if isinstance(name, str) else None
        if role is None:
            known = ", ".join(map(repr, _ROLES))
            raise UnfitChat(
                f"turn {number} is from {name!r}, and known are {known}: give messages with roles"
            )
        message = {"role": role, "content": message.pop("value", ""), **message}
    if not isinstance(message.get("role"), str):
        raise UnfitChat(f"turn {number} has no role (it has {', '.join(map(repr, turn)) or 'nothing'})")
    reasoning = next((message[name] for name in _REASONING if name in message), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _alpaca(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a record of Alpaca: its system, its history, its instruction and its output.

    Raises:
        UnfitChat: one of them is no text.
    """
    asked = [record["instruction"], *([record["input"]] if record.get("input") else [])]
    said = [("user", asked), ("assistant", [record["output"]])]
    history = record.get("history") or []
    if not isinstance(history, list | tuple) or not all(map(_is_pair, history)):
        raise UnfitChat(f"'history' must have pairs of texts (got {_shown(history)})")
    said = [*((role, [text]) for before in history for role, text in zip(_SAID, before, strict=True)), *said]
    if record.get("system"):
        said = [("system", [record["system"]]), *said]
    for role, texts in said:
        for text in texts:
            if not isinstance(text, str):
                raise UnfitChat(f"what the {role} says must be a text (got {_shown(text)})")
    return [{"role": role, "content": "\n".join(texts)} for role, texts in said]


def _is_pair(before: Any) -> bool:
    return isinstance(before, list | tuple) and len(before) == len(_SAID)


def _tools(tools: Any) -> list[Any] | None:
    """Return the tools of a record; as JSON in a text they are decoded.

    Raises:
        UnfitChat: they are no list.
    """
    if isinstance(tools, str):
        tools = _decoded(tools, "tools") if tools.strip() else None
    if isinstance(tools, np.ndarray):
        tools = tools.tolist()
    if tools is None:
        return None
    if not isinstance(tools, list | tuple):
        raise UnfitChat(f"'tools' must be a list of descriptions (got {_shown(tools)})")
    return [plain(tool) for tool in tools]


def _decoded(text: str, column: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise UnfitChat(f"{column!r} is a text that is no JSON: {error}") from error


_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Return a value as JSON has it, so that a template meets no method of another object.

    What JSON lacks becomes the name of its type, such as ``"<bytes>"``.

    Example:
        >>> plain({"a": (1, b"x")})
        {'a': [1, '<bytes>']}
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return f"<{type(value).__name__}>"


def _shown(value: Any) -> str:
    shown = repr(value)
    return f"{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'} of type {type(value).__name__}"


class UnfitChat(Exception):
    """A conversation that cannot become tokens; its text says why."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a conversation."""

    text: str

    spans: tuple[tuple[int, int], ...]
    """The first character of each span that a template marks as written by the model, and the one after its
    last."""


Place = tuple[str | int, ...]

_ANSWERS = ("completion", "chosen", "rejected")
"""The columns of what may follow a prompt; only these may be texts."""

_TOLD = frozenset({"role", "content", "thinking", "reasoning", "reasoning_content", "tool_calls"})
"""The names of a message that a turn has fields of its own for."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The words of one side, until the other one speaks."""

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
