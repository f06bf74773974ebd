"""Records as a table that stays in a notebook: columns, pictures and sound, without a server and a script."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from seekable.errors import CorruptRecord
from seekable.formats.audio.wave_file import wave_file
from seekable.formats.tokens.chats.conversations import turns_of
from seekable.viewer.conversation import last_words
from seekable.viewer.facts.json_documents import in_words
from seekable.viewer.media import HEAD_BYTES, decoded_audio, media_type
from seekable.viewer.render import one_line
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NotebookTable", "notebook_table"]

_MOST_COLUMNS = 12
_CHARACTERS = 160
_MOST_BYTES = 512 * 1024
"""The bytes of one picture or sound that are put into the table."""

_MOST_OF_TABLE = 4 << 20
"""The bytes of all of them."""

_CONVERSATION = "conversation"
_LISTS = frozenset({"messages", "conversations"})
"""The columns in whose place a conversation is shown."""

_CELL = Markup('<td style="text-align:left;vertical-align:top;padding:4px 8px">{}</td>')
_HEAD = Markup('<th scope="col" style="text-align:left;padding:4px 8px">{}</th>')
_ELEMENTS = {
    "image": Markup('<img src="{}" alt="picture" style="max-height:120px;max-width:240px">'),
    "audio": Markup('<audio controls preload="metadata" src="{}" style="width:240px"></audio>'),
}


class NotebookTable:
    """A table of records, as HTML for notebooks and as text for all else; made by `seekable.Viewer.table`."""

    def __init__(self, title: str, html: str) -> None:
        self._title, self._html = title, html

    def __repr__(self) -> str:
        """Return what is shown."""
        return f"<{self._title}>"

    def _repr_html_(self) -> str:
        """Return the table as HTML, without script; pictures and sound are within it."""
        return self._html


def notebook_table(name: str, rows: Sequence[tuple[int, Any]]) -> NotebookTable:
    """Return records as a table: a row for each, a column for each key of any of them.

    Args:
        name: that of the data.
        rows: the numbers of the records, and the records; an error stands for one that is corrupt.

    Example:
        >>> shown = notebook_table("corpus", [(3, {"text": "<b>", "n": 1})])
        >>> shown
        <2 columns of 1 record of corpus>
        >>> "&lt;b&gt;" in shown._repr_html_()
        True
    """
    return _TableMaker(rows).table(name)


class _TableMaker:
    """Makes one table, and counts the bytes of its pictures and sounds."""

    def __init__(self, rows: Sequence[tuple[int, Any]]) -> None:
        self._rows = rows
        self._left = _MOST_OF_TABLE

    def table(self, name: str) -> NotebookTable:
        chats = {number: words for number, record in self._rows if (words := _last_turn(record))}
        keys = dict.fromkeys(key for _, record in self._rows for key in _keys(record))
        for column in {dialogue.name for _, record in self._rows for dialogue in turns_of(record)} & _LISTS:
            del keys[column]
        columns = [*([_CONVERSATION] if chats else []), *list(keys)[:_MOST_COLUMNS]]
        head = Markup("").join(_HEAD.format(text_html(str(key))) for key in ("row", *columns))
        body = [self._row(number, record, list(keys)[:_MOST_COLUMNS], chats) for number, record in self._rows]
        more = Markup("<p>and {} more columns</p>").format(len(keys) - _MOST_COLUMNS)
        table = Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(
            head, Markup("").join(body), more if len(keys) > _MOST_COLUMNS else ""
        )
        title = f"{in_words(len(columns), 'column')} of {in_words(len(self._rows), 'record')} of {name}"
        return NotebookTable(title, str(table))

    def _row(self, number: int, record: Any, keys: Sequence[Any], chats: Mapping[int, str]) -> Markup:
        cells = [
            Markup('<th scope="row" style="vertical-align:top;padding:4px 8px">{:,}</th>').format(number)
        ]
        if chats:
            cells.append(_CELL.format(one_line(chats.get(number, ""), most=_CHARACTERS)))
        if isinstance(record, CorruptRecord):
            words = Markup('<td colspan="{}">{}</td>').format(max(len(keys), 1), text_html(str(record)))
            cells.append(words)
        elif isinstance(record, Mapping):
            cells += [_CELL.format(self._cell(record[key]) if key in record else "") for key in keys]
        else:
            cells += [_CELL.format(self._cell(record) if key == "record" else "") for key in keys]
        return Markup("<tr>{}</tr>").format(Markup("").join(cells))

    def _cell(self, value: Any) -> Markup:
        """Return a value: a picture or sound where it is one or holds one, else the beginning of its text."""
        parts = [self._media(each) for each in (value.values() if isinstance(value, Mapping) else (value,))]
        shown = [part for part in parts if part is not None]
        return Markup("").join(shown) if shown else one_line(value, most=_CHARACTERS)

    def _media(self, value: Any) -> Markup | None:
        audio = decoded_audio(value)
        data = wave_file(*audio) if audio is not None else value
        if not isinstance(data, bytes | bytearray | memoryview):
            return None
        data = bytes(data)
        found = media_type(data[:HEAD_BYTES])
        if found.kind not in _ELEMENTS:
            return None
        if len(data) > min(self._left, _MOST_BYTES):
            return escape(f"{found.name}, {len(data):,} bytes: too large for a table, see the viewer")
        self._left -= len(data)
        return _ELEMENTS[found.kind].format(f"data:{found.name};base64,{base64.b64encode(data).decode()}")


def _last_turn(record: Any) -> str:
    """Return who speaks last in a record's first conversation, and what; empty for any other record."""
    first = next((dialogue for dialogue in turns_of(record) if dialogue.turns), None)
    return "" if first is None else ": ".join(last_words(first))


def _keys(record: Any) -> list[Any]:
    if isinstance(record, CorruptRecord):
        return []
    return list(record) if isinstance(record, Mapping) else ["record"]
