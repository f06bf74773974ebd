"""Conversations of a record as HTML: turns of messages and of ShareGPT, instructions, pairs side by side.

The words of turns are shown as Markdown. What a turn has besides them stands below, as in any record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from seekable._lazy import lazy
from seekable.formats.tokens.chats.conversations import turns_of
from seekable.viewer.facts.key_paths import child_place
from seekable.viewer.render import Limits, Links, RecordTree
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tokens.chats.conversations import Dialogue, Place, Turn
    from seekable.viewer import markdown
else:
    markdown = lazy("seekable.viewer.markdown")

__all__ = ["conversation_html", "last_words"]

_OF_ALPACA = ("instruction", "input", "output", "system", "history")
_WEIGHTS = ("weight", "train", "trainable", "loss")
"""The fields of a turn that say whether it counts in the loss."""

_NAMES = ("name", "tool_call_id")
"""The fields of a turn that say more of who speaks."""

_THOUGHT = re.compile(r"\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)
_MOST_CHARACTERS = 8000
"""The characters of one turn that are shown."""

_MOST_OF_PAGE = 400_000
"""The characters of a page after which no other turn is shown: some 300 ms of work."""

_MOST_TURNS = 1000
_MOST_CALLS = 50

_NAME_LETTERS = 64
_TINTS = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def conversation_html(
    record: Any, *, links: Links | None = None, limits: Limits | None = None
) -> Markup | None:
    """Return the conversations of a record, and its other fields below them; None for any other record.

    Args:
        record: any value.
        links: where the parts of the record are.
        limits: how much is shown.

    Example:
        >>> shown = conversation_html({"prompt": "2 + 2?", "chosen": "**4**", "rejected": "5"})
        >>> "<strong>4</strong>" in shown, shown.count("2 + 2?")
        (True, 1)
        >>> conversation_html({"text": "no conversation"}) is None
        True
    """
    dialogues = turns_of(record)
    if not any(dialogue.turns for dialogue in dialogues):
        return None
    tree = RecordTree(links or Links(), limits or Limits())
    return _Page(tree).html(record, dialogues)


def last_words(dialogue: Dialogue) -> tuple[str, str]:
    """Return who speaks last, and what; two empty texts without a turn.

    Example:
        >>> last_words(turns_of({"messages": [{"role": "user", "content": "hi"}]})[0])
        ('user', 'hi')
    """
    if not dialogue.turns:
        return "", ""
    last = dialogue.turns[-1]
    said = last.content if isinstance(last.content, str) else json.dumps(last.content, default=str)
    calls = "calls " + ", ".join(_call_of(call)[0] for call in last.calls)
    return last.role, said or (calls if last.calls else last.reasoning)


class _Page:
    """Makes the HTML of the conversations of one record, and counts what was shown."""

    def __init__(self, tree: RecordTree) -> None:
        self._tree = tree
        self._left = _MOST_OF_PAGE

    def html(self, record: Mapping[str, Any], dialogues: Sequence[Dialogue]) -> Markup:
        shared = _shared(dialogues)
        tools = next((dialogue.tools for dialogue in dialogues if dialogue.tools), ())
        parts = [self._tools(tools)] if tools else []
        parts.append(self._turns(dialogues[0].turns[:shared], 0))
        sides = [(each.name, self._turns(each.turns[shared:], shared)) for each in dialogues]
        if len(sides) == 1:
            parts.append(sides[0][1])
        else:
            side = Markup('<section class="side" aria-label="{}"><p class="heading">{}</p>{}</section>')
            both = Markup("").join(side.format(name, name, turns) for name, turns in sides)
            parts.append(Markup('<div class="beside">{}</div>').format(both))
        others = {key: value for key, value in record.items() if key not in _told(dialogues)}
        if others:
            parts.append(
                Markup('<p class="heading">Other fields</p>{}').format(self._tree.html(others, "", 0))
            )
        return Markup('<div class="turns">{}</div>').format(Markup("").join(parts))

    def _tools(self, tools: Sequence[Any]) -> Markup:
        names = ", ".join(map(_name_of, tools[:_MOST_CALLS])) + ", ..." * (len(tools) > _MOST_CALLS)
        return Markup('<details class="told"><summary>{} {}: {}</summary>{}</details>').format(
            len(tools),
            "tool" if len(tools) == 1 else "tools",
            text_html(names),
            self._tree.html(list(tools), "tools", 1),
        )

    def _turns(self, turns: Sequence[Turn], first: int) -> Markup:
        shown = []
        for number, turn in enumerate(turns, first):
            if self._left <= 0 or not self._tree.has_room or number >= _MOST_TURNS:
                shown.append(_more(first + len(turns) - number, "turns"))
                break
            shown.append(self._turn(number, turn))
        return Markup("").join(shown)

    def _turn(self, number: int, turn: Turn) -> Markup:
        place = _place_text(turn.place)
        parts = [self._thought(turn.reasoning)] if turn.reasoning else []
        parts += self._content(turn, place)
        parts += [self._call(call, place) for call in turn.calls[:_MOST_CALLS]]
        parts += [_more(len(turn.calls) - _MOST_CALLS, "calls")] if len(turn.calls) > _MOST_CALLS else []
        weights = {key: turn.others[key] for key in _WEIGHTS if key in turn.others}
        names = {key: each for key in _NAMES if isinstance(each := turn.others.get(key), str)}
        others = {key: value for key, value in turn.others.items() if key not in {**weights, **names}}
        if others:
            parts.append(self._tree.html(others, place, 1))
        is_out = any(not value for value in weights.values())
        notes = [f"{key} {value[:_NAME_LETTERS]}" for key, value in names.items()]
        notes += [f"{key} {json.dumps(value, default=str)[:_NAME_LETTERS]}" for key, value in weights.items()]
        if is_out:
            notes.append("not in the loss")
        note = Markup('<span class="note">{}</span>').format(text_html(", ".join(notes))) if notes else ""
        speaker = Markup('<p class="speaker"><b>{}</b> <span class="count">{}</span> {}</p>').format(
            text_html(turn.role[:_NAME_LETTERS]), number, note
        )
        kind = _TINTS.get(turn.role, "other") + " outside" * is_out
        return Markup('<div class="turn item {}">{}<div>{}</div></div>').format(
            kind, speaker, Markup("").join(parts)
        )

    def _content(self, turn: Turn, place: str) -> list[Markup]:
        """Return what is said: words, or parts of which some are words."""
        content = turn.content
        if isinstance(content, str):
            thought = _THOUGHT.match(content)
            words = content[thought.end() :] if thought else content
            before = [self._thought(thought[1])] if thought else []
            return [*before, *([self._said(words, turn, place)] if words else [])]
        if not isinstance(content, list):
            return [] if content is None else [self._tree.html(content, place, 1)]
        out = []
        for number, part in enumerate(content):
            if self._left <= 0 or not self._tree.has_room:
                out.append(_more(len(content) - number, "parts"))
                break
            text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else part
            at = child_place(child_place(place, "content"), number)
            out.append(self._words(text) if isinstance(text, str) else self._tree.html(part, at, 1))
        return out

    def _said(self, words: str, turn: Turn, place: str) -> Markup:
        """Return the words of a turn; the values that a tool gives as a tree."""
        if turn.role == "tool":
            value = _parsed(words)
            if isinstance(value, dict | list):
                return self._tree.html(value, "", 1)
        return self._words(words)

    def _words(self, text: str) -> Markup:
        """Return the beginning of words as Markdown."""
        shown = text[:_MOST_CHARACTERS]
        html = markdown.markdown_html(shown)
        self._left -= max(len(shown), len(html))
        more = Markup("")
        if len(text) > len(shown):
            more = Markup(
                '<p class="more">first {:,} of {:,} characters; all are in the raw record</p>'
            ).format(len(shown), len(text))
        return Markup('<div class="words">{}{}</div>').format(html, more)

    def _thought(self, text: str) -> Markup:
        return Markup(
            '<details class="told"><summary>reasoning, {:,} characters</summary>{}</details>'
        ).format(len(text), self._words(text.strip()))

    def _call(self, call: Any, place: str) -> Markup:
        name, arguments = _call_of(call)
        return Markup('<div class="call"><span class="type">calls</span> <code>{}</code>{}</div>').format(
            text_html(name[:_NAME_LETTERS]), self._tree.html(arguments, child_place(place, "tool_calls"), 1)
        )


def _more(count: int, what: str) -> Markup:
    return Markup('<p class="more">and {:,} more {}; the JSON has all</p>').format(count, what)


def _call_of(call: Any) -> tuple[str, Any]:
    """Return the name of a called tool, and its arguments; arguments in JSON are read."""
    function = call.get("function", call) if isinstance(call, Mapping) else call
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return "", call
    arguments = function.get("arguments", {})
    read = _parsed(arguments) if isinstance(arguments, str) else None
    return function["name"], arguments if read is None else read


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _name_of(tool: Any) -> str:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else tool
    name = function.get("name") if isinstance(function, Mapping) else None
    return str(name)[:_NAME_LETTERS] if name else "?"


def _shared(dialogues: Sequence[Dialogue]) -> int:
    """Return the number of turns that all conversations begin with."""
    first, *others = (dialogue.turns for dialogue in dialogues)
    shared = 0
    while others and all(shared < len(each) for each in (first, *others)):
        if any(_said_by(each[shared]) != _said_by(first[shared]) for each in others):
            break
        shared += 1
    return shared


def _said_by(turn: Turn) -> tuple[Any, ...]:
    return turn.role, turn.content, turn.reasoning, turn.calls, turn.others


def _told(dialogues: Sequence[Dialogue]) -> set[str]:
    """Return the fields of a record that its conversations show."""
    names = {str(turn.place[0]) for dialogue in dialogues for turn in dialogue.turns if turn.place}
    names |= {"tools"} if any(dialogue.tools for dialogue in dialogues) else set()
    return names | (
        set(_OF_ALPACA) if any(dialogue.name == "instruction" for dialogue in dialogues) else set()
    )


def _place_text(place: Place) -> str:
    text = ""
    for part in place:
        text = child_place(text, part)
    return text
