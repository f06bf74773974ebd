"""Values of records as cells of a table: text in a line, pictures, players, the last turn of a chat.

Like ``render`` it makes markup, of which everything that a record says is escaped.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from seekable.errors import SeekableError
from seekable.formats.tokens.chats.conversations import turns_of
from seekable.viewer.conversation import last_words
from seekable.viewer.facts.key_paths import RECORD, path_text
from seekable.viewer.facts.token_contents import token_texts
from seekable.viewer.media import HEAD_BYTES, decoded_audio, media_type
from seekable.viewer.render import file_kind, one_line
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tokens.chats.conversations import Dialogue
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.viewer.media import MediaRoots

_LONG = 50
_WORD_LETTERS = 40
_MOST_IDS = 60
"""The first ids of a list whose text is shown."""

_ID_COLUMNS = frozenset({"tokens", "input_ids", "token_ids", "ids", "labels"})
_MOST_FILES = 50

_NONE = Markup('<span class="none">\u2013</span>')
_MEDIA = {
    "image": Markup('<a href="{1}"><img class="thumb" src="{0}" alt="{2}" loading="lazy"></a>'),
    "audio": Markup('<audio controls preload="none" src="{0}" aria-label="{2}"></audio>'),
    "video": Markup('<video class="thumb" controls preload="none" src="{0}" aria-label="{2}"></video>'),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its markup, and the class that says how it is laid out."""

    html: Markup
    kind: str = ""
    """"num", "word", "long" or "media"; empty for a short text."""


class CellMaker:
    """Makes the cells of one table.

    Args:
        rows: the address of rows, to which their numbers are added.
        media: the address of media, to which the row and the place are added.
        files: the folders whose files are shown where a text names one.
        engine: makes texts of token ids; None to show ids.
        most: the characters of a text that are shown.
    """

    def __init__(self, rows: str, media: str, files: MediaRoots, engine: Engine | None, *, most: int) -> None:
        self._rows, self._media, self._files, self._engine, self._most = rows, media, files, engine, most
        self._files_left = _MOST_FILES

    def cells(self, row: int, record: Any, paths: Sequence[tuple[str, ...]]) -> list[Cell]:
        """Return the cells of a record, one for each key."""
        dialogues = {each.name: each for each in turns_of(record)}
        return [self._cell(row, path, value_of(record, path), dialogues) for path in paths]

    def _cell(self, row: int, path: tuple[str, ...], value: Any, dialogues: dict[str, Dialogue]) -> Cell:
        if value is None:
            return Cell(_NONE)
        if len(path) == 1 and path[0] in dialogues and not isinstance(value, str):
            return self._turn(dialogues[path[0]])
        kind = self._media_kind(value)
        if kind in _MEDIA:
            at = path_text(path)
            address = f"{self._media}/{row}?at={quote(at or RECORD, safe='')}"
            words = f"{at} of row {row:,}"
            return Cell(
                _MEDIA[kind].format(address, f"{self._rows}/{row}", text_html(words).striptags()), "media"
            )
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            return Cell(one_line(value), "num")
        return self._ids(path, value) or self._words(value)

    def _words(self, value: Any) -> Cell:
        html = one_line(value, most=self._most)
        if isinstance(value, str) and len(value) <= _WORD_LETTERS and " " not in value:
            return Cell(html, "word")
        return Cell(html, "long" if len(html) > _LONG else "")

    def _turn(self, dialogue: Dialogue) -> Cell:
        """Return who speaks last and what, and the number of turns."""
        role, said = last_words(dialogue)
        count = len(dialogue.turns)
        html = Markup('<b>{}</b> {} <span class="more">{}</span>').format(
            text_html(role),
            one_line(said, most=self._most) if said else "",
            "one turn" if count == 1 else f"last of {count:,} turns",
        )
        return Cell(html, "long")

    def _media_kind(self, value: Any) -> str:
        if isinstance(value, bytes | bytearray | memoryview):
            return media_type(bytes(memoryview(value).cast("B")[:HEAD_BYTES])).kind
        if decoded_audio(value) is not None:
            return "audio"
        if isinstance(value, str) and self._files_left > 0 and self._files.folders:
            with suppress(SeekableError):
                kind = file_kind(self._files, value)
                self._files_left -= kind is not None
                return kind or ""
            self._files_left -= 1
        return ""

    def _ids(self, path: tuple[str, ...], value: Any) -> Cell | None:
        """Return the text of token ids; None for other values, and without a tokenizer."""
        text = None if self._engine is None or not path else ids_text(self._engine, path[-1], value)
        if text is None:
            return None
        count = Markup('<span class="more">{:,} tokens</span> ').format(len(value))
        return Cell(count + one_line(text, most=self._most), "long")


def ids_text(engine: Engine, key: str, value: Any) -> str | None:
    """Return the text of the first token ids that a key has; None for another key or value."""
    ids = value[:_MOST_IDS].tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    is_ids = isinstance(ids, list) and ids and all(type(each) is int for each in ids[:_MOST_IDS])
    if key not in _ID_COLUMNS or not is_ids:
        return None
    try:
        return "".join(token_texts(engine, [max(each, 0) for each in ids[:_MOST_IDS]]))
    except SeekableError:
        return None


def value_of(record: Any, path: Sequence[str]) -> Any:
    """Return the value at a key of a record; None without one."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record
