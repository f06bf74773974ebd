"""Searches the rows of data for a text or a regular expression in their records.

A row is found if one of its values, at any depth or at one key, is a text that has the searched one in it, or
bytes that have it as UTF-8. Names of keys and numbers are not searched.

All rows of files of lines are searched by the bytes of the files: for the text as it is typed, and as writers
of the format escape it; where capital and small letters are the same, for its longest run of letters of
ASCII. A record whose bytes have it is decoded, which decides. A text is missed where a writer of JSON escaped
plain letters. All records are decoded for a regular expression, for a text without a letter of ASCII, and of
other formats.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from seekable.errors import CorruptRecord
from seekable.formats.lines.csv import dialect_of, spellings
from seekable.formats.lines.line_source import LineDecoder
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import known_size
from seekable.viewer.facts.json_documents import json_value
from seekable.viewer.facts.key_paths import path_text, values_at
from seekable.viewer.facts.matching import PlainNeedle, as_text, needle_of
from seekable.viewer.facts.reading import (
    ResultPace,
    Sampled,
    Share,
    bytes_of_records,
    file_pieces,
    from_all,
    read_rows,
    row_pieces,
    share_of,
    surveyed,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from seekable.nodes.files.decoders import Decoder
    from seekable.nodes.node import Node
    from seekable.viewer.facts.key_paths import KeyPath
    from seekable.viewer.facts.reading import FilePiece


MOST_HITS = 1000
"""The most rows that are kept; others are counted."""

_AROUND = 80
"""The characters that are shown before the first place and after it."""

_LONGEST_SHOWN = 400
_ROWS_AT_ONCE = 512

_LAST_ASCII = 0x7F
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""What JSON has names for."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is looked for, and where.

    Example:
        >>> Searched("cat").in_words(), Searched("c.t", regex=True, path=("meta", "url")).in_words()
        ('cat', 'c.t in meta.url')
    """

    text: str
    regex: bool = False
    """True if the text is a regular expression."""

    case: bool = False
    """True if capital and small letters differ."""

    path: KeyPath | None = None
    """The key whose values are searched, with what is below them; None for whole records."""

    def in_words(self) -> str:
        """Return the text and the key, for people."""
        return self.text if self.path is None else f"{self.text} in {path_text(self.path)}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that was found."""

    row: int
    key: str
    """The path of the first value that was found, as ``meta.lang``; ``[record]`` for the record itself."""

    excerpt: str
    """The text around the first place."""

    spans: tuple[tuple[int, int], ...]
    """All places in the excerpt."""

    @property
    def parts(self) -> list[tuple[str, bool]]:
        """The excerpt in parts, each with whether it is a place that was found.

        Example:
            >>> Hit(0, "text", "a cat", ((2, 5),)).parts
            [('a ', False), ('cat', True)]
        """
        return parts_of(self.excerpt, self.spans)

    def document(self) -> dict[str, Any]:
        """Return the hit as a JSON-safe dict."""
        return {
            "row": self.row,
            "key": json_value(self.key),
            "excerpt": json_value(self.excerpt),
            "spans": [list(span) for span in self.spans],
        }


def parts_of(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Return a text in parts, each with whether it is one of some places that do not overlap."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [(text[end:start], False), (text[start:stop], True)]
        end = stop
    parts.append((text[end:], False))
    return [part for part in parts if part[0]]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The rows that were found; while the work goes on, those of the rows searched so far."""

    searched: Searched
    done: int
    """What was searched, in the unit."""

    of: int
    """What there is to search, in the unit."""

    unit: str
    """``"rows"``, or ``"bytes"`` of files."""

    size: int
    """The number of all rows."""

    found: int
    """The number of rows that were found."""

    hits: tuple[Hit, ...]
    """The first of them, at most 1,000."""

    corrupt: int
    """The number of rows that could not be decoded, of those for which that was tried."""

    made_of: str

    share: Share | None
    """The share of all rows that have the text, with bounds; None where all are searched."""

    def document(self) -> dict[str, Any]:
        """Return the search as a JSON-safe dict."""
        return {
            "text": json_value(self.searched.text),
            "regex": self.searched.regex,
            "case": self.searched.case,
            "key": None if self.searched.path is None else json_value(path_text(self.searched.path)),
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": self.unit,
            "rows": self.size,
            "found": self.found,
            "share": None if self.share is None else self.share.document(),
            "corrupt": self.corrupt,
            "hits": [hit.document() for hit in self.hits],
        }


def search_sample(node: Node, searched: Searched, *, n: int, seed: int = 0) -> Generator[SearchResult]:
    """Yield the rows that are found while a sample is searched; the last result covers all of it.

    Args:
        node: the data, with a length.
        searched: what is looked for, at most 1,024 bytes of UTF-8.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        InvalidArgument: the text is empty or too long, is no regular expression, or one that takes too long.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> animals = sk.from_sequence(["a dog", "a Cat"])._node
        >>> *_, found = search_sample(animals, Searched("cat"), n=10)
        >>> found.found, found.hits[0].row, found.hits[0].parts, found.made_of
        (1, 1, [('a ', False), ('Cat', True)], 'exact, from all 2 rows')
    """
    return _in_sample(node, _Matches(searched), n=n, seed=seed)


def search_all(node: Node, searched: Searched) -> Generator[SearchResult]:
    """Yield the rows that are found while all rows are searched in their order.

    Args:
        node: the data, with a length.
        searched: what is looked for, at most 1,024 bytes of UTF-8.

    Raises:
        InvalidArgument: the text is empty or too long, is no regular expression, or one that takes too long.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = search_all(sk.from_sequence([{"a": ["b", "a cat"]}])._node, Searched("cat"))
        >>> found.hits[0].key, found.hits[0].excerpt, found.done, found.unit
        ('a[]', 'a cat', 1, 'rows')
    """
    return _in_all(node, _Matches(searched))


def marked(record: Any, searched: Searched) -> Mapping[str, Sequence[tuple[int, int]]]:
    """Return the texts of a record that are found, each with its places.

    Raises:
        InvalidArgument: the text is empty or too long, is no regular expression, or one that takes too long.

    Example:
        >>> marked({"a": ["a cat", "a dog"]}, Searched("CAT"))
        {'a cat': [(2, 5)]}
    """
    needle = needle_of(searched.text, regex=searched.regex, case=searched.case)
    texts = list({value: None for _, value in _texts(record, searched.path) if isinstance(value, str)})
    try:
        found = needle.spans(texts)
    finally:
        needle.close()
    return {text: spans for text, spans in zip(texts, found, strict=True) if spans}


class _Matches:
    """Collects the rows that are found."""

    def __init__(self, searched: Searched) -> None:
        self.searched = searched
        self.needle = needle_of(searched.text, regex=searched.regex, case=searched.case)
        self.count = self.corrupt = 0
        self.hits: list[Hit] = []

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        """Search some decoded records."""
        whole = [pair for pair in zip(rows, records, strict=True) if not isinstance(pair[1], CorruptRecord)]
        self.corrupt += len(records) - len(whole)
        if isinstance(self.needle, PlainNeedle):
            is_in, path = self.needle.is_in, self.searched.path
            found = [pair for pair in whole if any(map(is_in, _values(pair[1], path)))]
        else:
            found = self._by_regex(whole)
        self.count += len(found)
        for row, record in found[: MOST_HITS - len(self.hits)]:
            self.hits.append(self._hit(row, record))

    def result(
        self, done: int, of: int, unit: str, size: int, made_of: str, share: Share | None
    ) -> SearchResult:
        """Return what was found so far."""
        hits, what = tuple(self.hits), self.searched
        return SearchResult(what, done, of, unit, size, self.count, hits, self.corrupt, made_of, share)

    def _by_regex(self, pairs: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
        texts: list[str] = []
        of: list[int] = []
        for at, (_, record) in enumerate(pairs):
            some = [text for value in _values(record, self.searched.path) if (text := as_text(value))]
            texts += some
            of += [at] * len(some)
        found = {at for at, spans in zip(of, self.needle.spans(texts, most=1), strict=True) if spans}
        return [pair for at, pair in enumerate(pairs) if at in found]

    def _hit(self, row: int, record: Any) -> Hit:
        """Return the first place of what is looked for in a record that has it."""
        texts = [
            (path, text)
            for path, value in _texts(record, self.searched.path)
            if (text := as_text(value, strict=False))
        ]
        found = self.needle.spans([text for _, text in texts], most=100)
        for (path, text), spans in zip(texts, found, strict=True):
            if spans:
                return Hit(row, path_text(path), *_excerpt(text, spans))
        # Bytes that are not text have it as bytes.
        return Hit(row, path_text(()), "", ())


def _excerpt(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the text around the first place, and all places in it."""
    begin = max(0, spans[0][0] - _AROUND)
    end = min(len(text), spans[0][1] + _AROUND, begin + _LONGEST_SHOWN)
    inside = [(start - begin, min(stop, end) - begin) for start, stop in spans if start < end]
    return text[begin:end], tuple(inside)


def _values(record: Any, path: KeyPath | None) -> Iterator[str | bytes]:
    """Yield the texts and the bytes of a record, or of its values at a path, in any order."""
    waiting = [record] if path is None else values_at(record, path)
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is str or kind is bytes:
            yield value
        elif kind is dict:
            waiting += value.values()
        elif kind is list or kind is tuple:
            waiting += value


def _texts(record: Any, within: KeyPath | None) -> Iterator[tuple[KeyPath, str | bytes]]:
    """Yield the texts and the bytes of a record with their paths, in their order."""
    waiting: list[tuple[KeyPath, Any]] = [((), record)]
    if within is not None:
        waiting = [(within, value) for value in reversed(values_at(record, within))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str | bytes):
            yield path, value
        elif isinstance(value, dict):
            waiting += reversed([((*path, str(key)), below) for key, below in value.items()])
        elif isinstance(value, list | tuple):
            waiting += reversed([((*path, None), below) for below in value])


def _in_sample(node: Node, found: _Matches, *, n: int, seed: int) -> Generator[SearchResult]:
    def result(read: Sampled) -> SearchResult:
        share = share_of(found.count, read.done, exact=read.exact)
        return found.result(read.done, read.of, "rows", read.size, read.made_of, share)

    try:
        yield from surveyed(node, found.add, result, n=n, seed=seed)
    finally:
        found.needle.close()


def _in_all(node: Node, found: _Matches) -> Generator[SearchResult]:
    size = known_size(node, "a search")
    pace = ResultPace()
    steps, unit = _by_rows(node, found), "rows"
    if isinstance(node, FileSource) and _shows_texts(node.decoder) and isinstance(found.needle, PlainNeedle):
        patterns = _patterns(node.decoder, found.needle)
        if patterns:
            steps, unit = _by_bytes(node, patterns, found), "bytes"
    of, done = next(steps), 0
    try:
        for done in steps:
            if done < of and pace.due():
                yield found.result(done, of, unit, size, f"from the first {done:,} of {of:,} {unit}", None)
                pace.made()
    finally:
        found.needle.close()
    yield found.result(done, of, unit, size, from_all(datetime.now().astimezone()), None)


def _by_rows(node: Node, found: _Matches) -> Iterator[int]:
    """Yield how many rows there are, then how many were searched; all are decoded."""
    size = known_size(node, "a search")
    yield size
    for rows in row_pieces(0, size):
        found.add(rows.tolist(), read_rows(node, rows))
        yield int(rows[-1]) + 1


def _shows_texts(decoder: Decoder) -> TypeGuard[LineDecoder]:
    """Return True if the bytes of records show what texts are in them."""
    if not isinstance(decoder, LineDecoder):
        return False
    return (decoder.plain or decoder).name in ("json", "text", "bytes") or decoder.headed


def _by_bytes(source: FileSource, patterns: Sequence[bytes], found: _Matches) -> Iterator[int]:
    """Yield how many bytes all records have, then how many were searched."""
    done, case = 0, found.searched.case
    yield bytes_of_records(source.files)
    for piece in file_pieces(source.files):
        rows = _candidates(piece, patterns, case=case)
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            some = piece.first + np.array(rows[begin : begin + _ROWS_AT_ONCE], np.int64)
            found.add(some.tolist(), read_rows(source, some))
        done += len(piece.raw)
        yield done


def _candidates(piece: FilePiece, patterns: Sequence[bytes], *, case: bool) -> list[int]:
    """Return the records of a piece whose bytes have a pattern."""
    rows, starts = set[int](), piece.starts.data
    # Capital letters of ASCII become small ones; of other letters no byte changes.
    raw = piece.raw if case else piece.raw.lower()
    for pattern in patterns:
        at = raw.find(pattern)
        while at >= 0:
            row = bisect_right(starts, at) - 1
            rows.add(row)
            at = raw.find(pattern, starts[row + 1])
    return sorted(rows)


def _patterns(decoder: LineDecoder, needle: PlainNeedle) -> list[bytes]:
    """Return the bytes that files of a format may have for the text; none if all records must be decoded."""
    text = needle.text
    if not needle.case:
        # Letters beyond ASCII have other bytes as capitals.
        text = max(re.findall("[\x00-\x7f]+", text), key=len, default="")
        if not text:
            return []
    if (decoder.plain or decoder).name == "json":
        found = json_spellings(text)
    elif decoder.form:
        found = spellings(text, dialect_of(decoder.form))
    else:
        found = [text.encode("utf-8", "surrogatepass")]
    return found if needle.case else sorted({each.lower() for each in found})


def json_spellings(text: str) -> list[bytes]:
    r"""Return the bytes that usual writers of JSON write for a text within a string.

    They leave letters that are not ASCII as they are, or escape them with small or large digits. Some escape
    ``/``, and some the letters that mean something in HTML.

    Example:
        >>> json_spellings('say "hi"')
        [b'say \\"hi\\"', b'say \\u0022hi\\u0022']
    """
    ways = itertools.product(("", "04x", "04X"), ("", "/"), ("", "<>&\u2028\u2029", "<>&'+`\""))
    return sorted(
        {"".join([_letter(each, *way) for each in text]).encode("utf-8", "surrogatepass") for way in ways}
    )


def _letter(letter: str, digits: str, slash: str, html: str) -> str:
    """Return a letter within a JSON string.

    Args:
        letter: one letter.
        digits: the format of the digits of letters that are not ASCII; empty leaves these as they are.
        slash: ``"/"`` if it is escaped by a backslash.
        html: letters that are written as digits.
    """
    code, form = ord(letter), digits or "04x"
    if letter in html:
        return f"\\u{code:{form}}"
    if letter in _ESCAPES or letter == slash:
        return _ESCAPES.get(letter, f"\\{letter}")
    if code < ord(" "):
        return f"\\u{code:{form}}"
    if code > _LAST_ASCII and digits:
        halves = np.frombuffer(letter.encode("utf-16-le", "surrogatepass"), "<u2").tolist()
        return "".join([f"\\u{half:{form}}" for half in halves])
    return letter
