"""Values of records as HTML.

This module, ``cells``, ``unseen``, ``markdown``, ``formula`` and ``conversation`` make markup; all else is
escaped.
Text is shown as text. Characters that cannot be seen, change the direction of text or stand for nothing
(control characters, bidi overrides, zero-width characters, lone surrogates) are shown as boxed codes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from seekable.errors import CorruptRecord, SeekableError
from seekable.nodes.graph import HOLE
from seekable.viewer.charts import clock
from seekable.viewer.facts.key_paths import RECORD, child_place
from seekable.viewer.facts.search import parts_of
from seekable.viewer.media import HEAD_BYTES, decoded_audio, media_type
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.viewer.media import MediaKind, MediaRoots

    Marks = Mapping[str, Sequence[tuple[int, int]]]

_TURNS = (("role", "content"), ("from", "value"))
"""The keys of the speaker and of the words of a turn, in the two usual spellings."""

_DEEPEST = 100
_FIRST_VALUES = 8
_HEX_BYTES = 16
_LINE_DEPTH = 4
_LARGE = 1e6
_NAME_LETTERS = 33
_ELEMENTS = {
    "image": Markup('<img class="media" src="{}" alt="image at {}" loading="lazy">'),
    "audio": Markup('<audio controls preload="none" src="{}" aria-label="audio at {}"></audio>'),
    "video": Markup(
        '<video class="media" controls preload="none" src="{}" aria-label="video at {}"></video>'
    ),
}
_MEDIA_NAME = re.compile(
    r"(?!.*://)[^\n]*\.(png|jpe?g|gif|webp|avif|bmp|wav|flac|ogg|opus|mp3|m4a|mp4|webm)", re.IGNORECASE
)
"""A text that may name a file to show; what the file is depends on its first bytes."""

_WITH_PATH = frozenset({"bytes", "path"})
"""The keys of media of Hugging Face: the path says where the bytes were once."""

_MOST_FILES = 50
"""The most files that are opened for one page."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on how much of a record a page shows."""

    depth: int = 2
    """Levels that are open."""

    children: int = 200
    """Children of one value."""

    nodes: int = 2000
    """Values of a page."""

    characters: int = 2000
    """Characters of a text."""


def one_line(value: Any, *, most: int = 120) -> Markup:
    """Return the beginning of a value in one line, for a cell of a table."""
    if isinstance(value, str) and not value.strip():
        return _blank(value, most)
    text = value if isinstance(value, str) else _plain(value, most)
    cut = text[:most].replace("\n", " ").replace("\t", " ")
    shown = text_html(cut)
    return shown + Markup('<span class="more">…</span>') if len(text) > most else shown


def _blank(text: str, most: int) -> Markup:
    """Return a text that has no visible character, in quotes as in JSON."""
    return Markup('<span class="none">{}</span>').format(
        text_html(json.dumps(text[:most], ensure_ascii=False))
    )


def file_name(path: str) -> Markup:
    """Return the last part of a path for a cell; if it is long, its end, in which files differ.

    Example:
        >>> str(file_name("corpus/part-0.jsonl")), str(file_name("s/" + "long-" * 9 + "00017.jsonl"))
        ('part-0.jsonl', '…-long-long-long-long-00017.jsonl')
    """
    name = path.rpartition("/")[2]
    return text_html(name if len(name) <= _NAME_LETTERS else f"…{name[1 - _NAME_LETTERS :]}")


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses, to which ``?at=PLACE`` is added; where one is empty, there is no link."""

    texts: str = ""
    """Texts that are cut."""

    media: str = ""
    """Bytes, decoded audio and named files."""

    waves: str = ""
    """Waveforms of audio; the picture has the suffix ``.svg``."""

    files: MediaRoots | None = None
    """The folders whose files are shown after the texts that name them."""


def record_html(
    value: Any, *, links: Links | None = None, limits: Limits | None = None, marks: Marks | None = None
) -> Markup:
    """Return a record as a tree.

    Args:
        value: the record.
        links: where the parts of the record are; none in a record that a pipeline made.
        limits: how much is shown.
        marks: places that are marked, by the text that has them.
    """
    return RecordTree(links or Links(), limits or Limits(), marks).html(value, "", 0)


class RecordTree:
    """Makes the HTML of one record, and counts what was shown."""

    def __init__(self, links: Links, limits: Limits, marks: Marks | None = None) -> None:
        self._links, self._limits, self._marks = links, limits, marks or {}
        self._left = limits.nodes
        self._files_left = _MOST_FILES
        self._named = ""
        """The place of a path whose bytes stand beside it."""

    @property
    def has_room(self) -> bool:
        """True while the page may have more values."""
        return self._left > 0

    def html(self, value: Any, at: str, depth: int) -> Markup:  # noqa: PLR0911 - a case for each kind
        """Return the value at a place, as open as ``depth`` says; it counts as one that was shown."""
        self._left -= 1
        if isinstance(value, CorruptRecord):
            return Markup('<p class="bad">{}</p>').format(text_html(str(value)))
        if value is HOLE:
            return Markup('<span class="type">no record here (a hole)</span>')
        audio = decoded_audio(value)
        if audio is not None:
            return self._audio(*audio, at)
        if isinstance(value, Mapping):
            pairs = ((str(key), child_place(at, str(key)), each) for key, each in value.items())
            if value.keys() == _WITH_PATH and value["bytes"] is not None:
                self._named = child_place(at, "path")
            return self._children(len(value), pairs, "{}", depth)
        if isinstance(value, list | tuple):
            keys = _keys_of_turns(value)
            if keys is not None:
                return self._conversation(value, at, keys)
            items = ((f"[{number}]", child_place(at, number), each) for number, each in enumerate(value))
            return self._children(len(value), items, "[]", depth)
        return self._leaf(value, at)

    def _children(self, size: int, pairs: Iterable[tuple[str, str, Any]], marks: str, depth: int) -> Markup:
        """Return the first of some values, each with its label and its place."""
        count = Markup('<span class="count">{}{:,}{}</span>').format(marks[0], size, marks[1])
        if not size:
            return count
        if depth >= _DEEPEST:
            return Markup('{} <span class="type">deeper than {} levels</span>').format(count, _DEEPEST)
        rows = [self._pairs(islice(pairs, self._limits.children), depth)]
        if size > self._limits.children:
            left = size - self._limits.children
            rows.append(Markup('<div class="more">and {:,} more; the JSON has all</div>').format(left))
        is_open = Markup(" open") if depth < self._limits.depth else Markup("")
        return Markup("<details{}><summary>{}</summary>{}</details>").format(
            is_open, count, Markup("").join(rows)
        )

    def _pairs(self, pairs: Iterable[tuple[str, str, Any]], depth: int) -> Markup:
        """Return values with their labels, as many as the page may still have."""
        rows = []
        for key, place, each in pairs:
            if self._left <= 0:
                rows.append(
                    Markup('<div class="more">the page has {:,} values; the JSON has all</div>').format(
                        self._limits.nodes
                    )
                )
                break
            rows.append(
                Markup('<div class="pair"><dt>{}</dt><dd>{}</dd></div>').format(
                    text_html(key), self.html(each, place, depth + 1)
                )
            )
        return Markup("<dl>{}</dl>").format(Markup("").join(rows))

    def _conversation(self, turns: Any, at: str, keys: tuple[str, str]) -> Markup:
        """Return the turns of a chat, each with its speaker, its words and its other fields."""
        speaker, words = keys
        shown = []
        for number, turn in enumerate(turns):
            if self._left <= 0:
                more = Markup('<div class="more">and {:,} more turns; the JSON has all</div>')
                shown.append(more.format(len(turns) - number))
                break
            place = child_place(at, number)
            said = self.html(turn[words], child_place(place, words), 1) if words in turn else Markup("")
            others = [(str(key), each) for key, each in turn.items() if key not in keys]
            pairs = ((key, child_place(place, key), each) for key, each in others)
            rest = self._pairs(pairs, 1) if others else Markup("")
            self._left -= 1
            shown.append(
                Markup('<div class="turn"><b>{}</b><div>{}{}</div></div>').format(
                    text_html(turn[speaker]), said, rest
                )
            )
        count = Markup('<span class="count">[{:,}]</span>').format(len(turns))
        return Markup('<details open><summary>{}</summary><div class="turns">{}</div></details>').format(
            count, Markup("").join(shown)
        )

    def _leaf(self, value: Any, at: str) -> Markup:
        if isinstance(value, str):
            return self._text(value, at)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(memoryview(value).cast("B"), at)
        if isinstance(value, np.ndarray):
            return _array(value)
        # A record has all digits of a float, and a line only the first ones.
        shown = str(value) if isinstance(value, float) else _plain(value, self._limits.characters)
        return Markup('<span class="value">{}</span>').format(text_html(shown))

    def _text(self, text: str, at: str) -> Markup:
        most = self._limits.characters
        if not text.strip() and len(text) <= most:
            return _blank(text, most)
        spans = self._marks.get(text, ())
        if len(text) <= most:
            shown = marked_html(text, spans)
            return Markup('<span class="text">{}</span>').format(shown) + self._file(text, at)
        begin = max(0, spans[0][0] - most // 2) if spans and spans[0][1] > most else 0
        note = Markup(" first {:,} of {:,} characters").format(most, len(text))
        if begin:
            note = Markup(" characters {:,} to {:,} of {:,}").format(begin, begin + most, len(text))
        if spans and spans[-1][1] > begin + most:
            note += Markup(", {:,} places in all").format(len(spans))
        more = (
            Markup(' <a href="{}">show all</a>').format(_address(self._links.texts, at))
            if self._links.texts
            else Markup("")
        )
        return Markup('<span class="text">{}</span><span class="more">{}{}</span>').format(
            marked_html(text[begin : begin + most], [(start - begin, end - begin) for start, end in spans]),
            note,
            more,
        )

    def _file(self, name: str, at: str) -> Markup:
        """Return the file that a text names, if it looks like the name of one; or why it is not shown."""
        roots = self._links.files
        if roots is None or self._files_left <= 0 or at == self._named:
            return Markup("")
        try:
            kind = file_kind(roots, name)
        except SeekableError as error:
            self._files_left -= 1
            return Markup(' <span class="type">not shown: {}</span>').format(text_html(str(error)))
        if kind is None:
            return Markup("")
        self._files_left -= 1
        return self._player(kind, at)

    def _bytes(self, view: memoryview, at: str) -> Markup:
        found = media_type(bytes(view[:HEAD_BYTES]))
        what = Markup('<span class="type">{} {:,} bytes</span> <code>{}</code>').format(
            "bytes," if found.kind == "other" else f"{found.name},",
            view.nbytes,
            bytes(view[:_HEX_BYTES]).hex(" "),
        )
        return what + self._player(found.kind, at)

    def _audio(self, samples: np.ndarray[Any, Any], rate: int, at: str) -> Markup:
        channels = samples.shape[1] if samples.ndim > 1 else 1
        what = Markup('<span class="type">decoded audio, {}, {:,} Hz, {}</span>').format(
            clock(len(samples) / rate), rate, "1 channel" if channels == 1 else f"{channels} channels"
        )
        return what + self._player("audio", at)

    def _player(self, kind: str, at: str) -> Markup:
        """Return the element that shows what is at a place, and a link to save it."""
        if not self._links.media:
            return Markup("")
        address, words = _address(self._links.media, at), at or "the record"
        save = Markup(' <a href="{}" download>save</a>').format(address)
        if kind == "other":
            return save
        return Markup('<div class="player">{}{}</div>').format(
            _ELEMENTS[kind].format(address, words) + self._wave(kind, at), save
        )

    def _wave(self, kind: str, at: str) -> Markup:
        """Return the waveform of audio, which leads to its numbers."""
        if kind != "audio" or not self._links.waves:
            return Markup("")
        picture, page = _address(self._links.waves + ".svg", at), _address(self._links.waves, at)
        return Markup(
            '<a class="chart" href="{}"><img class="wave" src="{}" alt="waveform of {}" loading="lazy" '
            'width="640" height="88"></a>'
        ).format(page, picture, at or "the record")


def marked_html(text: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """Return a text as HTML with some places marked; what is beyond its end is left out.

    Example:
        >>> str(marked_html("a <cat>", [(3, 6), (9, 12)]))
        'a &lt;<mark>cat</mark>&gt;'
    """
    inside = [(start, min(stop, len(text))) for start, stop in spans if start < len(text)]
    return Markup("").join(
        Markup("<mark>{}</mark>").format(text_html(part)) if is_found else text_html(part)
        for part, is_found in parts_of(text, inside)
    )


def file_kind(roots: MediaRoots, name: str) -> MediaKind | None:
    """Return what the file is that a text names; None if the text does not look like the name of one.

    Raises:
        SeekableError: the file cannot be shown.
    """
    if not roots.folders or not _MEDIA_NAME.fullmatch(name):
        return None
    with roots.open(name) as file:
        return media_type(file.read(HEAD_BYTES)).kind


def _keys_of_turns(values: Any) -> tuple[str, str] | None:
    """Return the keys of the speaker and the words if values are the turns of a chat; else None.

    A turn that calls a tool may have no words.
    """
    for speaker, words in _TURNS:
        if not all(isinstance(each, Mapping) for each in values):
            return None
        speakers = [each.get(speaker) for each in values]
        are_names = all(isinstance(name, str) and len(name) <= _NAME_LETTERS for name in speakers)
        if are_names and any(words in each for each in values):
            return speaker, words
    return None


def _address(start: str, at: str) -> str:
    """Return the address of a place; the whole record has a name of its own."""
    return f"{start}?at={quote(at or RECORD, safe='')}"


def _array(value: np.ndarray[Any, Any]) -> Markup:
    """Return what an array is, and its first values."""
    numbers = value.ravel()[:_FIRST_VALUES].tolist()
    first = ", ".join(_plain(number, 40) for number in numbers) + (
        ", …" if value.size > _FIRST_VALUES else ""
    )
    range_ = ""
    if value.size and value.dtype.kind in "iuf":
        finite = value[np.isfinite(value)]
        if finite.size:
            range_ = f" min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}"
    shape = " by ".join(map(str, value.shape)) or "scalar"
    return Markup('<span class="type">{} {}{}</span> <code>{}</code>').format(
        value.dtype.name, shape, range_, first
    )


def _plain(value: Any, most: int, depth: int = 0) -> str:  # noqa: PLR0911 - a case for each kind of value
    """Return a value as a text of about ``most`` characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Large ones are often times, which six digits would make equal.
        return f"{value:.6g}" if abs(value) < _LARGE else str(value)
    if isinstance(value, int) and value.bit_length() > 4 * most:
        return f"an integer of {value.bit_length():,} bits"
    if depth > _LINE_DEPTH and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        inside = ", ".join(
            f"{key}: {_plain(each, 40, depth + 1)}" for key, each in list(value.items())[:_FIRST_VALUES]
        )
        return "{" + inside + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_plain(each, 40, depth + 1) for each in value[:_FIRST_VALUES]) + "]"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value):,} bytes"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} {' by '.join(map(str, value.shape))}"
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"
